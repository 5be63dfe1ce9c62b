"""Assistants, threads, states and items: through the Python SDK, and as recorded from other clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.server.graphs import asking, nesting
from tests.server.serving import served
from waitpoint.server import create_app


@pytest.fixture
async def url(tmp_path: Path) -> AsyncGenerator[str]:
    async with served(create_app({"asking": asking(), "nesting": nesting()}, tmp_path / "threads.db")) as address:
        yield address


@pytest.fixture
async def client(url: str) -> AsyncGenerator[Any]:
    async with get_client(url=url) as made:
        yield made


async def asked(client: Any, graph: str = "asking") -> str:
    thread: str = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, graph, input={"log": ["in"]})
    return thread


# --- assistants -------------------------------------------------------------------------------------------------------


async def test_each_graph_has_an_assistant_that_keeps_its_id(client: Any) -> None:
    (found,) = await client.assistants.search(graph_id="asking", metadata={"created_by": "system"})
    assert found == await client.assistants.get("asking") == await client.assistants.get(found["assistant_id"])
    with pytest.raises(ConflictError, match="by itself"):
        await client.assistants.delete(found["assistant_id"])


async def test_an_assistant_has_versions_of_which_one_is_in_force(client: Any) -> None:
    made = await client.assistants.create("asking", name="mine", config={"recursion_limit": 5}, metadata={"team": "a"})
    changed = await client.assistants.update(made["assistant_id"], name="ours", metadata={"more": 1})
    assert (changed["version"], changed["metadata"]) == (2, {"team": "a", "more": 1})
    assert [v["version"] for v in await client.assistants.get_versions(made["assistant_id"])] == [2, 1]
    back = await client.assistants.set_latest(made["assistant_id"], 1)
    assert (await client.assistants.get(made["assistant_id"]))["name"] == back["name"] == "mine"
    assert await client.assistants.count(metadata={"team": "a"}) == 1
    await client.assistants.delete(made["assistant_id"])
    with pytest.raises(NotFoundError):
        await client.assistants.get(made["assistant_id"])


async def test_a_graph_tells_its_nodes_its_schemas_and_what_is_inside(client: Any) -> None:
    told = await client.assistants.get_graph("nesting", xray=True)
    assert {"__start__", "__end__"} < {node["id"] for node in told["nodes"]}
    schemas = await client.assistants.get_schemas("asking")
    assert schemas["input_schema"]["properties"].keys() == {"log"}
    assert (await client.assistants.get_subgraphs("nesting")).keys() == {"child"}


async def test_an_unknown_assistant_is_refused_in_the_words_that_pages_look_for(client: Any) -> None:
    with pytest.raises(NotFoundError, match="Invalid assistant ID: 'nope'"):
        await client.assistants.get("nope")


# --- threads ----------------------------------------------------------------------------------------------------------


async def test_a_thread_shows_what_it_holds_and_what_it_asks(client: Any) -> None:
    thread = await client.threads.get(await asked(client))
    assert thread["values"] == {"log": ["in", "plan"]}
    assert thread["metadata"]["graph_id"] == "asking"
    ((question,),) = thread["interrupts"].values()
    assert question["value"] == {"text": "Go on?"}
    state = await client.threads.get_state(thread["thread_id"])
    assert [i["id"] for i in state["interrupts"]] == [question["id"]]
    assert state["interrupts"][0]["node"] == "review"
    assert state["tasks"][-1]["interrupts"][0]["id"] == question["id"]


async def test_a_new_thread_has_no_questions_rather_than_no_key(client: Any) -> None:
    thread = await client.threads.create(metadata={"a": 1}, thread_id="mine-1")
    assert (thread["status"], thread["interrupts"], thread["values"]) == ("idle", {}, None)
    with pytest.raises(ConflictError, match="exists already"):
        await client.threads.create(thread_id="mine-1")
    again = await client.threads.create(thread_id="mine-1", if_exists="do_nothing")
    assert again["metadata"] == {"a": 1}
    state = await client.threads.get_state("mine-1")
    assert (state["values"], state["next"], state["checkpoint"]) == ({}, [], None)


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"graph_id": "asking"}, "limit": 10, "offset": 0, "status": "interrupted"},
        {"metadata": {"graph_id": "asking"}, "limit": 100, "offset": 0},
        {"limit": 20, "offset": 0, "sort_by": "updated_at", "sort_order": "desc", "status": "interrupted"},
        {"values": {"log": ["in", "plan"]}},
    ],
)
async def test_threads_are_found_as_pages_look_for_them(client: Any, url: str, body: dict[str, Any]) -> None:
    await client.threads.create()
    thread = await asked(client)
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.post("/threads/search", json=body)
    assert [each["thread_id"] for each in answer.json()] == [thread]
    assert answer.headers["X-Pagination-Total"] == "1"


async def test_searches_page_select_and_extract(client: Any, url: str) -> None:
    for n in range(3):
        await client.threads.create(metadata={"n": n, "kind": "many", "deep": {"x": [1, {"y": n}]}})
    async with httpx.AsyncClient(base_url=url) as http:
        body = {"metadata": {"kind": "many"}, "limit": 2, "sort_by": "created_at", "sort_order": "asc"}
        answer = await http.post(
            "/threads/search", json={**body, "select": ["metadata"], "extract": {"y": "metadata.deep.x[1].y"}}
        )
    assert answer.headers["X-Pagination-Next"] == "2"
    assert [(each["metadata"]["n"], each["extracted"]["y"]) for each in answer.json()] == [(0, 0), (1, 1)]
    assert {name for each in answer.json() for name in each} == {"metadata", "extracted"}
    assert await client.threads.count(metadata={"deep": {"x": [{"y": 2}]}}) == 1


async def test_metadata_merge_and_a_minimal_answer_is_empty(client: Any) -> None:
    thread = (await client.threads.create(metadata={"a": 1}))["thread_id"]
    assert (await client.threads.update(thread, metadata={"b": 2}))["metadata"] == {"a": 1, "b": 2}
    assert await client.threads.update(thread, metadata={"c": 3}, return_minimal=True) is None
    assert (await client.threads.get(thread))["metadata"] == {"a": 1, "b": 2, "c": 3}


async def test_a_deleted_thread_leaves_no_row(client: Any, tmp_path: Path) -> None:
    import sqlite3

    thread = await asked(client)
    await client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)
    with pytest.raises(NotFoundError):
        await client.threads.delete(thread)
    connection = sqlite3.connect(tmp_path / "threads.db")
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = {"assistant", "sqlite_sequence"}
        left = {t: connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables if t not in kept}
    finally:
        connection.close()
    assert set(left.values()) == {0}, left


async def test_a_copy_asks_for_itself(client: Any) -> None:
    thread = await asked(client)
    copy = await client.threads.copy(thread)
    if copy is None:
        copy = (await client.threads.search(limit=1))[0]
    ((theirs,),) = copy["interrupts"].values()
    ((ours,),) = (await client.threads.get(thread))["interrupts"].values()
    assert theirs["id"] != ours["id"]
    await client.runs.wait(copy["thread_id"], "asking", command={"resume": {theirs["id"]: "yes"}})
    assert (await client.threads.get(thread))["status"] == "interrupted"


async def test_a_thread_can_be_made_with_a_history(client: Any) -> None:
    steps = [
        {"updates": [{"values": {"log": ["in"]}, "as_node": "__start__"}]},
        {"updates": [{"values": {"log": ["a"]}, "as_node": "plan"}]},
    ]
    thread = await client.threads.create(graph_id="asking", supersteps=steps)
    state = await client.threads.get_state(thread["thread_id"])
    assert (state["values"], state["next"]) == ({"log": ["in", "a"]}, ["review"])


# --- state ------------------------------------------------------------------------------------------------------------


async def test_resolving_drops_what_is_asked_and_leaves_the_thread_idle(client: Any) -> None:
    thread = await asked(client)
    await client.threads.update_state(thread, None, as_node="__end__")
    shown = await client.threads.get(thread)
    assert (shown["status"], shown["interrupts"]) == ("idle", {})
    assert (await client.threads.get_state(thread))["next"] == []


async def test_an_update_as_the_asking_node_moves_on_past_it(client: Any) -> None:
    thread = await asked(client)
    made = await client.threads.update_state(thread, {"log": ["by hand"]}, as_node="review")
    assert made["checkpoint_id"] == made["checkpoint"]["checkpoint_id"]
    shown = await client.threads.get(thread)
    assert (shown["status"], shown["interrupts"]) == ("interrupted", {})
    assert (await client.runs.wait(thread, "asking", input=None))["log"] == ["in", "plan", "by hand", "act"]


@pytest.mark.parametrize("form", ["id", "checkpoint", "config"])
async def test_histories_page_by_all_forms_of_before(client: Any, url: str, form: str) -> None:
    thread = await asked(client)
    states = await client.threads.get_history(thread)
    assert [s["metadata"]["step"] for s in states] == [1, 0, -1]
    assert states[0]["parent_checkpoint"]["checkpoint_id"] == states[1]["checkpoint"]["checkpoint_id"]
    bound = states[0]["checkpoint"]
    before = {"id": bound["checkpoint_id"], "checkpoint": bound, "config": {"configurable": bound}}[form]
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.post(f"/threads/{thread}/history", json={"before": before, "limit": 1})
    assert [s["checkpoint_id"] for s in answer.json()] == [states[1]["checkpoint_id"]]


async def test_a_nested_question_shows_everywhere_and_is_answered_by_its_id_alone(client: Any) -> None:
    thread = await asked(client, "nesting")
    state = await client.threads.get_state(thread, subgraphs=True)
    (question,) = state["interrupts"]
    task = state["tasks"][-1]
    assert task["interrupts"][0]["id"] == task["state"]["interrupts"][0]["id"] == question["id"]
    outer = (await client.threads.get_state(thread))["tasks"][-1]
    assert outer["checkpoint"]["checkpoint_ns"] == f"child:{outer['id']}"
    inner = await client.threads.get_state(thread, checkpoint=outer["checkpoint"])
    assert inner["next"] == ["ask"]
    shown = await client.threads.get(thread)
    assert list(shown["interrupts"]) == [inner["tasks"][-1]["id"]]
    done = await client.runs.wait(thread, "nesting", command={"resume": {question["id"]: "yes"}})
    assert done["log"][-1] == "yes"


# --- the store --------------------------------------------------------------------------------------------------------


async def test_items_are_put_found_and_deleted(client: Any) -> None:
    await client.store.put_item(["users", "ana"], "likes", {"food": "figs", "n": 3})
    assert (await client.store.get_item(["users", "ana"], "likes"))["value"] == {"food": "figs", "n": 3}
    found = await client.store.search_items(["users"], filter={"n": {"$gte": 3}})
    assert [item["key"] for item in found["items"]] == ["likes"]
    assert (await client.store.list_namespaces(["users"]))["namespaces"] == [["users", "ana"]]
    await client.store.delete_item(["users", "ana"], "likes")
    assert await client.store.get_item(["users", "ana"], "likes") is None


# --- what nobody should send ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/threads", {"thread_id": {"$gt": ""}}),
        ("POST", "/threads", {"thread_id": ""}),
        ("POST", "/threads/search", {"metadata": {"a' OR 1=1 --": "x"}, "limit": 5}),
        ("POST", "/threads/search", {"limit": 10**30}),
        ("POST", "/threads/search", {"limit": "1; DROP TABLE thread"}),
        ("POST", "/threads/search", {"metadata": {'"]': {"$gt": ""}}}),
        ("POST", "/threads/search", {"ids": ["\u0000", "\ud800"]}),
        ("POST", "/threads/search", {"sort_by": "created_at; --"}),
        ("GET", "/threads/%00", None),
        ("GET", "/threads/x/state/%27", None),
        ("POST", "/threads/x/history", {"before": {"configurable": {"checkpoint_id": {"$ne": 1}}}}),
        ("PUT", "/store/items", {"namespace": ["a.b"], "key": "k", "value": {}}),
        ("PUT", "/store/items", {"namespace": [], "key": "k", "value": {}}),
        ("POST", "/store/items/search", {"namespace_prefix": ["a"], "filter": {"x": {"$where": "1"}}}),
        ("POST", "/runs/crons", {"schedule": "* * * * *"}),
        ("GET", "/assistants/asking/graph?xray=99999999999999999999", None),
        ("POST", "/assistants/asking/latest", {"version": 99}),
    ],
)
async def test_what_does_not_fit_is_refused_in_a_sentence(url: str, method: str, path: str, body: Any) -> None:
    import json

    content = None if body is None else json.dumps(body).encode("utf-8", "surrogatepass")
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.request(method, path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert answer.json()["detail"]
        assert (await http.get("/ok")).json() == {"ok": True}
