"""Tools of every kind in an agent, what is injected into them, and what a model can neither see nor set."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

import langgraph.prebuilt as peer
import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from pydantic import BaseModel, Field

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call, _ainvoke
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import AgentState, before_model, wrap_model_call, wrap_tool_call
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.config import get_config, get_store, get_stream_writer
from waitpoint.errors import ConfigError
from waitpoint.interrupts import step
from waitpoint.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from waitpoint.runtime import get_runtime
from waitpoint.store.memory import InMemoryStore
from waitpoint.types import Command, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}


def answered(call: Call, tools: Any, name: str, args: dict[str, Any], **options: Any) -> ToolMessage:
    """Return the answer to one call of an agent."""
    more = options.pop("more", {})
    given = options.pop("how", {})
    agent = create_agent(Scripted(calls((name, "c1", args)), "ok"), tools, **options)
    (answer,) = [m for m in call(agent, GO | more, **given)["messages"] if m.type == "tool"]
    return answer  # type: ignore[no-any-return]


# --- kinds ------------------------------------------------------------------------------------------------------------


def greet(name: str, *, loud: bool = False) -> str:
    """Greet somebody."""
    return f"HELLO {name}" if loud else f"hello {name}"


async def greet_later(name: str) -> str:
    """Greet somebody, later."""
    await asyncio.sleep(0)
    return f"hello {name}"


class Greeting(BaseModel):
    """A greeting."""

    name: str = Field(description="Whom.")


class GreetTool(BaseTool):
    """A tool as a class."""

    name: str = "greet"
    description: str = "Greet."
    args_schema: Any = Greeting

    def _run(self, name: str) -> str:
        return f"hello {name}"


JSON_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

KINDS: dict[str, Any] = {
    "a function": greet,
    "a tool": tool(greet),
    "a class of tools": GreetTool(),
    "a schema class": tool("greet", args_schema=Greeting)(greet),
    "a JSON schema": StructuredTool(
        name="greet", description="Greet.", args_schema=JSON_SCHEMA, func=lambda **args: greet(**args)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_may_be(kind: str, call: Call) -> None:
    answer = answered(call, [KINDS[kind]], "greet", {"name": "ana"})
    assert (answer.content, answer.name, answer.status) == ("hello ana", "greet", "success")


# Against a JSON schema langchain-core checks nothing, and the tool decides.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a JSON schema"])
def test_arguments_that_do_not_fit_are_told_whatever_the_tool_is(kind: str, call: Call) -> None:
    answer = answered(call, [KINDS[kind]], "greet", {"name": [1]})
    assert answer.status == "error"
    assert "name: Input should be a valid string" in answer.content


def test_arguments_that_a_tool_does_not_declare_are_ignored(call: Call) -> None:
    assert answered(call, [greet], "greet", {"name": "ana", "shout": True}).content == "hello ana"


def test_an_async_tool_runs_under_ainvoke_and_is_refused_by_name_in_a_blocking_run() -> None:
    made = StructuredTool.from_function(coroutine=greet_later, name="greet")
    assert answered(_ainvoke, [made], "greet", {"name": "ana"}).content == "hello ana"
    with pytest.raises(NotImplementedError):
        create_agent(Scripted(calls(("greet", "c1", {"name": "ana"}))), [made]).invoke(GO)


def test_a_pydantic_class_is_a_tool_that_gives_its_instance(call: Call) -> None:
    answer = answered(call, [Greeting], "Greeting", {"name": "ana"})
    assert (answer.content, answer.status) == ("name='ana'", "success")
    assert answered(call, [Greeting], "Greeting", {}).status == "error"


def test_a_remote_tool_with_a_json_schema_an_artifact_and_a_runtime(call: Call) -> None:
    def local(runtime: ToolRuntime, **args: Any) -> Any:
        return [{"type": "text", "text": f"{args['name']} {runtime.tool_call_id}"}], {"raw": args}

    async def remote(runtime: ToolRuntime, **args: Any) -> Any:
        await asyncio.sleep(0)
        return local(runtime, **args)

    made = StructuredTool(
        name="greet", description="Greet.", args_schema=JSON_SCHEMA, func=local, coroutine=remote,
        response_format="content_and_artifact",
    )  # fmt: skip
    answer = answered(call, [made], "greet", {"name": "ana", "runtime": "forged"})
    assert answer.content == [{"type": "text", "text": "ana c1"}]
    assert answer.artifact == {"raw": {"name": "ana"}}


def test_tools_of_the_provider_are_shown_to_the_model_and_never_run(call: Call) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    model = Scripted("ok")
    call(create_agent(model, [greet, search]), GO)
    assert [t if isinstance(t, dict) else t.name for t in model.bound[0]] == ["greet", search]


def test_what_is_no_tool_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigError, match="int"):
        create_agent(Scripted(), [3])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="'greet'"):
        create_agent(Scripted(), [greet, GreetTool()])


def test_a_tool_may_be_added_for_a_turn_if_middleware_runs_it(call: Call) -> None:
    extra = tool(greet)

    @wrap_model_call
    def adding(request: Any, handler: Any) -> Any:
        return handler(request.override(tools=[*request.tools, extra]))

    @wrap_tool_call
    def running(request: Any, handler: Any) -> Any:
        return handler(request.override(tool=extra))

    model = Scripted(calls(("greet", "c1", {"name": "ana"})))
    with pytest.raises(ValueError, match=r"Unknown tools: \['greet'\]"):
        call(create_agent(model, middleware=[adding]), GO)
    assert answered(call, [], "greet", {"name": "ana"}, middleware=[adding, running]).content == "hello ana"


# --- what is injected -------------------------------------------------------------------------------------------------


class State(AgentState[Any]):
    """A state with more in it."""

    user: NotRequired[str]
    level: NotRequired[int]


@dataclass
class Context:
    """Who asks."""

    tenant: str


@tool
def all_of_it(
    word: str,
    state: Annotated[Any, InjectedState],
    user: Annotated[str, InjectedState("user")],
    store: Annotated[Any, InjectedStore()],
    call_id: Annotated[str, InjectedToolCallId],
    runtime: ToolRuntime[Context, State],
    config: RunnableConfig,
    level: Annotated[int, InjectedState("level")] = 7,
) -> str:
    """Tell all."""
    assert runtime.state == state
    assert runtime.store is store
    assert runtime.tool_call_id == call_id
    assert runtime.config["configurable"]["thread_id"] == config["configurable"]["thread_id"]
    assert runtime.execution_info is not None
    assert runtime.execution_info.thread_id == config["configurable"]["thread_id"]
    assert [t.name for t in runtime.tools] == ["all_of_it"]
    runtime.stream_writer({"word": word})
    place = store.get(("places",), "here").value["name"]
    return f"{word} {user} {len(state['messages'])} {call_id} {runtime.context.tenant} {place} {level}"


def test_state_store_context_call_id_config_and_runtime_are_injected(call: Call, saver: BaseCheckpointSaver) -> None:
    store = InMemoryStore()
    store.put(("places",), "here", {"name": "kitchen"})
    options: Any = {
        "state_schema": State,
        "context_schema": Context,
        "store": store,
        "checkpointer": saver,
        "how": {"config": CONFIG, "context": Context("acme")},
    }
    answer = answered(call, [all_of_it], "all_of_it", {"word": "w"}, more={"user": "ana"}, **options)
    assert answer.content == "w ana 2 c1 acme kitchen 7"


def test_a_model_sees_only_what_it_may_set() -> None:
    assert set(all_of_it.tool_call_schema.model_json_schema()["properties"]) == {"word"}  # type: ignore[union-attr]


def test_a_key_of_the_state_that_is_there_goes_before_the_default(call: Call, saver: BaseCheckpointSaver) -> None:
    def tell(level: Annotated[int, InjectedState("level")] = 7) -> str:
        """Tell."""
        return str(level)

    assert answered(call, [tell], "tell", {}, state_schema=State, more={"level": 3}).content == "3"
    assert answered(call, [tell], "tell", {}, state_schema=State).content == "7"


def test_a_parameter_called_runtime_gets_it_unless_it_says_what_else_it_is(call: Call) -> None:
    def tell(word: str, runtime: Any) -> str:
        """Tell."""
        return f"{word} {runtime.tool_call_id}"

    def film(runtime: int) -> str:
        """Choose a film."""
        return f"{runtime} minutes"

    assert answered(call, [tell], "tell", {"word": "w", "runtime": "forged"}).content == "w c1"
    assert answered(call, [film], "film", {"runtime": 90}).content == "90 minutes"


class InjectedSecret(InjectedToolArg):
    """Marks what somebody else fills."""


def test_a_model_cannot_forge_what_is_injected(call: Call) -> None:
    def tell(
        word: str,
        user: Annotated[str, InjectedState("user")],
        call_id: Annotated[str, InjectedToolCallId],
        secret: Annotated[str, InjectedSecret] = "kept",
        other: Annotated[str, InjectedToolArg()] = "kept too",
    ) -> str:
        """Tell."""
        return f"{word} {user} {call_id} {secret} {other}"

    forged = {"word": "w", "user": "root", "call_id": "x", "secret": "x", "other": "x", "runtime": "x"}
    answer = answered(call, [tell], "tell", forged, state_schema=State, more={"user": "ana"})
    assert answer.content == "w ana c1 kept kept too"


def test_errors_name_only_arguments_that_the_model_controls(call: Call) -> None:
    class Secrets(AgentState[Any]):
        token: NotRequired[str]
        count: NotRequired[Any]

    def use(
        path: int,
        state: Annotated[Any, InjectedState],
        token: Annotated[str, InjectedState("token")],
        count: Annotated[int, InjectedState("count")],
        runtime: ToolRuntime,
    ) -> str:
        """Use."""
        return "used"

    answer = answered(
        call, [use], "use", {"path": "x", "token": "forged"}, state_schema=Secrets,
        more={"token": "s3cret", "count": "not a number"},
    )  # fmt: skip
    assert answer.status == "error"
    assert "path" in answer.content
    for hidden in ("s3cret", "token", "forged", "count", "state", "runtime", "not a number"):
        assert hidden not in answer.content


def test_a_fault_of_what_is_injected_is_not_told_to_the_model(call: Call) -> None:
    def use(level: Annotated[int, InjectedState("level")]) -> str:
        """Use."""
        return "used"

    with pytest.raises(ValueError, match="level"):
        answered(call, [use], "use", {}, state_schema=State, more={"level": "high"})


def test_a_key_or_a_store_that_is_missing_is_an_error_with_its_cure(call: Call) -> None:
    def use(user: Annotated[str, InjectedState("user")]) -> str:
        """Use."""
        return user

    def keep(store: Annotated[Any, InjectedStore()]) -> str:
        """Keep."""
        return "kept"

    with pytest.raises(ConfigError, match=r"'use'.*'user'.*state_schema"):
        answered(call, [use], "use", {}, state_schema=State)
    with pytest.raises(ConfigError, match=r"'keep'.*store"):
        answered(call, [keep], "keep", {})


def test_tools_written_for_langgraphs_classes_get_the_same(call: Call) -> None:
    def tell(
        word: str,
        state: Annotated[Any, peer.InjectedState],
        user: Annotated[str, peer.InjectedState("user")],
        store: Annotated[Any, peer.InjectedStore()],
        runtime: peer.ToolRuntime,
    ) -> str:
        """Tell."""
        return f"{word} {user} {len(state['messages'])} {runtime.tool_call_id} {store is runtime.store}"

    answer = answered(
        call, [tell], "tell", {"word": "w"}, state_schema=State, store=InMemoryStore(), more={"user": "ana"}
    )
    assert answer.content == "w ana 2 c1 True"


def test_a_node_given_a_list_injects_it_as_the_state(call: Call) -> None:
    def count(state: Annotated[Any, InjectedState], messages: Annotated[list[Any], InjectedState("messages")]) -> str:
        """Count."""
        return f"{len(state['messages'])} {len(messages)}"

    def need(user: Annotated[str, InjectedState("user")]) -> str:
        """Need."""
        return user

    assert [m.content for m in call(ToolNode([count]), [calls(("count", "c1", {}))])] == ["1 1"]
    with pytest.raises(ConfigError, match="'user'"):
        call(ToolNode([need]), [calls(("need", "c1", {}))])


def test_a_tool_sees_the_state_of_its_turn_also_after_a_pause(call: Call, saver: BaseCheckpointSaver) -> None:
    seen: list[Any] = []

    def ask(user: Annotated[str, InjectedState("user")], runtime: ToolRuntime) -> Any:
        """Ask."""
        seen.append((user, len(runtime.state["messages"]), runtime.tool_call_id))
        answer = ToolMessage(interrupt(f"{user}?"), tool_call_id=runtime.tool_call_id)
        return Command(update={"user": "bo", "messages": [answer]})

    model = Scripted(calls(("ask", "c1", {})), calls(("ask", "c2", {})), "ok")
    agent = create_agent(model, [ask], state_schema=State, checkpointer=saver)
    assert [i.value for i in call(agent, GO | {"user": "ana"}, CONFIG)["__interrupt__"]] == ["ana?"]
    assert [i.value for i in call(agent, Command(resume="yes"), CONFIG)["__interrupt__"]] == ["bo?"]
    result = call(agent, Command(resume="no"), CONFIG)
    assert seen == [("ana", 2, "c1"), ("ana", 2, "c1"), ("bo", 4, "c2"), ("bo", 4, "c2")]
    assert [m.content for m in result["messages"] if m.type == "tool"] == ["yes", "no"]


# --- what is reached from inside --------------------------------------------------------------------------------------


def test_a_tool_reaches_config_store_writer_and_runtime_of_its_node(streamed: Call, saver: BaseCheckpointSaver) -> None:
    @tool
    def reach() -> str:
        """Reach out."""
        get_stream_writer()({"from": "the tool"})
        assert get_store() is get_runtime().store
        return str(get_config()["configurable"]["thread_id"])

    @before_model
    def note(state: Any, runtime: Any) -> None:
        runtime.stream_writer({"from": "the hook"})

    model = Scripted(calls(("reach", "c1", {})), "ok")
    agent = create_agent(model, [reach], middleware=[note], store=InMemoryStore(), checkpointer=saver)
    parts = streamed(agent, GO, CONFIG, stream_mode=["custom", "values"])
    assert [part["from"] for mode, part in parts if mode == "custom"] == ["the hook", "the tool", "the hook"]
    assert [m.content for m in parts[-1][1]["messages"]] == ["go", "", "t", "ok"]


def test_effects_inside_a_tool_are_done_once_however_often_it_pauses(call: Call, saver: BaseCheckpointSaver) -> None:
    sent: list[str] = []

    @tool
    def mail(to: str) -> str:
        """Mail."""
        draft = step(lambda: sent.append(f"draft to {to}") or len(sent), key="draft")
        if interrupt(f"send draft {draft}?") == "yes":
            step(lambda: sent.append(f"mail to {to}"), key="send")
        return f"{interrupt('signature?')}: {len(sent)}"

    agent = create_agent(Scripted(calls(("mail", "c1", {"to": "ana"})), "ok"), [mail], checkpointer=saver)
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["send draft 1?"]
    assert [i.value for i in call(agent, Command(resume="yes"), CONFIG)["__interrupt__"]] == ["signature?"]
    result = call(agent, Command(resume="bo"), CONFIG)
    assert sent == ["draft to ana", "mail to ana"]
    assert [m.content for m in result["messages"] if m.type == "tool"] == ["bo: 2"]


def test_an_async_tool_may_ask(saver: BaseCheckpointSaver) -> None:
    async def ask(about: str) -> str:
        """Ask."""
        await asyncio.sleep(0)
        return f"{about} {interrupt(about)}"

    turn = calls(("ask", "c1", {"about": "a?"}), ("ask", "c2", {"about": "b?"}))
    agent = create_agent(Scripted(turn, "ok"), [StructuredTool.from_function(coroutine=ask)], checkpointer=saver)
    ids = {i.value: i.id for i in _ainvoke(agent, GO, CONFIG)["__interrupt__"]}
    result = _ainvoke(agent, Command(resume={ids["a?"]: "yes", ids["b?"]: "no"}), CONFIG)
    assert [m.content for m in result["messages"] if m.type == "tool"] == ["a? yes", "b? no"]
