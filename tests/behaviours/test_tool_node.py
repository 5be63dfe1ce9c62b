"""`ToolNode` alone and in a graph: what it takes, what results become, which errors the model is told of."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolCall, ToolMessage
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.agents.scripted import calls
from tests.behaviours.conftest import Call
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.errors import ConfigError, InvalidUpdateError
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.graph.message import REMOVE_ALL_MESSAGES
from waitpoint.prebuilt import InjectedState, ToolNode, ToolRuntime, tools_condition
from waitpoint.types import Command, Send, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SUM = calls(("add", "c1", {"a": 1, "b": 2}))


# --- what it takes ----------------------------------------------------------------------------------------------------


class Pydantic(BaseModel):
    """A state."""

    messages: list[Any]


@dataclass
class Plain:
    """A state."""

    messages: list[Any]


@pytest.mark.parametrize("state", [{"messages": [SUM]}, Pydantic(messages=[SUM]), Plain([SUM])], ids=repr)
def test_a_state_with_messages_gives_an_update_of_them(state: Any, call: Call) -> None:
    (answer,) = call(ToolNode([add]), state)["messages"]
    assert (answer.content, answer.name, answer.tool_call_id, answer.status) == ("3", "add", "c1", "success")


def test_a_list_of_messages_gives_a_list(call: Call) -> None:
    found = call(ToolNode([add]), [HumanMessage("go"), SUM])
    assert [(type(m), m.content) for m in found] == [(ToolMessage, "3")]


def test_a_list_of_calls_gives_an_update(call: Call) -> None:
    asked = [ToolCall(name="add", args={"a": 1, "b": n}, id=f"c{n}", type="tool_call") for n in (1, 2)]
    assert [m.content for m in call(ToolNode([add]), asked)["messages"]] == ["2", "3"]


def test_a_call_with_its_state_gives_an_update(call: Call) -> None:
    given = {"__type": "tool_call_with_context", "tool_call": SUM.tool_calls[0], "state": {"messages": [SUM]}}
    assert [m.content for m in call(ToolNode([add]), given)["messages"]] == ["3"]


def test_messages_may_lie_under_another_key(call: Call) -> None:
    found = call(ToolNode([add], messages_key="talk"), {"talk": [SUM]})
    assert [m.content for m in found["talk"]] == ["3"]


def test_calls_that_have_an_answer_are_not_run_again(call: Call) -> None:
    both = calls(("add", "c1", {"a": 1, "b": 2}), ("add", "c2", {"a": 3, "b": 4}))
    state = {"messages": [both, ToolMessage("three", tool_call_id="c1")]}
    assert [(m.tool_call_id, m.content) for m in call(ToolNode([add]), state)["messages"]] == [("c2", "7")]


def test_a_call_repeated_word_for_word_in_a_later_message_is_run(call: Call) -> None:
    state = {"messages": [SUM, ToolMessage("3", tool_call_id="c1"), SUM]}
    assert [m.content for m in call(ToolNode([add]), state)["messages"]] == ["3"]


def test_a_message_without_calls_gives_nothing(call: Call) -> None:
    assert call(ToolNode([add]), {"messages": [AIMessage("hi")]}) == {"messages": []}


@pytest.mark.parametrize("given", [{"messages": []}, {"messages": [HumanMessage("hi")]}, {}, {"other": 1}], ids=repr)
def test_what_has_no_calls_to_run_is_refused(given: Any, call: Call) -> None:
    with pytest.raises(ConfigError, match="'tools'"):
        call(ToolNode([add]), given)


def test_functions_and_tools_are_known_by_name() -> None:
    def greet(name: str) -> str:
        """Greet."""
        return name

    assert set(ToolNode([add, greet]).tools_by_name) == {"add", "greet"}
    with pytest.raises(ConfigError, match="'add'"):
        ToolNode([add, StructuredTool.from_function(lambda a: a, name="add", description="Another.")])


# --- results ----------------------------------------------------------------------------------------------------------


class Thing(BaseModel):
    """A thing."""

    size: int


RESULTS: dict[str, tuple[Any, Any]] = {
    "text": ("héllo", "héllo"),
    "number": (3.5, "3.5"),
    "yes": (True, "true"),
    "nothing": (None, "null"),
    "object": ({"grüße": [1, None]}, '{"grüße": [1, null]}'),
    "list": ([1, 2], "[1, 2]"),
    "texts": (["a", "ü"], '["a", "ü"]'),
    "blocks": ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a"}]),
    "image": (
        [{"type": "image_url", "image_url": {"url": "data:x"}}],
        [{"type": "image_url", "image_url": {"url": "data:x"}}],
    ),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_results_become_contents(kind: str, call: Call) -> None:
    def give() -> Any:
        """Give."""
        return RESULTS[kind][0]

    (answer,) = call(ToolNode([give]), [calls(("give", "c1", {}))])
    assert answer.content == RESULTS[kind][1]


def test_a_result_that_is_no_json_becomes_its_text(call: Call) -> None:
    def give() -> Any:
        """Give."""
        return Thing(size=1)

    (answer,) = call(ToolNode([give]), [calls(("give", "c1", {}))])
    assert answer.content == str(Thing(size=1))


def test_results_are_in_the_order_of_the_calls(call: Call) -> None:
    many = calls(*(("add", f"c{n}", {"a": n, "b": 0}) for n in range(20)))
    found = call(ToolNode([add]), [many])
    assert [(m.tool_call_id, m.content) for m in found] == [(f"c{n}", str(n)) for n in range(20)]


def test_an_artifact_is_kept_beside_the_content(call: Call) -> None:
    @tool(response_format="content_and_artifact")
    def make() -> Any:
        """Make."""
        return "made", {"n": 1}

    (answer,) = call(ToolNode([make]), [calls(("make", "c1", {}))])
    assert (answer.content, answer.artifact) == ("made", {"n": 1})


def test_a_message_of_the_tools_own_is_the_answer(call: Call) -> None:
    def own() -> Any:
        """Answer."""
        return ToolMessage("mine", tool_call_id="c1", status="error", name="other")

    (answer,) = call(ToolNode([own]), [calls(("own", "c1", {}))])
    assert (answer.content, answer.status, answer.name) == ("mine", "error", "other")


# --- commands ---------------------------------------------------------------------------------------------------------


def giving(result: Any) -> Any:
    """Return a tool that returns this."""

    def give() -> Any:
        """Give."""
        return result

    return give


GIVE = calls(("give", "c1", {}))


def done(call_id: str = "c1") -> ToolMessage:
    return ToolMessage("done", tool_call_id=call_id)


def test_a_command_comes_out_as_it_is_with_the_tools_name_on_its_answer(call: Call) -> None:
    (command,) = call(
        ToolNode([giving(Command(update={"x": 1, "messages": [done()]}, goto="next"))]), {"messages": [GIVE]}
    )
    assert type(command) is Command
    assert (command.update["x"], command.goto) == (1, "next")
    assert [(m.content, m.name) for m in command.update["messages"]] == [("done", "give")]


def test_a_list_of_commands_and_an_answer_is_a_result(call: Call) -> None:
    found = call(ToolNode([giving([Command(update={"x": 1}), done()])]), {"messages": [GIVE]})
    assert found[0] == Command(update={"x": 1})
    assert [m.content for m in found[1]["messages"]] == ["done"]


@pytest.mark.parametrize(
    "result",
    [
        Command(update={"x": 1}),
        Command(update={"messages": [done("other")]}),
        [Command(update={"x": 1})],
        [done("other"), Command(update={"x": 1})],
        [done(), done()],
        [done(), Command(update={"messages": [done()]})],
    ],
    ids=["no answer", "another's answer", "a list without", "a list with another's", "twice", "twice, once inside"],
)
def test_a_command_has_to_answer_its_call_once(result: Any, call: Call) -> None:
    with pytest.raises(InvalidUpdateError, match=r"'give'.*'c1'|'give'.*call") as refused:
        call(ToolNode([giving(result)]), {"messages": [GIVE]})
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    "result",
    [
        Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}),
        Command(graph=Command.PARENT, goto="other"),
        Command(goto="other"),
        Command(update={"messages": [{"role": "tool", "content": "done", "tool_call_id": "c1"}]}),
    ],
    ids=["all messages go", "to the parent", "to another node", "as a dict"],
)
def test_commands_that_need_no_answer_or_have_it_in_another_form(result: Any, call: Call) -> None:
    (command,) = call(ToolNode([giving(result)]), {"messages": [GIVE]})
    assert command == result


def test_the_answer_in_a_list_of_messages_has_the_tools_name_too(call: Call) -> None:
    (command,) = call(ToolNode([giving(Command(update=[done()]))]), [GIVE])
    assert [m.name for m in command.update] == ["give"]


def test_sends_to_the_parent_are_one_command(call: Call) -> None:
    def hand(to: str) -> Any:
        """Hand over."""
        return Command(graph=Command.PARENT, goto=[Send(to, {})])

    found = call(ToolNode([hand, add]), {"messages": [
        calls(("hand", "c1", {"to": "a"}), ("add", "c2", {"a": 1, "b": 2}), ("hand", "c3", {"to": "b"}))
    ]})  # fmt: skip
    assert [m.content for m in found[0]["messages"]] == ["3"]
    assert found[1:] == [Command(graph=Command.PARENT, goto=[Send("a", {}), Send("b", {})])]


def test_commands_keep_their_place_among_the_answers(call: Call) -> None:
    def give() -> Any:
        """Give."""
        return Command(update={"messages": [done("c2")]})

    three = calls(("add", "c1", {"a": 1, "b": 2}), ("give", "c2", {}), ("add", "c3", {"a": 3, "b": 4}))
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([add, give])).add_edge(START, "tools")
    found = call(graph.compile(), {"messages": [three]})["messages"]
    assert [m.tool_call_id for m in found[1:]] == ["c1", "c2", "c3"]


def test_a_tool_class_may_return_a_command_and_keep_what_it_counts(call: Call) -> None:
    from langchain_core.tools import BaseTool

    class Counter(BaseTool):
        name: str = "give"
        description: str = "Give."
        times: int = 0

        def _run(self) -> Any:
            self.times += 1
            return Command(update={"times": self.times, "messages": [done()]})

    counter = Counter()
    node = ToolNode([counter])
    call(node, {"messages": [GIVE]})
    (command,) = call(node, {"messages": [GIVE]})
    assert command.update["times"] == counter.times == 2


def test_an_async_tool_may_return_a_command() -> None:
    import asyncio

    async def give() -> Any:
        """Give."""
        return Command(update={"messages": [done()]})

    node = ToolNode([StructuredTool.from_function(coroutine=give)])
    (command,) = asyncio.run(node.ainvoke({"messages": [GIVE]}))
    assert [m.content for m in command.update["messages"]] == ["done"]


def test_a_command_of_a_tool_leads_the_graph_around(call: Call, saver: BaseCheckpointSaver) -> None:
    class State(MessagesState):
        user: str

    def login() -> Any:
        """Log in."""
        return Command(update={"user": "ana", "messages": [done()]}, goto="hello")

    graph: Any = StateGraph(State)
    graph.add_node("tools", ToolNode([login]), destinations=("hello",))
    graph.add_node("hello", lambda state: {"messages": [AIMessage(f"hello {state['user']}")]})
    graph.add_edge(START, "tools")
    found = call(graph.compile(checkpointer=saver), {"messages": [calls(("login", "c1", {}))]}, CONFIG)
    assert [m.content for m in found["messages"]] == ["", "done", "hello ana"]


# --- around calls, and questions --------------------------------------------------------------------------------------


def test_a_wrapper_may_change_repeat_answer_and_rewrite(call: Call) -> None:
    def around(request: Any, handler: Any) -> Any:
        args = request.tool_call["args"]
        if args["a"] == 0:
            return ToolMessage("not zero", tool_call_id=request.tool_call["id"])
        if args["a"] == 1:
            return handler(request.override(tool_call={**request.tool_call, "args": {"a": 10, "b": 10}}))
        handler(request)
        answer = handler(request)
        return answer.model_copy(update={"content": f"surely {answer.content}"})

    three = calls(*(("add", f"c{n}", {"a": n, "b": n}) for n in range(3)))
    assert [m.content for m in call(ToolNode([add], wrap_tool_call=around), [three])] == ["not zero", "20", "surely 4"]


def test_a_wrapper_sees_the_call_the_tool_the_state_and_the_runtime(call: Call) -> None:
    seen: list[Any] = []

    def around(request: Any, handler: Any) -> Any:
        seen.append((request.tool_call["name"], request.tool, request.state["messages"], request.runtime.tool_call_id))
        return handler(request)

    both = calls(("add", "c1", {"a": 1, "b": 2}), ("sub", "c2", {}))
    call(ToolNode([add], wrap_tool_call=around), {"messages": [both]})
    assert sorted(seen, key=repr) == [("add", add, [both], "c1"), ("sub", None, [both], "c2")]


def test_a_wrapper_may_give_the_tool_another_state(call: Call) -> None:
    def tell(x: Annotated[int, InjectedState("x")], runtime: ToolRuntime) -> str:
        """Tell."""
        return f"{x} {runtime.state['x']}"

    def around(request: Any, handler: Any) -> Any:
        return handler(request.override(state={**request.state, "x": 2}))

    found = call(ToolNode([tell], wrap_tool_call=around), {"messages": [calls(("tell", "c1", {}))], "x": 1})
    assert [m.content for m in found["messages"]] == ["2 2"]


@pytest.mark.parametrize("given", [None, "text", {"content": "x"}, [None]], ids=repr)
def test_what_a_wrapper_may_not_return_is_refused(given: Any, call: Call) -> None:
    node = ToolNode([add], wrap_tool_call=lambda request, handler: given)
    with pytest.raises(InvalidUpdateError, match=r"'add'.*handler\(request\)"):
        call(node, [SUM])


def test_errors_of_a_wrapper_are_handled_as_the_tools_own(call: Call) -> None:
    def around(request: Any, handler: Any) -> Any:
        raise ValueError("around")

    (answer,) = call(ToolNode([add], wrap_tool_call=around, handle_tool_errors=True), [SUM])
    assert answer.content == "Error: ValueError('around')\n Please fix your mistakes."
    with pytest.raises(ValueError, match="around"):
        call(ToolNode([add], wrap_tool_call=around), [SUM])


class Log(MessagesState):
    """Messages and a log."""

    log: Annotated[list[str], operator.add]


@pytest.mark.parametrize("handle", [True, False])
def test_all_questions_of_a_node_come_at_once_and_what_is_done_is_not_run_again(
    handle: Any, call: Call, saver: BaseCheckpointSaver
) -> None:
    ran: list[str] = []

    def ask(what: str) -> str:
        """Ask."""
        ran.append(what)
        return f"{what}: {interrupt(what)}"

    def note(what: str) -> str:
        """Note."""
        ran.append(what)
        return what

    four = calls(*(("ask" if w.startswith("q") else "note", w, {"what": w}) for w in ("q1", "n1", "q2", "n2")))
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([ask, note], handle_tool_errors=handle)).add_edge(START, "tools")
    graph = graph.compile(checkpointer=saver)
    paused = call(graph, {"messages": [four]}, CONFIG)
    assert sorted(i.value for i in paused["__interrupt__"]) == ["q1", "q2"]
    assert [m.type for m in paused["messages"]] == ["ai"]
    ids = {i.value: i.id for i in paused["__interrupt__"]}
    half = call(graph, Command(resume={ids["q2"]: "two"}), CONFIG)
    assert [i.value for i in half["__interrupt__"]] == ["q1"]
    result = call(graph, Command(resume="one"), CONFIG)
    assert [(m.tool_call_id, m.content) for m in result["messages"][1:]] == [
        *(("q1", "q1: one"), ("n1", "n1"), ("q2", "q2: two"), ("n2", "n2"))
    ]
    assert (ran.count("n1"), ran.count("n2"), ran.count("q2")) == (1, 1, 2)


class NoMessages(TypedDict):
    """A state without messages."""

    x: int


def test_tools_condition_leads_to_the_tools_or_the_end() -> None:
    assert tools_condition({"messages": [SUM]}) == "tools"
    assert tools_condition([AIMessage("hi")]) == "__end__"
    assert tools_condition(Pydantic(messages=[SUM])) == "tools"
    assert tools_condition({"talk": [SUM]}, messages_key="talk") == "tools"
    for empty in ({"messages": []}, {"x": 1}, NoMessages(x=1), Plain([])):
        with pytest.raises(ConfigError, match="'messages'"):
            tools_condition(empty)
