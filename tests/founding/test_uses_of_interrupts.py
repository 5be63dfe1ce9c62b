"""What people use interrupts for: approval, editing, tools, the browser, forms that ask again."""

import json
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from typing_extensions import TypedDict

from tests.founding.saving import CONFIG, Saver, resumed, run
from waitpoint.graph import END, START, StateGraph
from waitpoint.graph.message import add_messages
from waitpoint.types import Command, interrupt


class Action(TypedDict, total=False):
    action: str
    done: list[str]


def approval_graph(saver: Saver) -> Any:
    def approval(state: Action) -> Command[Literal["proceed", "cancel"]]:
        approved = interrupt({"type": "approval", "question": "Go on with this?", "action": state["action"]})
        return Command(goto="proceed" if approved else "cancel")

    graph = StateGraph(Action)
    graph.add_node("approval", approval)
    graph.add_node("proceed", lambda state: {"done": ["proceeded"]})
    graph.add_node("cancel", lambda state: {"done": ["cancelled"]})
    graph.add_edge(START, "approval")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize(("answer", "done"), [(True, ["proceeded"]), (False, ["cancelled"])])
def test_the_first_call_shows_the_payload_and_the_answer_chooses_the_way(saver: Saver, answer: bool, done: Any) -> None:
    graph = approval_graph(saver)
    first = run(graph, {"action": "delete"}, CONFIG)
    assert first["__interrupt__"][0].value == {"type": "approval", "question": "Go on with this?", "action": "delete"}
    assert "done" not in first
    assert run(approval_graph(saver), Command(resume=answer), CONFIG) == {"action": "delete", "done": done}


class Draft(TypedDict):
    draft: str


def test_a_reviewer_edits_a_text_and_the_node_gets_the_edited_one(saver: Saver) -> None:
    def review(state: Draft) -> Draft:
        edited = interrupt({"type": "review_text", "instruction": "Check this text", "content": state["draft"]})
        return {"draft": edited}

    graph = StateGraph(Draft).add_node(review).add_edge(START, "review").compile(checkpointer=saver)
    first = run(graph, {"draft": "Helo"}, CONFIG)
    assert first["__interrupt__"][0].value["content"] == "Helo"
    assert run(graph, Command(resume="Hello."), CONFIG) == {"draft": "Hello."}


class Mail(TypedDict, total=False):
    calls: list[dict[str, Any]]
    results: list[str]


@pytest.mark.parametrize(
    ("decision", "sent", "result"),
    [
        ({"action": "approve"}, [("ann@x.org", "Hi", "text")], "sent to ann@x.org"),
        ({"action": "approve", "subject": "New subject"}, [("ann@x.org", "New subject", "text")], "sent to ann@x.org"),
        ({"action": "reject"}, [], "The user cancelled the mail"),
    ],
)
def test_a_tool_asks_before_it_acts_and_runs_with_the_rewritten_arguments(
    saver: Saver, decision: dict[str, Any], sent: list[Any], result: str
) -> None:
    outbox: list[tuple[str, str, str]] = []

    @tool
    def send_email(to: str, subject: str, body: str) -> str:
        """Send an email."""
        args = {"to": to, "subject": subject, "body": body}
        said = interrupt({"type": "tool_approval", "tool": "send_email", "args": args, "message": "Send this mail?"})
        if said["action"] != "approve":
            return "The user cancelled the mail"
        outbox.append((said.get("to", to), said.get("subject", subject), said.get("body", body)))
        return f"sent to {outbox[-1][0]}"

    def tools(state: Mail) -> Mail:
        return {"results": [send_email.invoke(args) for args in state["calls"]]}

    graph = StateGraph(Mail).add_node(tools).add_edge(START, "tools").compile(checkpointer=saver)
    call = {"to": "ann@x.org", "subject": "Hi", "body": "text"}
    first = run(graph, {"calls": [call]}, CONFIG)
    assert first["__interrupt__"][0].value["args"] == call
    assert outbox == []
    assert run(graph, Command(resume=decision), CONFIG)["results"] == [result]
    assert outbox == sent


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]


def test_the_server_pauses_the_browser_runs_the_tool_and_the_server_goes_on(saver: Saver) -> None:
    def frontend_tool(state: Chat) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        result = interrupt(
            {
                "type": "frontend_tool",
                "tool_call_id": call["id"],
                "tool_name": call["name"],
                "args": call.get("args") or {},
            }
        )
        return {"messages": [{"role": "tool", "tool_call_id": call["id"], "content": result["tool_result"]}]}

    graph = StateGraph(Chat).add_node(frontend_tool).add_edge(START, "frontend_tool").compile(checkpointer=saver)
    asked = AIMessage("", tool_calls=[{"name": "read_file", "args": {"path": "a.txt"}, "id": "call_123"}])

    pushed = []
    for chunk in graph.stream({"messages": [asked]}, CONFIG, stream_mode="values"):
        if "__interrupt__" in chunk:
            pushed.append(json.dumps([i.value for i in chunk["__interrupt__"]]))  # what goes over SSE
    (payload,) = json.loads(pushed[-1])
    assert payload == {
        "type": "frontend_tool",
        "tool_call_id": "call_123",
        "tool_name": "read_file",
        "args": {"path": "a.txt"},
    }

    posted = json.dumps({"command": {"resume": {"tool_call_id": "call_123", "tool_result": "local content"}}})
    last = run(graph, Command(resume=json.loads(posted)["command"]["resume"]), CONFIG)["messages"][-1]
    assert isinstance(last, ToolMessage)
    assert (last.tool_call_id, last.content) == ("call_123", "local content")


class Age(TypedDict, total=False):
    age: int


def test_a_form_asks_again_with_a_new_prompt_until_the_answer_is_valid(saver: Saver) -> None:
    entered = []

    def collect_age(state: Age) -> Age:
        entered.append(1)
        prompt = "Your age?"
        while True:
            answer = interrupt({"type": "form_input", "field": "age", "prompt": prompt})
            if isinstance(answer, int) and answer > 0:
                return {"age": answer}
            prompt = f"{answer!r} is no age; give a positive number"

    graph = StateGraph(Age).add_node(collect_age).add_edge(START, "collect_age").compile(checkpointer=saver)
    questions = [run(graph, {}, CONFIG)["__interrupt__"][0]]
    for bad in ("x", -1):
        questions.append(run(graph, Command(resume=bad), CONFIG)["__interrupt__"][0])
    assert [q.value["prompt"] for q in questions] == [
        "Your age?",
        "'x' is no age; give a positive number",
        "-1 is no age; give a positive number",
    ]
    assert len({q.id for q in questions}) == 3
    assert run(graph, Command(resume=42), CONFIG) == {"age": 42}
    assert len(entered) == 4


def test_the_two_prerequisites_are_a_checkpointer_and_the_same_thread_id(saver: Saver) -> None:
    graph = approval_graph(saver)
    run(graph, {"action": "a"}, CONFIG)
    elsewhere = {"configurable": {"thread_id": "thread-2"}}
    with pytest.raises(Exception, match="Nothing is pending"):
        run(graph, Command(resume=True), elsewhere)
    assert resumed(graph, True) == {"action": "a", "done": ["proceeded"]}
    bare = StateGraph(Action).add_node("ask", lambda s: {"done": [interrupt("?")]}).add_edge(START, "ask")
    with pytest.raises(Exception, match="without a checkpointer"):
        bare.add_edge("ask", END).compile().invoke({"action": "a"})
