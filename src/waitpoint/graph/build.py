"""The build: a checked declaration becomes a `GraphSpec`, the graph as data."""

from __future__ import annotations

from collections.abc import Iterable

from waitpoint.core.spec import Branch, Call, GraphSpec, Join, Node, Reader
from waitpoint.graph.declaration import Declaration, StateNodeSpec
from waitpoint.graph.updates import input_maker, writer
from waitpoint.records import END, START


def build(declared: Declaration, name: str) -> GraphSpec:
    """Return the spec of a declaration that `validate` accepted."""
    state = declared.schemas[declared.state_schema]
    given = declared.schemas[declared.input_schema]
    result = declared.schemas[declared.output_schema]
    nodes = {START: _entry(declared)}
    nodes |= {key: _node(declared, key, node) for key, node in declared.nodes.items()}
    return GraphSpec(
        name=name,
        channels=dict(declared.channels),
        nodes=nodes,
        joins=tuple(Join(frozenset(sources), end) for sources, end in declared.waiting_edges if end != END),
        input_keys=tuple(given.channels),
        output_keys=tuple(result.channels),
        shown_keys=tuple(declared.channels),
        to_writes=writer(declared.channels, is_whole=state.is_whole),
        make_input=input_maker(given),
        types=_types(declared, nodes.values()),
        whole=state.is_whole,
        make_state=state.maker(),
        make_output=result.maker(),
    )


def _entry(declared: Declaration) -> Node:
    return Node(
        name=START,
        call=Call(None, START, takes_input=False),
        reader=Reader(tuple(declared.schemas[declared.input_schema].channels)),
        edges=_edges(declared, START),
        branches=_branches(declared, START),
    )


def _node(declared: Declaration, name: str, node: StateNodeSpec) -> Node:
    """Return a node, with the graph's defaults where it has nothing of its own."""
    defaults = declared.defaults
    retry = defaults.retry_policy if node.retry_policy is None else node.retry_policy
    return Node(
        name=name,
        call=node.call,
        reader=declared.schemas[node.input_schema].reader(),
        edges=_edges(declared, name),
        branches=_branches(declared, name),
        retry=retry or (),
        error_handler=node.error_handler or defaults.error_handler,
        destinations=node.ends,
        metadata=node.metadata,
        defer=node.defer,
        timeout=defaults.timeout if node.timeout is None else node.timeout,
        cache_policy=node.cache_policy or defaults.cache_policy,
    )


def _edges(declared: Declaration, source: str) -> tuple[str, ...]:
    return tuple(end for start, end in declared.edges if start == source)


def _branches(declared: Declaration, source: str) -> tuple[Branch, ...]:
    """Return the routers behind a node; one without a schema of its own reads what the node reads."""
    own = declared.nodes[source].input_schema if source in declared.nodes else declared.state_schema
    return tuple(
        Branch(name, branch.call, declared.schemas[branch.input_schema or own].reader(), branch.ends)
        for name, branch in declared.branches.get(source, {}).items()
    )


def _types(declared: Declaration, nodes: Iterable[Node]) -> tuple[object, ...]:
    """All schemas, each once, those of subgraphs too: the codec must know the types of their values."""
    nested = [schema for node in nodes if node.call.kind == "graph" for schema in node.call.fn.spec.types]
    found = [*declared.schemas, declared.context_schema, *nested]
    return tuple({id(schema): schema for schema in found if schema is not None}.values())
