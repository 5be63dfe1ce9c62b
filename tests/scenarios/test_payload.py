"""Scenarios of the section "payload/serialization": what survives as question, as answer and in the state."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from tests.scenarios.conftest import Call
from tests.scenarios.kinds import KINDS, OF_S065, OF_S066, REFUSED, Kind, expected, same
from tests.scenarios.world import Shelf, State, asked, run, texts, the_id, thread
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import PayloadError, UnstorableValueError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Send, interrupt, step


def around(value: Any) -> Any:
    """Put a value where a path is needed to find it."""
    return {"items": [0, 1, 2, {"it": value}]}


def one_node(saver: Any, node: Any, schema: Any = State) -> Any:
    return StateGraph(schema).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)


def blocking(graph: Any, given: Any, config: Any) -> Any:
    return graph.invoke(given, config)


class Trial:
    """Puts one kind of value through a question, an answer and the state."""

    def __init__(self, shelf: Shelf, call: Call, name: str, kind: Kind) -> None:
        self.shelf, self.call, self.name, self.kind = shelf, call, name, kind

    def as_question(self) -> None:
        config, runs = thread(f"question {self.name}"), []

        def ask(state: State) -> State:
            runs.append(1)
            return {"value": interrupt(around(self.kind.value))}

        if self.kind.as_question is REFUSED:
            with pytest.raises(PayloadError, match=r"payload\.items\[3\]\.it") as refused:
                self.call(one_node(self.shelf.open(), ask), {"log": []}, config)
            assert refused.value.path.startswith("payload.items[3].it")
            assert self.shelf.open().pending(thread_id=config["configurable"]["thread_id"], answerable=False) == []
            return
        want = around(expected(self.kind, self.kind.as_question))
        (live,) = asked(self.call(one_node(self.shelf.open(), ask), {"log": []}, config))
        (stored,) = one_node(self.shelf.open(), ask).get_state(config).interrupts
        (listed,) = self.shelf.open().pending(thread_id=config["configurable"]["thread_id"])
        for seen in (live.value, stored.value, listed.value):  # the same, also before it was saved
            assert same(seen, want)
        assert self.call(one_node(self.shelf.open(), ask), Command(resume="ok"), config)["value"] == "ok"
        assert runs == [1, 1]  # recognised when it was asked again

    def as_answer(self) -> None:
        config = thread(f"answer {self.name}")
        got: list[Any] = []

        def ask(state: State) -> State:
            got.append(interrupt("go?"))
            return {"value": "done"}

        self.call(one_node(self.shelf.open(), ask), {"log": []}, config)
        answer = Command(resume=around(self.kind.value))
        if self.kind.as_answer is REFUSED:
            with pytest.raises(UnstorableValueError, match=r"answer\.items\[3\]\.it"):
                self.call(one_node(self.shelf.open(), ask), answer, config)
            assert got == []
            assert len(self.shelf.open().pending(thread_id=config["configurable"]["thread_id"])) == 1
            answer = Command(resume="ok")
        self.call(one_node(self.shelf.open(), ask), answer, config)
        refused = self.kind.as_answer is REFUSED
        want = "ok" if refused else around(expected(self.kind, self.kind.as_answer))
        assert same(got, [want])

    def in_state(self) -> None:
        config = thread(f"state {self.name}")

        def put(state: State) -> State:
            return {"value": around(self.kind.value)}

        if self.kind.in_state is REFUSED:
            with pytest.raises(UnstorableValueError, match=r"node\.value\.items\[3\]\.it"):
                self.call(one_node(self.shelf.open(), put), {"log": []}, config)
            return
        want = around(expected(self.kind, self.kind.in_state))
        assert same(self.call(one_node(self.shelf.open(), put), {"log": []}, config)["value"], want)
        assert same(one_node(self.shelf.open(), put).get_state(config).values["value"], want)

    def everywhere(self) -> None:
        self.as_question()
        self.as_answer()
        self.in_state()


# --- S063, S065, S066 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_s063_which_types_survive_as_question_and_as_answer(shelf: Shelf, name: str) -> None:
    Trial(shelf, blocking, name, KINDS[name]).everywhere()


def test_s063_which_types_survive_in_another_process(disk: Shelf, call: Call) -> None:
    for name, kind in KINDS.items():
        Trial(disk, call, name, kind).everywhere()
    told = run("read_kinds.py", disk.path)
    assert told["wrong"] == []
    assert told["kinds"] >= 26


class Size(Enum):
    BIG = "big"


class Draft(BaseModel):
    text: str
    size: Size


class Drafting(TypedDict, total=False):
    draft: Draft
    size: Size


def test_s063_types_that_only_the_schema_of_the_graph_declares_survive(shelf: Shelf, call: Call) -> None:
    """As result of a step, in an answer, in a question and in the state, without any registration."""
    got: list[Any] = []

    def make() -> Draft:
        return Draft(text="hello", size=Size.BIG)

    def node(state: Drafting) -> Drafting:
        draft = step(make)
        got.append((draft, interrupt({"size": Size.BIG}), interrupt("sure?")))
        return {"draft": draft, "size": got[-1][1]}

    config = thread()
    (question,) = asked(call(one_node(shelf.open(), node, Drafting), {"log": []}, config))
    assert same(question.value, {"size": Size.BIG})
    graph = one_node(shelf.open(), node, Drafting)
    assert same(graph.get_state(config).interrupts[0].value, {"size": Size.BIG})
    call(graph, Command(resume=Size.BIG), config)
    done = call(one_node(shelf.open(), node, Drafting), Command(resume="yes"), config)
    assert done["draft"] == Draft(text="hello", size=Size.BIG)
    assert done["size"] is Size.BIG
    assert got == [(Draft(text="hello", size=Size.BIG), Size.BIG, "yes")]


def test_s063_types_that_only_a_nested_graph_declares_survive(shelf: Shelf, call: Call) -> None:
    def node(state: Drafting) -> Drafting:
        return {"size": interrupt({"size": Size.BIG})}

    inner = StateGraph(Drafting).add_node(node).add_edge(START, "node").compile()
    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")
    config = thread()
    call(graph.compile(checkpointer=shelf.open()), {"log": []}, config)
    (question,) = graph.compile(checkpointer=shelf.open()).get_state(config).interrupts
    assert same(question.value, {"size": Size.BIG})
    call(graph.compile(checkpointer=shelf.open()), Command(resume=Size.BIG), config)
    assert [q.status for q in shelf.open().pending(answerable=False)] == ["answered"]


def test_s063_a_step_whose_result_cannot_be_kept_happens_once_and_says_so_when_it_is_needed(
    shelf: Shelf, call: Call
) -> None:
    made: list[int] = []

    def connect() -> Any:
        made.append(1)
        return threading.Lock()

    def node(state: State) -> State:
        step(connect)
        return {"value": interrupt("go?")}

    graph, config = one_node(shelf.open(), node), thread()
    assert texts(call(graph, {"log": []}, config)) == ["go?"]
    with pytest.raises(UnstorableValueError, match=r"result of step .*connect.*lock"):
        call(one_node(shelf.open(), node), Command(resume="yes"), config)
    assert made == [1]


@pytest.mark.parametrize("name", OF_S065)
@pytest.mark.parametrize("value", [2**63, 2**64, 2**70, -(2**63) - 1, -(2**70), 10**400], ids=lambda n: f"{n:x}"[:9])
def test_s065_whole_numbers_over_64_bit(shelf: Shelf, name: str, value: int) -> None:
    Trial(shelf, blocking, name, KINDS[name]._replace(value=value)).everywhere()


def test_s065_whole_numbers_over_64_bit_in_steps_inputs_and_sends(shelf: Shelf, call: Call) -> None:
    def worker(state: Any) -> State:
        return {"log": [step(abs, state["value"]), interrupt({"n": state["value"]})]}

    graph = StateGraph(State).add_node(worker)
    graph.add_conditional_edges(START, lambda s: [Send("worker", {"value": s["value"]})], ["worker"])
    config = thread()
    call(graph.compile(checkpointer=shelf.open()), {"log": [], "value": -(2**70)}, config)
    done = call(graph.compile(checkpointer=shelf.open()), Command(resume=2**70), config)
    assert done == {"log": [2**70, 2**70], "value": -(2**70)}


@pytest.mark.parametrize("name", OF_S066)
def test_s066_fractions_complex_numbers_ranges_pure_paths(shelf: Shelf, name: str) -> None:
    Trial(shelf, blocking, name, KINDS[name]).everywhere()


# --- S070 -------------------------------------------------------------------------------------------------------------

DURABILITIES = ["sync", "async", "exit"]


def rows(saver: BaseCheckpointSaver, thread_id: str) -> list[Any]:
    """Return all that is stored of a thread's progress."""
    key = ThreadKey(thread_id, "LangGraph")
    loaded = saver.load(key)
    return [r.id for r in saver.history(key)], [(o.node, o.status) for o in loaded.outcomes], loaded.questions


