"""Bodies of requests about runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from waitpoint.hosting.requests import RunRequest
from waitpoint.records import INTERRUPT
from waitpoint.server.langgraph.bodies import Body, CheckpointBody

StreamMode = Literal[
    "values", "updates", "messages", "messages-tuple", "custom", "events", "tasks", "checkpoints", "debug", "tools"
]
_ENGINE_MODES = {"messages-tuple": "messages"}


class SendBody(Body):
    """A node to go to, with an input of its own."""

    node: str
    input: Any = None


Place = str | SendBody


class CommandBody(Body):
    """Answers, an update, places to go. `token`: the very same request again is the same run."""

    resume: Any = None
    update: dict[str, Any] | list[tuple[str, Any]] | None = None
    goto: Place | list[Place] | None = None
    token: Annotated[str, Field(min_length=1, max_length=255)] | None = None

    def document(self) -> dict[str, Any] | None:
        """Return what was given: an answer of null is one; None if nothing was."""
        given = self.model_dump(exclude={"token"}, exclude_none=True)
        if "resume" in self.model_fields_set:
            given["resume"] = self.resume
        if isinstance(given.get("update"), dict):
            given["update"].pop(INTERRUPT, None)
        return given or None


class RunBody(Body):
    """What a run is asked to do."""

    assistant_id: str = Field(description="An assistant's id, or the name of a graph.")
    input: Any = None
    command: CommandBody | None = None
    stream_mode: StreamMode | list[StreamMode] | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    interrupt_before: Literal["*"] | list[str] | None = None
    interrupt_after: Literal["*"] | list[str] | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: CheckpointBody | None = None
    checkpoint_id: str | None = None
    multitask_strategy: Literal["reject", "interrupt", "rollback", "enqueue"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_completion: Literal["delete", "keep"] | None = None
    on_pending: Literal["refuse", "withdraw"] | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    webhook: str | None = None
    after_seconds: float | None = Field(default=None, ge=0, le=1e9)
    durability: Literal["sync", "async", "exit"] | None = None
    checkpoint_during: bool | None = None
    strict_resume: bool | None = Field(default=None, description="Answers are always taken strictly.")

    @field_validator("config")
    @classmethod
    def _is_config(cls, config: dict[str, Any] | None) -> dict[str, Any] | None:
        for name, kind in (("configurable", dict), ("metadata", dict), ("tags", list), ("recursion_limit", int)):
            if config is not None and not isinstance(config.get(name), kind | None):
                raise ValueError(f"'{name}' is a {type(config[name]).__name__}; give a {kind.__name__}")
        return config

    @property
    def modes(self) -> list[str]:
        """The stream modes as the client named them."""
        given = self.stream_mode
        return [given] if isinstance(given, str) else list(given or ["values"])

    def request(self, token: str | None = None) -> RunRequest:
        """Return it as the host has it."""
        checkpoint = self.checkpoint or CheckpointBody()
        given = self.input
        if isinstance(given, dict):
            given = {name: value for name, value in given.items() if name != INTERRUPT}
        durability: str | None = self.durability
        if durability is None and self.checkpoint_during is not None:
            durability = "async" if self.checkpoint_during else "exit"
        return RunRequest(
            input=given,
            command=None if self.command is None else self.command.document(),
            modes=list(dict.fromkeys(_ENGINE_MODES.get(mode, mode) for mode in self.modes)),
            config=self.config or {},
            context=self.context,
            checkpoint_id=checkpoint.checkpoint_id or self.checkpoint_id,
            checkpoint_ns=checkpoint.checkpoint_ns or "",
            interrupt_before=self.interrupt_before,
            interrupt_after=self.interrupt_after,
            durability=durability,
            on_pending=self.on_pending or "refuse",
            webhook=self.webhook,
            delay=self.after_seconds or 0.0,
            token=token or (None if self.command is None else self.command.token),
            extra={"stream_mode": self.modes, "subgraphs": bool(self.stream_subgraphs)},
        )


class CancelBody(Body):
    """Which runs to cancel: some of a thread, or all of a status."""

    thread_id: str | None = None
    run_ids: list[str] | None = None
    status: Literal["pending", "running", "all"] | None = None
