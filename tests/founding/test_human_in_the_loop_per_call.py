"""Human-in-the-loop, once per tool call: what a question shows, what may be answered, what the model then receives."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel, ConfigDict, ValidationError

from tests.agents.scripted import Scripted, calls
from tests.founding.reviewed import (
    ARCHIVE,
    DELETE,
    POLICY,
    PROPOSED,
    TASK,
    Call,
    Office,
    agent_of,
    by_tool,
    per_call,
    received,
    the_question,
)
from tests.founding.saving import CONFIG, Saver
from waitpoint.agents import create_agent, is_tool_approval_interrupt
from waitpoint.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from waitpoint.errors import ConfigError
from waitpoint.types import Command, Interrupt

APPROVE = {"type": "approve"}
ONE = calls(("write_file", "call_write", ARCHIVE))


def edit(**args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "write_file", "args": args}}


MOVED = edit(path="archive/orders_2024.csv", content="id,total\n1,20\n")


# --- reading interrupts -----------------------------------------------------------------------------------------------


def test_each_gated_call_has_an_interrupt_and_the_others_run_at_once(saver: Saver, call: Call) -> None:
    office = Office()
    result = call(per_call(saver, office), TASK)
    approvals = [i for i in result["__interrupt__"] if is_tool_approval_interrupt(i)]
    assert len(approvals) == len(result["__interrupt__"]) == 2
    assert len({i.id for i in approvals}) == 2
    assert {i.value["name"]: i.value for i in approvals} == {
        "write_file": {
            "type": "tool_approval",
            "tool_call_id": "call_write",
            "name": "write_file",
            "args": {"path": "orders_archive.csv", "content": "id,total\n1,20\n"},
            "description": (
                "Tool execution requires approval\n\nTool: write_file\nArgs: "
                '{\n  "path": "orders_archive.csv",\n  "content": "id,total\\n1,20\\n"\n}'
            ),
        },
        "execute_sql": {
            "type": "tool_approval",
            "tool_call_id": "call_sql",
            "name": "execute_sql",
            "args": {"query": "DELETE FROM orders WHERE created_at < '2025-01-01'"},
            "description": (
                "Tool execution requires approval\n\nTool: execute_sql\nArgs: "
                '{\n  "query": "DELETE FROM orders WHERE created_at < \'2025-01-01\'"\n}'
            ),
        },
    }
    assert office.did == [("read_data", {"table": "orders"})]
    assert received(result["messages"]) == {"call_read": ("success", "3 rows from orders")}


def test_a_description_keeps_every_script_as_it_is(saver: Saver, call: Call) -> None:
    args = {"path": "größe/文件.txt", "content": '🚨 "quoted"'}
    agent = per_call(saver, Office(), Scripted(calls(("write_file", "c1", args))), description_prefix="需要审批")
    value = the_question(call(agent, TASK)).value
    assert value["args"] == args
    assert value["description"] == (
        '需要审批\n\nTool: write_file\nArgs: {\n  "path": "größe/文件.txt",\n  "content": "🚨 \\"quoted\\""\n}'
    )


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"type": "tool_approval", "tool_call_id": "c1", "name": "write_file", "args": {}, "description": ""}, True),
        ({"type": "tool_approval", "tool": "send_email", "args": {}, "message": "Send?"}, False),
        ({"type": "tool_approval", "tool_call_id": "c1"}, False),
        ({"type": "tool_approval", "name": "write_file"}, False),
        ({"type": "tool_approval", "tool_call_id": None, "name": "write_file"}, False),
        ({"type": "approval", "tool_call_id": "c1", "name": "write_file"}, False),
        ({"action_requests": [], "review_configs": []}, False),
        ("tool_approval", False),
        (None, False),
    ],
)
def test_interrupts_about_one_call_are_told_from_all_others(value: Any, is_one: bool) -> None:
    assert is_tool_approval_interrupt(Interrupt(value, "i")) is is_one


# --- response schemas -------------------------------------------------------------------------------------------------

TYPE = '{"type": "object", "properties": {"type": {"type": "string", "const": '
BRANCHES = {
    "approve": TYPE + '"approve"}}, "required": ["type"]}',
    "edit": """
        {
          "type": "object",
          "properties": {
            "type": {"type": "string", "const": "edit"},
            "edited_action": {
              "type": "object",
              "properties": {
                "name": {"type": "string", "const": "write_file"},
                "args": {
                  "type": "object",
                  "properties": {
                    "path": {"type": "string"},
                    "content": {"type": "string"}
                  },
                  "required": ["path", "content"]
                }
              },
              "required": ["name", "args"]
            }
          },
          "required": ["type", "edited_action"]
        }""",
    "reject": TYPE + '"reject"}, "message": {"type": "string"}}, "required": ["type"]}',
    "respond": TYPE + '"respond"}, "message": {"type": "string"}}, "required": ["type", "message"]}',
}


def branches(schema: Any) -> dict[str, Any]:
    """Return the branches of a response schema by their type, without what the document leaves out."""
    found = [schema["$defs"][each["$ref"].removeprefix("#/$defs/")] for each in schema["oneOf"]]
    return {each["properties"]["type"]["const"]: bare(each) for each in found}


def bare(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: bare(value) for key, value in schema.items() if key != "additionalProperties"}


def test_response_schema_has_a_branch_for_each_allowed_decision(saver: Saver, call: Call) -> None:
    questions = by_tool(call(per_call(saver, Office()), TASK))
    documented = {kind: json.loads(text) for kind, text in BRANCHES.items()}
    assert branches(questions["write_file"].response_schema) == documented
    found = branches(questions["execute_sql"].response_schema)
    assert found == {kind: documented[kind] for kind in ("approve", "reject")}


@pytest.mark.parametrize("only", BRANCHES)
def test_response_schema_of_a_single_decision_is_that_decision(saver: Saver, only: Any) -> None:
    agent = per_call(saver, Office(), Scripted(ONE), {"write_file": {"allowed_decisions": [only]}})
    schema = the_question(agent.invoke(TASK, CONFIG)).response_schema
    assert "oneOf" not in schema
    assert bare(schema) == json.loads(BRANCHES[only])


@pytest.mark.parametrize(
    "answer",
    [
        {**APPROVE, "message": "fine"},
        {"type": "reject", "reason": "no"},
        {"type": "edit", "edited_action": {**MOVED["edited_action"], "why": "tidy"}},
    ],
)
def test_a_decision_has_no_keys_beside_those_of_its_branch(saver: Saver, call: Call, answer: Any) -> None:
    office = Office()
    agent = per_call(saver, office, Scripted(ONE))
    question = the_question(call(agent, TASK))
    with pytest.raises(ValidationError, match="not permitted"):
        call(agent, Command(resume={question.id: answer}))
    assert office.did == []


# --- what the model receives ------------------------------------------------------------------------------------------

NOTICE = (
    "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you "
    "produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call."
)
EXECUTED = (
    'Executed instead: write_file with arguments {"path":"archive/orders_2024.csv","content":"id,total\\n1,20\\n"}.\n\n'
    "Tool response:\nWrote 14 characters to archive/orders_2024.csv"
)
REJECTED = (
    "User rejected the tool call for `write_file` with id call_write. The tool was not executed. Do not retry this tool "
    "call unless the user explicitly requests it."
)
SAVED = "Saved orders_archive.csv to the shared drive myself."
RECEIVED = {
    "approve": (APPROVE, "success", "Wrote 14 characters to orders_archive.csv"),
    "edit": (MOVED, "success", f"{NOTICE} {EXECUTED}"),
    "reject": (
        {"type": "reject", "message": "Write to the archive/ folder instead."},
        "error",
        "Write to the archive/ folder instead.",
    ),
    "respond": ({"type": "respond", "message": SAVED}, "success", SAVED),
    "reject-silently": (
        {"type": "reject"},
        "error",
        REJECTED,
    ),
}


@pytest.mark.parametrize("kind", RECEIVED)
def test_the_model_receives_the_documented_text(saver: Saver, call: Call, kind: str) -> None:
    answer, status, text = RECEIVED[kind]
    office, model = Office(), Scripted(ONE, "Done.")
    agent = per_call(saver, office, model)
    question = the_question(call(agent, TASK))
    state = call(agent, Command(resume={question.id: answer}))
    assert received(model.shown[1]) == {"call_write": (status, text)}
    assert model.shown[1][1].tool_calls == ONE.tool_calls  # type: ignore[attr-defined]
    assert state["messages"][-1].text == "Done."
    ran = {"approve": [ARCHIVE], "edit": [MOVED["edited_action"]["args"]]}.get(kind, [])
    assert [args for _, args in office.did] == ran


@pytest.mark.parametrize(
    ("notice", "start"),
    [
        ("A person changed this.", "A person changed this. Executed instead: "),
        (None, "Wrote 14 characters to archive/"),
    ],
)
def test_the_notice_of_an_edit_is_replaced_or_left_out(
    saver: Saver, call: Call, notice: str | None, start: str
) -> None:
    model = Scripted(ONE, "Done.")
    agent = per_call(saver, Office(), model, edit_notice=notice)
    question = the_question(call(agent, TASK))
    call(agent, Command(resume={question.id: MOVED}))
    text = received(model.shown[1])["call_write"][1]
    assert text.startswith(start)
    assert text.endswith("Wrote 14 characters to archive/orders_2024.csv")
    assert NOTICE not in text


def test_a_response_needs_a_message(saver: Saver, call: Call) -> None:
    agent = per_call(saver, Office(), Scripted(ONE))
    question = the_question(call(agent, TASK))
    with pytest.raises(ValidationError) as refused:
        call(agent, Command(resume={question.id: {"type": "respond"}}))
    assert refused.value.errors()[0]["loc"] == ("respond", "message")


class Closed(BaseModel):
    """As schemas are: what they do not declare is dropped."""

    path: str


class Open(BaseModel):
    """A schema that keeps what it does not declare."""

    model_config = ConfigDict(extra="allow")
    path: str


@pytest.mark.parametrize(("schema", "kept"), [(Closed, {"path": "b"}), (Open, {"path": "b", "mode": "x"})])
def test_arguments_that_a_tool_does_not_declare_fare_as_they_do_when_the_model_sends_them(
    saver: Saver, call: Call, schema: type[BaseModel], kept: dict[str, Any]
) -> None:
    ran: list[dict[str, Any]] = []

    @tool(args_schema=schema)
    def touch(**args: Any) -> str:
        """Touch a file."""
        ran.append(args)
        return "touched"

    both = {"path": "b", "mode": "x"}
    model = Scripted(calls(("touch", "free", both)), calls(("touch", "c1", {"path": "a"})), "Done.")
    when = {"allowed_decisions": ["edit"], "when": lambda request: request.tool_call["id"] == "c1"}
    middleware = HumanInTheLoopMiddleware({"touch": when}, interrupt_mode="per_call")  # type: ignore[dict-item]
    agent = create_agent(model, [touch], middleware=[middleware], checkpointer=saver)
    question = the_question(call(agent, TASK))
    call(agent, Command(resume={question.id: {"type": "edit", "edited_action": {"name": "touch", "args": both}}}))
    assert ran == [kept, kept]


# --- resuming by id ---------------------------------------------------------------------------------------------------


def test_all_calls_are_answered_by_their_ids(saver: Saver, call: Call) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = per_call(saver, office, model)
    result = call(agent, TASK)
    decisions = {
        i.id: {"type": "reject", "message": "Archive the rows before deleting them."}
        if i.value["name"] == "execute_sql"
        else {"type": "approve"}
        for i in result["__interrupt__"]
    }
    result = call(agent, Command(resume=decisions))
    assert "__interrupt__" not in result
    assert received(model.shown[1]) == {
        "call_write": ("success", "Wrote 14 characters to orders_archive.csv"),
        "call_sql": ("error", "Archive the rows before deleting them."),
        "call_read": ("success", "3 rows from orders"),
    }
    assert sorted(office.names) == ["read_data", "write_file"]


@pytest.mark.parametrize("order", list(itertools.permutations(["write_file", "execute_sql"])), ids=str)
def test_calls_answered_one_by_one_run_as_soon_as_they_are(saver: Saver, call: Call, order: tuple[str, str]) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = per_call(saver, office, model)
    questions = by_tool(call(agent, TASK))
    for n, name in enumerate(order):
        state = call(agent, Command(resume={questions[name].id: APPROVE}))
        assert office.names == ["read_data", *order[: n + 1]]
        assert [i.id for i in state.get("__interrupt__", [])] == [questions[o].id for o in order[n + 1 :]]
    assert [status for status, _ in received(model.shown[1]).values()] == ["success"] * 3


@pytest.mark.parametrize("bad", ["write_file", "execute_sql"])
def test_no_answer_counts_if_one_of_those_sent_with_it_is_invalid(saver: Saver, call: Call, bad: str) -> None:
    """There the tools of the good answers may run, and run again when they are answered again."""
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = per_call(saver, office, model)
    questions = by_tool(call(agent, TASK))
    answers = {i.id: ({"type": "aprove"} if name == bad else APPROVE) for name, i in questions.items()}
    before = agent.get_state(CONFIG)
    with pytest.raises(ValidationError):
        call(agent, Command(resume=answers))
    assert office.names == ["read_data"]
    assert agent.get_state(CONFIG) == before
    call(agent, Command(resume={i.id: APPROVE for i in questions.values()}))
    assert sorted(office.names) == ["execute_sql", "read_data", "write_file"]


# --- correcting an invalid answer -------------------------------------------------------------------------------------


def test_an_invalid_answer_is_refused_at_its_place_and_can_be_corrected(saver: Saver, call: Call) -> None:
    office, model = Office(), Scripted(PROPOSED, "Done.")
    agent = per_call(saver, office, model)
    question = by_tool(call(agent, TASK))["write_file"]
    args = {"path": "archive/orders_2024.csv"}
    answer = {"type": "edit", "edited_action": {"name": "write_file", "args": args}}
    with pytest.raises(ValidationError) as refused:
        call(agent, Command(resume={question.id: answer}))
    problems = [".".join(map(str, e["loc"])) + " " + e["msg"] for e in refused.value.errors()]
    assert problems == ["edit.edited_action.args.content Field required"]
    assert office.names == ["read_data"]
    assert agent.get_state(CONFIG).interrupts[0] == question

    args["content"] = "id,total\n1,20\n"
    state = call(agent, Command(resume={question.id: answer}))
    assert [i.value["name"] for i in state["__interrupt__"]] == ["execute_sql"]
    assert office.did[-1] == ("write_file", args)


@pytest.mark.parametrize("kind", ["pydantic", "json-schema"])
def test_edits_are_checked_whatever_declares_the_arguments(saver: Saver, call: Call, kind: str) -> None:
    """There only those of tools with a class for their arguments are."""
    ran: list[int] = []

    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return f"paid {amount}"

    declared = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    schema: Any = declared if kind == "json-schema" else None
    made = StructuredTool.from_function(pay, name="pay", description="Pay.", args_schema=schema)
    model = Scripted(calls(("pay", "c1", {"amount": 1})), "Done.")
    middleware = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode="per_call")
    agent = create_agent(model, [made], middleware=[middleware], checkpointer=saver)
    question = the_question(call(agent, TASK))
    for wrong in ({}, {"amount": "much"}):
        with pytest.raises(ValidationError) as refused:
            answer = {"type": "edit", "edited_action": {"name": "pay", "args": wrong}}
            call(agent, Command(resume={question.id: answer}))
        assert refused.value.errors()[0]["loc"][:4] == ("edit", "edited_action", "args", "amount")
    answer = {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 2}}}
    call(agent, Command(resume={question.id: answer}))
    assert ran == [2]


# --- the order of middleware ------------------------------------------------------------------------------------------


class Fails:
    """A tool that fails so many times."""

    def __init__(self, times: int) -> None:
        self.tries: list[str] = []

        @tool
        def send(to: str) -> str:
            """Send a mail."""
            self.tries.append(to)
            if len(self.tries) <= times:
                raise TimeoutError("slow")
            return f"sent to {to}"

        self.tools = [send]


def test_approval_listed_first_wraps_retries_and_error_handling(saver: Saver, call: Call) -> None:
    fails, model = Fails(1), Scripted(calls(("send", "c1", {"to": "ann"})), "Done.")
    approval = HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call")
    inside = [ToolErrorMiddleware(lambda error, request: "it failed"), ToolRetryMiddleware(initial_delay=0)]
    agent = create_agent(model, fails.tools, middleware=[approval, *inside], checkpointer=saver)
    question = the_question(call(agent, TASK))
    with pytest.raises(ValidationError):
        call(agent, Command(resume={question.id: {"type": "edit"}}))
    assert fails.tries == []
    assert "__interrupt__" not in call(agent, Command(resume={question.id: APPROVE}))  # the retry asked nobody
    assert fails.tries == ["ann", "ann"]
    assert received(model.shown[1]) == {"c1": ("success", "sent to ann")}


@pytest.mark.parametrize(
    "outside", [ToolRetryMiddleware(), ToolErrorMiddleware(lambda e, r: "it failed")], ids=lambda m: m.name
)
def test_approval_listed_after_them_is_refused_when_the_agent_is_built(outside: Any) -> None:
    approval = HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call")
    with pytest.raises(ConfigError, match=outside.name) as refused:
        create_agent(Scripted(), Fails(0).tools, middleware=[outside, approval])
    assert approval.name in str(refused.value)


def test_middleware_before_the_approval_runs_again_up_to_the_pause_and_the_tool_only_when_answered(
    saver: Saver, call: Call
) -> None:
    log: list[str] = []

    class Before(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            log.append("before")
            result = handler(request)
            log.append("after")
            return result

    class Inside(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            log.append("inside")
            return handler(request)

    office = Office()
    approval = HumanInTheLoopMiddleware(POLICY, interrupt_mode="per_call")  # type: ignore[arg-type]
    agent = create_agent(
        Scripted(ONE, "Done."), office.tools, middleware=[Before(), approval, Inside()], checkpointer=saver
    )
    question = the_question(call(agent, TASK))
    assert log == ["before"]
    assert office.did == []
    call(agent, Command(resume={question.id: APPROVE}))
    assert log == ["before", "before", "inside", "after"]
    assert office.names == ["write_file"]


def test_a_predicate_sees_the_tool_at_the_call(saver: Saver, call: Call) -> None:
    seen: list[Any] = []

    def when(request: Any) -> bool:
        seen.append((request.tool, request.tool_call["args"]))
        return True

    office = Office()
    policy = {"execute_sql": {"allowed_decisions": ["approve"], "when": when}}
    agent = agent_of(saver, office, Scripted(calls(("execute_sql", "c1", DELETE))), policy, interrupt_mode="per_call")
    call(agent, TASK)
    assert seen == [(office.tools[1], DELETE)]
