"""Human-in-the-loop: what is configured, which calls are asked about, and when; in both modes."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from pydantic import ValidationError

from tests.agents.scripted import Scripted, calls
from tests.founding.reviewed import (
    ARCHIVE,
    DELETE,
    EVERY_DECISION,
    POLICY,
    PROPOSED,
    TASK,
    Call,
    Office,
    agent_of,
    decided,
    per_call,
    received,
    the_question,
)
from tests.founding.saving import CONFIG, Saver
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, InterruptOnConfig, ToolCallRequest
from waitpoint.errors import ConfigError
from waitpoint.types import Command, interrupt

modes = pytest.mark.parametrize("mode", ["batched", "per_call"])
APPROVE = {"type": "approve"}


# --- the four decisions -----------------------------------------------------------------------------------------------


def edited(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


USES = {
    "approve": ("send_email", {"to": "ann"}, APPROVE, [("send_email", "ann")], ("success", "sent to ann")),
    "edit": ("send_email", {"to": "ann"}, edited("send_email", to="bob"), [("send_email", "bob")], None),
    "reject": (
        "delete_file",
        {"path": "a.txt"},
        {"type": "reject", "message": "It is still needed."},
        [],
        ("error", "It is still needed."),
    ),
    "respond": (
        "ask_user",
        {"question": "Colour?"},
        {"type": "respond", "message": "Blue."},
        [],
        ("success", "Blue."),
    ),
}


@modes
@pytest.mark.parametrize("decision", EVERY_DECISION)
def test_the_four_decisions_do_what_the_table_says(saver: Saver, call: Call, mode: Any, decision: str) -> None:
    name, args, answer, done, result = USES[decision]
    did: list[tuple[str, str]] = []

    @tool
    def send_email(to: str) -> str:
        """Send a mail."""
        did.append(("send_email", to))
        return f"sent to {to}"

    @tool
    def delete_file(path: str) -> str:
        """Delete a file."""
        did.append(("delete_file", path))
        return f"deleted {path}"

    @tool
    def ask_user(question: str) -> str:
        """Ask the user."""
        raise AssertionError("it stands for a person")

    model = Scripted(calls((name, "c1", args)), "Done.")
    tools = [send_email, delete_file, ask_user]
    middleware = HumanInTheLoopMiddleware({t.name: True for t in tools}, interrupt_mode=mode)
    agent = create_agent(model, tools, middleware=[middleware], checkpointer=saver)
    state = call(agent, TASK)
    assert did == []
    state = decided(call, agent, state, answer)
    assert did == done
    told = received(model.shown[1])["c1"]
    assert told == result if result else (told[0], told[1].splitlines()[-1]) == ("success", "sent to bob")
    assert state["messages"][-1].text == "Done."


@modes
def test_the_decisions_of_a_tool_are_those_that_its_config_lists(saver: Saver, call: Call, mode: Any) -> None:
    office, model = Office(), Scripted(calls(("execute_sql", "c1", DELETE)), "Done.")
    agent = agent_of(saver, office, model, interrupt_mode=mode)
    state = call(agent, TASK)
    for wrong in (edited("execute_sql", query="SELECT 1"), {"type": "respond", "message": "no"}):
        with pytest.raises(ValidationError):
            decided(call, agent, state, wrong)
    assert office.did == []
    assert "__interrupt__" not in decided(call, agent, state, APPROVE)
    assert office.did == [("execute_sql", DELETE)]


@modes
def test_each_of_several_calls_needs_its_own_decision(saver: Saver, call: Call, mode: Any) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = agent_of(saver, office, model, interrupt_mode=mode)
    state = call(agent, TASK)
    assert office.names == ([] if mode == "batched" else ["read_data"])
    decided(call, agent, state, APPROVE, {"type": "reject", "message": "Not yet."})
    assert sorted(office.names) == ["read_data", "write_file"]
    assert received(model.shown[1]) == {
        "call_write": ("success", "Wrote 14 characters to orders_archive.csv"),
        "call_sql": ("error", "Not yet."),
        "call_read": ("success", "3 rows from orders"),
    }


# --- configuration ----------------------------------------------------------------------------------------------------


def test_the_configuration_example_asks_once_with_its_texts(saver: Saver, call: Call) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = create_agent(
        model,
        tools=office.tools,
        middleware=[
            HumanInTheLoopMiddleware(
                interrupt_on={
                    "write_file": True,  # every decision is allowed
                    "execute_sql": {
                        "allowed_decisions": ["approve", "reject"],  # no edits
                        "description": "🚨 SQL 执行需要 DBA 审批",
                    },
                    "read_data": False,  # safe
                },
                description_prefix="Tool execution pending approval",
            ),
        ],
        checkpointer=saver,
    )
    question = the_question(call(agent, TASK))
    assert question.value == {
        "action_requests": [
            {
                "name": "write_file",
                "args": ARCHIVE,
                "description": (
                    "Tool execution pending approval\n\nTool: write_file\nArgs: {\n"
                    '  "path": "orders_archive.csv",\n  "content": "id,total\\n1,20\\n"\n}'
                ),
            },
            {"name": "execute_sql", "args": DELETE, "description": "🚨 SQL 执行需要 DBA 审批"},
        ],
        "review_configs": [
            {"action_name": "write_file", "allowed_decisions": EVERY_DECISION},
            {"action_name": "execute_sql", "allowed_decisions": ["approve", "reject"]},
        ],
    }


def test_the_options_have_the_documented_defaults() -> None:
    middleware = HumanInTheLoopMiddleware({"write_file": True})
    assert middleware.description_prefix == "Tool execution requires approval"
    assert middleware.interrupt_mode == "batched"
    assert str(middleware.edit_notice).startswith("Note: a human reviewer replaced this tool call before it ran.")
    assert HumanInTheLoopMiddleware({"write_file": True}, edit_notice=None).edit_notice is None
    with pytest.raises(TypeError, match="interrupt_on"):
        HumanInTheLoopMiddleware()  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="'batched', 'per_call'"):
        HumanInTheLoopMiddleware({"write_file": True}, interrupt_mode="each")  # type: ignore[arg-type]


@modes
def test_a_description_may_be_worked_out_from_the_call(saver: Saver, call: Call, mode: Any) -> None:
    def described(tool_call: Any, state: Any, runtime: Any) -> str:
        return f"{tool_call['name']} to {tool_call['args']['path']} after {len(state['messages'])} messages"

    config = InterruptOnConfig(allowed_decisions=["approve"], description=described)
    office, model = Office(), Scripted(calls(("write_file", "c1", ARCHIVE)), "Done.")
    agent = agent_of(saver, office, model, {"write_file": config}, interrupt_mode=mode)
    value = the_question(call(agent, TASK)).value
    value = value["action_requests"][0] if mode == "batched" else value
    assert value["description"] == "write_file to orders_archive.csv after 2 messages"


@modes
def test_an_agent_that_asks_needs_a_checkpointer_before_it_calls_its_model(call: Call, mode: Any) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = agent_of(None, office, model, interrupt_mode=mode)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="checkpointer"):
        call(agent, TASK)
    assert model.shown == []
    assert office.did == []


def test_a_call_names_its_thread(saver: Saver, call: Call) -> None:
    model = Scripted(PROPOSED, "Done.")
    with pytest.raises(ValueError, match="thread_id"):
        call(agent_of(saver, Office(), model), TASK, {"configurable": {}})
    assert model.shown == []


@modes
def test_a_thread_goes_on_where_another_saver_of_the_same_store_finds_it(saver: Saver, call: Call, mode: Any) -> None:
    state = call(agent_of(saver, Office(), Scripted(PROPOSED), interrupt_mode=mode), TASK)
    office, model = Office(), Scripted("Done.")
    again = agent_of(saver, office, model, interrupt_mode=mode)
    assert again.get_state(CONFIG).interrupts == tuple(state["__interrupt__"])
    decided(call, again, state, APPROVE, APPROVE)
    assert sorted(name for name in office.names if name != "read_data") == ["execute_sql", "write_file"]
    assert model.shown[0][0].text == TASK["messages"][0]["content"]


# --- conditional interrupts -------------------------------------------------------------------------------------------


def writes_outside_workspace(request: ToolCallRequest) -> bool:
    return not str(request.tool_call["args"].get("path", "")).startswith("/workspace/")


def is_write_query(request: ToolCallRequest) -> bool:
    return not str(request.tool_call["args"].get("query", "")).lstrip().upper().startswith("SELECT")


CONDITIONAL: dict[str, Any] = {
    "write_file": {"allowed_decisions": ["approve", "edit", "reject"], "when": writes_outside_workspace},
    "execute_sql": {"allowed_decisions": ["approve", "reject"], "when": is_write_query},
}


@modes
def test_only_calls_for_which_the_predicate_holds_are_asked_about(saver: Saver, call: Call, mode: Any) -> None:
    proposed = calls(
        ("write_file", "inside", {"path": "/workspace/a", "content": "a"}),
        ("write_file", "outside", {"path": "/etc/passwd", "content": "b"}),
        ("execute_sql", "reads", {"query": "  select 1"}),
        ("execute_sql", "writes", {"query": "DROP TABLE orders"}),
        ("read_data", "free", {"table": "orders"}),
    )
    office, model = Office(), Scripted(proposed, "Done.")
    agent = agent_of(saver, office, model, CONDITIONAL, interrupt_mode=mode)
    state = call(agent, TASK)
    free = {"inside", "reads", "free"}
    if mode == "batched":
        assert [a["args"] for a in the_question(state).value["action_requests"]] == [
            {"path": "/etc/passwd", "content": "b"},
            {"query": "DROP TABLE orders"},
        ]
        assert office.did == []
    else:
        assert {q.value["tool_call_id"] for q in state["__interrupt__"]} == {"outside", "writes"}
        assert set(received(state["messages"])) == free
    decided(call, agent, state, {"type": "reject", "message": "no"}, {"type": "reject", "message": "no"})
    told = received(model.shown[1])
    assert {i for i, (status, _) in told.items() if status == "success"} == free
    assert {i for i, (status, _) in told.items() if status == "error"} == {"outside", "writes"}
    assert len(office.did) == 3


@modes
def test_calls_for_which_no_predicate_holds_run_without_a_pause(saver: Saver, call: Call, mode: Any) -> None:
    proposed = calls(("write_file", "c1", {"path": "/workspace/a", "content": "a"}))
    office, model = Office(), Scripted(proposed, "Done.")
    agent = agent_of(saver, office, model, CONDITIONAL, interrupt_mode=mode)
    assert "__interrupt__" not in call(agent, TASK)
    assert office.names == ["write_file"]


@modes
def test_a_predicate_that_changes_its_mind_does_not_undo_a_decision(saver: Saver, call: Call, mode: Any) -> None:
    """There the tool would run although it was rejected, and a batch of which a part changed would be an error."""
    asked: list[str] = []

    def once(request: ToolCallRequest) -> bool:
        asked.append(request.tool_call["id"] or "")
        return asked.count(request.tool_call["id"] or "") == 1

    proposed = calls(("execute_sql", "c1", DELETE), ("execute_sql", "c2", DELETE))
    policy = {"execute_sql": {"allowed_decisions": ["approve", "reject"], "when": once}}
    office, model = Office(), Scripted(proposed, "Done.")
    agent = agent_of(saver, office, model, policy, interrupt_mode=mode)
    decided(call, agent, call(agent, TASK), {"type": "reject", "message": "no"}, APPROVE)
    assert sorted(asked) == ["c1", "c2"]
    assert office.did == [("execute_sql", DELETE)]
    assert received(model.shown[1]) == {"c1": ("error", "no"), "c2": ("success", "Deleted 42 rows")}


# --- the lifecycle ----------------------------------------------------------------------------------------------------


def test_a_turn_is_reviewed_after_the_model_and_before_its_tools(saver: Saver, call: Call) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = agent_of(saver, office, model)
    state = call(agent, TASK)
    assert len(model.shown) == 1
    assert office.did == []
    assert agent.get_state(CONFIG).next == ("HumanInTheLoopMiddleware.after_model",)
    decided(call, agent, state, APPROVE, APPROVE)
    assert len(model.shown) == 2  # it was not asked again for what it had said
    assert len(office.did) == 3


def test_calls_are_reviewed_at_the_tools_in_per_call_mode(saver: Saver, call: Call) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = per_call(saver, office, model)
    state = call(agent, TASK)
    assert agent.get_state(CONFIG).next == ("tools", "tools")
    middleware = HumanInTheLoopMiddleware(POLICY, interrupt_mode="per_call")  # type: ignore[arg-type]
    assert middleware.after_model({"messages": [PROPOSED]}, None) is None  # type: ignore[arg-type]
    decided(call, agent, state, APPROVE, APPROVE)
    assert len(model.shown) == 2
    assert len(office.did) == 3


@modes
def test_a_turn_without_calls_ends_without_a_question(saver: Saver, call: Call, mode: Any) -> None:
    state = call(agent_of(saver, Office(), Scripted("Hello."), interrupt_mode=mode), TASK)
    assert "__interrupt__" not in state
    assert state["messages"][-1].text == "Hello."


@pytest.mark.parametrize("hook", ["after_model", "wrap_tool_call"])
@pytest.mark.parametrize(("answer", "did"), [("yes", ["read_data"]), ("no", [])])
def test_middleware_of_ones_own_asks_by_the_same_primitive(
    saver: Saver, call: Call, hook: str, answer: str, did: list[str]
) -> None:
    class AfterModel(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> Any:
            proposed = state["messages"][-1].tool_calls
            if proposed and interrupt("run them?") != "yes":
                return {"messages": [refused(each) for each in proposed]}
            return None

    class AtTheCall(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: ToolCallRequest, handler: Any) -> Any:
            return handler(request) if interrupt("run them?") == "yes" else refused(request.tool_call)

    def refused(each: Any) -> ToolMessage:
        return ToolMessage("no", name=each["name"], tool_call_id=each["id"], status="error")

    middleware = AfterModel() if hook == "after_model" else AtTheCall()
    office, model = Office(), Scripted(calls(("read_data", "c1", {"table": "orders"})), "Done.")
    agent = create_agent(model, office.tools, middleware=[middleware], checkpointer=saver)
    assert the_question(call(agent, TASK)).value == "run them?"
    call(agent, Command(resume=answer))
    assert office.names == did
    assert received(model.shown[1])["c1"] == (("success", "3 rows from orders") if did else ("error", "no"))
