"""`waitpoint key`: made, listed, revoked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from waitpoint.cli import main
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server.auth.keys import hash_of


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    with pytest.raises(SystemExit) as end:
        main(["key", *words, "--json"])
    return int(str(end.value.code)), json.loads(capsys.readouterr().out)


@pytest.fixture
def store(tmp_path: Path) -> list[str]:
    return ["--store", f"sqlite:///{tmp_path / 'threads.db'}"]


def test_a_key_is_shown_once_and_kept_as_a_hash(capsys: Any, store: list[str], tmp_path: Path) -> None:
    code, made = told(capsys, "create", "--name", "Ana", "--scope", "read,answer", *store)
    assert (code, made["scopes"]) == (0, ["read", "answer"])
    with SqliteLedger(tmp_path / "threads.db") as ledger:
        (row,) = ledger.api_keys()
    assert row.hash == hash_of(made["key"])
    assert made["key"].encode() not in (tmp_path / "threads.db").read_bytes()
    _, listed = told(capsys, "list", *store)
    assert [(each["name"], each["revoked_at"]) for each in listed["keys"]] == [("Ana", None)]


def test_a_revoked_key_is_listed_as_revoked(capsys: Any, store: list[str]) -> None:
    _, made = told(capsys, "create", "--name", "Ana", "--scope", "admin", *store)
    assert told(capsys, "revoke", made["id"][:8], *store) == (0, {"id": made["id"], "revoked": True})
    assert told(capsys, "revoke", made["id"], *store)[1]["revoked"] is False
    assert told(capsys, "list", *store)[1]["keys"][0]["revoked_at"] is not None


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["create", "--name", "Ana", "--scope", "everything"], 2, "Unknown scope 'everything'"),
        (["create", "--name", " ", "--scope", "read"], 2, "needs a name"),
        (["revoke", "nope"], 2, "No key begins with 'nope'"),
    ],
)
def test_what_does_not_fit_is_refused(capsys: Any, store: list[str], words: list[str], code: int, text: str) -> None:
    ended, document = told(capsys, *words, *store)
    assert ended == code
    assert text in document["error"]["message"]
