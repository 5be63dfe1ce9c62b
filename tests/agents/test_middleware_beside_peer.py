"""The middlewares around tools and models have LangChain's names, options and defaults, so an import is all that changes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from langchain.agents import create_agent as peer_create
from langchain.agents import middleware as peer
from langchain_core.tools import tool

from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent as ours_create
from waitpoint.agents import middleware as ours

NAMES = [
    "ModelCallLimitMiddleware",
    "ModelFallbackMiddleware",
    "ModelRetryMiddleware",
    "ToolCallLimitMiddleware",
    "ToolErrorMiddleware",
    "ToolRetryMiddleware",
]


def options(module: Any, name: str) -> list[tuple[str, Any, Any]]:
    """List the parameters of a class: name, kind, default; of a function as default only that it is one."""
    parameters = list(inspect.signature(getattr(module, name).__init__).parameters.values())[1:]
    return [(p.name, p.kind, "a function" if inspect.isfunction(p.default) else p.default) for p in parameters]


@pytest.mark.parametrize("name", NAMES)
def test_options_and_defaults_are_those_of_langchain(name: str) -> None:
    assert options(ours, name) == options(peer, name)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ToolRetryMiddleware", {"max_retries": 3, "tools": ["a"], "backoff_factor": 0.0, "jitter": False}),
        ("ModelRetryMiddleware", {"initial_delay": 0.5, "max_delay": 5.0, "on_failure": "error"}),
        ("ToolCallLimitMiddleware", {"tool_name": "a", "thread_limit": 3, "run_limit": 2, "exit_behavior": "end"}),
        ("ModelCallLimitMiddleware", {"thread_limit": 3, "run_limit": 2, "exit_behavior": "error"}),
    ],
)
def test_the_options_are_attributes_and_the_name_is_the_same(name: str, given: dict[str, Any]) -> None:
    mine, theirs = getattr(ours, name)(**given), getattr(peer, name)(**given)
    assert mine.name == theirs.name
    for option in given.keys() - {"tools"}:
        assert getattr(mine, option) == getattr(theirs, option)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(("ToolRetryMiddleware", {n: -1}) for n in ("max_retries", "initial_delay", "max_delay", "backoff_factor")),
        ("ModelRetryMiddleware", {"max_retries": -1}),
        ("ToolCallLimitMiddleware", {}),
        ("ToolCallLimitMiddleware", {"thread_limit": 1, "run_limit": 2}),
        ("ToolCallLimitMiddleware", {"run_limit": 2, "exit_behavior": "stop"}),
        ("ModelCallLimitMiddleware", {}),
        ("ModelCallLimitMiddleware", {"run_limit": 2, "exit_behavior": "continue"}),
        ("ToolErrorMiddleware", {}),
    ],
)
def test_what_langchain_refuses_is_refused(name: str, given: dict[str, Any]) -> None:
    for module in (ours, peer):
        with pytest.raises(ValueError):
            getattr(module, name)(**given)


SEND = calls(("send", "c1", {"to": "ana"}))
TWICE = calls(("send", "c1", {"to": "ana"}), ("look", "c2", {"at": "sky"}), ("send", "c3", {"to": "bob"}))

PROGRAMS: dict[str, tuple[list[Any], int, list[tuple[str, dict[str, Any]]]]] = {
    "a tool fails twice": ([SEND, "done"], 2, [("ToolRetryMiddleware", {"initial_delay": 0.0})]),
    "a tool keeps failing": ([SEND, "done"], 9, [("ToolRetryMiddleware", {"initial_delay": 0.0, "max_retries": 1})]),
    "an error is told": ([SEND, "done"], 9, [("ToolErrorMiddleware", {"on_error": lambda e, r: "failed"})]),
    "a model fails": ([TimeoutError(), SEND, "done"], 0, [("ModelRetryMiddleware", {"initial_delay": 0.0})]),
    "a model keeps failing": ([TimeoutError()] * 3, 0, [("ModelRetryMiddleware", {"initial_delay": 0.0})]),
    "too many calls, and on": ([TWICE, "done"], 0, [("ToolCallLimitMiddleware", {"run_limit": 2})]),
    "too many of a tool, and on": (
        [TWICE, SEND, "done"],
        0,
        [("ToolCallLimitMiddleware", {"tool_name": "send", "run_limit": 1})],
    ),
    "too many calls, and the end": (
        [TWICE],
        0,
        [("ToolCallLimitMiddleware", {"run_limit": 1, "exit_behavior": "end"})],
    ),
    "too many turns": ([SEND, SEND, SEND], 0, [("ModelCallLimitMiddleware", {"run_limit": 2})]),
}


def tools(failures: int, done: list[str]) -> list[Any]:
    """Return a tool that fails so many times, noting its calls, and one that does not."""

    @tool
    def send(to: str) -> str:
        """Send a mail."""
        done.append(to)
        if len(done) <= failures:
            raise TimeoutError("slow")
        return f"sent to {to}"

    @tool
    def look(at: str) -> str:
        """Look at something."""
        return f"saw {at}"

    return [send, look]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_agent_comes_to_the_same_messages_with_both(program: str) -> None:
    replies, failures, around = PROGRAMS[program]
    runs = []
    for create_agent, module in ((ours_create, ours), (peer_create, peer)):
        done: list[str] = []
        model = Scripted(*replies)
        middleware = [getattr(module, name)(**given) for name, given in around]
        agent: Any = create_agent(model, tools(failures, done), middleware=middleware)
        messages = agent.invoke({"messages": [("user", "go")]})["messages"]
        told = [(m.type, getattr(m, "status", None), getattr(m, "tool_call_id", None)) for m in messages]
        runs.append((sorted(told, key=repr), told[-1], done, len(model.shown)))
    assert runs[0] == runs[1]
    assert runs[0][2] or failures == 0
