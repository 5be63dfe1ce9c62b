"""The clean-up demo: an agent that tidies a folder of files, and asks before it deletes or writes any of them.

    python examples/cleanup.py [--fresh] [--folder FOLDER] [--model PROVIDER:MODEL]

On a terminal it asks there and in the browser, and whoever is first decides. Without one it prints what waits and the
commands that decide. Stop it as you like, with Ctrl-C or kill -9: started again it goes on where it was. The agent is in
cleanup_agent.py, the terminal's side in review.py, the browser's in browser.py.
"""

from __future__ import annotations

import argparse
import functools
import getpass
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # the imports take a second or two, and nothing is open yet: Ctrl-C simply ends it
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from browser import at_rest, server
from cleanup_agent import TASK, Folder, make_agent
from pydantic import ValidationError
from review import AnsweredElsewhereError, allowed_decisions, answer_to, printable
from scratch_files import make_files

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import AlreadyAnsweredError
from waitpoint.types import Answer, Command, Question

THREAD = "cleanup"
CONFIG = {"configurable": {"thread_id": THREAD}}
SETTINGS = """# Made by examples/cleanup.py, for the command line.
[graphs]
cleanup = "program:graph"

[store]
url = "sqlite:///threads.db"

[python]
path = [{path}]
"""
PROGRAM = '''"""Made by examples/cleanup.py: the agent of this folder, for the command line."""

from pathlib import Path

from cleanup_agent import Folder, make_agent

HERE = Path(__file__).parent
graph = make_agent(Folder(HERE / "files"), (HERE / "model.txt").read_text())
'''


def main() -> int:
    """Run the demo to its end, or to where the person leaves it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = arguments()
    place = Path(options.folder)
    if not prepare(place, options):
        return 2
    files, memory = Folder(place / "files"), place / "model.txt"
    model = options.model or (memory.read_text() if memory.exists() else "scripted")
    with SqliteSaver(place / "threads.db") as saver:
        try:
            agent = make_agent(files, model, saver)
        except Exception as error:  # noqa: BLE001 - a provider's package may raise anything, of a missing key say
            print(f"Model '{printable(model)}' cannot be used: {printable(error)}", file=sys.stderr)
            return 2
        put(memory, model)
        try:
            go_on(agent)
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                if questions := waiting(saver):
                    tell_how_to_decide(questions, place)
                    return 0
            elif waiting(saver) and not decide(agent, saver, place, files):
                print("\nWhat you decided is kept; `make demo` goes on here.")
                return 0
        except KeyboardInterrupt:
            print("\nStopped. Nothing is lost: `make demo` goes on here.")
            return 130
        state = agent.get_state(CONFIG)
        if state.next:
            print("Not all is done: something failed, or another terminal is at work. `make demo` goes on here.")
            return 1
        report(state.values["messages"], place)
    return 0


def decide(agent: Any, saver: SqliteSaver, place: Path, files: Folder) -> bool:
    """Have all questions answered, here or in the browser; False if the person leaves."""
    with server(place) as inbox:
        if address := inbox():
            print(f"\nIn the browser you can decide too: {address}")
        print(f"Another terminal can as well: cd {shlex.quote(str(place))}; {waitpoint(place)} inbox")
        while True:
            while not (questions := waiting(saver)):
                at_rest(saver, THREAD)
                if not waiting(saver):
                    return True
            first = questions[0]
            try:
                is_open = functools.partial(saver.pending, ids=[first.id])
                answer = answer_to(first, len(questions), files.described, is_open)
            except AnsweredElsewhereError:
                told = saver.pending(ids=[first.id], answerable=False)
                print(f"\n  {printable((told and told[0].by) or 'Somebody')} answered this meanwhile.")
                continue
            if answer is None:
                return False
            run(agent, Command(resume={first.id: Answer(answer, by=getpass.getuser())}))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="An agent that cleans up a folder, and asks before each change.")
    parser.add_argument("--fresh", action="store_true", help="start anew with new files")
    parser.add_argument("--folder", default="demo-files", help="where to work (default: %(default)s)")
    parser.add_argument("--model", help="a chat model, such as openai:gpt-5.5 (default: a scripted one, without a key)")
    return parser.parse_args()


def prepare(place: Path, options: argparse.Namespace) -> bool:
    """Make the folder with its files and settings, if it is not there."""
    settings, program = place / "waitpoint.toml", place / "program.py"
    is_ours = settings.is_file() and settings.read_text().startswith("# Made by examples/cleanup.py")
    if place.exists() and not is_ours and any(not each.name.startswith(".") for each in place.iterdir()):
        print(f"'{place}' holds something else; name another --folder", file=sys.stderr)
        return False
    if options.fresh and is_ours:
        old = place.absolute().with_name(f".{place.absolute().name}.old")  # so that no half of it can be left
        shutil.rmtree(old, ignore_errors=True)
        place.rename(old)
        shutil.rmtree(old)
    elif is_ours and (place / "threads.db").exists() and not program.exists():
        print(f"'{place}' is of an earlier version of this demo; start anew with --fresh", file=sys.stderr)
        return False
    place.mkdir(parents=True, exist_ok=True)
    put(settings, SETTINGS.format(path=f'"{os.path.relpath(Path(__file__).parent, place)}"'))
    put(program, PROGRAM)
    if not (place / "files").exists():
        make_files(place / "files")
        print(f"Made a folder of files to clean up: {place / 'files'}")
    return True


def put(file: Path, text: str) -> None:
    """Write a small file; it is there whole or not at all, whenever this is stopped."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        beside = file.with_name(f".{file.name}.new")
        beside.write_text(text, encoding="utf-8")
        beside.rename(file)


