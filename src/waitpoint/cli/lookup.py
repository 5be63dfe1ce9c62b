"""Threads and questions by an id that may be shortened, as long as only one fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, QuestionRow, ThreadRow
from waitpoint.errors import ConfigError, NotFoundError

SHORTEST = 8  # digits of an id in listings; more where two begin alike
_LISTED = 5


def question(saver: BaseCheckpointSaver, text: str) -> QuestionRow:
    """Return the question of an id or the beginning of one; settled ones too. Raises `NotFoundError`, `ConfigError`."""
    exact = saver.questions(PendingFilter(ids=[text], answerable=False))
    if exact:
        return exact[0]
    begins = PendingFilter(id_prefix=text.lower(), answerable=False, limit=_LISTED + 1)
    found = saver.questions(begins) if text else []
    if len(found) > 1:
        listed = _listed(q.id for q in found)
        raise ConfigError(f"'{text}' is the beginning of several questions: {listed}; give more of the id")
    if not found:
        raise NotFoundError(f"Unknown question '{text}': this store has none of that id; `inbox` lists what waits")
    return found[0]


def thread(saver: BaseCheckpointSaver, text: str, graph: str | None) -> ThreadRow:
    """Return the thread of an id or the beginning of one, of that graph if one is named.

    Raises `NotFoundError`, and `ConfigError` where several fit.
    """
    found = saver.threads(thread_id=text) if text else []
    if not found:
        found = [row for row in saver.threads() if text and row.key.thread_id.startswith(text)]
    of_graph = [row for row in found if graph in (None, row.key.graph)]
    if len({row.key.thread_id for row in of_graph}) > 1:
        listed = _listed(row.key.thread_id for row in of_graph)
        raise ConfigError(f"'{text}' is the beginning of several threads: {listed}; give more of the id")
    if len(of_graph) > 1:
        names = _listed(row.key.graph for row in of_graph)
        raise ConfigError(f"Thread '{text}' exists in several graphs: {names}; say which with --graph")
    if not of_graph:
        of = "" if graph is None or not found else f" of graph '{graph}'"
        raise NotFoundError(f"Unknown thread '{text}': this store has none of that id{of}; `threads` lists them")
    return of_graph[0]


def shortened(ids: Sequence[str]) -> dict[str, str]:
    """Map ids to beginnings that tell them apart."""
    out: dict[str, str] = {}
    for each in ids:
        length = SHORTEST
        while length < len(each) and any(other != each and other[:length] == each[:length] for other in ids):
            length += 1
        out[each] = each[:length]
    return out


def _listed(names: Iterable[str]) -> str:
    unique = sorted(set(names))
    more = " and more" if len(unique) > _LISTED else ""
    return ", ".join(f"'{name}'" for name in unique[:_LISTED]) + more
