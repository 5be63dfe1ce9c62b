"""Scenarios of the section "replay/side-effects": what happens again when a node runs again, and what does not."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, texts, the_id, thread
from waitpoint.errors import ChangedInPlaceWarning, DebugWarning, RunAgainWarning
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, Overwrite, RetryPolicy, interrupt, step

# --- S046 -------------------------------------------------------------------------------------------------------------


class Mailer:
    """One node: a mail, then three questions."""

    def __init__(self, folder: Path) -> None:
        self.outbox = folder / "outbox.txt"

    def send(self, to: str) -> str:
        with self.outbox.open("a") as file:
            file.write(f"{to}\n")
        return f"sent to {to}"

    async def asend(self, to: str) -> str:
        return self.send(to)

    @property
    def sent(self) -> list[str]:
        return self.outbox.read_text().splitlines()

    def compile(self, shelf: Shelf, effect: Callable[[], Any], **options: Any) -> Any:
        def node(state: State) -> State:
            receipt = effect()
            return {"log": [receipt, *(interrupt(n) for n in range(3))]}

        return StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open(), **options)


def to_the_end(build: Callable[[], Any], call: Call) -> tuple[Any, int]:
    """Answer every question; return the output, and how many there were."""
    config, answers = thread(), 0
    result = call(build(), {"log": []}, config)
    while "__interrupt__" in result:
        result = call(build(), Command(resume=f"answer {answers}"), config)
        answers += 1
    return result, answers


def test_s046_code_before_the_question_runs_once_per_answer(shelf: Shelf, call: Call, tmp_path: Path) -> None:
    mailer = Mailer(tmp_path)
    done, answers = to_the_end(lambda: mailer.compile(shelf, lambda: mailer.send("ana")), call)
    assert (done["log"], answers) == (["sent to ana", "answer 0", "answer 1", "answer 2"], 3)
    assert mailer.sent == ["ana"] * 4


@pytest.mark.parametrize("in_doubt", ["rerun", "ask", lambda key, args: None], ids=["rerun", "ask", "probe"])
def test_s046_code_before_the_question_runs_once_in_a_recorded_step(
    shelf: Shelf, call: Call, tmp_path: Path, in_doubt: Any
) -> None:
    mailer = Mailer(tmp_path)
    done, answers = to_the_end(lambda: mailer.compile(shelf, lambda: step(mailer.send, "ana", in_doubt=in_doubt)), call)
    assert (done["log"], answers) == (["sent to ana", "answer 0", "answer 1", "answer 2"], 3)
    assert mailer.sent == ["ana"]


async def test_s046_code_before_the_question_runs_once_in_an_awaited_step(shelf: Shelf, tmp_path: Path) -> None:
    mailer = Mailer(tmp_path)

    async def node(state: State) -> State:
        receipt = await step(mailer.asend, "ana")
        return {"log": [receipt, *(interrupt(n) for n in range(3))]}

    graph, config = (
        StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open()),
        thread(),
    )
    await graph.ainvoke({"log": []}, config)
    for n in range(3):
        done = await graph.ainvoke(Command(resume=n), config)
    assert done["log"] == ["sent to ana", 0, 1, 2]
    assert mailer.sent == ["ana"]


def test_s046_debug_mode_warns_when_a_body_with_recorded_effects_is_entered_again(
    shelf: Shelf, call: Call, tmp_path: Path
) -> None:
    mailer = Mailer(tmp_path)

    def build() -> Any:
        return mailer.compile(shelf, lambda: step(mailer.send, "ana"), debug=True)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, answers = to_the_end(build, call)
    told = [w for w in caught if issubclass(w.category, DebugWarning)]
    assert [w.category for w in told] == [RunAgainWarning] * answers
    assert all("'node'" in str(w.message) and "step()" in str(w.message) for w in told)
    assert {w.filename for w in told} == {__file__}


def test_s046_debug_mode_says_nothing_without_recorded_effects_nor_when_it_is_off(
    shelf: Shelf, call: Call, tmp_path: Path
) -> None:
    mailer = Mailer(tmp_path)
    to_the_end(lambda: mailer.compile(shelf, lambda: mailer.send("ana"), debug=True), call)  # warnings are errors
    to_the_end(lambda: mailer.compile(shelf, lambda: step(mailer.send, "ana")), call)


def test_s046_debug_mode_can_be_asked_for_by_one_call(shelf: Shelf, call: Call, tmp_path: Path) -> None:
    mailer, config = Mailer(tmp_path), thread()
    graph = mailer.compile(shelf, lambda: step(mailer.send, "ana"))
    call(graph, {"log": []}, config, debug=True)
    with pytest.warns(RunAgainWarning, match="attempt 2"):
        call(graph, Command(resume=0), config, debug=True)
    call(graph, Command(resume=1), config)


def test_s046_debug_mode_warns_of_a_retry_too(shelf: Shelf, call: Call, tmp_path: Path) -> None:
    mailer, tries = Mailer(tmp_path), [0]

    def node(state: State) -> State:
        step(mailer.send, "ana")
        tries[0] += 1
        if tries[0] == 1:
            raise ConnectionError("reset")
        return {"value": "ok"}

    graph = StateGraph(State).add_node("node", node, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    compiled = graph.add_edge(START, "node").compile(checkpointer=shelf.open(), debug=True)
    with pytest.warns(RunAgainWarning):
        assert call(compiled, {"log": []}, thread())["value"] == "ok"
    assert mailer.sent == ["ana"]


def test_s046_where_warnings_are_errors_the_node_fails_by_them_and_the_thread_goes_on(
    shelf: Shelf, call: Call, tmp_path: Path
) -> None:
    mailer, config = Mailer(tmp_path), thread()
    graph = mailer.compile(shelf, lambda: step(mailer.send, "ana"), debug=True)
    call(graph, {"log": []}, config)
    with pytest.raises(RunAgainWarning):
        call(graph, Command(resume=0), config)
    assert graph.get_state(config).next == ("node",)
    calm = mailer.compile(shelf, lambda: step(mailer.send, "ana"))
    assert texts(call(calm, None, config)) == [1]


# --- debug mode: inputs that were changed in place --------------------------------------------------------------------


@dataclass
class DataState:
    docs: list[Any] = field(default_factory=list)
    value: Any = None


class ModelState(BaseModel):
    docs: list[Any] = []
    value: Any = None


class DictState(TypedDict, total=False):
    docs: list[Any]
    value: Any


def get(state: Any, key: str) -> Any:
    return state[key] if isinstance(state, dict) else getattr(state, key)


def appended(state: Any) -> Any:
    get(state, "docs").append("new")


def changed_deep(state: Any) -> Any:
    get(state, "docs")[0]["title"] = "new"
    return {"value": 1}


def returned_by_command(state: Any) -> Any:
    get(state, "docs").append("new")
    return Command(update={"docs": get(state, "docs")})


def returned(state: Any) -> Any:
    get(state, "docs")[0]["title"] = "new"
    return {"docs": list(get(state, "docs"))}


def returned_in_a_list(state: Any) -> Any:
    get(state, "docs").append("new")
    return [Command(update={"value": 1}), {"docs": get(state, "docs")}]


def untouched(state: Any) -> Any:
    return {"value": [*get(state, "docs"), "new"]}


@pytest.mark.parametrize("schema", [DictState, DataState, ModelState])
@pytest.mark.parametrize("node", [appended, changed_deep])
def test_debug_mode_names_what_was_changed_in_place_without_being_returned(
    call: Call, schema: Any, node: Callable[..., Any]
) -> None:
    graph = StateGraph(schema).add_node("node", node).add_edge(START, "node").compile(debug=True)
    with pytest.warns(ChangedInPlaceWarning, match="'node' changed 'docs' in place") as told:
        call(graph, {"docs": [{"title": "old"}]})
    assert len(told) == 1


@pytest.mark.parametrize("schema", [DictState, DataState, ModelState])
@pytest.mark.parametrize("node", [returned, returned_by_command, returned_in_a_list, untouched])
def test_debug_mode_says_nothing_of_what_is_returned_or_untouched(
    call: Call, schema: Any, node: Callable[..., Any]
) -> None:
    graph = StateGraph(schema).add_node("node", node).add_edge(START, "node").compile(debug=True)
    call(graph, {"docs": [{"title": "old"}]})


def test_debug_mode_looks_at_what_cannot_be_stored_too(call: Call) -> None:
    def node(state: DictState) -> DictState:
        state["docs"].append("new")
        return {"value": 1}

    graph = StateGraph(DictState).add_node("node", node).add_edge(START, "node").compile(debug=True)
    with pytest.warns(ChangedInPlaceWarning, match="'docs'"):
        call(graph, {"docs": [], "value": object()})


# --- S053 -------------------------------------------------------------------------------------------------------------


class Chat(MessagesState):
    log: Annotated[list[Any], operator.add]


def test_s053_the_same_request_appears_once_in_the_chat(shelf: Shelf, call: Call) -> None:
    from langchain_core.messages import AIMessage, HumanMessage

    def request(state: Chat) -> Any:
        return {"messages": [AIMessage("May I delete a.txt?")]}

    def sibling(state: Chat) -> Any:
        return {"messages": [AIMessage("meanwhile")]}

    def ask(state: Chat) -> Any:
        text = state["messages"][-1].content if state["messages"] else ""
        return {"messages": [HumanMessage(interrupt({"re": text}))], "log": [interrupt("sure?")]}

    def build() -> Any:
        graph = StateGraph(Chat).add_node(request).add_node(sibling).add_node(ask)
        graph.add_edge(START, "request").add_edge("request", "ask").add_edge("request", "sibling")
        return graph.compile(checkpointer=shelf.open())

    config = thread()
    shown = [call(build(), {"messages": []}, config)["messages"]]
    shown += [call(build(), Command(resume=answer), config)["messages"] for answer in ("yes", "really")]
    assert [[m.content for m in messages] for messages in shown] == [
        ["May I delete a.txt?", "meanwhile"],
        ["May I delete a.txt?", "meanwhile"],
        ["May I delete a.txt?", "yes", "meanwhile"],
    ]
    ids = [{m.content: m.id for m in messages} for messages in shown]
    assert all(ids[2][text] == known[text] for known in ids for text in known)  # one message has one id for good
    assert all(ids[2].values())


def test_s053_a_message_that_a_node_makes_in_a_step_before_it_asks_is_one_message(shelf: Shelf, call: Call) -> None:
    from langchain_core.messages import AIMessage

    made: list[int] = []

    def draft() -> AIMessage:
        made.append(1)
        return AIMessage(f"draft {len(made)}", id=f"m{len(made)}")

    def node(state: Chat) -> Any:
        message = step(draft)
        interrupt({"publish": message.content})
        return {"messages": [message]}

    graph = StateGraph(Chat).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open())
    config = thread()
    assert texts(call(graph, {"messages": []}, config)) == [{"publish": "draft 1"}]
    assert [m.id for m in call(graph, Command(resume=True), config)["messages"]] == ["m1"]


# --- S055 -------------------------------------------------------------------------------------------------------------


class Careful:
    """'May I read?', which can be switched off, then 'May I delete?'."""

    def __init__(self) -> None:
        self.asks_to_read = True

    def compile(self, shelf: Shelf) -> Any:
        def node(state: State) -> State:
            read = interrupt("May I read?") if self.asks_to_read else "unasked"
            return {"log": [("read", read), ("delete", interrupt("May I delete?"))]}

        return StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open())


def test_s055_an_optional_question_does_not_shift_the_others(shelf: Shelf, call: Call) -> None:
    careful, config = Careful(), thread()
    read = the_id(call(careful.compile(shelf), {"log": []}, config))
    careful.asks_to_read = False
    (delete,) = asked(call(careful.compile(shelf), Command(resume={read: "yes"}), config))
    assert (delete.value, delete.id == read) == ("May I delete?", False)
    done = call(careful.compile(shelf), Command(resume="no"), config)
    assert done["log"] == [("read", "unasked"), ("delete", "no")]


def test_s055_a_question_that_comes_back_finds_its_own_answer(shelf: Shelf, call: Call) -> None:
    careful, config = Careful(), thread()
    call(careful.compile(shelf), {"log": []}, config)
    call(careful.compile(shelf), Command(resume="yes"), config)
    careful.asks_to_read = False
    assert texts(call(careful.compile(shelf), None, config)) == ["May I delete?"]
    careful.asks_to_read = True
    done = call(careful.compile(shelf), Command(resume="no"), config)
    assert done["log"] == [("read", "yes"), ("delete", "no")]


def test_s055_a_question_added_before_the_open_one_is_asked_and_takes_no_answer_of_it(shelf: Shelf, call: Call) -> None:
    careful, config = Careful(), thread()
    careful.asks_to_read = False
    delete = the_id(call(careful.compile(shelf), {"log": []}, config))
    careful.asks_to_read = True
    assert texts(call(careful.compile(shelf), Command(resume={delete: "no"}), config)) == ["May I read?"]
    done = call(careful.compile(shelf), Command(resume="yes"), config)
    assert done["log"] == [("read", "yes"), ("delete", "no")]


def test_s055_of_two_questions_with_one_text_each_keeps_the_answer_of_its_place(shelf: Shelf, call: Call) -> None:
    asks_first = [True]

    def node(state: State) -> State:
        read = interrupt("May I?") if asks_first[0] else "unasked"
        delete = interrupt("May I?")
        return {"log": [("read", read), ("delete", delete)]}

    def build() -> Any:
        return StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open())

    config = thread()
    first = the_id(call(build(), {"log": []}, config))
    asks_first[0] = False
    second = the_id(call(build(), Command(resume={first: "yes, read"}), config))
    assert second != first
    assert call(build(), Command(resume="no"), config)["log"] == [("read", "unasked"), ("delete", "no")]


def test_s055_a_question_whose_payload_changed_is_asked_again_and_says_why(shelf: Shelf, call: Call) -> None:
    amount = [100]

    def pay(state: State) -> State:
        return {"value": interrupt({"pay": amount[0], "to": "ana"})}

    def build() -> Any:
        return StateGraph(State).add_node(pay).add_edge(START, "pay").compile(checkpointer=shelf.open())

    config = thread()
    old = the_id(call(build(), {"log": []}, config))
    amount[0] = 900
    new = the_id(call(build(), Command(resume="yes"), config))
    (question,) = shelf.open().pending()
    assert (question.id, question.supersedes, question.changed_paths) == (new, old, ("pay",))
    assert question.value == {"pay": 900, "to": "ana"}
    assert call(build(), Command(resume="no"), config)["value"] == "no"


def test_debug_mode_sees_an_overwrite_as_returned(call: Call) -> None:
    def node(state: State) -> State:
        state["log"].append("x")
        return {"log": Overwrite(state["log"])}  # type: ignore[typeddict-item]

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(debug=True)
    assert call(graph, {"log": []})["log"] == ["x"]