def waiting(saver: SqliteSaver) -> list[Question]:
    """Return the open questions: the agent's own first, then by file."""
    return sorted(saver.pending(thread_id=THREAD), key=lambda question: question.value["args"].get("path", ""))


# --- running ----------------------------------------------------------------------------------------------------------


def go_on(agent: Any) -> None:
    """Start the thread, or go on with what a stop or a crash left undone; questions stay open."""
    is_new = agent.get_state(CONFIG).created_at is None
    run(agent, {"messages": [("user", TASK)]} if is_new else None)


def run(agent: Any, given: Any) -> None:
    """Run the agent to its next questions or its end, showing what it says and what its tools return."""
    try:
        for part in agent.stream(given, CONFIG, stream_mode="updates"):
            if not part.pop("__metadata__", {}).get("cached"):  # cached: of an earlier run
                show(part)
    except AlreadyAnsweredError as error:
        print(f"  {printable(error.answered_by or 'Somebody')} answered this meanwhile.")
    except ValidationError as error:
        for each in error.errors():
            print(f"  This does not fit: {printable('.'.join(map(str, each['loc'])))}: {printable(each['msg'])}")
    except Exception as error:  # noqa: BLE001 - a model's client may raise anything; the thread is kept
        print(f"  This failed: {type(error).__name__}: {printable(error)}")


def show(part: dict[str, Any]) -> None:
    """Print the messages of a step that ended; the last message is for the report."""
    for update in part.values():
        for message in update.get("messages", []) if isinstance(update, dict) else []:
            notice, _, text = message.text.rpartition("Tool response:\n")  # of a call that was edited
            first, *more = text.splitlines() or [""]
            rest = f" (and {len(more)} more lines)" if more else ""
            if message.type == "tool":
                edited = " (as you changed it)" if notice else ""
                print(f"  {printable(message.name)}: {printable(first)}{rest}{edited}")
            elif message.tool_calls and first:
                print(f"\nAgent: {printable(message.text)}")


# --- what is left to say ----------------------------------------------------------------------------------------------


def tell_how_to_decide(questions: list[Question], place: Path) -> None:
    """Print what waits with the commands that decide."""
    command = waitpoint(place)
    count = "1 decision waits" if len(questions) == 1 else f"{len(questions)} decisions wait"
    print(f"\n{count}. This is no terminal, so decide from the command line:\n")
    print(f"    cd {shlex.quote(str(place))}")
    print(f"    {command} inbox")
    print(f"    {command} serve     # or in the browser, at http://127.0.0.1:2024/inbox\n")
    for question in questions:
        name, args, short = question.value["name"], question.value["args"], question.id[:8]
        if question.value["type"] == "in_doubt":
            print(f"A crash left it open whether this happened: {name} {printable(args.get('path'))}")
            print(f"    {command} show {short}\n")
        elif allowed_decisions(question) == ["respond"]:
            print(printable(args["question"]))
            print(f"    {command} respond {short} done.md\n")
        else:
            print(f"{name} {printable(args['path'])} - {printable(args['why'])}")
            print(f"    {command} approve {short}     # or: show, edit, reject --reason TEXT\n")
    print("What is decided is done at once. `make demo` tells what is left.")


def report(messages: list[Any], place: Path) -> None:
    """Print what the agent says last, and what to try next."""
    print("\nAll is done. The agent reports:\n")
    for line in messages[-1].text.splitlines():
        print(f"  {printable(line)}".rstrip())
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
