"""Bodies of requests. Clients send fields that are not known here, and nulls: both are taken as not given."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from waitpoint.hosting.requests import RunRequest


class Body(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="ignore")


class CheckpointBody(Body):
    """A checkpoint as clients echo it."""

    thread_id: str | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: str | None = None
    checkpoint_map: dict[str, Any] | None = None


class RunBody(Body):
    """What a run is asked to do."""

    assistant_id: str = Field(description="An assistant's id, or the name of a graph.")
    input: Any = None
    command: dict[str, Any] | None = None
    stream_mode: str | list[str] | None = None
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
    after_seconds: float | None = Field(default=None, ge=0)
    durability: Literal["sync", "async", "exit"] | None = None
    strict_resume: bool | None = None

    @property
    def modes(self) -> list[str]:
        """The stream modes as the client named them."""
        given = self.stream_mode
        return [given] if isinstance(given, str) else list(given or ["values"])

    def request(self) -> RunRequest:
        """Return it as the host has it."""
        checkpoint = self.checkpoint or CheckpointBody()
        engine = {"messages-tuple": "messages"}
        return RunRequest(
            input=self.input,
            command=self.command,
            modes=list(dict.fromkeys(engine.get(mode, mode) for mode in self.modes)),
            config=self.config or {},
            context=self.context,
            checkpoint_id=checkpoint.checkpoint_id or self.checkpoint_id,
            checkpoint_ns=checkpoint.checkpoint_ns or "",
            interrupt_before=self.interrupt_before,
            interrupt_after=self.interrupt_after,
            durability=self.durability,
            on_pending=self.on_pending or "refuse",
            webhook=self.webhook,
            extra={"stream_mode": self.modes, "subgraphs": bool(self.stream_subgraphs)},
        )


class ThreadBody(Body):
    """A new thread."""

    thread_id: str | None = None
    metadata: dict[str, Any] | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
