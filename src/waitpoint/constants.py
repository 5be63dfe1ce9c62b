"""Names with a meaning of their own, at the path users of LangGraph know."""

from waitpoint.records import END, START, TAG_HIDDEN, TAG_NOSTREAM

__all__ = ["END", "START", "TAG_HIDDEN", "TAG_NOSTREAM"]
