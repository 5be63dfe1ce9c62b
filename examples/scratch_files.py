"""Makes the folder that the clean-up demo works on: real files, a few of them in need of care."""

from __future__ import annotations

import shutil
from pathlib import Path

REPORT = """Quarterly report

Sales grew by {growth} percent. The north did best, the south was hit by
the late delivery of spare parts. {ending}
"""

MEETING = """# Meeting, Tuesday\x20\x20

- [x] send the minutes
- [ ] ask Ana for the figures\x20
- [x] book the room


- [ ] order spare parts for the south\x20\x20
"""

CHINESE = """# 会议纪要\x20\x20

- [x] 准备演示文稿
- [ ] 联系供应商确认交货日期\x20


- [ ] 下周二之前提交预算
"""

IDEAS = """# Ideas

- a shelf for returned parts
- one list of suppliers for both branches
"""

INVOICES = "date,customer,amount\n2024-03-04,Sørensen,120.50\n2024-03-11,Müller,99.00\n2024-03-18,王芳,310.25\n"

# The smallest picture that viewers open: one grey pixel (GIF89a).
PICTURE = bytes.fromhex("47494638396101000100800000808080ffffff2c00000000010001000002024401003b")


def make_files(folder: Path) -> None:
    """Fill a new folder; it appears whole or not at all, whenever this is stopped."""
    half = folder.with_name(f".{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    for name, content in _files().items():
        path = half / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    half.rename(folder)


def _files() -> dict[str, bytes]:
    log = "".join(
        f"2024-03-{1 + n // 24:02d} {n % 24:02d}:00:00 INFO  request {n} served in {7 + n * 13 % 40} ms\n"
        for n in range(40)
    )
    texts = {
        "reports/q1-draft-1.txt": REPORT.format(growth="about 3", ending="TODO: check the numbers."),
        "reports/q1-draft-2.txt": REPORT.format(growth="3.1", ending="Prices stay as they are."),
        "reports/q1-final.txt": REPORT.format(growth="3.2", ending="Prices stay as they are until June."),
        "invoices.csv": INVOICES,
        "invoices (copy).csv": INVOICES,
        "notes/meeting.md": MEETING,
        "notes/会议纪要.md": CHINESE,
        "notes/ideas.md": IDEAS,
        "server.log": log,
        "untitled.txt": "",
    }
    pictures = {"pictures/workshop.gif": PICTURE, "pictures/workshop (1).gif": PICTURE}
    return {name: text.encode() for name, text in texts.items()} | pictures
