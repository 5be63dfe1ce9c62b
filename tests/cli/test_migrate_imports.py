"""Each form of import, and what becomes of it."""

from __future__ import annotations

import ast

import pytest

from waitpoint.cli.migrate import imports
from waitpoint.cli.migrate.source import Source


def migrated(text: str) -> tuple[str, list[str]]:
    source = Source(text)
    kept = imports.rewrite(source)
    after = source.edited()
    ast.parse(after)
    return after, [each.name for each in kept]


SAME_PLACE = [
    "from langgraph.types import interrupt",
    "from langgraph.types import interrupt as ask, Command",
    "from langgraph.graph import (  # all of it\n    START,  # begins\n    END,\n)",
    "import langgraph.types",
    "import langgraph.types as t\nt.interrupt(1)",
    "import langgraph.graph, os\nlanggraph.graph.StateGraph",
    "import langgraph.graph\nimport langgraph.types\nlanggraph.graph.START, langgraph.types.interrupt",
    "from langgraph import types, graph as g\ng.START, types.Send",
    "if True: from langgraph.types import Send",
    "try:\n    from langgraph.types import Send\nexcept ImportError:\n    Send = None",
    "def f():\n\tfrom langgraph.types import Send\n\treturn Send",
    "x = 'ü'; from langgraph.types import Send",
    "from langgraph.types \\\n    import Send",
]


@pytest.mark.parametrize("text", SAME_PLACE)
def test_only_the_name_of_the_package_changes_where_the_path_is_the_same(text: str) -> None:
    assert migrated(text) == (text.replace("langgraph", "waitpoint"), [])


def test_paths_that_differ_are_found_by_the_table() -> None:
    assert migrated("from langgraph.prebuilt.tool_node import ToolNode")[0] == "from waitpoint.prebuilt import ToolNode"
    assert migrated("from langchain.tools import tool")[0] == "from waitpoint.tools import tool"


def test_a_name_without_counterpart_gets_a_statement_of_its_own() -> None:
    text = "from langgraph.types import interrupt, PregelExecutableTask as T, Command  # words\nx = 1\n"
    kept = "from langgraph.types import PregelExecutableTask as T\n"
    after = f"from waitpoint.types import interrupt, Command  # words\n{kept}x = 1\n"
    assert migrated(text) == (after, ["langgraph.types.PregelExecutableTask"])


@pytest.mark.parametrize(
    "order",
    [
        "PregelExecutableTask, interrupt",
        "interrupt, PregelExecutableTask",
        "PregelExecutableTask, interrupt, TracePolicy",
    ],
)
def test_names_are_cut_out_wherever_they_stand(order: str) -> None:
    after, kept = migrated(f"from langgraph.types import {order}\n")
    stays = ", ".join(name for name in order.split(", ") if name != "interrupt")
    assert after == f"from waitpoint.types import interrupt\nfrom langgraph.types import {stays}\n"
    assert sorted(kept) == sorted(f"langgraph.types.{name}" for name in stays.split(", "))


def test_a_remark_goes_with_its_name() -> None:
    text = (
        "    from langgraph.types import (\n        Send,  # fan out\n        PregelExecutableTask,  # so long\n"
        "        Command,\n    )\n"
    )
    after = (
        "    from waitpoint.types import (\n        Send,  # fan out\n        Command,\n    )\n"
        "    from langgraph.types import PregelExecutableTask  # so long\n"
    )
    assert migrated("def f():\n" + text)[0] == "def f():\n" + after


def test_statements_that_share_a_line_keep_sharing_it() -> None:
    text = "if True: from langgraph.types import Send, PregelExecutableTask; x = 1\n"
    after = "if True: from waitpoint.types import Send; from langgraph.types import PregelExecutableTask; x = 1\n"
    assert migrated(text)[0] == after


def test_names_of_langchain_core_come_from_there() -> None:
    after, kept = migrated("from langgraph.store.base import BaseStore, Embeddings\n")
    assert after == "from waitpoint.store.base import BaseStore\nfrom langchain_core.embeddings import Embeddings\n"
    assert kept == []


KEPT = [
    ("from langgraph.types import PregelExecutableTask\n", ["langgraph.types.PregelExecutableTask"]),
    ("from langgraph.types import *\n", ["langgraph.types.*"]),
    ("from langgraph.pregel import Pregel\n", ["langgraph.pregel.Pregel"]),
    ("from langgraph.checkpoint.postgres import PostgresSaver\n", ["langgraph.checkpoint.postgres.PostgresSaver"]),
    ("import langgraph\nlanggraph.version\n", ["langgraph"]),
    ("import langgraph.types as t\nt.PregelExecutableTask\n", ["langgraph.types.PregelExecutableTask"]),
    ("import langgraph.types\nlanggraph.types.PregelExecutableTask\n", ["langgraph.types.PregelExecutableTask"]),
    ("from langgraph import types\ntypes.PregelExecutableTask\n", ["langgraph.types"]),
    ("import importlib\nimportlib.import_module('langgraph.types')\n", ["langgraph.types"]),
    ("mock.patch('langchain.agents.create_agent')\n", ["langchain.agents.create_agent"]),
    ("from langgraph_supervisor import create_supervisor\n", ["langgraph_supervisor"]),
]


@pytest.mark.parametrize(("text", "names"), KEPT, ids=lambda value: value if isinstance(value, str) else "")
def test_what_has_no_counterpart_stays_and_is_named(text: str, names: list[str]) -> None:
    assert migrated(text) == (text, names)


IN_F_STRINGS = [
    "f'{langgraph.types.interrupt}'",
    "f'''ü\n {1} {langgraph.types.interrupt!r:>{3}}'''",
    "f'ü' f'{langgraph.types.Send}'",
]


@pytest.mark.parametrize("use", IN_F_STRINGS)
def test_uses_in_f_strings_are_rewritten_or_keep_the_import(use: str) -> None:
    text = f"import langgraph.types\nx = {use}\n"
    after, kept = migrated(text)
    assert (after, kept) in [(text.replace("langgraph", "waitpoint"), []), (text, ["langgraph.types"])]


def test_reasons_say_what_to_do() -> None:
    source = Source(
        "from langgraph.prebuilt import create_react_agent\nfrom langgraph.checkpoint.redis import RedisSaver\n"
    )
    first, second = imports.rewrite(source)
    assert "create_agent" in first.why
    assert "LangGraphSaver(saver)" in second.why


@pytest.mark.parametrize(
    "text",
    [
        "from langchain_openai import ChatOpenAI\n",
        "from langchain_core.tools import tool\n",
        "from . import langgraph\n",
        "from .langgraph.types import interrupt\n",
        "import langgraphs\n",
        "say('I like langgraph. It is good.')\n",
    ],
)
def test_other_packages_are_not_touched(text: str) -> None:
    assert migrated(text) == (text, [])