class Client:
    """A node that puts a lock into the state, two nodes before the question."""

    def __init__(self, where: str) -> None:
        self.where, self.mended, self.runs = where, False, []

    def client(self, state: Any) -> Any:
        self.runs.append("client")
        lock = "closed" if self.mended else threading.Lock()
        put = {
            "value": {"value": {"client": {"lock": lock}}},
            "list": {"log": ["fine", {"lock": lock}]},
            "command": Command(update={"value": {"client": {"lock": lock}}}),
            "send": Command(goto=Send("between", {"log": [], "value": {"lock": lock}})),
        }
        return put[self.where]

    def between(self, state: Any) -> Any:
        self.runs.append("between")
        return {"log": ["between"]}

    def sibling(self, state: Any) -> Any:
        self.runs.append("sibling")
        return {"log": ["sibling"]}

    def ask(self, state: Any) -> Any:
        return {"log": [interrupt("go?")]}

    def compile(self, saver: Any, *, with_sibling: bool) -> Any:
        graph = StateGraph(State).add_node("client", self.client).add_node("between", self.between)
        graph.add_node("ask", self.ask).add_edge(START, "client").add_edge("between", "ask")
        if self.where != "send":
            graph.add_edge("client", "between")
        if with_sibling:
            graph.add_node("sibling", self.sibling).add_edge(START, "sibling")
        return graph.compile(checkpointer=saver)


