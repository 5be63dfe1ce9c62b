"""Names with a meaning of their own, at the path users of LangGraph know."""

from waitpoint.records import END, START

__all__ = ["END", "START"]
