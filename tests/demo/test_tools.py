"""The tools of the demo's agent: no way out of the folder, and a call in doubt is looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.types import Command, Happened, NotHappened


def test_no_path_leads_out_of_the_folder(tmp_path: Path, program: Any) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (root / "link").symlink_to(tmp_path)
    (root / ".hidden").write_text("hidden")
    agent = program.make_agent(program.Folder(root), checkpointer=InMemorySaver())
    bad = [
        "../secret.txt",
        "/etc/passwd",
        str(tmp_path / "secret.txt"),
        "a/../../secret.txt",
        ".hidden",
        "",
        ".",
        "a\nb",
    ]
    calls = [(f"c{n}", path) for n, path in enumerate([*bad, "link/secret.txt"])]
    for name, more in (
        ("read_file", {}),
        ("delete_file", {"checksum": "x", "why": ""}),
        ("write_file", {"checksum": "none", "why": "", "content": "mine"}),
    ):
        made = [{"name": name, "id": f"{name}{i}", "args": {"path": p, **more}, "type": "tool_call"} for i, p in calls]
        config = {"configurable": {"thread_id": name}}
        agent.update_state(config, {"messages": [("user", "go"), AIMessage("", tool_calls=made)]}, as_node="model")
        state = agent.invoke(None, config)
        open_questions = state.get("__interrupt__", [])
        assert not open_questions or [q.value["args"]["path"] for q in open_questions] == ["link/secret.txt"]
        if open_questions:
            assert "leads out of the folder" in open_questions[0].value["description"]
            state = agent.invoke(Command(resume={"type": "approve"}), config)
        told = {m.tool_call_id: m for m in state["messages"] if m.type == "tool"}
        assert all(told[f"{name}{i}"].status == "error" for i, _ in calls), name
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["files", "secret.txt"]


@pytest.mark.parametrize(
    ("now", "written", "deleted"),
    [(b"old", "not", "not"), (b"new", "yes", None), (None, None, "yes"), (b"other", None, None)],
)
def test_a_call_in_doubt_is_looked_up_in_the_file(
    tmp_path: Path, program: Any, now: bytes | None, written: str | None, deleted: str | None
) -> None:
    folder = program.Folder(tmp_path / "files")
    folder.root.mkdir()
    if now is not None:
        (folder.root / "a.txt").write_bytes(now)
    args = {"path": "a.txt", "checksum": program.digest(b"old"), "why": ""}
    words = {Happened: "yes", NotHappened: "not", type(None): None}
    assert words[type(folder.was_written("key", {**args, "content": "new"}))] == written
    assert words[type(folder.was_deleted("key", args))] == deleted
