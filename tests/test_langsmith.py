"""Handlers that nobody passes: LangSmith's, by its variables alone, and those that lie in a context."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from langchain_core.tracers.context import collect_runs

from waitpoint.graph import START, StateGraph

# The tracer would send to a server in the background, so the program leaves before anything can be sent.
PROGRAM = """
import os, sys
from waitpoint.graph import START, StateGraph

def work(state, config):
    callbacks = config.get("callbacks")
    print(*(type(handler).__name__ for handler in getattr(callbacks, "handlers", ())), "langchain_core" in sys.modules)
    return {}

graph = StateGraph(dict)
graph.add_node("work", work)
graph.add_edge(START, "work")
graph.compile().invoke({"n": 1})
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(("switch", "heard_by"), [("true", "LangChainTracer True"), ("false", "False")])
def test_the_variable_alone_attaches_the_tracer_of_langsmith(switch: str, heard_by: str) -> None:
    names = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING")
    env = {k: v for k, v in os.environ.items() if k not in names}
    env |= {"LANGSMITH_TRACING": switch, "LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_API_KEY": "none"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.strip() == heard_by


def test_a_handler_that_lies_in_the_context_hears_of_a_run() -> None:
    graph = StateGraph(dict)
    graph.add_node("work", lambda s: {"n": s["n"] + 1})
    graph.add_edge(START, "work")
    with collect_runs() as collected:
        graph.compile(name="desk").invoke({"n": 1})
    (root,) = collected.traced_runs
    assert (root.name, root.outputs) == ("desk", {"n": 2})
