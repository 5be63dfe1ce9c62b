"""How large and how deep stored values may be, checked before they can exhaust memory or the stack.

The MessagePack parser recurses: each nested container costs about 700 bytes of stack, up to 1,022 of them in one call,
and every tagged value starts another call inside. Corrupt bytes could so end the process. Three calls deep that is
harmless and not looked at; whoever goes deeper has the rest of the nesting counted first.
"""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = 256 * 2**20
"""The most that one value may take up, before compression."""

MAX_LEVELS: Final = 100
"""How many tagged values (tuples, dataclasses, models, ...) may lie inside one another."""

MAX_DEPTH: Final = 400
"""How many containers of any kind may lie inside one another below `UNCOUNTED_LEVELS`."""

UNCOUNTED_LEVELS: Final = 3

_OPENERS: Final = bytes([*range(0x80, 0xA0), 0xC7, 0xC8, 0xC9, *range(0xD4, 0xD9), *range(0xDC, 0xE0)])
# Bytes that follow the first one of a value, for the types of fixed size.
_FIXED: Final = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
# Width of the length that follows the first byte.
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
# Extensions: the same, and the length where the first byte fixes it. A type byte follows, then the payload: one value.
_EXTENSIONS: Final = {
    0xC7: (1, 0), 0xC8: (2, 0), 0xC9: (4, 0),
    0xD4: (0, 1), 0xD5: (0, 2), 0xD6: (0, 4), 0xD7: (0, 8), 0xD8: (0, 16),
}  # fmt: skip
# Arrays and maps: width of the count, values for each item.
_CONTAINERS: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def too_deep(data: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether containers are nested deeper than `limit` in these bytes; what cannot be parsed counts as flat."""
    # Every container has a first byte of its own, and most data holds few bytes of that kind: no need to parse.
    if len(data) - len(data.translate(None, _OPENERS)) <= limit:
        return False
    return _depth(data, limit) > limit


def _depth(data: bytes, limit: int) -> int:
    """Measure the nesting, up to one more than `limit`.

    Bytes that contradict themselves end the count: the parser fails at the same place.
    """
    deepest = at = 0
    expected: list[int] = []  # how many values each open container still lacks
    ends = [len(data)]  # where each open extension ends
    exts: list[int] = []  # how deep each open extension lies
    while at < ends[-1]:
        at, items, length = _skip(data, at)
        if items:
            expected.append(items)
            deepest = max(deepest, len(expected))
            if length >= 0:
                exts.append(len(expected))
                ends.append(at + length)
            if deepest > limit or ends[-1] > ends[max(len(ends) - 2, 0)]:
                break
            continue
        while expected:
            expected[-1] -= 1
            if expected[-1]:
                break
            if exts and exts[-1] == len(expected):
                exts.pop()
                at = ends.pop()  # whatever follows the value in there is not read
            expected.pop()
        if not expected:
            break
    return deepest


def _skip(data: bytes, at: int) -> tuple[int, int, int]:
    """Read one header: the place after it (and after a scalar), the values it opens, an extension's length or -1."""
    head = data[at]
    at += 1
    if head < 0x80 or head >= 0xE0:
        return at, 0, -1
    if head < 0x90:
        return at, 2 * (head & 15), -1
    if head < 0xA0:
        return at, head & 15, -1
    if head < 0xC0:
        return at + (head & 31), 0, -1
    if head in _FIXED:
        return at + _FIXED[head], 0, -1
    if head in _SIZED:
        width = _SIZED[head]
        return at + width + int.from_bytes(data[at : at + width]), 0, -1
    if head in _EXTENSIONS:
        width, length = _EXTENSIONS[head]
        return at + width + 1, 1, length or int.from_bytes(data[at : at + width])
    if head in _CONTAINERS:
        width, factor = _CONTAINERS[head]
        return at + width, factor * int.from_bytes(data[at : at + width]), -1
    return at, 0, -1
