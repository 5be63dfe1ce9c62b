"""Which tool calls need a person's decision, and which decisions: `interrupt_on`, checked when the agent is built."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, get_args

from typing_extensions import TypedDict

from waitpoint.core.names import suggestion
from waitpoint.errors import ConfigError
from waitpoint.interrupts.effects import InDoubt, Probe
from waitpoint.protocol.payloads import DecisionType

DECISIONS: Final[tuple[DecisionType, ...]] = get_args(DecisionType)
EVERY_TOOL: Final = "*"
_PATTERN_CHARACTERS = frozenset("*?[")


class InterruptOnConfig(TypedDict, total=False):
    """How calls of a tool are decided.

    `allowed_decisions` lists what a person may do. `description` is what the question says, a text or a function of (tool call,
    state, runtime). `when` decides for each call whether it is asked about: only an explicit False lets it pass; its verdict is
    recorded. `idempotent` says that running a call twice does no harm, `probe(idempotency_key, args)` finds out whether one
    happened; without either, a call that a crash left in doubt is asked about. `args_schema` is accepted because LangChain's
    configs may have it, and does nothing, as there: what an edit must be follows from the tool.
    """

    allowed_decisions: Sequence[DecisionType]
    description: str | Callable[..., str]
    when: Callable[..., Any]
    idempotent: bool
    probe: Probe
    args_schema: Mapping[str, Any]


@dataclass(frozen=True)
class Policy:
    """What a tool's calls need. `kind` "free": nothing; "ask": a decision; "deny": they are refused."""

    kind: Literal["free", "ask", "deny"]
    allowed: tuple[DecisionType, ...] = DECISIONS
    description: str | Callable[..., Any] | None = None
    when: Callable[..., Any] | None = None
    in_doubt: InDoubt = "ask"

    @property
    def strictness(self) -> tuple[int, int]:
        """How much it forbids, to be compared: a predicate may let a call pass, and then a person what is allowed."""
        kind = {"free": 0, "ask": 1 if self.when is not None else 2, "deny": 3}[self.kind]
        return kind, -sum(decision in self.allowed for decision in ("approve", "edit"))  # the others run nothing

    def within(self, others: Iterable[Policy]) -> Policy:
        """Return this policy joined with others that ask: what lets a call run all must allow, what does not any may."""
        asking = [p for p in others if p.kind == "ask"] if self.kind == "ask" else []
        if len(asking) < 2:
            return self
        everywhere = [d for d in DECISIONS if all(d in p.allowed for p in asking)]
        anywhere = [d for d in ("reject", "respond") if any(d in p.allowed for p in asking)]
        allowed = tuple(d for d in DECISIONS if d in everywhere or d in anywhere) or ("reject",)
        in_doubt = "ask" if any(p.in_doubt == "ask" for p in asking) else self.in_doubt
        return replace(self, allowed=allowed, in_doubt=in_doubt)


FREE = Policy("free", in_doubt="rerun")


@dataclass(frozen=True)
class Policies:
    """The policies of an agent, by tool name or pattern."""

    by_name: Mapping[str, Policy] = field(default_factory=dict)

    def of(self, tool: str) -> Policy | None:
        """Return a tool's policy, None if nothing speaks of it: an exact name beats a pattern, a pattern beats `*`."""
        return self.named(tool) or self.by_name.get(EVERY_TOOL)

    def named(self, tool: str) -> Policy | None:
        """Do the same, leaving out what is said of every tool."""
        if tool in self.by_name:
            return self.by_name[tool]
        fitting = [p for p in self.by_name if is_pattern(p) and p != EVERY_TOOL and fnmatchcase(tool, p)]
        return self.by_name[max(fitting, key=len)] if fitting else None

    def check_names(self, tools: Iterable[str]) -> None:
        """Refuse a name or pattern that no tool has. Raises `ConfigError`."""
        known = sorted(tools)
        for name in self.by_name:
            if is_pattern(name):
                if not any(fnmatchcase(tool, name) for tool in known):
                    raise ConfigError(
                        f"`interrupt_on` has the pattern {name!r}, which matches no tool of the agent, so it would gate "
                        f"nothing; the tools are {_listed(known)}"
                    )
            elif name not in known:
                raise ConfigError(
                    f"`interrupt_on` names {name!r}, which is no tool of the agent, so it would gate nothing"
                    f"{suggestion(name, known)}"
                )

    def asking(self) -> bool:
        """Whether anything is asked at all."""
        return any(policy.kind == "ask" for policy in self.by_name.values())


