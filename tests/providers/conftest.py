"""Each provider in turn, without keys or addresses of the machine's own."""

from __future__ import annotations

import os
import re

import pytest

from tests.providers.seven import SEVEN, Served

OF_THE_MACHINE = re.compile(
    r"_API_KEY$|_BASE_URL$|_API_BASE$|_AUTH_TOKEN$|^OLLAMA_HOST$|_PROXY$|^LANGSMITH_|^LANGCHAIN_"
)


@pytest.fixture(autouse=True)
def _nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if OF_THE_MACHINE.search(name.upper())]:
        monkeypatch.delenv(name)


@pytest.fixture(params=SEVEN, ids=str)
def served(request: pytest.FixtureRequest) -> Served:
    return request.param
