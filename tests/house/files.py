"""What lies in the repository: words that must not, the table of folders, the changelog's fragments."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

# Written as patterns that do not match themselves. They name machines and places that a reader does not have.
FORBIDDEN = {
    "a folder of one machine": r"(?<![\w.~-])/([w]ork|[r]oot|[h]ome/\w+)/|(?<![\w.~-])/[t]mp\b",
    "a folder outside the repository": r"\.\./[s]hared\b",
    "a package registry": r"p[y]pi\.(org|python)|p[y]thonhosted|registry\.[n]pmjs|deb\.[d]ebian\.org|[c]rates\.io",
    "how the text came about": r"(?i)[c]o-authored-by|\bco-[w]orker|\bas an [a]i\b|\bthe [b]rief\b"
    r"|[g]enerated (by|with) (an? )?(ai|llm|claude|chatgpt)|[l]anguage model wrote",
    "a merge left over": r"(?m)^(<{7}|>{7}) ",
}

KINDS = ("added", "changed", "fixed", "removed", "security")
FRAGMENT = re.compile(r"^[a-z0-9][a-z0-9-]*\.(?P<kind>[a-z]+)\.md$")

# A row of ARCHITECTURE.md's table of folders: | `core/` | one sentence |
FOLDER_ROW = re.compile(r"^\|\s*`(?P<folder>[a-z_]+(?:/[a-z_]+)*)/`\s*(?P<planned>\(planned\))?\s*\|(?P<text>[^|]*)\|")

# [text](target), without pages elsewhere and without the part after #
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)[^)]*\)")


def tracked_files(root: Path) -> list[Path]:
    """List what git tracks or would track; without git, everything that is no cache or environment."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        hidden = re.compile(r"(^|/)(\.git|\.venv[^/]*|\.[a-z]+_cache|\.hypothesis|__pycache__|build|dist)(/|$)")
        paths = [p for p in root.rglob("*") if p.is_file() and not hidden.search(str(p.relative_to(root)))]
        return sorted(paths)
    names = sorted(name for name in done.stdout.split("\0") if name)
    return [path for name in names if (path := root / name).is_file()]


def forbidden_words(root: Path, paths: Iterable[Path]) -> list[str]:
    """No file names a machine, a registry or the way it was written."""
    found = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for what, pattern in FORBIDDEN.items():
            for match in re.finditer(pattern, text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path.relative_to(root)}:{line} holds '{match.group()}', {what}")
    return found


def misshapen_fragments(folder: Path) -> list[str]:
    """A changelog fragment is NAME.KIND.md with one short paragraph for users."""
    found = []
    for path in sorted(folder.glob("*")):
        if path.name == "README.md":
            continue
        match = FRAGMENT.match(path.name)
        if match is None or match["kind"] not in KINDS:
            found.append(f"{path.name}: the name is not NAME.KIND.md with a kind of {', '.join(KINDS)}")
            continue
        text = path.read_text(encoding="utf-8")
        body = text.strip()
        if not body or "\n\n" in body or text != f"{body}\n":
            found.append(f"{path.name}: hold one paragraph and end with one newline")
        elif body.startswith(("#", "-", "*")) or not body.endswith((".", "!", "?", "`")):
            found.append(f"{path.name}: write whole sentences, without heading or bullet")
    return found


def folders_that_disagree(architecture: str, package: Path) -> list[str]:
    """ARCHITECTURE.md lists exactly the folders that exist; one marked `(planned)` is still to come."""
    found = [m for line in architecture.splitlines() if (m := FOLDER_ROW.match(line))]
    rows = [m for m in found if not m["folder"].startswith("tests/")]
    listed = {m["folder"]: m for m in rows}
    existing = {
        str(path.relative_to(package)) for path in package.rglob("*") if path.is_dir() and any(path.glob("*.py"))
    }
    found = [f"{name}/ exists, but the table does not list it" for name in sorted(existing - listed.keys())]
    found += [
        f"{name}/ is listed, but does not exist"
        for name in sorted(listed.keys() - existing)
        if not listed[name]["planned"]
    ]
    found += [f"{m['folder']}/ is listed twice" for m in rows if listed[m["folder"]] is not m]
    found += [f"{m['folder']}/ is listed without a sentence" for m in rows if not m["text"].strip().endswith(".")]
    return found


def calls_of_sleep(root: Path, paths: Iterable[Path]) -> list[str]:
    """A test never waits for time to pass; `asyncio.sleep(0)` only lets others run."""
    pattern = re.compile(
        r"\b(?:time|asyncio|anyio|trio)\.[s]leep\((?!0[,)])|^from time import .*\b[s]leep\b", re.MULTILINE
    )
    found = []
    for path in paths:
        if path.suffix == ".py" and path.is_relative_to(root / "tests"):
            text = path.read_text(encoding="utf-8")
            lines = [text.count("\n", 0, m.start()) + 1 for m in pattern.finditer(text)]
            found += [
                f"{path.relative_to(root)}:{line} sleeps; wait for what happens, or move the clock" for line in lines
            ]
    return found


def pages_missing_from_the_index(docs: Path) -> list[str]:
    """Every page is reached from docs/README.md."""
    index = (docs / "README.md").read_text(encoding="utf-8")
    linked = {(docs / target).resolve() for target in LINK.findall(index)}
    pages = {p.resolve() for p in docs.rglob("*.md")} - {(docs / "README.md").resolve()}
    return [f"docs/README.md does not link {p.relative_to(docs.resolve())}" for p in sorted(pages - linked)]


def broken_links(root: Path, paths: Iterable[Path]) -> list[str]:
    """A link from page to page leads to a file of the repository."""
    return [
        f"{path.relative_to(root)} links {target}, which does not exist"
        for path in paths
        if path.suffix == ".md"
        for target in LINK.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]
