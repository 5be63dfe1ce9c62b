"""How hard generated programs are tried, and what is said of two stories that differ."""

from __future__ import annotations

import difflib
import pprint
from typing import Any

from hypothesis import HealthCheck, Phase, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example, HealthCheck.filter_too_much]


def tried(times: int, *, shrinks: bool = False) -> settings:
    """Try so many programs, the same ones every time; to make one that differs small takes minutes."""
    return settings(
        max_examples=times, derandomize=True, database=None, deadline=None, suppress_health_check=SLOW,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
    )  # fmt: skip


def same(ours: list[Any], theirs: list[Any]) -> None:
    """Compare two stories; show where they part."""
    for step, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if our != their:
            lines = [pprint.pformat(told, width=120).splitlines() for told in (our, their)]
            shown = "\n".join(difflib.unified_diff(*lines, "here", "there", lineterm=""))
            raise AssertionError(f"the stories part at {step}:\n{shown}")
    assert len(ours) == len(theirs)
