"""Scenarios of the section "security": what callers and users write is data, to the store and to the codec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, run, texts, the_id, thread
from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, ThreadKey
from waitpoint.errors import ConfigError, UnknownInterruptError, WaitpointError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step


def one_node(saver: Any, node: Any, **options: Any) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver, **options)


def ask(state: State) -> State:
    return {"log": [interrupt("go?")]}


# --- S155 -------------------------------------------------------------------------------------------------------------

INJECTIONS = [
    "' OR '1'='1",
    "x'; DROP TABLE question; --",
    'x" OR "1"="1',
    "x') UNION SELECT 1,2,3 --",
    "%",
    "_",
    "x\x00y",
    "`x`",
    "$.a' || '",
]


def is_whole(saver: BaseCheckpointSaver, names: list[str]) -> None:
    """Nothing was dropped, changed or shown beyond what was asked for."""
    assert sorted(q.thread_id for q in saver.pending()) == sorted(names)
    assert len(saver.threads()) == len(names)


@pytest.mark.parametrize("text", INJECTIONS, ids=range(len(INJECTIONS)))
def test_s155_sql_in_filters_finds_nothing_and_does_nothing(shelf: Shelf, text: str) -> None:
    saver = shelf.open()
    graph = one_node(saver, ask)
    graph.invoke({"log": []}, thread("a"))
    graph.invoke({"log": []}, thread("b"))
    for filters in ({"thread_id": text}, {"graph": text}, {"node": text}, {"ids": [text]}):
        assert saver.pending(**filters) == []
        assert saver.count(PendingFilter(**filters)) == 0
    with pytest.raises(TypeError):
        saver.pending(**{text: "x"})
    config = thread("a")
    assert list(graph.get_state_history(config, filter={text: "x"})) == []
    assert list(graph.get_state_history(config, filter={"source": text})) == []
    with pytest.raises(UnknownInterruptError):
        graph.invoke(Command(resume={"0" * 32: "x", text: "y"}), config)
    is_whole(saver, ["a", "b"])


@pytest.mark.parametrize("limit", ["1; DROP TABLE question", "1 OR 1=1", "x", 1.5, [1], -1, True], ids=repr)
def test_s155_a_limit_that_is_no_number_is_refused(shelf: Shelf, limit: Any) -> None:
    saver = shelf.open()
    graph = one_node(saver, ask)
    graph.invoke({"log": []}, thread("a"))
    key = ThreadKey("a", "LangGraph")
    calls = {
        "pending": lambda: saver.pending(limit=limit),
        "offset": lambda: saver.pending(limit=1, offset=limit),
        "threads": lambda: saver.threads(limit=limit),
        "events": lambda: saver.events(key, limit=limit),
        "history": lambda: list(graph.get_state_history(thread("a"), limit=limit)),
    }
    for call in calls.values():
        with pytest.raises(ConfigError, match="give a whole number"):
            call()
    is_whole(saver, ["a"])


@pytest.mark.parametrize("text", [t for t in INJECTIONS if "\x00" not in t], ids=range(len(INJECTIONS) - 1))
def test_s155_names_of_threads_graphs_and_nodes_may_hold_sql(shelf: Shelf, call: Call, text: str) -> None:
    node = text.replace("|", "").replace(":", "")  # two signs that are refused by name
    other = one_node(shelf.open(), ask)
    call(other, {"log": []}, thread("other"))

    def build() -> Any:
        graph = StateGraph(State).add_node(node, ask).add_edge(START, node)
        return graph.compile(checkpointer=shelf.open(), name=text)

    question = the_id(call(build(), {"log": []}, thread(text)))
    (listed,) = shelf.open().pending(thread_id=text, graph=text, node=node)
    assert (listed.id, listed.thread_id, listed.graph, listed.node) == (question, text, text, node)
    assert build().get_state(thread(text)).next == (node,)
    assert call(build(), Command(resume={question: text}), thread(text))["log"] == [text]
    shelf.open().delete_thread(text)
    assert build().get_state(thread(text)).values == {}
    is_whole(shelf.open(), ["other"])


def test_s155_checkpoint_ids_and_places_are_bound(shelf: Shelf) -> None:
    graph = one_node(shelf.open(), ask)
    graph.invoke({"log": []}, thread("a"))
    for text in INJECTIONS:
        for where in ({"checkpoint_id": text}, {"checkpoint_ns": text}):
            config = thread("a", **where)
            try:
                assert graph.get_state(config).values in ({}, {"log": []})
            except WaitpointError:
                continue
        before = thread("a", checkpoint_id=text)
        assert len(list(graph.get_state_history(thread("a"), before=before))) <= 2
    is_whole(shelf.open(), ["a"])


# --- S158 -------------------------------------------------------------------------------------------------------------

ENVELOPES: list[Any] = [
    {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "HumanMessage"], "kwargs": {"content": "x"}},
    {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"], "kwargs": {}},
    {"lc": 1, "type": "secret", "id": ["HOME"]},
    {"lc": 1, "type": "not_implemented", "id": ["builtins", "eval"]},
    {"__reduce__": ["os.system", ["true"]]},
    {"__type__": "datetime", "value": "2026-01-01"},
    {"__class__": "tests.scenarios.kinds.Point", "x": 1},
    {"py/object": "os.system", "py/reduce": [{"py/type": "os.system"}, {"py/tuple": ["true"]}]},
    {"$type": "System.Diagnostics.Process", "$date": "2026-01-01", "$oid": "0" * 24},
    {"__waitpoint__": "UnknownValue", "tag": "waitpoint:lost", "payload": "x"},
    {"tag": "builtins:eval", "value": "1+1"},
    {"__pregel_resume": "x", "__interrupt__": ["x"], "__start__": 1, "__root__": 2},
    {"__pydantic_private__": {}, "__dict__": {"x": 1}},
    ["tests.scenarios.kinds:Point", 1, 2],
    "\x80\x04\x95cos\nsystem\n(S'true'\ntR.",
]


@pytest.mark.parametrize("envelope", ENVELOPES, ids=range(len(ENVELOPES)))
def test_s158_an_object_envelope_inside_user_text_stays_a_dict(shelf: Shelf, call: Call, envelope: Any) -> None:
    given = [json.loads(json.dumps(envelope)) for _ in range(4)]
    inside = {"message": {"from": "a user", "content": [envelope]}}

    def same(value: Any) -> Any:
        return value

    def node(state: State) -> State:
        return {"log": [step(same, envelope), interrupt({"shown": envelope}), interrupt(envelope)], "value": inside}

    config = thread()
    (first,) = asked(call(one_node(shelf.open(), node), {"log": [given[0]], "value": inside}, config))
    assert first.value == {"shown": envelope}
    call(one_node(shelf.open(), node), Command(resume=given[1]), config)
    call(one_node(shelf.open(), node), Command(resume={"answer": given[2]}), config)
    values = one_node(shelf.open(), node).get_state(config).values
    assert values == {"log": [envelope, envelope, envelope, {"answer": envelope}], "value": inside}
    assert type(values["log"][2]) is type(envelope)
    assert [q.value for q in shelf.open().pending(answerable=False)] == [{"shown": envelope}, envelope]


def test_s158_an_object_envelope_stays_a_dict_in_another_process(disk: Shelf, tmp_path: Path) -> None:
    def node(state: State) -> State:
        return {"log": [interrupt({"shown": ENVELOPES})], "value": {"inside": ENVELOPES}}

    config = thread("mail")
    one_node(disk.open(), node).invoke({"log": []}, config)
    one_node(disk.open(), node).invoke(Command(resume={"answer": ENVELOPES}), config)
    read = run("read_envelopes.py", disk.path, "mail")
    assert read["value"] == {"inside": ENVELOPES}
    assert read["log"] == [{"answer": ENVELOPES}]
    assert read["asked"] == [[{"shown": ENVELOPES}, {"answer": ENVELOPES}]]
    assert read["loaded"] == []  # reading them imports nothing


def test_s158_an_overwrite_written_by_a_user_is_an_overwrite_only_as_the_whole_of_an_update(saver: Any) -> None:
    """`{"__overwrite__": x}` is the plain form of `Overwrite`; inside of a value it is nothing but a dict."""
    mark = {"__overwrite__": ["gone"]}

    def node(state: State) -> State:
        return {"log": [mark, interrupt("go?")], "value": {"text": mark}}

    config = thread()
    graph = one_node(saver, node)
    assert texts(graph.invoke({"log": ["kept"], "value": [mark]}, config)) == ["go?"]
    assert graph.get_state(config).values == {"log": ["kept"], "value": [mark]}
    assert graph.invoke(Command(resume=mark), config) == {"log": ["kept", mark, mark], "value": {"text": mark}}
