"""docs/command-line.md: each command on the page prints what the page says.

Ids and times differ from run to run: the first id that is shown in a place stands for the one of the page from then on, and
times of one form are equal. `...` stands for anything.
"""

from __future__ import annotations

import re
import shlex
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

from tests.cli.program import Program

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "command-line.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ID = re.compile(r"\b[0-9a-f]{8}(?=\b|[0-9a-f]{24}\b|\.\.\.)")
TIMES = ((r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[0-9.:+]*", "<time>"), (r"\b(\d+ (s|min|h|d) ago|now)\)", "<ago>)"))
AGE = (r"(?<=  )(\d+ (?:s|min|h|d)|now) *(?=  |$)", "<age>")


def without_times(text: str) -> str:
    for pattern, name in (*TIMES, AGE):
        text = re.sub(pattern, name, text, flags=re.MULTILINE)
    return "\n".join(re.sub(r"  +", "  ", line).rstrip() for line in text.splitlines())


def same(expected: str, printed: str) -> bool:
    pattern = without_times(expected).replace("\n...\n", "\n...")  # a line of dots stands for any number of lines
    return OutputChecker().check_output(pattern + "\n", without_times(printed) + "\n", ELLIPSIS)


def test_every_command_of_the_page_prints_what_the_page_says(bare: Program) -> None:
    known: dict[str, str] = {}
    code, ran = 0, 0
    for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language in {"python", "toml"}:
            bare.write(text.splitlines()[0].removeprefix("# "), text)
            continue
        assert language == "console"
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            for theirs, ours in known.items():
                command = command.replace(theirs, ours).replace(f" {theirs[:4]}", f" {ours[:12]}")
            words = shlex.split(command)
            if words == ["echo", "$?"]:
                assert expected == f"{code}\n"
                continue
            done = bare(*words[1:])
            code, ran = done.code, ran + 1
            printed = done.err + done.out
            new = [i for i in ID.findall(printed) if i not in known.values()]
            known |= dict(zip([i for i in dict.fromkeys(ID.findall(expected)) if i not in known], new, strict=False))
            for theirs, ours in known.items():
                printed = re.sub(rf"{ours}(?P<rest>[0-9a-f]{{24}})?", theirs + r"\g<rest>", printed)
            assert same(expected, printed), f"$ {command}\nthe page says:\n{expected}\nit prints:\n{printed}"
    assert ran > 8
