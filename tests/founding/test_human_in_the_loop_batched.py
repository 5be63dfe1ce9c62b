"""Human-in-the-loop, once per turn: the question that lists all calls, and the decisions that answer it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import ValidationError

from tests.agents.scripted import Scripted, calls
from tests.founding.reviewed import ARCHIVE, POLICY, TASK, Call, Office, agent_of, received, the_question
from tests.founding.saving import CONFIG, Saver
from waitpoint.agents import create_agent, is_tool_approval_interrupt
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.types import Command

OLD = {"query": "DELETE FROM records WHERE created_at < NOW() - INTERVAL '30 days';"}
INPUT = {"messages": [HumanMessage("Delete old records from the database")]}
REJECTED = (
    "User rejected the tool call for `execute_sql` with id call_sql. The tool was not executed. Do not retry this tool "
    "call unless the user explicitly requests it."
)
SQL = calls(("execute_sql", "call_sql", OLD))


def asked(call: Call, saver: Saver, office: Office, model: Any, policy: Any = POLICY) -> tuple[Any, Any]:
    """Return an agent, and its pause at the turn's question."""
    agent = agent_of(saver, office, model, policy, description_prefix="Tool execution pending approval")
    return agent, call(agent, INPUT)


def resume(call: Call, agent: Any, *decisions: Any) -> Any:
    return call(agent, Command(resume={"decisions": list(decisions)}))


# --- responding to interrupts -----------------------------------------------------------------------------------------


def test_an_invocation_runs_until_it_asks_with_the_whole_request(saver: Saver, call: Call) -> None:
    office = Office()
    _, result = asked(call, saver, office, Scripted(SQL, "Deleted."))
    question = the_question(result)
    assert question.value == {
        "action_requests": [
            {
                "name": "execute_sql",
                "args": OLD,
                "description": (
                    "Tool execution pending approval\n\nTool: execute_sql\nArgs: "
                    '{\n  "query": "DELETE FROM records WHERE created_at < NOW() - INTERVAL \'30 days\';"\n}'
                ),
            }
        ],
        "review_configs": [{"action_name": "execute_sql", "allowed_decisions": ["approve", "reject"]}],
    }
    assert not is_tool_approval_interrupt(question)
    assert office.did == []


@pytest.mark.parametrize(
    ("decision", "did", "result"),
    [
        ("approve", [("execute_sql", OLD)], ("success", "Deleted 42 rows")),
        (
            "reject",
            [],
            ("error", REJECTED),
        ),
    ],
)
def test_a_decision_on_the_same_thread_resumes_it(
    saver: Saver, call: Call, decision: str, did: list[Any], result: Any
) -> None:
    office, model = Office(), Scripted(SQL, "Over.")
    agent, _ = asked(call, saver, office, model)
    state = resume(call, agent, {"type": decision})
    assert office.did == did
    assert received(model.shown[1]) == {"call_sql": result}
    assert state["messages"][-1].text == "Over."
    assert "__interrupt__" not in state


def test_a_decision_on_another_thread_resumes_nothing(saver: Saver, call: Call) -> None:
    office = Office()
    agent, _ = asked(call, saver, office, Scripted(SQL, "Over."))
    with pytest.raises(Exception, match="Nothing is pending"):
        call(agent, Command(resume={"decisions": [{"type": "approve"}]}), {"configurable": {"thread_id": "other"}})
    assert office.did == []
    assert len(agent.get_state(CONFIG).interrupts) == 1


# --- decision types ---------------------------------------------------------------------------------------------------


class Mails:
    """Two tools of which one may be put in the place of the other, and one that stands for a person."""

    def __init__(self) -> None:
        self.did: list[tuple[Any, ...]] = []

        @tool
        def tool_name(key1: str, key2: str) -> str:
            """Do it."""
            self.did.append(("tool_name", key1, key2))
            return "did it"

        @tool
        def new_tool_name(key1: str, key2: str) -> str:
            """Do it in another way."""
            self.did.append(("new_tool_name", key1, key2))
            return "did it otherwise"

        @tool
        def ask_user(question: str) -> str:
            """Ask the user."""
            raise AssertionError("it stands for a person")

        self.tools = [tool_name, new_tool_name, ask_user]

    def agent(self, saver: Saver, model: Any) -> Any:
        middleware = HumanInTheLoopMiddleware({"tool_name": True, "ask_user": {"allowed_decisions": ["respond"]}})
        return create_agent(model, self.tools, middleware=[middleware], checkpointer=saver)


ORIGINAL = {"key1": "original_value", "key2": "original_value"}
CHANGED = {"key1": "new_value", "key2": "original_value"}
OTHERWISE = {"name": "new_tool_name", "args": CHANGED}


def test_approve_runs_the_call_as_it_is(saver: Saver, call: Call) -> None:
    mails, model = Mails(), Scripted(calls(("tool_name", "c1", ORIGINAL)), "Done.")
    agent = mails.agent(saver, model)
    call(agent, INPUT)
    resume(call, agent, {"type": "approve"})
    assert mails.did == [("tool_name", "original_value", "original_value")]
    assert received(model.shown[1]) == {"c1": ("success", "did it")}


