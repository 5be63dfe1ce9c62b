"""The clean-up demo on a terminal with the browser beside it: whoever is first decides."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from tests.demo.runs import DELETED, PROMPT, QUESTION, REWRITTEN, Terminal, files, touches, waiting


def test_what_is_decided_in_the_browser_is_done_and_the_terminal_goes_on_with_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    terminal = Terminal(folder)
    shown = terminal.until(PROMPT)
    found = re.search(r"In the browser you can decide too: (http://127\.0\.0\.1:\d+)/inbox", shown)
    assert found, shown
    assert QUESTION in shown  # what the terminal asks first
    ids = waiting(folder)
    with httpx.Client(base_url=found[1], timeout=30) as client:
        page = client.get("/inbox")
        assert page.status_code == 200
        assert "untitled.txt" in page.text
        threads = client.post("/threads/search", json={}).json()
        command = {"resume": {ids[QUESTION]: {"type": "respond", "message": "no"}}}
        for key in (DELETED | REWRITTEN) - {"untitled.txt"}:
            command["resume"][ids[key]] = {"type": "reject", "message": "mine"}
        (thread,) = [each["thread_id"] for each in threads]
        answered = client.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "cleanup", "command": command})
        assert answered.status_code == 200, answered.text
        shown = terminal.until(PROMPT)
        assert "answered this meanwhile." in shown
        assert "[1 to decide]" in shown
        assert "untitled.txt" in shown
    terminal.type("a\n")
    code, rest = terminal.end()
    assert code == 0, rest
    assert "All is done." in rest
    assert "untitled.txt" not in files(folder)
    assert list(touches(folder)) == ["untitled.txt"]


def test_the_server_ends_with_the_demo_however_that_ends(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    terminal = Terminal(folder)
    found = re.search(r"(http://127\.0\.0\.1:\d+)/inbox", terminal.until(PROMPT))
    assert found
    with httpx.Client(base_url=found[1], timeout=30) as client:
        assert client.get("/health/ready").json()["ready"]
        with client.stream("GET", "/inbox/live") as stream:
            assert stream.status_code == 200, stream.read()
            terminal.kill()
            for _ in stream.iter_bytes():
                pass  # it ends, for the server does
