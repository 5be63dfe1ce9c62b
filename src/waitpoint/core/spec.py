"""A graph as data: what `compile()` hands to the engine. Declared once, never changed.

`core` reads channels and edges only; the callables in `Node` and `Branch` are called by the engine, in tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from waitpoint.records import CachePolicy, RetryPolicy, TimeoutPolicy

ChannelKind = Literal["last", "fold", "append", "messages"]

PREVIOUS: Final = "__previous__"
"""The key under which the graph of an entrypoint saves what its next run gets as `previous`."""

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Channel(NamedTuple):
    """One key of the state and how writes to it combine.

    kind "last": the one write of a superstep (a second one is an error).
    kind "fold": `reducer(current, write)` for each write in task order, from `default()` (missing: from the first write).
    kind "append": like fold with `operator.add` on lists; stored item by item.
    kind "messages": like fold with `add_messages`; stored item by item.

    `prepare` makes of a write what is recorded and combined (messages get their ids there, once); None: the write itself.
    """

    name: str
    kind: ChannelKind
    reducer: Callable[[Any, Any], Any] | None = None
    default: Callable[[], Any] | None = None
    prepare: Callable[[Any], Any] | None = None


class Call(NamedTuple):
    """Something callable with what it wants injected.

    `wants` maps parameter names to what they get: "config", "writer", "store", "runtime", "previous", "error", and for
    `Runtime`-annotated parameters of any name "runtime". `kind` "function": `fn(input, **wanted)`, a coroutine if
    `is_async`. "runnable": an object with `invoke(input, config)` and `ainvoke(input, config)`. "graph": a compiled
    graph of ours, run as a subgraph.
    """

    fn: Any
    name: str
    kind: Literal["function", "runnable", "graph"] = "function"
    is_async: bool = False
    takes_input: bool = True
    wants: Mapping[str, str] = _NONE


class Reader(NamedTuple):
    """How a node's or router's input is made from the values: these keys, then `make` (None: the dict itself).

    With `whole` the state is one unnamed value (key "__root__") and the input is that value. `managed` names further keys
    that the engine fills at each task: "remaining_steps" or "is_last_step".
    """

    keys: tuple[str, ...]
    make: Callable[[dict[str, Any]], Any] | None = None
    whole: bool = False
    managed: Mapping[str, str] = _NONE


class Branch(NamedTuple):
    """A router behind a node: `call` returns where to go; `ends` maps its results to node names (None: names as such)."""

    name: str
    call: Call
    reader: Reader
    ends: Mapping[Any, str] | None = None


class Node(NamedTuple):
    """A node: its call, its input, and what follows it. `edges` may hold `END`.

    `destinations` are where its commands may go, for drawings; a mapping gives them labels. With `goto_instead` a `goto`
    of its own takes the place of its routers; else both count.
    """

    name: str
    call: Call
    reader: Reader
    edges: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()
    retry: tuple[RetryPolicy, ...] = ()
    error_handler: Call | None = None
    destinations: tuple[str, ...] | Mapping[str, str] | None = None
    metadata: Mapping[str, Any] = _NONE
    defer: bool = False
    timeout: TimeoutPolicy | None = None
    goto_instead: bool = False
    cache_policy: CachePolicy | None = None


class Join(NamedTuple):
    """An edge that waits for all of `sources`, over supersteps, then goes to `target` once."""

    sources: frozenset[str]
    target: str

    @property
    def name(self) -> str:
        """The key under which its progress is kept."""
        return f"join:{'+'.join(sorted(self.sources))}:{self.target}"


class Unfinished(NamedTuple):
    """A task that new input leaves behind: its node, what was sent to it, and how far it came.

    `state` "waiting": a question was open; "failed": it raised `error`; "in_doubt": an effect of it may or may not have
    happened; "due": it had not run.
    """

    node: str
    arg: Any
    state: Literal["waiting", "failed", "in_doubt", "due"]
    error: str | None = None


class GraphSpec(NamedTuple):
    """A compiled graph. `nodes` holds "__start__" too, a node without a call whose edges and branches are the entry.

    `input_keys` are the keys an input may write; `to_writes` turns an update (dict, dataclass or model instance, list of
    pairs) into (key, value) pairs, keys unknown to the graph dropped, and raises `InvalidUpdateError` for anything else.
    `make_input` validates and normalises the graph's input (pydantic schemas validate there). `types` are the schemas whose
    types the codec must know. `output_keys` are what `invoke` returns, `shown_keys` what streams and snapshots show: as a dict,
    or with `whole` or `is_bare` the value of the only one.

    `settle(values, unfinished)` is asked when new input comes to a thread with unfinished tasks; it returns an update that
    closes what they leave open (an agent's unanswered tool calls), or None. `asker` names what in the graph asks for sure,
    so that a run without a checkpointer is refused before anything runs. `extras` is what layers above attach; the engine
    only carries it.

    With `is_function` the graph is a function, its only node: an input goes to it without a step of its own, what its
    tasks show is shown at once, and while it waits its last result is not shown as if it were this run's.

    `make_state` and `make_output` make instances of the classes that declare state and output, for callers that want
    them; None: dicts.
    """

    name: str
    channels: Mapping[str, Channel]
    nodes: Mapping[str, Node]
    joins: Sequence[Join]
    input_keys: tuple[str, ...]
    output_keys: tuple[str, ...]
    shown_keys: tuple[str, ...]
    to_writes: Callable[[Any], list[tuple[str, Any]]]
    make_input: Callable[[Any], Any]
    types: tuple[Any, ...] = ()
    whole: bool = False
    is_bare: bool = False
    settle: Callable[[dict[str, Any], Sequence[Unfinished]], Any] | None = None
    asker: str | None = None
    extras: Mapping[str, Any] = _NONE
    is_function: bool = False
    make_state: Callable[[dict[str, Any]], Any] | None = None
    make_output: Callable[[dict[str, Any]], Any] | None = None
