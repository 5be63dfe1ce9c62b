"""The table of counterparts, checked against what both packages export."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from waitpoint.cli.migrate import table

# Where modules lie that are in no package of their own.
SPREAD = ("langgraph.cache", "langgraph.checkpoint", "langgraph.store")

# Names that are equal by chance: here they are another thing.
OTHERS = {"langgraph.checkpoint.base.BaseCheckpointSaver", "langgraph.checkpoint.base.CheckpointMetadata"}


def imported(name: str) -> ModuleType | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of theirs are deprecated, and say so when imported
        try:
            return import_module(name)
        except ImportError:
            return None


def modules_of(package: str) -> Iterator[str]:
    """Yield the public modules of a package, those of namespace packages below it too."""
    yield package
    module = imported(package)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not found.name.startswith("_"):
            yield from modules_of(f"{package}.{found.name}")


def exported(name: str) -> list[str]:
    return list(getattr(imported(name), "__all__", ()))


THEIRS = sorted({m for package in (*table.PACKAGES, *SPREAD) for m in modules_of(package) if exported(m)})


@pytest.mark.parametrize("theirs", table.MODULES)
def test_modules_of_the_table_exist_in_both_packages_and_share_names(theirs: str) -> None:
    module = imported(theirs)
    assert module is not None, f"{theirs} is gone"
    for ours in table.MODULES[theirs]:
        shared = [n for n in vars(module) if not n.startswith("_") and hasattr(import_module(ours), n)]
        assert shared, f"{theirs} and {ours} have no name in common"


@pytest.mark.parametrize("theirs", THEIRS)
def test_every_name_that_both_export_at_one_path_is_mapped(theirs: str) -> None:
    ours = imported(f"waitpoint.{theirs.partition('.')[2]}") if "." in theirs else None
    here = getattr(ours, "__all__", ())
    missing = [n for n in exported(theirs) if n in here and table.counterpart(theirs, n) is None]
    assert [n for n in missing if f"{theirs}.{n}" not in OTHERS] == [], "add the module to the table"


@pytest.mark.parametrize("name", [name for name in table.REASONS if "." in name])
def test_what_has_a_reason_to_be_missing_exists_there_and_is_missing_here(name: str) -> None:
    module, _, last = name.rpartition(".")
    if last[0].isupper() or last in {
        "create_react_agent",
        "ensure_valid_checkpointer",
        "is_invalid_resume",
        "omit_payload",
        "configure_trace_policy",
    }:
        assert hasattr(import_module(module), last)
        assert table.counterpart(module, last) is None
    else:
        assert name.partition(".")[0] in table.PACKAGES


@pytest.mark.parametrize(
    ("theirs", "names"),
    [
        ("langgraph.graph", "START END StateGraph MessagesState add_messages"),
        ("langgraph.types", "interrupt Command Send Interrupt RetryPolicy CachePolicy StateSnapshot Overwrite"),
        ("langgraph.func", "entrypoint task"),
        ("langgraph.errors", "GraphRecursionError InvalidUpdateError GraphInterrupt"),
        ("langgraph.config", "get_config get_store get_stream_writer"),
        ("langgraph.runtime", "Runtime get_runtime"),
        ("langgraph.prebuilt", "ToolNode tools_condition InjectedState InjectedStore"),
        ("langgraph.checkpoint.memory", "InMemorySaver MemorySaver"),
        ("langgraph.checkpoint.sqlite", "SqliteSaver"),
        ("langgraph.checkpoint.sqlite.aio", "AsyncSqliteSaver"),
        ("langgraph.store.memory", "InMemoryStore"),
        ("langgraph.store.base", "BaseStore"),
        ("langchain.agents", "create_agent AgentState"),
        ("langchain.agents.middleware", "HumanInTheLoopMiddleware AgentMiddleware before_model wrap_tool_call"),
        ("langchain.agents.middleware.human_in_the_loop", "HITLRequest ApproveDecision"),
        ("langchain.agents.structured_output", "ToolStrategy ProviderStrategy"),
        ("langchain.chat_models", "init_chat_model"),
        ("langchain.messages", "AIMessage HumanMessage ToolMessage AnyMessage"),
        ("langchain.tools", "tool ToolRuntime BaseTool"),
    ],
)
def test_names_that_programs_use_most_are_mapped(theirs: str, names: str) -> None:
    module = import_module(theirs)
    for name in names.split():
        assert hasattr(module, name)
        assert table.counterpart(theirs, name) is not None, name


def test_every_reason_has_one_for_its_package() -> None:
    assert table.reason("langgraph.nothing.at.all") == table.REASONS["langgraph"]
    assert table.reason("langchain.nothing") == table.REASONS["langchain"]


# --- what is not there ------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "from-langgraph.md"


def public(name: str) -> list[str]:
    """Return the names that a module exports, or defines where it has no list of these."""
    module = imported(name)
    own = [n for n, value in vars(module).items() if getattr(value, "__module__", None) == name] if module else []
    return sorted(n for n in getattr(module, "__all__", own) if not n.startswith("_"))


def rows() -> list[str]:
    """Return a line of the page for each reason: the names that only the peers have, and what to do."""
    missing: dict[str, set[str]] = {}
    for module in sorted({m for package in (*table.PACKAGES, *SPREAD) for m in modules_of(package)}):
        for name in public(module):
            if table.counterpart(module, name) is None:
                missing.setdefault(table.reason(f"{module}.{name}"), set()).add(name)
    listed = {why: ", ".join(f"`{name}`" for name in sorted(names)) for why, names in missing.items()}
    return sorted(f"| {names} | {why} |" for why, names in listed.items())


def test_the_page_for_those_who_come_lists_every_public_name_that_is_not_there_and_why() -> None:
    text = PAGE.read_text(encoding="utf-8")
    _, _, told = text.partition("## What is not there\n")
    lines = [line for line in told.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert lines == rows()
    assert not any("has no counterpart of it" in line for line in lines), "give it, or say why not"
