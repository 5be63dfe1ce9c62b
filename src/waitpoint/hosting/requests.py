"""What a run was asked to do: a request as the ledger keeps it, so that another process can go on with it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from waitpoint.records import END, MISSING


@dataclass(slots=True)
class RunRequest:
    """A request to run a thread. `modes` are stream modes of the engine, and "events".

    `command` is a document with `resume`, `update`, `goto`; with one, `input` counts for nothing.
    """

    input: Any = None
    command: dict[str, Any] | None = None
    modes: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] | None = None
    checkpoint_id: str | None = None
    checkpoint_ns: str = ""
    interrupt_before: list[str] | str | None = None
    interrupt_after: list[str] | str | None = None
    durability: str | None = None
    on_pending: str = "refuse"
    withdraws: bool = False  # drop what the thread has yet to do: the run before was cancelled or displaced
    webhook: str | None = None
    delay: float = 0.0  # seconds until it may begin
    token: str | None = None  # the same request with the same token is the same run
    extra: dict[str, Any] = field(default_factory=dict)  # what a face wants to find again

    @property
    def resume(self) -> Any:
        """The answers in the command, `MISSING` if it has none."""
        return MISSING if self.command is None else self.command.get("resume", MISSING)

    @property
    def does_nothing_but_end(self) -> bool:
        """Whether the command only says that the thread has nothing more to do."""
        command = self.command or {}
        return command.get("goto") in (END, [END]) and "resume" not in command and command.get("update") is None

    def digest(self) -> str:
        """Return what tells this request from others that come with its token."""
        asked = {name: value for name, value in asdict(self).items() if name not in ("extra", "withdraws")}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, document: dict[str, Any]) -> RunRequest:
        """Read what `document` wrote; fields of a later version are left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in document.items() if name in known})
