"""The builder: `StateGraph` collects nodes, edges and routers; `compile()` makes a graph that runs of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, Protocol, Self

from typing_extensions import TypeVar

from waitpoint.cache.base import BaseCache
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.core import names
from waitpoint.core.spec import GraphSpec
from waitpoint.engine.runner import Runner
from waitpoint.errors import GraphValidationError
from waitpoint.graph import jsonschemas
from waitpoint.graph.build import build
from waitpoint.graph.calls import make_call, name_of
from waitpoint.graph.declaration import BranchSpec, Declaration, StateNodeSpec
from waitpoint.graph.hints import command_destinations, input_hint, literal_returns
from waitpoint.graph.policies import Retry, Timeout, cache_policy_of, retries_of, timeout_of
from waitpoint.graph.validate import DEFAULT_ERROR_HANDLER, validate
from waitpoint.records import END, START, CachePolicy

__all__ = ["Checkpointer", "CompiledStateGraph", "StateGraph"]

StateT = TypeVar("StateT")
ContextT = TypeVar("ContextT", default=None)
InputT = TypeVar("InputT", default=StateT)
OutputT = TypeVar("OutputT", default=StateT)


class Invokable(Protocol):
    """A Runnable, as far as a graph calls it."""

    def invoke(self, input: Any, config: Any = None, /) -> Any:
        """Run it."""

    async def ainvoke(self, input: Any, config: Any = None, /) -> Any:
        """Run it without blocking."""


StateNode = Callable[..., Any] | Invokable
Checkpointer = BaseCheckpointSaver | bool | None

# They separate the parts of a namespace ("node:task|inner:task"), so no node's name may hold one.
RESERVED_CHARACTERS = ("|", ":")


class StateGraph(Generic[StateT, ContextT, InputT, OutputT]):
    """A graph whose nodes read a shared state and return updates of it.

    `state_schema` is a TypedDict, dataclass or pydantic model; a key annotated `Annotated[type, reducer]` combines its
    writes by `reducer(current, update)`. `context_schema` is what a run takes as `context`. The builder does not run:
    `compile()` it. What is added later is in the next `compile()`.
    """

    def __init__(
        self,
        state_schema: type[StateT],
        context_schema: type[ContextT] | None = None,
        *,
        input_schema: type[InputT] | None = None,
        output_schema: type[OutputT] | None = None,
    ) -> None:
        self.declared = Declaration(
            state_schema, input_schema or state_schema, output_schema or state_schema, context_schema
        )
        self.declared.add_schema(self.declared.state_schema)
        self.declared.add_schema(self.declared.input_schema, may_have_managed=False)
        self.declared.add_schema(self.declared.output_schema, may_have_managed=False)

    # --- what was declared --------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> Mapping[str, StateNodeSpec]:
        """The nodes by name."""
        return self.declared.nodes

    @property
    def edges(self) -> set[tuple[str, str]]:
        """The plain edges."""
        return set(self.declared.edges)

    @property
    def waiting_edges(self) -> set[tuple[tuple[str, ...], str]]:
        """The edges that wait for all of several nodes."""
        return set(self.declared.waiting_edges)

    @property
    def branches(self) -> Mapping[str, Mapping[str, BranchSpec]]:
        """The routers, by the node they stand behind and their name."""
        return self.declared.branches

    @property
    def channels(self) -> Mapping[str, Any]:
        """The keys of the state and of all nodes' own schemas."""
        return self.declared.channels

    @property
    def state_schema(self) -> Any:
        """The schema of the state."""
        return self.declared.state_schema

    @property
    def input_schema(self) -> Any:
        """The schema of what a run takes."""
        return self.declared.input_schema

    @property
    def output_schema(self) -> Any:
        """The schema of what a run returns."""
        return self.declared.output_schema

    @property
    def context_schema(self) -> Any:
        """The schema of a run's context, or None."""
        return self.declared.context_schema

    # --- nodes --------------------------------------------------------------------------------------------------------

    def add_node(
        self,
        node: str | StateNode,
        action: StateNode | None = None,
        *,
        defer: bool = False,
        metadata: dict[str, Any] | None = None,
        input_schema: type[Any] | None = None,
        retry_policy: Retry | None = None,
        cache_policy: CachePolicy | None = None,
        error_handler: StateNode | None = None,
        destinations: dict[str, str] | tuple[str, ...] | None = None,
        timeout: Timeout | None = None,
    ) -> Self:
        """Add a node: `add_node(function)`, named after it, or `add_node("name", function)`.

        The node sees the keys of `input_schema`; without it, of the class that annotates its first parameter; else of
        the state. With `defer` it runs when nothing else is due. `destinations` lists where its `Command`s may lead
        (also taken from `-> Command[Literal["a", "b"]]`). `timeout` is in seconds or a `TimeoutPolicy`, for async nodes.
        `error_handler` is called with the node's input and `error: NodeError` after the last retry failed. With a
        `cache_policy`, and a `cache` of the graph, it is not run for an input that it has had before.
        """
        if isinstance(node, str) or names.node_name(node) is not node:
            name = names.node_name(node)
            if action is None:
                raise GraphValidationError(
                    f"add_node('{name}') names a node without saying what it runs; write add_node('{name}', function)"
                )
        else:
            name, action = name_of(node), node
        self._check_new_name(name)
        declared_input = input_schema or input_hint(action)
        spec = StateNodeSpec(
            call=make_call(action, name),
            input_schema=declared_input or self.declared.state_schema,
            metadata=dict(metadata or {}),
            retry_policy=retries_of(retry_policy),
            cache_policy=cache_policy_of(cache_policy),
            error_handler=None if error_handler is None else make_call(error_handler, f"__error_handler__{name}"),
            ends=_ends(destinations) if destinations is not None else command_destinations(action),
            defer=defer,
            timeout=timeout_of(timeout),
        )
        self.declared.add_schema(spec.input_schema)
        self.declared.nodes[name] = spec
        return self

    def add_sequence(self, nodes: Sequence[StateNode | tuple[str, StateNode]]) -> Self:
        """Add nodes, each with an edge to the next; an item is a function or a (name, function) pair."""
        if not nodes:
            raise GraphValidationError("Sequence requires at least one node, and the list is empty; give it some")
        previous: str | None = None
        for item in nodes:
            name, action = item if isinstance(item, tuple) else (name_of(item), item)
            self.add_node(name, action)
            name = names.node_name(name)
            if previous is not None:
                self.add_edge(previous, name)
            previous = name
        return self

    def set_node_defaults(
        self,
        *,
        retry_policy: Retry | None = None,
        cache_policy: CachePolicy | None = None,
        error_handler: StateNode | None = None,
        timeout: Timeout | None = None,
    ) -> Self:
        """Set what nodes without their own get at `compile()`; what is left out here stays as it was set before."""
        given: dict[str, Any] = {
            "retry_policy": retries_of(retry_policy),
            "cache_policy": cache_policy_of(cache_policy),
            "error_handler": None if error_handler is None else make_call(error_handler, DEFAULT_ERROR_HANDLER),
            "timeout": timeout_of(timeout),
        }
        changed = {key: value for key, value in given.items() if value is not None}
        self.declared.defaults = replace(self.declared.defaults, **changed)
        return self

    # --- edges --------------------------------------------------------------------------------------------------------

    def add_edge(self, start_key: str | list[str], end_key: str) -> Self:
        """Run `end_key` after `start_key`; after all of them, over steps, if it is a list."""
        end = names.node_name(end_key)
        if end == START:
            raise GraphValidationError(
                "START cannot be an end node - a graph is entered once; name the node to go back to"
            )
        if isinstance(start_key, str) or names.node_name(start_key) is not start_key:
            start = names.node_name(start_key)
            if start == END:
                raise GraphValidationError(
                    "END cannot be a start node - nothing runs after it; name the node before END"
                )
            self.declared.edges[(start, end)] = None
            return self
        starts = tuple(names.node_name(start) for start in start_key)
        if not starts:
            raise GraphValidationError(
                f"add_edge([], '{end}') waits for no node, so it would never be taken; name some"
            )
        for name in (*starts, end):
            if name == END and name in starts:
                raise GraphValidationError(
                    "END cannot be a start node - nothing runs after it; name the node before END"
                )
            if name not in self.declared.nodes and name != END:
                raise GraphValidationError(
                    f"Need to add_node `{name}` first - an edge that waits for several nodes is added after them"
                    f"{names.suggestion(name, self.declared.nodes)}"
                )
        self.declared.waiting_edges[(starts, end)] = None
        return self

    def add_conditional_edges(
        self,
        source: str,
        path: StateNode,
        path_map: Mapping[Hashable, str] | Sequence[str] | None = None,
    ) -> Self:
        """Let `path` choose what runs after `source`: it returns a name, a `Send`, or a list of them.

        `path_map` maps its results to node names, or lists the names it may return (also taken from
        `-> Literal["a", "b"]`).
        """
        start = names.node_name(source)
        name = name_of(path)
        name = "condition" if name == "<lambda>" else name
        branches = self.declared.branches.setdefault(start, {})
        if name in branches:
            raise GraphValidationError(
                f"Branch with name `{name}` already exists for node `{start}` - two routers behind a node need two "
                f"names; use functions with names of their own"
            )
        schema = input_hint(path)
        if schema is not None:
            self.declared.add_schema(schema)
        branches[name] = BranchSpec(make_call(path, name), _path_ends(path, path_map), schema)
        return self

    def set_entry_point(self, key: str) -> Self:
        """Begin with this node: `add_edge(START, key)`."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(
        self, path: StateNode, path_map: Mapping[Hashable, str] | Sequence[str] | None = None
    ) -> Self:
        """Let `path` choose the first node: `add_conditional_edges(START, path, path_map)`."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self, key: str) -> Self:
        """End after this node: `add_edge(key, END)`."""
        return self.add_edge(key, END)

    # --- from here to a graph that runs -------------------------------------------------------------------------------

    def validate(self, interrupt: Sequence[str] | None = None) -> Self:
        """Refuse a graph that cannot work, as `compile()` does; `interrupt` are names of breakpoints to check."""
        validate(self.declared, interrupt or ())
        return self

    def compile(
        self,
        checkpointer: Checkpointer = None,
        *,
        cache: BaseCache[Any] | None = None,
        store: Any = None,
        interrupt_before: Literal["*"] | Sequence[str] | None = None,
        interrupt_after: Literal["*"] | Sequence[str] | None = None,
        debug: bool = False,
        name: str | None = None,
        transformers: Sequence[Callable[[tuple[str, ...]], Any]] | None = None,
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """Check the graph and return one that runs.

        `checkpointer` is a saver; None: none, or as a subgraph the parent's; True is for a state of one's own as a
        subgraph, which is not available yet; False: none in any case. `interrupt_before` and `interrupt_after` are
        static breakpoints. `name` owns the graph's threads: another name, other threads. `debug` warns of bodies that
        run again over effects on record, and of inputs changed in place (`waitpoint.errors.DebugWarning`). `cache`
        keeps what nodes with a cache policy returned, over threads too. `transformers` are part of each of its event streams.

        Raises:
            GraphValidationError: the graph cannot work; the text names the node and says the cure.
        """
        before, after = _breakpoints(interrupt_before), _breakpoints(interrupt_after)
        self.validate([name for given in (before, after) if given != "*" for name in given])
        compiled = CompiledStateGraph(
            self,
            build(self.declared, name or names.UNNAMED),
            checkpointer=checkpointer,
            store=store,
            cache=cache,
            interrupt_before=before,
            interrupt_after=after,
            debug=debug,
            context_schema=self.declared.context_schema,
        )
        compiled.transformers = tuple(transformers or ())
        return compiled

    def _check_new_name(self, name: Any) -> None:
        if not isinstance(name, str) or not name:
            raise GraphValidationError(f"a node's name is a text, not {name!r}; write add_node('name', function)")
        if name in self.declared.nodes:
            raise GraphValidationError(
                f"Node `{name}` already present: node with the name '{name}' already exists. Node names must be "
                f"unique; write add_node('another_name', function)"
            )
        if name in (START, END):
            raise GraphValidationError(f"Node `{name}` is reserved. It names the graph's own ends; choose another name")
        for character in RESERVED_CHARACTERS:
            if character in name:
                raise GraphValidationError(
                    f"'{character}' is a reserved character and is not allowed in the node names - '{name}' holds it, "
                    f"and namespaces are built with it; choose another name"
                )


class CompiledStateGraph(Runner, Generic[StateT, ContextT, InputT, OutputT]):
    """A `StateGraph` that runs. `builder` is what it was compiled from."""

    def __init__(self, builder: StateGraph[StateT, ContextT, InputT, OutputT], spec: GraphSpec, **options: Any) -> None:
        super().__init__(spec, **options)
        self.builder = builder

    @property
    def InputType(self) -> Any:  # noqa: N802 - LangChain's name
        """The schema of what a run takes."""
        return self.builder.input_schema

    @property
    def OutputType(self) -> Any:  # noqa: N802 - LangChain's name
        """The schema of what a run returns."""
        return self.builder.output_schema

    def get_input_schema(self, config: Any = None) -> Any:  # noqa: ARG002 - LangChain's signature
        """Return a pydantic model of the input."""
        return jsonschemas.model_of(self._schema(self.InputType), f"{self.spec.name}Input")

    def get_output_schema(self, config: Any = None) -> Any:  # noqa: ARG002 - LangChain's signature
        """Return a pydantic model of the output."""
        return jsonschemas.model_of(self._schema(self.OutputType), f"{self.spec.name}Output")

    def get_input_jsonschema(self, config: Any = None) -> dict[str, Any]:  # noqa: ARG002 - LangChain's signature
        """Return the JSON Schema of the input."""
        return jsonschemas.json_schema(self._schema(self.InputType), f"{self.spec.name}Input")

    def get_output_jsonschema(self, config: Any = None) -> dict[str, Any]:  # noqa: ARG002 - LangChain's signature
        """Return the JSON Schema of the output."""
        return jsonschemas.json_schema(self._schema(self.OutputType), f"{self.spec.name}Output")

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the context, None if none is declared."""
        return jsonschemas.context_json_schema(self.builder.context_schema)

    def _schema(self, declared: Any) -> Any:
        return self.builder.declared.schemas[declared]


def _breakpoints(given: str | Sequence[str] | None) -> Sequence[str]:
    """Return the names of static breakpoints; "*" stays as it is."""
    if isinstance(given, str) and given == "*":
        return given
    return [names.node_name(name) for name in ([given] if isinstance(given, str) else given or ())]


def _ends(destinations: dict[str, str] | tuple[str, ...]) -> tuple[str, ...] | dict[str, str]:
    if isinstance(destinations, dict):
        return {names.node_name(name): label for name, label in destinations.items()}
    return tuple(names.node_name(name) for name in destinations)


def _path_ends(path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None) -> dict[Any, str] | None:
    if path_map is None:
        return literal_returns(path)
    if isinstance(path_map, Mapping):
        return {result: names.node_name(name) for result, name in path_map.items()}
    return {name: names.node_name(name) for name in path_map}
