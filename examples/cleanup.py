"""The clean-up demo: makes a folder of files, and asks before it deletes or rewrites any of them.

    python examples/cleanup.py [--fresh] [--folder FOLDER]

On a terminal it asks there. Without one it prints the questions and the commands that answer them. Stop it as you like,
with Ctrl-C or kill -9: started again it goes on where it was. The program itself is in tidying.py.
"""

from __future__ import annotations

import argparse
import getpass
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from scratch_files import make_files
from tidying import builder

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import AlreadyAnsweredError, WaitpointError
from waitpoint.types import Answer, Command, Question

THREAD = "cleanup"
CONFIG = {"configurable": {"thread_id": THREAD}}
SETTINGS = """# Made by examples/cleanup.py, for the command line.
[graphs]
cleanup = "tidying:graph"

[store]
url = "sqlite:///threads.db"

[python]
path = [{path}]
"""
IN_DOUBT = {"h": "happened", "n": "not_happened", "s": "stop"}


def main() -> int:
    """Run the demo to its end, or to where the person leaves it."""
    options = arguments()
    place = Path(options.folder)
    if not prepare(place, fresh=options.fresh):
        return 2
    with SqliteSaver(place / "threads.db") as saver:
        graph = builder.compile(checkpointer=saver, name="cleanup")
        try:
            go_on(graph, place)
            if sys.stdin.isatty() and sys.stdout.isatty():
                print(f"Another terminal can answer too: cd {shlex.quote(str(place))}; {waitpoint(place)} inbox")
                while questions := saver.pending(thread_id=THREAD):
                    if not ask(graph, questions[0], len(questions)):
                        print("\nYour answers are kept; `make demo` goes on here.")
                        return 0
            elif questions := saver.pending(thread_id=THREAD):
                tell_how_to_answer(questions, place)
                return 0
        except KeyboardInterrupt:
            print("\nStopped. Nothing is lost: `make demo` goes on here.")
            return 130
        state = graph.get_state(CONFIG)
        if state.next:
            print("Not everything could be done. Mend the cause; `make demo` tries the rest again.")
            return 1
        report(state.values, place)
    return 0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Clean up a folder of files, asking before each change.")
    parser.add_argument("--fresh", action="store_true", help="start anew with new files")
    parser.add_argument("--folder", default="demo-files", help="where to work (default: %(default)s)")
    return parser.parse_args()


def prepare(place: Path, *, fresh: bool) -> bool:
    """Make the folder with its files and settings, if it is not there."""
    settings = place / "waitpoint.toml"
    is_ours = settings.is_file() and settings.read_text().startswith("# Made by examples/cleanup.py")
    if place.exists() and any(place.iterdir()) and not is_ours:
        print(f"'{place}' holds something else; name another --folder", file=sys.stderr)
        return False
    if fresh and is_ours:
        shutil.rmtree(place)
    place.mkdir(parents=True, exist_ok=True)
    path = os.path.relpath(Path(__file__).parent, place)
    if not settings.exists():
        settings.write_text(SETTINGS.format(path=f'"{path}"'), encoding="utf-8")
    if not (place / "files").exists():
        make_files(place / "files")
        print(f"Made a folder of files to clean up: {place / 'files'}")
    return True


def go_on(graph: Any, place: Path) -> None:
    """Start the thread, or go on with what a stop or a crash left undone; questions stay open."""
    is_new = graph.get_state(CONFIG).created_at is None
    try:
        graph.invoke({"folder": str((place / "files").absolute())} if is_new else None, CONFIG)
    except OSError as error:
        print(f"A file could not be touched: {printable(error)}")


# --- on a terminal ----------------------------------------------------------------------------------------------------


def ask(graph: Any, question: Question, count: int) -> bool:
    """Ask one question and act on the answer; False if the person leaves."""
    answer = answer_to(question, count)
    if answer is None:
        return False
    value = Answer(answer[0], by=getpass.getuser())
    try:
        output = graph.invoke(Command(resume={question.id: value}), CONFIG)
    except AlreadyAnsweredError as error:
        print(f"  {error.answered_by or 'Somebody'} answered this meanwhile.")
        return True
    except (WaitpointError, OSError) as error:
        print(f"  {printable(error)}")
        return True
    file = str(question.value.get("question", "")).partition(" ")[2].rstrip("?")
    result = next((d["result"] for d in output["done"] if d["file"] == file), None)
    if result is not None:
        print(f"  {result}")
    return True


def answer_to(question: Question, count: int) -> tuple[Any] | None:
    """Read an answer from the terminal; None to leave."""
    value = question.value
    print(f"\n[{count} to decide]")
    if value.get("type") == "in_doubt":
        print(f"  A crash left it open whether this happened: {printable(value['name'])} {printable(value['args'])}")
        key = key_pressed("  (h)appened, (n)ot happened, (s)top, (q)uit? ", "hnsq")
        return None if key == "q" else ({"type": IN_DOUBT[key]},)
    for line in value["changes"]:
        print(f"  | {coloured(printable(line))}")
    key = key_pressed(f"  {printable(value['question'])} ({printable(value['why'])}) [y/n/q] ", "ynq")
    return None if key == "q" else (key == "y",)


def key_pressed(prompt: str, allowed: str) -> str:
    """Ask until one of the allowed letters comes; the end of the input means q."""
    while True:
        try:
            key = input(prompt).strip().lower()[:1]
        except EOFError:
            return "q"
        if key and key in allowed:
            return key
        print(f"  Please press one of {', '.join(allowed)} and Enter.")


def printable(value: object) -> str:
    """Return a text that cannot steer the terminal."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in str(value))


def coloured(line: str) -> str:
    """Return a line of a difference in its colour."""
    colour = {"+": 32, "-": 31, "@": 36}.get(line[:1])
    return line if colour is None or os.environ.get("NO_COLOR") else f"\x1b[{colour}m{line}\x1b[0m"


# --- what is left to say ----------------------------------------------------------------------------------------------


def tell_how_to_answer(questions: list[Question], place: Path) -> None:
    """Print the questions with the commands that answer them."""
    command = waitpoint(place)
    count = "1 question waits" if len(questions) == 1 else f"{len(questions)} questions wait"
    print(f"{count}. This is no terminal, so answer from the command line:\n")
    print(f"    cd {shlex.quote(str(place))}")
    print(f"    {command} inbox\n")
    for question in questions:
        print(f"{printable(question.value.get('question'))} - {printable(question.value.get('why'))}")
        print(f"    {command} answer {question.id[:8]} true     # or false\n")
    print("What is answered is done at once. `make demo` tells what is left.")


def report(output: Any, place: Path) -> None:
    """Print what came of it, and what to try next."""
    done = output.get("done", [])
    print(f"\nAll is decided: {len(done)} files.")
    for each in done:
        print(f"  {each['result']:<10} {printable(each['file'])}")
    command = waitpoint(place)
    print(f"\nWhat was really touched is in {place / 'audit.log'}. To look at how it went, and to start anew:\n")
    print(f"    cd {shlex.quote(str(place))}")
    print(f"    {command} trace {THREAD}")
    print(f"    {command} inbox\n")
    print("    make demo ARGS=--fresh")


def waitpoint(place: Path) -> str:
    """Return how the command line is called from the folder."""
    if shutil.which("waitpoint"):
        return "waitpoint"
    beside = Path(sys.executable).with_name("waitpoint")
    return shlex.quote(os.path.relpath(beside, place))


if __name__ == "__main__":
    sys.exit(main())
