"""Paths that users of LangGraph know: the names there are the peer's, or ours."""

import importlib

import langgraph.constants
import pytest

OURS = {"Answer", "CheckpointMetadata", "Happened", "NotHappened", "OnPending", "Question", "default_retry_on", "step"}


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
