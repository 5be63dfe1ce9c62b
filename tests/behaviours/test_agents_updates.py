"""What middleware writes to an agent's state, and what of it is seen: keys, commands, prompts, names."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call, Consumed
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    after_model,
    before_model,
    dynamic_prompt,
    wrap_model_call,
)
from waitpoint.agents.state import OmitFromInput, OmitFromOutput, PrivateStateAttr
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.errors import ConfigError, GraphValidationError, InvalidUpdateError
from waitpoint.stream import ProtocolEvent, StreamChannel, StreamTransformer
from waitpoint.types import Command

CONFIG: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}
LOOK = calls(("look", "c1", {"at": "sky"}))


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


class Counting(AgentState[Any]):
    """Counts turns, keeps a secret."""

    turns: NotRequired[int]
    secret: NotRequired[Annotated[str, PrivateStateAttr]]
    given: NotRequired[Annotated[str, OmitFromOutput]]
    found: NotRequired[Annotated[str, OmitFromInput]]


def test_middleware_extends_the_state_and_keeps_keys_out_of_input_and_output(
    call: Call, saver: BaseCheckpointSaver
) -> None:
    seen: list[Any] = []

    class Counter(AgentMiddleware[Any, Any, Any]):
        state_schema = Counting

        def before_model(self, state: Any, runtime: Any) -> Any:
            seen.append({key: state.get(key) for key in ("turns", "secret", "given", "found")})
            return {"turns": state.get("turns", 0) + 1, "secret": "s", "found": "f"}

    agent = create_agent(Scripted(LOOK, "ok"), [look], middleware=[Counter()], checkpointer=saver)
    result = call(agent, GO | {"turns": 5, "secret": "forged", "given": "g", "found": "forged"}, CONFIG)
    assert seen[0] == {"turns": 5, "secret": None, "given": "g", "found": None}
    assert seen[1] == {"turns": 6, "secret": "s", "given": "g", "found": "f"}
    assert {key: result[key] for key in result if key != "messages"} == {"turns": 7, "found": "f"}
    assert agent.get_state(CONFIG).values["secret"] == "s"


def test_a_state_schema_of_the_agent_itself_extends_the_state(call: Call) -> None:
    class Mine(AgentState[Any]):
        user: str

    @dynamic_prompt
    def prompt(request: Any) -> str:
        return f"You help {request.state['user']}."

    model = Scripted("ok")
    result = call(create_agent(model, [look], state_schema=Mine, middleware=[prompt]), GO | {"user": "ana"})
    assert result["user"] == "ana"
    assert model.shown[0][0].content == "You help ana."


def test_a_schema_without_messages_or_of_another_kind_is_refused() -> None:
    class Plain:
        messages: list[Any]

    with pytest.raises(GraphValidationError, match="Plain"):
        create_agent(Scripted(), state_schema=Plain)


def test_what_a_hook_may_not_return_is_refused_by_name(call: Call) -> None:
    with pytest.raises(InvalidUpdateError, match=r"odd\.before_model"):
        call(create_agent(Scripted("ok"), middleware=[before_model(lambda s, r: [1], name="odd")]), GO)


@pytest.mark.parametrize(
    ("command", "word"), [(Command(goto="model"), "goto"), (Command(resume=1), "resume"), (Command(graph="x"), "graph")]
)
def test_a_command_around_the_model_may_only_update(command: Any, word: str, call: Call) -> None:
    @wrap_model_call
    def leading(request: Any, handler: Any) -> Any:
        return ExtendedModelResponse(handler(request), command=command)

    with pytest.raises(NotImplementedError, match=f"Command {word} is not yet supported"):
        call(create_agent(Scripted("ok"), middleware=[leading]), GO)


def test_updates_beside_an_answer_come_after_it_the_inner_first(call: Call) -> None:
    def remarking(text: str) -> Any:
        def around(request: Any, handler: Any) -> Any:
            return ExtendedModelResponse(handler(request), command=Command(update={"messages": [HumanMessage(text)]}))

        return wrap_model_call(around, name=text)

    agent = create_agent(Scripted("ok"), middleware=[remarking("outer"), remarking("inner")])
    assert [m.content for m in call(agent, GO)["messages"]] == ["go", "ok", "inner", "outer"]


def test_updates_of_a_call_whose_answer_was_dropped_are_dropped_too(call: Call) -> None:
    class Failing(AgentMiddleware[Any, Any, Any]):
        times = 0

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            self.times += 1
            if self.times == 1:
                raise TimeoutError
            return AIMessage("instead")

    @wrap_model_call
    def retrying(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except TimeoutError:
            return AIMessage("fallback")

    @wrap_model_call
    def remarking(request: Any, handler: Any) -> Any:
        return ExtendedModelResponse(handler(request), command=Command(update={"messages": [HumanMessage("remark")]}))

    agent = create_agent(Scripted("ok"), middleware=[retrying, Failing(), remarking])
    assert [m.content for m in call(agent, GO)["messages"]] == ["go", "fallback"]


def test_a_system_message_may_be_given_set_and_extended(call: Call) -> None:
    @wrap_model_call
    def more(request: Any, handler: Any) -> Any:
        return handler(request.override(system_prompt=f"{request.system_prompt} Be brief."))

    model = Scripted("ok")
    call(create_agent(model, system_prompt=SystemMessage("Be kind."), middleware=[more]), GO)
    assert [(m.type, m.content) for m in model.shown[0]] == [("system", "Be kind. Be brief."), ("human", "go")]


def test_two_middlewares_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="'A'"):
        create_agent(Scripted(), middleware=[before_model(lambda s, r: None, name="A") for _ in range(2)])


def test_the_name_of_an_agent_is_on_its_messages_and_in_the_metadata_of_streams(streamed: Call) -> None:
    for name in ("clerk", None):
        model = Scripted(LOOK, "ok")
        parts = streamed(create_agent(model, [look], name=name), GO, stream_mode=["messages", "values"])
        state = [part for mode, part in parts if mode == "values"][-1]
        assert {m.name for m in state["messages"] if m.type == "ai"} == {name}
        metadata = [part[1] for mode, part in parts if mode == "messages"]
        assert metadata
        assert {m.get("lc_agent_name") for m in metadata} == {name}


class Counted(StreamTransformer):
    """Counts the states of a run."""

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[int] = StreamChannel("counted")
        self.states = 0

    def init(self) -> dict[str, Any]:
        return {"counted": self.channel}

    def process(self, event: ProtocolEvent) -> bool:
        if event["method"] == "values" and not event["params"]["namespace"]:
            self.states += 1
            self.channel.push(self.states)
        return True


def test_agents_and_middleware_add_projections_to_event_streams_each_once(consumed: Consumed) -> None:
    class Counting(AgentMiddleware[Any, Any, Any]):
        transformers = (Counted,)

    agent = create_agent(Scripted(LOOK, "ok"), [look], middleware=[Counting()], transformers=[Counted])
    assert consumed(agent, "counted", GO) == [1, 2, 3, 4]


def test_a_hook_that_answers_a_call_keeps_it_from_running(call: Call) -> None:
    ran: list[str] = []

    @tool
    def drop(what: str) -> str:
        """Drop."""
        ran.append(what)
        return what

    @after_model
    def guard(state: Any, runtime: Any) -> Any:
        found = [c for c in state["messages"][-1].tool_calls if c["args"].get("what") == "all"]
        return {"messages": [ToolMessage("no", tool_call_id=c["id"]) for c in found]} if found else None

    model = Scripted(calls(("drop", "c1", {"what": "all"}), ("drop", "c2", {"what": "one"})), "ok")
    result = call(create_agent(model, [drop], middleware=[guard]), GO)
    assert ran == ["one"]
    assert {m.tool_call_id: m.content for m in result["messages"] if m.type == "tool"} == {"c1": "no", "c2": "one"}
