"""An assistant for a mailbox: sorts what comes in, drafts replies, and sends nothing that its owner has not approved.

It remembers what its owner changed in a draft, and considers it in later ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypedDict

from langchain.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain.tools import tool
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command, interrupt
from offline import Offline, call
from pydantic import BaseModel, Field

MEMORY = ("email_assistant", "preferences")
NEEDS_APPROVAL = ("write_email", "schedule_meeting", "ask_owner")


class Email(TypedDict):
    sender: str
    subject: str
    body: str


class Inbound(TypedDict):
    email: Email


class State(MessagesState):
    email: Email
    classification: Literal["ignore", "notify", "respond"]


class Sorted(BaseModel):
    """Where an email goes."""

    reasoning: str = Field(description="Why it goes there.")
    classification: Literal["ignore", "notify", "respond"]


# --- the model --------------------------------------------------------------------------------------------------------


def says(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    """Reply as a model would that follows its instructions."""
    if tools == ["Sorted"]:
        return AIMessage("", tool_calls=[call("Sorted", 1, **sorts(messages[-1].text))])
    drafts = sum(1 for m in messages if isinstance(m, AIMessage))
    last = messages[-1]
    if isinstance(last, HumanMessage) and "tax" in last.text:
        question = {"question": "May I pass the tax number on?"}
        return AIMessage("I had better ask.", tool_calls=[call("ask_owner", drafts, **question)])
    if isinstance(last, HumanMessage):
        made = [call("check_calendar", day, day=day) for day in ("Monday", "Tuesday")]
        return AIMessage("Let me look at the calendar.", tool_calls=made)
    if last.name == "check_calendar":
        minutes = 30 if "30 minutes" in messages[0].text else 60
        meeting = {"attendee": "ana@example.com", "day": "Tuesday", "minutes": minutes}
        return AIMessage("", tool_calls=[call("schedule_meeting", drafts, **meeting)])
    if last.name == "schedule_meeting":
        body = "Dear Ana, I would be delighted to meet you on Tuesday, as you proposed. Sincerely yours"
        mail = {"to": "ana@example.com", "subject": "Re: Meeting", "body": body}
        return AIMessage("Now the reply.", tool_calls=[call("write_email", drafts, **mail)])
    if last.text.startswith("The owner wants"):
        mail = {"to": "ana@example.com", "subject": "Re: Meeting", "body": "Tuesday it is."}
        return AIMessage("Shorter, then.", tool_calls=[call("write_email", drafts, **mail)])
    return AIMessage("", tool_calls=[call("done", drafts, summary=f"Dealt with: {last.text}")])


def sorts(text: str) -> dict[str, Any]:
    """Return how an email is sorted."""
    if "win" in text.lower():
        return {"reasoning": "It wants to sell.", "classification": "ignore"}
    if "deploy" in text.lower() or "tax" in text.lower():
        return {"reasoning": "The owner should know.", "classification": "notify"}
    return {"reasoning": "Somebody waits for a reply.", "classification": "respond"}


# --- tools ------------------------------------------------------------------------------------------------------------


def tools_of(folder: Path) -> dict[str, Any]:
    """Return the tools of a mailbox that is kept in a folder."""

    def note(name: str, **what: Any) -> None:
        with (folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")

    @tool
    def write_email(to: str, subject: str, body: str) -> str:
        """Send an email."""
        note("sent", to=to, subject=subject, body=body)
        return f"Sent to {to}: {subject}"

    @tool
    def schedule_meeting(attendee: str, day: str, minutes: int) -> str:
        """Put a meeting into the calendar."""
        note("calendar", attendee=attendee, day=day, minutes=minutes)
        return f"Meeting with {attendee} on {day}, {minutes} minutes"

    @tool
    def check_calendar(day: str) -> str:
        """Look when there is time on a day."""
        note("looked", day=day)
        return f"{day} is free after 14:00" if day == "Tuesday" else f"{day} is full"

    @tool
    def ask_owner(question: str) -> str:
        """Ask the owner of the mailbox."""
        raise AssertionError("the owner answers, not a function")

    @tool
    def done(summary: str) -> str:
        """Say that the email is dealt with."""
        return summary

    return {each.name: each for each in (write_email, schedule_meeting, check_calendar, ask_owner, done)}


# --- memory -----------------------------------------------------------------------------------------------------------


def remembered(store: BaseStore, kind: str) -> str:
    """Return what the owner likes."""
    item = store.get(MEMORY, kind)
    return "; ".join(item.value["notes"]) if item is not None else "nothing is known"


def remember(store: BaseStore, kind: str, note: str) -> None:
    """Add to what the owner likes."""
    item = store.get(MEMORY, kind)
    notes = item.value["notes"] if item is not None else []
    store.put(MEMORY, kind, {"notes": [*notes, note]})


def shown(email: Email) -> str:
    """Return an email as a text."""
    return f"From: {email['sender']}\nSubject: {email['subject']}\n\n{email['body']}"


# --- the graph --------------------------------------------------------------------------------------------------------


def response_agent(tools: dict[str, Any]) -> Any:
    """Return the agent that deals with one email: a loop of model and tools, with its owner between them."""
    model = Offline(says=says).bind_tools(list(tools.values()))

    def llm_call(state: State, *, store: BaseStore) -> dict[str, Any]:
        likes = remembered(store, "replies"), remembered(store, "calendar")
        system = SystemMessage(f"You keep a mailbox. Replies: {likes[0]}. Calendar: {likes[1]}.")
        return {"messages": [model.invoke([system, *state["messages"]])]}

    def handle_calls(state: State, *, store: BaseStore) -> Command[Literal["llm_call", "__end__"]]:
        results: list[Any] = []
        goto: Any = "llm_call"
        for made in state["messages"][-1].tool_calls:
            if made["name"] not in NEEDS_APPROVAL:
                text = tools[made["name"]].invoke(made["args"])
            else:
                text = reviewed(made, state["email"], store)
                goto = END if text == "Ignored by the owner." else goto
            results.append(ToolMessage(text, tool_call_id=made["id"], name=made["name"]))
        return Command(goto=goto, update={"messages": results})

    def reviewed(made: Any, email: Email, store: BaseStore) -> str:
        asks = made["name"] == "ask_owner"
        allowed = {f"allow_{kind}": not asks or kind in ("ignore", "respond") for kind in ("accept", "edit")}
        request = {
            "action_request": {"action": made["name"], "args": made["args"]},
            "config": {**allowed, "allow_ignore": True, "allow_respond": True},
            "description": shown(email),
        }
        answer = interrupt([request])[0]
        kind = "calendar" if made["name"] == "schedule_meeting" else "replies"
        if answer["type"] == "accept":
            return str(tools[made["name"]].invoke(made["args"]))
        if answer["type"] == "edit":
            args = answer["args"]["args"]
            changed = {k: v for k, v in args.items() if made["args"][k] != v}
            remember(store, kind, ", ".join(f"{v} {k}" for k, v in changed.items()))
            return str(tools[made["name"]].invoke(args))
        if answer["type"] == "ignore":
            remember(store, kind, f"no {made['name']} for {email['subject']}")
            return "Ignored by the owner."
        if asks:
            return f"The owner says: {answer['args']}"
        remember(store, kind, answer["args"])
        return f"The owner wants this changed: {answer['args']}"

    def goes_on(state: State) -> Literal["handle_calls", "close"]:
        return "close" if state["messages"][-1].tool_calls[0]["name"] == "done" else "handle_calls"

    def close(state: State) -> dict[str, Any]:
        (made,) = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(tools["done"].invoke(made["args"]), tool_call_id=made["id"], name="done")]}

    builder = StateGraph(State)
    builder.add_node("llm_call", llm_call)
    builder.add_node("handle_calls", handle_calls)
    builder.add_node("close", close)
    builder.add_edge(START, "llm_call")
    builder.add_conditional_edges("llm_call", goes_on)
    builder.add_edge("close", END)
    return builder.compile()


def triage(state: Inbound, *, store: BaseStore) -> Command[Literal["ask_to_read", "response_agent", "__end__"]]:
    """Sort an email."""
    router = Offline(says=says).with_structured_output(Sorted)
    system = SystemMessage(f"Sort this email. The owner's habits: {remembered(store, 'triage')}.")
    found: Any = router.invoke([system, HumanMessage(shown(state["email"]))])
    goto: Any = {"ignore": END, "notify": "ask_to_read", "respond": "response_agent"}[found.classification]
    update: dict[str, Any] = {"classification": found.classification}
    if goto == "response_agent":
        update["messages"] = [HumanMessage(f"Reply to this email.\n{shown(state['email'])}")]
    return Command(goto=goto, update=update)


def ask_to_read(state: State, *, store: BaseStore) -> Command[Literal["response_agent", "__end__"]]:
    """Tell the owner of an email, who may let it be or say how to reply."""
    request = {
        "action_request": {"action": f"Email assistant: {state['classification']}", "args": {}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": False, "allow_accept": False},
        "description": shown(state["email"]),
    }
    answer = interrupt([request])[0]
    if answer["type"] == "ignore":
        remember(store, "triage", f"ignores: {state['email']['subject']}")
        return Command(goto=END)
    remember(store, "triage", f"replies to: {state['email']['subject']}")
    told = f"Reply to this email, tax and all: {answer['args']}\n{shown(state['email'])}"
    return Command(goto="response_agent", update={"messages": [HumanMessage(told)]})


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    """Open the assistant of a mailbox."""
    builder = StateGraph(State, input_schema=Inbound)
    builder.add_node("triage", triage)
    builder.add_node("ask_to_read", ask_to_read)
    builder.add_node("response_agent", response_agent(tools_of(folder)))
    builder.add_edge(START, "triage")
    saving = SqliteSaver.from_conn_string(str(folder / "threads.db"))
    storing = SqliteStore.from_conn_string(str(folder / "memory.db"))
    with saving as checkpointer, storing as store:
        store.setup()
        yield builder.compile(checkpointer=checkpointer, store=store)


# --- a week of it -----------------------------------------------------------------------------------------------------

Call = Callable[[Any], tuple[Any, Any]]


def comes_in(thread: str, sender: str, subject: str, body: str) -> Call:
    """Return the call that an email makes."""
    email = {"sender": sender, "subject": subject, "body": body}
    return lambda graph: ({"email": email}, {"configurable": {"thread_id": thread}})


def answers(thread: str, kind: str, args: Any = None) -> Call:
    """Return the call that an answer of the owner makes."""
    return lambda graph: (
        Command(resume=[{"type": kind, "args": args}]),
        {"configurable": {"thread_id": thread}},
    )


SHORTER = {"action": "schedule_meeting", "args": {"attendee": "ana@example.com", "day": "Tuesday", "minutes": 30}}
CALLS = [
    comes_in("ana", "ana@example.com", "Meeting", "Could we meet on Monday or Tuesday?"),
    answers("ana", "edit", SHORTER),
    answers("ana", "response", "keep it short"),
    answers("ana", "accept"),
    comes_in("ads", "ads@example.com", "You win!", "Click here."),
    comes_in("ops", "ops@example.com", "Deploy at 5", "Nothing to do for you."),
    answers("ops", "ignore"),
    comes_in("bank", "bank@example.com", "Your tax number", "We need it by Friday."),
    answers("bank", "response", "be careful"),
    answers("bank", "ignore"),
    comes_in("again", "ana@example.com", "Once more", "Could we meet again?"),
    answers("again", "accept"),
    answers("again", "edit", {"action": "write_email", "args": {"to": "a@example.com", "subject": "S", "body": "B"}}),
]
