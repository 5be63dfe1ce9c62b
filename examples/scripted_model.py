"""A chat model that needs no key: it tidies a folder by fixed rules, and decides each turn from the conversation alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

KEPT_LOG_LINES = 20
Calls = list[tuple[str, dict[str, Any]]]


class Done(NamedTuple):
    """A call of an earlier turn, and what the model was told of it."""

    name: str
    args: dict[str, Any]
    told: str
    is_refused: bool


class ScriptedModel(BaseChatModel):
    """Speaks the wire language of chat models: messages in, one message with tool calls out."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:  # noqa: ARG002 - it knows them by heart
        """Return the model as it is."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        done = history(messages)
        text, calls = next_turn(done)
        made = [
            ToolCall(name=n, args=a, id=f"call_{len(done) + i}", type="tool_call") for i, (n, a) in enumerate(calls)
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=made))])


def history(messages: Sequence[BaseMessage]) -> list[Done]:
    """Return the calls made so far with their results, in order."""
    told = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    calls = [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    return [Done(c["name"], c["args"], told[c["id"]].text, told[c["id"]].status == "error") for c in calls]


def next_turn(done: list[Done]) -> tuple[str, Calls]:
    """Return what the model says, and which tools it calls; no calls end it."""
    listing = next((d.told for d in done if d.name == "list_files"), None)
    if listing is None:
        return "I look at what is there.", [("list_files", {})]
    files = {path: checksum for _, checksum, path in (line.split(maxsplit=2) for line in listing.splitlines())}
    texts = {d.args["path"]: d.told for d in done if d.name == "read_file"}
    changes = [d for d in done if d.name in ("write_file", "delete_file")]
    notes = [path for path in files if path.endswith((".md", ".log"))]
    if notes and not texts:
        return "I read the notes and the logs.", [("read_file", {"path": path}) for path in notes]
    if not changes:
        calls = proposals(files, texts)
        if not calls:
            return "Everything is in order, so there is nothing to do.", []
        checks: Calls = [("read_file", {"path": p}) for p in files if p.endswith("-final.txt")]
        return "This is what I would do. Meanwhile I read the final reports.", [*calls, *checks, QUESTION]
    again = second_thoughts(changes, files, texts)
    if again:
        return "You want more of the log, so I propose that.", again
    name = note_name(done)
    if name and not any(d.args["path"] == name for d in changes):
        args = {"path": name, "content": report(changes), "checksum": files.get(name, "none"), "why": "you wanted it"}
        return "I write the note that you want.", [("write_file", args)]
    return report(changes), []


# --- what it would do -------------------------------------------------------------------------------------------------

QUESTION = (
    "ask_user",
    {"question": "Shall I leave a note about what I did? Tell me its name, such as done.md, or no."},
)


def proposals(files: dict[str, str], texts: dict[str, str]) -> Calls:
    """Return a call for each file that should go or change."""
    calls: Calls = []
    for path, checksum in files.items():
        why = needless(path, files)
        if why:
            calls.append(("delete_file", {"path": path, "checksum": checksum, "why": why}))
        elif path in texts and tidied(path, texts[path]) != texts[path]:
            why = "only the last lines matter" if path.endswith(".log") else "it has finished tasks and stray blanks"
            content = tidied(path, texts[path])
            calls.append(("write_file", {"path": path, "checksum": checksum, "why": why, "content": content}))
    return calls


def needless(path: str, files: dict[str, str]) -> str:
    """Return why a file is not needed; "" if it is."""
    if files[path] == "e3b0c44298fc":  # the checksum of nothing
        return "it is empty"
    original = next((other for other in files if files[other] == files[path] and len(other) < len(path)), None)
    if original:
        return f"it is the same as {original}"
    stem, draft, _ = path.partition("-draft-")
    return f"{stem}-final.txt came after it" if draft and f"{stem}-final.txt" in files else ""


def tidied(path: str, text: str, log_lines: int = KEPT_LOG_LINES) -> str:
    """Return the end of a log, or notes without finished tasks, stray blanks and runs of empty lines."""
    if path.endswith(".log"):
        return "".join(text.splitlines(keepends=True)[-log_lines:])
    out: list[str] = []
    for line in (each.rstrip() for each in text.splitlines()):
        if not line.lstrip().startswith("- [x]") and (line or (out and out[-1])):
            out.append(line)
    return "\n".join(out).rstrip() + "\n"


# --- what people said -------------------------------------------------------------------------------------------------


def second_thoughts(changes: list[Done], files: dict[str, str], texts: dict[str, str]) -> Calls:
    """Propose a log anew that was refused with words such as "keep 40 lines". Any other no is final."""
    calls: Calls = []
    for each in changes:
        path, wanted = each.args["path"], re.search(r"\bkeep (\d+)", each.told)
        if each.is_refused and wanted and path.endswith(".log") and [d.args["path"] for d in changes].count(path) == 1:
            content = tidied(path, texts[path], int(wanted[1]))
            args = {"path": path, "checksum": files[path], "why": f"you said: {each.told}", "content": content}
            calls.append(("write_file", args))
    return calls


def note_name(done: list[Done]) -> str:
    """Return the name that the user gave the note; "" for none."""
    answer = next((d.told for d in done if d.name == "ask_user"), "")
    found = re.search(r"[\w./-]+\.\w+", answer)
    return found[0] if found else ""


def report(changes: list[Done]) -> str:
    """Tell what came of each change: as it was, changed by a person, or refused with a reason."""
    lines = ["What I did:", ""]
    for each in changes:
        result = each.told.rpartition("Tool response:\n")[2].strip()
        if each.is_refused:
            said = "you said no" if result.startswith("User rejected") else result.splitlines()[0]
            result = f"Left {each.args['path']} as it is: {said}"
        lines.append(f"- {result}{' (as you changed it)' if 'Executed instead:' in each.told else ''}")
    return "\n".join(lines) + "\n"