def is_pattern(name: str) -> bool:
    """Whether a key of `interrupt_on` is a pattern in the manner of file names."""
    return not _PATTERN_CHARACTERS.isdisjoint(name)


def read_policies(interrupt_on: Any) -> Policies:
    """Read `interrupt_on`. Raises `ConfigError` for whatever would not gate as its writer may think."""
    if not isinstance(interrupt_on, Mapping):
        raise ConfigError(
            f"`interrupt_on` is a {type(interrupt_on).__name__}; give a dict of tool names, such as "
            f'{{"send_email": True}}'
        )
    if not interrupt_on:
        raise ConfigError("`interrupt_on` is empty, so nothing would be asked; name the tools that need a decision")
    return Policies({_name(name): _policy(name, value) for name, value in interrupt_on.items()})


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f"`interrupt_on` has the key {name!r}; its keys are names of tools, or patterns such as 'delete_*'"
        )
    return name


def _policy(name: str, value: Any) -> Policy:
    if value is True:
        return Policy("ask")
    if value is False:
        return FREE
    if value == "deny":
        return Policy("deny")
    if isinstance(value, Mapping):
        return _configured(name, value)
    raise ConfigError(
        f"`interrupt_on[{name!r}]` is {value!r}; give True (any decision), False (no question), 'deny' (refuse without asking) "
        f"or a dict with 'allowed_decisions'"
    )


def _configured(name: str, config: Mapping[str, Any]) -> Policy:
    known = InterruptOnConfig.__annotations__
    for key in config:
        if key not in known:
            raise ConfigError(f"`interrupt_on[{name!r}]` has the key {key!r}{suggestion(str(key), known)}")
    if "allowed_decisions" not in config:
        raise ConfigError(f"`interrupt_on[{name!r}]` has no 'allowed_decisions'; list some of {_listed(DECISIONS)}")
    description, when = config.get("description"), config.get("when")
    if description is not None and not isinstance(description, str) and not callable(description):
        raise ConfigError(f"'description' of `interrupt_on[{name!r}]` is {description!r}; give a text or a function")
    if when is not None and not callable(when):
        raise ConfigError(f"'when' of `interrupt_on[{name!r}]` is {when!r}; give a function of the tool call's request")
    return Policy("ask", _decisions(name, config["allowed_decisions"]), description, when, _in_doubt(name, config))


def _decisions(name: str, allowed: Any) -> tuple[DecisionType, ...]:
    if isinstance(allowed, str) or not isinstance(allowed, Iterable):
        raise ConfigError(
            f"'allowed_decisions' of `interrupt_on[{name!r}]` is {allowed!r}; give a list such as ['approve', 'reject']"
        )
    listed = tuple(dict.fromkeys(allowed))
    if not listed:
        raise ConfigError(
            f"'allowed_decisions' of `interrupt_on[{name!r}]` is empty, so nobody could ever answer; list some of "
            f"{_listed(DECISIONS)}, or write 'deny' to refuse without asking"
        )
    for decision in listed:
        if decision not in DECISIONS:
            raise ConfigError(
                f"'allowed_decisions' of `interrupt_on[{name!r}]` has {decision!r}{suggestion(str(decision), DECISIONS)}"
            )
    return listed


def _in_doubt(name: str, config: Mapping[str, Any]) -> InDoubt:
    idempotent, probe = config.get("idempotent", False), config.get("probe")
    if not isinstance(idempotent, bool):
        raise ConfigError(f"'idempotent' of `interrupt_on[{name!r}]` is {idempotent!r}; give True or False")
    if probe is not None and (not callable(probe) or inspect.iscoroutinefunction(probe)):
        raise ConfigError(f"'probe' of `interrupt_on[{name!r}]` is {probe!r}; give a plain function of (key, args)")
    if idempotent and probe is not None:
        raise ConfigError(
            f"`interrupt_on[{name!r}]` has 'idempotent' and 'probe'; a call that may run twice needs no probe"
        )
    if idempotent:
        return "rerun"
    return "ask" if probe is None else probe


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
