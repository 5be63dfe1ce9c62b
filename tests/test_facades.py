"""Paths that users of LangGraph know: the names there are the peer's, or ours."""

import importlib

import langgraph.constants
import pytest

OURS = {"Answer", "CheckpointMetadata", "Happened", "NotHappened", "OnPending", "Question", "ToolsStreamPart"}
OURS |= {"default_retry_on", "step"}


@pytest.mark.parametrize("path", ["types", "constants", "managed", "graph", "stream"])
def test_every_name_of_a_facade_is_there_and_is_the_peers_or_ours(path: str) -> None:
    module = importlib.import_module(f"waitpoint.{path}")
    peer = importlib.import_module(f"langgraph.{path}")
    for name in module.__all__:
        assert hasattr(module, name)
        assert hasattr(peer, name) or name in OURS
    assert OURS & set(module.__all__) == (OURS if path == "types" else set())


@pytest.mark.parametrize("name", ["START", "END", "TAG_NOSTREAM"])
def test_constants_equal_the_peers(name: str) -> None:
    ours = importlib.import_module("waitpoint.constants")
    assert getattr(ours, name) == getattr(langgraph.constants, name)


def test_names_of_decisions_are_where_users_of_langchain_import_them() -> None:
    ours = importlib.import_module("waitpoint.agents.middleware.human_in_the_loop")
    peer = importlib.import_module("langchain.agents.middleware.human_in_the_loop")
    declared = {name for name, value in vars(peer).items() if getattr(value, "__module__", "") == peer.__name__}
    public = {name for name in declared if not name.startswith("_")} | {"Decision", "DecisionType", "InterruptMode"}
    assert public <= set(ours.__all__)
    assert all(hasattr(ours, name) for name in ours.__all__)


def test_names_of_tool_nodes_are_where_users_of_langgraph_import_them() -> None:
    ours = importlib.import_module("waitpoint.prebuilt")
    peers = [importlib.import_module(path) for path in ("langgraph.prebuilt", "langgraph.prebuilt.tool_node")]
    for name in ours.__all__:
        assert hasattr(ours, name)
        assert any(hasattr(peer, name) for peer in peers), name
    assert {"AsyncToolCallWrapper", "ToolCallWrapper", "ToolInvocationError"} <= set(ours.__all__)
