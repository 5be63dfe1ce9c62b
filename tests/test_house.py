"""The house: the invariants of ARCHITECTURE.md, checked on the source."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.house import files, layers, shape
from tests.house.source import Module, Package

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Package(ROOT / "src" / "waitpoint")


def all_python() -> list[Module]:
    """List every Python file of ours: the package, tests, examples, benchmarks, scripts."""
    paths = [p for p in files.tracked_files(ROOT) if p.suffix == ".py"]
    return [Module(str(path.relative_to(ROOT)), path, path.name == "__init__.py") for path in paths]


def none(found: list[str]) -> None:
    assert not found, "\n" + "\n".join(found)


# --- who may import whom ----------------------------------------------------------------------------------------------


def test_every_module_has_a_place_in_the_layers() -> None:
    none(layers.modules_without_a_place(PACKAGE))


def test_no_module_imports_from_a_higher_layer() -> None:
    none(layers.imports_from_a_higher_layer(PACKAGE))


def test_no_import_rings_at_run_time_or_for_types() -> None:
    none(layers.import_rings(PACKAGE))


def test_core_never_awaits_reads_a_clock_or_draws_a_random_number() -> None:
    none(layers.impure_core(PACKAGE))


def test_only_the_clock_reads_the_time_of_day() -> None:
    none(layers.clocks_outside_the_clock(PACKAGE))


def test_only_checkpoint_store_and_cache_hold_sql() -> None:
    none(layers.sql_outside_the_stores(PACKAGE))


def test_nothing_but_the_wiring_names_a_concrete_store() -> None:
    none(layers.concrete_stores_outside_the_wiring(PACKAGE))


def test_only_server_inbox_and_clients_know_http() -> None:
    none(layers.http_outside_its_rooms(PACKAGE))


def test_engine_knows_nothing_of_agents_approvals_http_or_sql() -> None:
    none(layers.faces_known_to_the_engine(PACKAGE))


def test_product_never_imports_its_peers() -> None:
    none(layers.forbidden_dependencies(PACKAGE))


def test_imports_stand_at_the_top_except_of_heavy_packages() -> None:
    none(layers.imports_inside_functions(PACKAGE))


@pytest.mark.parametrize("name", ["waitpoint", "waitpoint.graph", "waitpoint.types", "waitpoint.checkpoint.memory"])
def test_import_loads_no_heavy_package(name: str) -> None:
    if name not in PACKAGE.modules:
        name = "waitpoint"
    heavy = sorted({*layers.IMPORTED_WHEN_USED, "langgraph", "langchain"} - {"asyncio", "concurrent.futures"})
    code = f"import sys, {name}\nprint(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.split() == [], f"import {name} loads {done.stdout}"


# --- how the code is cut ----------------------------------------------------------------------------------------------


def test_package_init_files_only_reexport() -> None:
    none(shape.packages_that_define_something(PACKAGE))


def test_facades_only_reexport() -> None:
    facades = [m for m in PACKAGE.inside(*layers.FACADES) if not m.is_package]
    none([line for m in facades for line in shape.definitions(m)])


def test_every_module_says_what_it_is_for() -> None:
    none(shape.modules_without_a_first_line(PACKAGE))


def test_every_error_has_a_text_and_a_code_of_its_own() -> None:
    none(shape.errors_without_text_or_code(PACKAGE))


def test_every_error_is_declared_in_the_errors() -> None:
    none(shape.errors_outside_the_errors(PACKAGE))


def test_no_file_is_long() -> None:
    none(shape.long_files(all_python()))


def test_no_function_is_long() -> None:
    none(shape.long_functions(all_python()))


def test_no_parameter_list_is_long() -> None:
    none(shape.long_parameter_lists(PACKAGE))


# --- what lies in the repository --------------------------------------------------------------------------------------


def test_no_file_names_a_machine_or_a_registry() -> None:
    none(files.forbidden_words(ROOT, files.tracked_files(ROOT)))


def test_no_test_sleeps() -> None:
    none(files.calls_of_sleep(ROOT, files.tracked_files(ROOT)))


def test_architecture_lists_exactly_the_folders_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    none(files.folders_that_disagree(text, PACKAGE.folder))


def test_changelog_fragments_are_well_formed() -> None:
    none(files.misshapen_fragments(ROOT / "changelog.d"))


def test_docs_index_links_every_page_and_every_link_leads_somewhere() -> None:
    none(files.pages_missing_from_the_index(ROOT / "docs"))
    none(files.broken_links(ROOT, files.tracked_files(ROOT)))


def test_every_installed_package_is_locked() -> None:
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    locked = {_key(line.split("==")[0]) for line in lock.splitlines() if "==" in line}
    installed = {_key(d.metadata["Name"]) for d in distributions()}
    assert installed - locked <= {"waitpoint", "pip", "setuptools"}, "run `make lock` after a change of dependencies"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
