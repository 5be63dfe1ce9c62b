"""Running a thread to its next rest, and telling how it rests.

Rule: what a node raised ends in exit code 4 and a thread that can be continued; what was refused before anything ran, in 2
or 3 and an unchanged store.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, ThreadKey, ThreadRow
from waitpoint.cli import exits, questions, safe, terminal
from waitpoint.cli.graphs import needs_a_loop
from waitpoint.cli.place import Place
from waitpoint.engine.runner import Runner
from waitpoint.errors import NodeFailedError, UnknownInterruptError, UsageError
from waitpoint.records import INTERRUPT, Question


@dataclass(slots=True)
class Rested:
    """How a thread rests: "done", "waiting", "breakpoint", "failed", "ready" or "running" (by another process)."""

    key: ThreadKey
    status: str
    output: Any = None
    questions: list[Question] = field(default_factory=list)
    next: tuple[str, ...] = ()


def run_to_rest(place: Place, graph: Runner, key: ThreadKey, input: Any) -> int:
    """Run the thread and tell how it rests; return the exit code."""
    saver = place.saver()
    before = saver.thread(key)
    config = {"configurable": {"thread_id": key.thread_id}}
    try:
        with _prints_apart(place):
            output = _invoked(graph, input, config)
    except KeyboardInterrupt:
        return _stopped(place, key, "Stopped", exits.STOPPED)
    except SystemExit as error:
        return _stopped(place, key, f"A node ended the process (SystemExit: {error.code})", exits.FAILED)
    except Exception as error:  # noqa: BLE001 - a node may raise anything
        return _failed(place, error, before, key)
    return tell(place, rested(saver, graph, key, output))


def rested(saver: BaseCheckpointSaver, graph: Runner, key: ThreadKey, output: Any) -> Rested:
    """Tell how a thread rests after a run that gave `output`."""
    row = saver.thread(key)
    status = "done" if row is None else row.status
    if isinstance(output, dict):
        output = {name: value for name, value in output.items() if name != INTERRUPT}
    if status == "waiting":
        rows = saver.questions(PendingFilter(key.thread_id, key.graph))
        return Rested(key, status, output, questions.decoded(rows))
    if status == "idle":
        due = graph.get_state({"configurable": {"thread_id": key.thread_id}}).next
        return Rested(key, "breakpoint" if due else "done", output, next=due)
    return Rested(key, status, output)


def tell(place: Place, rest: Rested) -> int:
    """Write how a thread rests; return the exit code."""
    if place.as_json:
        terminal.document(
            {
                "thread_id": rest.key.thread_id,
                "graph": rest.key.graph,
                "status": rest.status,
                "output": rest.output,
                "questions": [questions.document(place, q) for q in rest.questions],
                "next": list(rest.next),
            }
        )
        return exits.DONE
    name = safe.line(rest.key.thread_id)
    go_on = place.line("continue", rest.key.thread_id)
    if rest.status == "waiting":
        count = len(rest.questions)
        terminal.say(f"Thread {name} waits for {'an answer' if count == 1 else f'{count} answers'}:")
        terminal.say()
        questions.waiting(place, rest.questions)
    elif rest.status == "running":
        terminal.say(f"Thread {name} is run by another process, which takes this in.")
    elif rest.status in ("breakpoint", "ready"):
        before = f" before {', '.join(map(safe.line, rest.next))}" if rest.next else ""
        terminal.say(f"Thread {name} stopped{before}; go on with:  {go_on}")
    else:
        terminal.say(f"Thread {name} is done:")
        terminal.say(safe.json_text(_last_words(rest.output)))
    return exits.DONE


def _last_words(output: Any) -> Any:
    """Return an output with a conversation cut to its last message, and saying so: people have seen the rest."""
    messages = output.get("messages") if isinstance(output, dict) else None
    if not isinstance(messages, list) or len(messages) < 2 or not hasattr(messages[-1], "content"):
        return output
    said = getattr(messages[-1], "text", None) or messages[-1].content
    return {**output, "messages": f"({len(messages) - 1} before) {said}" if isinstance(said, str) else [said]}


def _invoked(graph: Runner, input: Any, config: dict[str, Any]) -> Any:
    if needs_a_loop(graph):
        return asyncio.run(graph.ainvoke(input, config))
    return graph.invoke(input, config)


@contextlib.contextmanager
def _prints_apart(place: Place) -> Iterator[None]:
    """Keep what nodes print out of the one JSON document."""
    if not place.as_json:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _stopped(place: Place, key: ThreadKey, what: str, code: int) -> int:
    """Tell of a run that was stopped in the middle."""
    row = place.saver().thread(key)
    if row is None or row.head is None:
        text = f"{what} before anything of the thread was stored; start it again"
    elif row.status in ("ready", "running", "failed"):
        text = f"{what}. Thread {key.thread_id} is ready to be continued with:  {place.line('continue', key.thread_id)}"
    else:
        text = f"{what}. Thread {key.thread_id} rests; look at it with:  {place.line('trace', key.thread_id)}"
    terminal.note(text)
    if place.as_json:
        terminal.document(
            {
                "thread_id": key.thread_id,
                "graph": key.graph,
                "status": None if row is None else row.status,
                "error": {"code": "stopped", "message": text},
            }
        )
    return code


def _failed(place: Place, error: Exception, before: ThreadRow | None, key: ThreadKey) -> int:
    """Tell of a failed node; anything else goes on to whoever called."""
    row = place.saver().thread(key)
    has_run = row is not None and (before is None or row.fence > before.fence)
    if has_run and exits.is_misfit(error) and row is not None and row.status == "waiting":
        raise UnknownInterruptError(
            f"The graph's own check refused the answer - {exits.text_of(error)} - and the question is open again; `show` tells "
            f"what fits"
        ) from error
    if not isinstance(error, NodeFailedError) and not (has_run and row is not None and row.status == "failed"):
        if not has_run and exits.code_of(error) is None:
            raise UsageError(
                f"The input does not fit graph '{key.graph}' - {exits.text_of(error)}; nothing was stored"
            ) from error
        raise error
    if place.shows_traceback:
        terminal.trace_of(error)
    nodes = [o.node for o in place.saver().load(key).outcomes if o.status == "failed"]
    what = f"Node '{nodes[-1]}' failed" if nodes else "The run failed"
    text = (
        f"{what} - {exits.text_of(error)} - thread {key.thread_id} is kept; mend the cause, then:  "
        f"{place.line('continue', key.thread_id)}"
    )
    terminal.note(text)
    if place.as_json:
        terminal.document(
            {
                "thread_id": key.thread_id,
                "graph": key.graph,
                "status": "failed",
                "error": {
                    "code": exits.name_of(error),
                    "message": exits.text_of(error),
                    "node": nodes[-1] if nodes else None,
                },
            }
        )
    return exits.FAILED
