"""`waitpoint serve`: it starts, says what is wrong, stops quickly with streams open, and goes on after a restart."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from langgraph_sdk import get_client

from tests.server.commands import FLOWS, SETTINGS, WAITPOINT, prepared, serving
from tests.server.graphs import asking
from tests.server.serving import served
from waitpoint.server import create_app

pytestmark = pytest.mark.slow  # each starts a process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def refused(folder: Path, *options: str) -> str:
    """Serve in vain; return the sentences that say why."""
    done = subprocess.run(
        [WAITPOINT, "serve", *options], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "Traceback" not in done.stderr
    return done.stderr


# --- starting ---------------------------------------------------------------------------------------------------------


def test_what_cannot_be_imported_is_told_in_one_sentence_each(folder: Path) -> None:
    more = '[graphs]\nmissing = "nowhere:graph"\nodd = "flows:Log"\n'
    (folder / "waitpoint.toml").write_text(SETTINGS.replace("[graphs]\n", more))
    lines = refused(folder).splitlines()
    assert len(lines) == 2
    assert "There is no module 'nowhere'" in lines[0]
    assert "'flows:Log' is the class Log, not a compiled graph" in lines[1]


def test_a_port_that_is_taken_is_told_in_one_sentence(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        (line,) = refused(folder, "--port", port).splitlines()
    assert line.startswith(f"Cannot listen on 127.0.0.1:{port} - Address already in use; ")


def test_only_this_machine_is_served_where_nobody_has_to_say_who_they_are(folder: Path) -> None:
    (line,) = refused(folder, "--host", "0.0.0.0").splitlines()
    assert line.startswith("Nobody has to say who they are here, so anyone who reaches 0.0.0.0 could answer; ")


def test_settings_say_where_to_listen_and_mistakes_in_them_are_told(folder: Path) -> None:
    (folder / "waitpoint.toml").write_text(SETTINGS + '[server]\nhost = "192.0.2.1"\n')
    assert "192.0.2.1" in refused(folder)
    (folder / "waitpoint.toml").write_text(SETTINGS + "[server]\nport = 70000\n")
    assert refused(folder).endswith("has 70000 as [server] port; write port = 2024\n")
    (folder / "waitpoint.toml").write_text(SETTINGS + "[server]\nprot = 1\n")
    assert "unknown key 'prot' in [server]; did you mean 'port'?" in refused(folder)
    (folder / "waitpoint.toml").write_text('[store]\nurl = "sqlite:///threads.db"\n')
    assert refused(folder).startswith("There is nothing to serve; name graphs in [graphs]")


async def test_the_server_tells_its_addresses_and_serves_the_graphs_of_the_settings(folder: Path) -> None:
    with serving(folder) as server:
        assert server.told == {"url": server.url, "inbox": f"{server.url}/inbox", "graphs": ["asking", "held"]}
        async with get_client(url=server.url) as client:
            asked: Any = await client.runs.wait(None, "asking", input={"log": []}, on_completion="keep")
            assert asked["__interrupt__"][0]["value"] == "Go on?"
        assert server.stop() == 0


async def test_an_application_is_mounted_into_ones_own(tmp_path: Path) -> None:
    inner = create_app({"asking": asking()}, tmp_path / "threads.db")
    outer = FastAPI(lifespan=lambda _: inner.router.lifespan_context(inner))
    outer.mount("/agents", inner)
    async with served(outer) as url, get_client(url=f"{url}/agents") as client:
        thread = await client.threads.create()
        asked: Any = await client.runs.wait(thread["thread_id"], "asking", input={"log": []})
        assert asked["__interrupt__"]
        async with httpx.AsyncClient() as plain:
            ready = await plain.get(f"{url}/agents/health/ready")
            assert ready.json() == {"ready": True, "store": True, "dispatcher": True}


# --- stopping ---------------------------------------------------------------------------------------------------------


async def test_open_streams_end_cleanly_in_time_and_go_on_after_a_restart(folder: Path) -> None:
    with serving(folder) as first:
        async with get_client(url=first.url) as client, httpx.AsyncClient(timeout=30) as plain:
            thread = (await client.threads.create())["thread_id"]
            run = (await client.runs.create(thread, "held", input={"log": []}, stream_mode=["updates"]))["run_id"]
            at = f"/threads/{thread}/runs/{run}/stream"
            last = None
            async with plain.stream("GET", first.url + at, headers={"Last-Event-ID": "-1"}) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("id: "):
                        last = line.removeprefix("id: ")
                    if '"plan"' in line:
                        begun = time.monotonic()
                        first.process.send_signal(signal.SIGTERM)
                # The loop ended without an exception, so the stream was closed as a whole one is.
            assert first.process.wait(20) == 0
            assert time.monotonic() - begun < 3
    (folder / "go").touch()
    with serving(folder) as second:
        async with get_client(url=second.url) as client:
            parts = [part async for part in client.runs.join_stream(thread, run, last_event_id=last)]
            told = [part.data for part in parts if part.event == "updates"]
            assert told == [{"work": {"log": ["work"]}}]  # what was done before is neither told nor done again
            assert (await client.runs.get(thread, run))["status"] == "success"


async def test_who_waits_for_a_result_is_cut_off_and_not_given_half_a_document(folder: Path) -> None:
    with serving(folder) as server:
        async with get_client(url=server.url) as client, httpx.AsyncClient(timeout=30) as plain:
            thread = (await client.threads.create())["thread_id"]
            run = (await client.runs.create(thread, "held", input={"log": []}))["run_id"]
            with pytest.raises(httpx.RemoteProtocolError):
                async with plain.stream("GET", f"{server.url}/threads/{thread}/runs/{run}/join") as answer:
                    server.process.send_signal(signal.SIGTERM)
                    await answer.aread()
        assert server.process.wait(20) == 0
        assert not [line for line in server.lines if line["level"] == "error"]


def test_ctrl_c_is_130(folder: Path) -> None:
    with serving(folder) as server:
        assert server.stop(signal.SIGINT) == 130


async def test_what_blocks_a_thread_does_not_hold_up_the_end(folder: Path) -> None:
    blocking = FLOWS.replace("async def work", "def work").replace(
        "await asyncio.Event().wait()", "open(HERE / 'pipe').read()"
    )
    prepared(folder, flows=blocking)
    os.mkfifo(folder / "pipe")
    with serving(folder) as server:
        async with get_client(url=server.url) as client:
            thread = (await client.threads.create())["thread_id"]
            run = (await client.runs.create(thread, "held", input={"log": []}, stream_mode=["updates"]))["run_id"]
            async for part in client.runs.join_stream(thread, run, last_event_id="-1"):
                if part.event == "updates":
                    break
            begun = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - begun < 3
    (folder / "go").touch()
    with serving(folder) as again:
        async with get_client(url=again.url) as client:
            assert await client.runs.join(thread, run) == {"log": ["plan", "work"]}


# --- starting anew ----------------------------------------------------------------------------------------------------


async def test_a_changed_file_starts_the_server_anew_with_its_threads(folder: Path) -> None:
    (folder / "flows.py").write_text(FLOWS)
    with serving(folder, "--reload") as server:
        async with get_client(url=server.url) as client:
            thread = (await client.threads.create())["thread_id"]
            asked: Any = await client.runs.wait(thread, "asking", input={"log": []})
            assert asked["__interrupt__"]
        (folder / "flows.py").write_text(FLOWS.replace('"plan"]}', '"planned"]}'))
        (folder / "go").touch()
        told = server.read()
        assert "flows.py changed; starting anew." in server.log.read_text()
        async with get_client(url=told["url"]) as client:
            assert await client.runs.wait(thread, "asking", command={"resume": "yes"}) == {"log": ["yes"]}
            other = (await client.threads.create())["thread_id"]
            assert await client.runs.wait(other, "held", input={"log": []}) == {"log": ["planned", "work"]}
        assert server.stop() == 0