PATHS = {
    "value": r"client\.value\.client\.lock",
    "list": r"client\.log\[1\]\.lock",
    "command": r"client\.value\.client\.lock",
    "send": r"Send\(between\)\.value\.lock",
}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize(
    ("where", "with_sibling"),
    [("value", False), ("value", True), ("list", True), ("command", False), ("send", False), ("send", True)],
)
def test_s070_the_bad_value_is_found_at_once(
    shelf: Shelf, call: Call, where: str, with_sibling: bool, durability: str
) -> None:
    client, config = Client(where), thread()
    for given in ({"log": []}, None):
        graph = client.compile(shelf.open(), with_sibling=with_sibling)
        with pytest.raises(UnstorableValueError, match=PATHS[where]) as refused:
            call(graph, given, config, durability=durability)
        assert "'client'" in str(refused.value) or "client" in refused.value.path or where == "send"
        state = graph.get_state(config)
        assert state.next == ("client",)
        assert {t.name: "lock" in t.error for t in state.tasks if t.error} == {"client": True}
        assert "value" not in state.values
        assert "between" not in client.runs
        (thread_row,) = shelf.open().threads(thread_id=config["configurable"]["thread_id"])
        assert thread_row.status == "failed"
    assert client.runs.count("sibling") == int(with_sibling)
    client.mended = True
    graph = client.compile(shelf.open(), with_sibling=with_sibling)
    assert texts(call(graph, None, config, durability=durability)) == ["go?"]
    assert "yes" in call(graph, Command(resume="yes"), config, durability=durability)["log"]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize(
    "given", [{"value": {"lock": threading.Lock()}}, {"log": [threading.Lock()]}], ids=["value", "list"]
)
def test_s070_a_bad_input_is_refused_before_anything_is_stored(
    shelf: Shelf, call: Call, given: Any, durability: str
) -> None:
    client, config = Client("value"), thread()
    client.mended = True
    graph = client.compile(shelf.open(), with_sibling=False)
    with pytest.raises(UnstorableValueError, match="lock"):
        call(graph, given, config, durability=durability)
    assert client.runs == []
    assert graph.get_state(config).values == {}
    assert graph.get_state(config).next == ()
    assert shelf.open().threads() == []
    assert texts(call(graph, {"log": []}, config, durability=durability)) == ["go?"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_s070_a_bad_value_in_an_answer_or_an_update_leaves_the_thread_as_it_is(
    shelf: Shelf, call: Call, durability: str
) -> None:
    client, config = Client("value"), thread()
    client.mended = True
    graph = client.compile(shelf.open(), with_sibling=False)
    question = the_id(call(graph, {"log": []}, config, durability=durability))
    before = rows(shelf.open(), config["configurable"]["thread_id"])
    for command in (Command(resume=threading.Lock()), Command(resume="yes", update={"value": threading.Lock()})):
        with pytest.raises(UnstorableValueError, match="lock"):
            call(graph, command, config, durability=durability)
    with pytest.raises(UnstorableValueError, match="lock"):
        graph.update_state(config, {"value": threading.Lock()})
    assert rows(shelf.open(), config["configurable"]["thread_id"]) == before
    assert [q.id for q in shelf.open().pending()] == [question]
    assert "yes" in call(graph, Command(resume="yes"), config, durability=durability)["log"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_s070_the_bad_value_is_named_by_a_nested_graph_too(shelf: Shelf, call: Call, durability: str) -> None:
    mended = [False]

    def client(state: State) -> State:
        return {"value": {"lock": "closed" if mended[0] else threading.Lock()}}

    def ask(state: State) -> State:
        return {"log": [interrupt("go?")]}

    inner = StateGraph(State).add_sequence([client, ask]).add_edge(START, "client").compile()
    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=shelf.open())
    config = thread()
    for given in ({"log": []}, None):
        with pytest.raises(UnstorableValueError, match=r"client\.value\.lock"):
            call(graph, given, config, durability=durability)
        assert graph.get_state(config).next == ("inner",)
    mended[0] = True
    assert texts(call(graph, None, config, durability=durability)) == ["go?"]
    assert call(graph, Command(resume="yes"), config)["log"] == ["yes"]


def test_s070_a_graph_without_a_checkpointer_may_hold_anything(call: Call) -> None:
    client = Client("value")
    graph = StateGraph(State).add_node("client", client.client).add_edge(START, "client").compile()
    assert "lock" in call(graph, {"log": []})["value"]["client"]


def test_s070_a_file_keeps_nothing_of_a_refused_value(disk: Shelf, call: Call) -> None:
    client, config = Client("list"), thread()
    with pytest.raises(UnstorableValueError):
        call(client.compile(disk.open(), with_sibling=True), {"log": []}, config)
    saver = disk.open()
    assert isinstance(saver, SqliteSaver)
    items = saver.items(ThreadKey(config["configurable"]["thread_id"], "LangGraph"), [(0, 1000)])
    assert not any(b"fine" in data for data in items.values())


def test_a_message_given_as_an_answer_reaches_the_node_as_a_message(shelf: Shelf, call: Call) -> None:
    got: list[Any] = []

    def node(state: Drafting) -> Drafting:
        got.append(interrupt("say something"))
        return {}

    config = thread()
    call(one_node(shelf.open(), node, Drafting), {"log": []}, config)
    call(one_node(shelf.open(), node, Drafting), Command(resume=HumanMessage("hello")), config)
    assert [(type(m), m.content) for m in got] == [(HumanMessage, "hello")]
