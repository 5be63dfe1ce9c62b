"""Debug mode: warns of what works and is likely not meant. Only graphs compiled with `debug=True` pay for it.

Two things are looked for: a body that runs again although effects of it are on record, since what stands around
`step()` runs again too; and an input that was changed in place without being returned, since that change is not stored.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Generator
from typing import Any

from waitpoint import codec
from waitpoint.core.spec import GraphSpec, Node
from waitpoint.engine.scope import TaskScope
from waitpoint.engine.tasks import Outcome
from waitpoint.errors import ChangedInPlaceWarning, InvalidUpdateError, RunAgainWarning, WaitpointError
from waitpoint.records import Command

Calls = Generator[Any, Any, Outcome]


def watched(calls: Calls, spec: GraphSpec, node: Node, scope: TaskScope) -> Calls:
    """Pass on what an attempt asks for, and warn; where warnings are errors, the node fails by them."""
    reply: Any = None
    failure: BaseException | None = None
    while True:
        try:
            asked = calls.send(reply) if failure is None else calls.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        reply, failure = None, None
        is_body = getattr(asked, "call", None) is node.call
        try:
            if is_body:
                _warn_of_running_again(node, scope)
            before = _prints(asked.input, scope) if is_body else {}
            reply = yield asked
            if is_body:
                _warn_of_changes(spec, node, before, _prints(asked.input, scope), reply)
        except GeneratorExit:
            calls.close()
            raise
        except BaseException as error:  # noqa: BLE001 - handed on: the attempt decides what each kind means
            failure = error


def _warn_of_running_again(node: Node, scope: TaskScope) -> None:
    effects = [row for row in scope.journal.entries.values() if row.kind == "step" and row.state != "not_happened"]
    if effects:
        known = "an effect of it is" if len(effects) == 1 else f"{len(effects)} effects of it are"
        _warn(
            node,
            RunAgainWarning(
                f"Node {node.name!r} runs again from its first line (attempt {scope.journal.attempt}) and {known} on "
                f"record: step() does not repeat them, but whatever stands outside of step() happens again; put it into "
                f"step(), behind the last question, or into a node of its own"
            ),
        )


def _warn_of_changes(
    spec: GraphSpec, node: Node, before: dict[str, bytes | None], after: dict[str, bytes | None], returned: Any
) -> None:
    keys = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    lost = [k for k in keys if k not in _returned_keys(spec, returned)]
    if lost:
        what = "its input" if lost == [""] else ", ".join(map(repr, lost))
        _warn(
            node,
            ChangedInPlaceWarning(
                f"Node {node.name!r} changed {what} in place and did not return it, so the change is not stored: the state is "
                f"made of what nodes return; return an update with the new value"
            ),
        )


def _prints(given: Any, scope: TaskScope) -> dict[str, bytes | None]:
    """Return what each part of an input is now; None for one that cannot be told."""
    parts = given if isinstance(given, dict) else getattr(given, "__dict__", None) or {"": given}
    return {str(key): _print(value, scope) for key, value in parts.items()}


def _print(value: Any, scope: TaskScope) -> bytes | None:
    try:
        return codec.dumps(value, scope.around.registry)
    except WaitpointError:
        return None


def _returned_keys(spec: GraphSpec, returned: Any) -> set[str]:
    parts = returned if isinstance(returned, list | tuple) else [returned]
    updates = [p.update if isinstance(p, Command) else p for p in parts]
    try:
        return {key for update in updates if update is not None for key, _ in spec.to_writes(update)}
    except InvalidUpdateError:
        return set()  # the attempt refuses it with its own error


def _warn(node: Node, warning: Warning) -> None:
    """Warn with the place of the node's function, so that each function's warnings are told apart."""
    code = getattr(inspect.unwrap(node.call.fn), "__code__", None)
    if code is None:
        warnings.warn(warning, stacklevel=1)
        return
    module = getattr(node.call.fn, "__module__", None) or "<unknown>"
    warnings.warn_explicit(warning, type(warning), code.co_filename, code.co_firstlineno, module)