@pytest.mark.parametrize("key", ["edited_action", "editedAction"])
def test_edit_runs_the_tool_and_arguments_that_it_names(saver: Saver, call: Call, key: str) -> None:
    mails, model = Mails(), Scripted(calls(("tool_name", "c1", ORIGINAL)), "Done.")
    agent = mails.agent(saver, model)
    call(agent, INPUT)
    resume(call, agent, {"type": "edit", key: OTHERWISE})
    assert mails.did == [("new_tool_name", "new_value", "original_value")]
    status, text = received(model.shown[1])["c1"]
    assert status == "success"
    assert text.startswith("Note: a human reviewer replaced this tool call before it ran. ")
    assert text.endswith(
        'Executed instead: new_tool_name with arguments {"key1":"new_value","key2":"original_value"}.\n\n'
        "Tool response:\ndid it otherwise"
    )
    assert model.shown[1][1].tool_calls[0]["args"] == ORIGINAL  # type: ignore[attr-defined]


def test_reject_runs_nothing_and_tells_the_model_why(saver: Saver, call: Call) -> None:
    mails, model = Mails(), Scripted(calls(("tool_name", "c1", ORIGINAL)), "Done.")
    agent = mails.agent(saver, model)
    call(agent, INPUT)
    why = "User rejected this action. Do not retry this tool call."
    resume(call, agent, {"type": "reject", "message": why})
    assert mails.did == []
    assert received(model.shown[1]) == {"c1": ("error", why)}


def test_respond_gives_the_persons_words_as_the_result(saver: Saver, call: Call) -> None:
    mails, model = Mails(), Scripted(calls(("ask_user", "c1", {"question": "Favourite colour?"})), "Done.")
    agent = mails.agent(saver, model)
    question = the_question(call(agent, INPUT))
    assert question.value["review_configs"] == [{"action_name": "ask_user", "allowed_decisions": ["respond"]}]
    resume(call, agent, {"type": "respond", "message": "Blue."})
    assert received(model.shown[1]) == {"c1": ("success", "Blue.")}


# --- several decisions ------------------------------------------------------------------------------------------------

SEVERAL = [
    {"type": "approve"},
    {"type": "edit", "editedAction": {"name": "tool_name", "args": CHANGED}},
    {"type": "reject", "message": "This action is not allowed"},
]


def test_several_decisions_go_to_the_actions_in_their_order(saver: Saver, call: Call) -> None:
    mails = Mails()
    model = Scripted(calls(*(("tool_name", f"c{n}", {"key1": str(n), "key2": "b"}) for n in (1, 2, 3))), "Done.")
    agent = mails.agent(saver, model)
    question = the_question(call(agent, INPUT))
    assert [a["args"]["key1"] for a in question.value["action_requests"]] == ["1", "2", "3"]
    resume(call, agent, *SEVERAL)
    assert sorted(mails.did) == [("tool_name", "1", "b"), ("tool_name", "new_value", "original_value")]
    told = received(model.shown[1])
    assert list(told) == ["c1", "c2", "c3"]
    assert told["c1"] == ("success", "did it")
    assert told["c2"][1].endswith('{"key1":"new_value","key2":"original_value"}.\n\nTool response:\ndid it')
    assert told["c3"] == ("error", "This action is not allowed")


@pytest.mark.parametrize("decisions", [SEVERAL[:2], [*SEVERAL, {"type": "approve"}], []], ids=len)
def test_another_number_of_decisions_is_refused_and_can_be_corrected(
    saver: Saver, call: Call, decisions: list[Any]
) -> None:
    mails = Mails()
    model = Scripted(calls(*(("tool_name", f"c{n}", ORIGINAL) for n in (1, 2, 3))), "Done.")
    agent = mails.agent(saver, model)
    question = the_question(call(agent, INPUT))
    text = rf"Number of human decisions \({len(decisions)}\) does not match number of hanging tool calls \(3\)\."
    with pytest.raises(ValueError, match=text):
        resume(call, agent, *decisions)
    assert mails.did == []
    assert agent.get_state(CONFIG).interrupts == (question,)
    assert "__interrupt__" not in resume(call, agent, *SEVERAL)
    assert len(mails.did) == 2


@pytest.mark.parametrize("at", [0, 1, 2])
def test_no_decision_counts_if_one_of_them_is_wrong(saver: Saver, call: Call, at: int) -> None:
    """There a wrong decision is stored, and the thread cannot go on."""
    mails = Mails()
    model = Scripted(calls(*(("tool_name", f"c{n}", ORIGINAL) for n in (1, 2, 3))), "Done.")
    agent = mails.agent(saver, model)
    call(agent, INPUT)
    wrong = {"type": "edit", "edited_action": {"name": "tool_name", "args": {"key1": "new"}}}
    with pytest.raises(ValidationError) as refused:
        resume(call, agent, *(wrong if n == at else {"type": "approve"} for n in range(3)))
    assert [e["loc"] for e in refused.value.errors()] == [("decisions", at, "edit", "edited_action", "args", "key2")]
    assert mails.did == []
    resume(call, agent, *({"type": "approve"} for _ in range(3)))
    assert len(mails.did) == 3


def test_an_edit_may_not_name_a_tool_whose_own_policy_forbids_it(saver: Saver, call: Call) -> None:
    """There an edit may turn a call into any other, reviewed or not."""
    office, model = Office(), Scripted(calls(("write_file", "c1", ARCHIVE)), "Done.")
    agent = agent_of(saver, office, model)
    call(agent, TASK)
    for name in ("execute_sql", "no_such_tool"):
        with pytest.raises(ValueError, match=name):
            resume(call, agent, {"type": "edit", "edited_action": {"name": name, "args": OLD}})
    assert office.did == []
    resume(call, agent, {"type": "edit", "edited_action": {"name": "read_data", "args": {"table": "orders"}}})
    assert office.did == [("read_data", {"table": "orders"})]
