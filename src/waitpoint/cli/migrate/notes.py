"""Finds in a program where Waitpoint does on purpose something else than LangGraph: hints for a reader, not proofs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

_CALLS: Final = ("invoke", "ainvoke", "stream", "astream")
_ASKERS: Final = ("interrupt", "HumanInTheLoopMiddleware")


class Difference(NamedTuple):
    """A place where a difference probably shows; `about` names its row in docs/from-langgraph.md."""

    line: int
    about: str
    text: str


def differences(tree: ast.Module) -> list[Difference]:
    """List the differences that a file probably meets, by line."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    named |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    asks = [c for c in calls if _name(c) in _ASKERS]
    found = [line for rule in _RULES for call in calls for line in rule(call)]
    if asks:
        found += _without_saver(calls, asks)
        found += _new_inputs(calls, parents)
        found += _swallowed(tree)
        found += _same_again(asks, parents)
    if "__pregel_strict_resume" in {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}:
        line = next(
            n.lineno for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == "__pregel_strict_resume"
        )
        found.append(Difference(line, "strict-resume", "resume is always strict; the key is accepted and ignored"))
    return sorted(set(found))


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _first(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else _keyword(call, "input")


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


# --- single calls -----------------------------------------------------------------------------------------------------


def _empty_resume(call: ast.Call) -> Iterator[Difference]:
    resume = _keyword(call, "resume")
    if _name(call) == "Command" and isinstance(resume, ast.Dict) and not resume.keys:
        yield Difference(
            call.lineno,
            "empty-answer",
            "`resume={}` answers the single open question with {}; it is no empty map of answers",
        )
    if _name(call) == "Command" and not call.args and not call.keywords:
        yield Difference(call.lineno, "empty-command", "an empty `Command()` given as input is refused by name")


def _continued(call: ast.Call) -> Iterator[Difference]:
    if _name(call) in _CALLS and _is_none(_first(call)):
        yield Difference(
            call.lineno,
            "continued",
            f"`{_name(call)}(None)` on a waiting thread runs what needs no new answer; nodes that only wait do not run again",
        )


def _raw_schema(call: ast.Call) -> Iterator[Difference]:
    if _name(call) == "interrupt" and isinstance(_keyword(call, "response_schema"), ast.Dict):
        yield Difference(
            call.lineno, "raw-schema", "a JSON Schema given as a dict is enforced: an answer that misfits is refused"
        )


def _exit(call: ast.Call) -> Iterator[Difference]:
    durability = _keyword(call, "durability")
    if isinstance(durability, ast.Constant) and durability.value == "exit":
        yield Difference(
            call.lineno,
            "durability-exit",
            'durability "exit" also saves the checkpoints that a durable record rests on',
        )


def _reviews(call: ast.Call) -> Iterator[Difference]:
    if _name(call) != "HumanInTheLoopMiddleware":
        return
    yield Difference(
        call.lineno,
        "rejection",
        "a rejection tells the model the reviewer's message as it is, and edits are checked against the tool's schema",
    )
    for node in ast.walk(call):
        if isinstance(node, ast.Constant) and node.value == "when":
            yield Difference(node.lineno, "when", "`when` is evaluated once and stored, not again on resume")


_RULES: Final[tuple[Callable[[ast.Call], Iterable[Difference]], ...]] = (
    _empty_resume,
    _continued,
    _raw_schema,
    _exit,
    _reviews,
)


# --- the file as a whole ----------------------------------------------------------------------------------------------


def _without_saver(calls: list[ast.Call], asks: list[ast.Call]) -> Iterator[Difference]:
    """Graphs that are compiled without a checkpointer, where the file asks."""
    for call in calls:
        is_made = _name(call) == "create_agent" or (_name(call) == "compile" and isinstance(call.func, ast.Attribute))
        is_expanded = any(k.arg is None for k in call.keywords)
        saver = call.args[0] if _name(call) == "compile" and call.args else _keyword(call, "checkpointer")
        if is_made and not is_expanded and (saver is None or _is_none(saver)) and not _is_regex(call):
            yield Difference(
                call.lineno,
                "no-checkpointer",
                f"line {asks[0].lineno} asks; in a graph without a checkpointer that is an error at the call (a graph inside "
                f"another one uses that one's)",
            )


def _is_regex(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "re"


def _new_inputs(calls: list[ast.Call], parents: dict[ast.AST, ast.AST]) -> Iterator[Difference]:
    """Further inputs to what is perhaps one thread: a second call with new input, or one in a loop."""
    fresh = sorted((c for c in calls if _name(c) in _CALLS and _is_new_input(_first(c))), key=lambda c: c.lineno)
    for number, call in enumerate(fresh):
        if number or _is_in_loop(call, parents):
            yield Difference(
                call.lineno,
                "new-input",
                f"new input on a thread that waits is refused; answer it first, or pass "
                f'on_pending="withdraw" to `{_name(call)}`',
            )


def _is_new_input(given: ast.expr | None) -> bool:
    if isinstance(given, ast.Dict):
        return True
    return isinstance(given, ast.Name) and "command" not in given.id.lower() and "resume" not in given.id.lower()


def _is_in_loop(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while node in parents:
        inner, node = node, parents[node]
        if isinstance(node, ast.For | ast.AsyncFor) and inner is node.iter:
            continue  # what a loop goes over is called once
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
    return False


def _swallowed(tree: ast.Module) -> Iterator[Difference]:
    """Handlers around a question that would stop its pause."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try) or not any(_asks(each) for each in node.body):
            continue
        for handler in node.handlers:
            kind = getattr(handler.type, "attr", getattr(handler.type, "id", None))
            if handler.type is None or kind == "BaseException":
                yield Difference(
                    handler.lineno,
                    "swallowed",
                    "this handler catches the pause of `interrupt()`; that is an error here",
                )
            elif kind in ("GraphInterrupt", "GraphBubbleUp") and not any(
                isinstance(n, ast.Raise) for n in ast.walk(handler)
            ):
                yield Difference(
                    handler.lineno,
                    "swallowed",
                    "this handler keeps the pause of `interrupt()` back; that is an error here",
                )


def _asks(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) and _name(each) == "interrupt" for each in ast.walk(node))


def _same_again(asks: list[ast.Call], parents: dict[ast.AST, ast.AST]) -> Iterator[Difference]:
    """Questions in a loop whose payload is the same each time."""
    for call in asks:
        if _name(call) == "interrupt" and _is_in_loop(call, parents) and isinstance(_first(call), ast.Constant):
            yield Difference(
                call.lineno,
                "identity",
                "answers belong to questions by place and payload, not by order; give those of a loop a `key`, or payloads "
                "that differ",
            )
