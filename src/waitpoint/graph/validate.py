"""Validation: a graph that cannot work is refused when it is compiled, by name and with the cure."""

from __future__ import annotations

from collections.abc import Iterable

from waitpoint.core.names import suggestion
from waitpoint.errors import GraphValidationError
from waitpoint.graph.calls import has_async_body
from waitpoint.graph.declaration import Declaration
from waitpoint.records import END, START

DEFAULT_ERROR_HANDLER = "__default_error_handler__"


def validate(declared: Declaration, breakpoints: Iterable[str] = ()) -> None:
    """Refuse unknown names, a missing entry, and options that do not fit their node.

    Raises:
        GraphValidationError: the text names the node and says the cure.
    """
    nodes = declared.nodes
    _check_sources(declared)
    for source, target in declared.all_edges():
        if target not in nodes and target != END:
            raise GraphValidationError(_unknown_target(target, f"the edge from '{source}' goes there", nodes))
    for source, branches in declared.branches.items():
        for name, branch in branches.items():
            for end in (branch.ends or {}).values():
                if end not in nodes and end != END:
                    raise GraphValidationError(
                        f"At '{source}' node, '{name}' branch found unknown target '{end}' - no such node was added"
                        f"{suggestion(end, nodes)}"
                    )
    for name, node in nodes.items():
        for end in node.ends or ():
            if end not in nodes and end != END:
                raise GraphValidationError(_unknown_target(end, f"node '{name}' lists it as a destination", nodes))
    for name in breakpoints:
        if name not in nodes:
            raise GraphValidationError(f"Interrupt node `{name}` not found{suggestion(name, nodes)}")
    _check_options(declared)


def _check_sources(declared: Declaration) -> None:
    sources = {source: f"the edge to '{target}' starts there" for source, target in declared.all_edges()}
    for source, branches in declared.branches.items():
        sources.setdefault(source, f"the conditional edges by '{next(iter(branches))}' start there")
    for source, reason in sources.items():
        if source not in declared.nodes and source != START:
            raise GraphValidationError(
                f"Found edge starting at unknown node '{source}' - {reason}, but no such node was added"
                f"{suggestion(source, declared.nodes)}"
            )
    if START not in sources:
        first = next(iter(declared.nodes), "first_node")
        raise GraphValidationError(
            "Graph must have an entrypoint: add at least one edge from START to another node - nothing says where it "
            f"begins; for example add_edge(START, '{first}')"
        )


def _unknown_target(target: str, reason: str, known: Iterable[str]) -> str:
    text = f"Found edge ending at unknown node `{target}` - {reason}, but no such node was added"
    return text + suggestion(target, known)


def _check_options(declared: Declaration) -> None:
    if declared.defaults.error_handler is not None and DEFAULT_ERROR_HANDLER in declared.nodes:
        raise GraphValidationError(
            f"A node is named '{DEFAULT_ERROR_HANDLER}' - the handler of set_node_defaults(error_handler=...) already "
            f"exists under that name; rename the node"
        )
    for name, node in declared.nodes.items():
        timeout = declared.defaults.timeout if node.timeout is None else node.timeout
        if timeout is not None and not has_async_body(node.call):
            raise GraphValidationError(
                f"Node timeouts are only supported for async nodes - '{name}' is a plain function, which cannot be "
                f"stopped halfway; make it `async def`, or leave the timeout out"
            )
