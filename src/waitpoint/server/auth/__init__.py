"""Who may do what: API keys, bearer tokens, a hook of one's own, sign-in to the pages, and limits."""

from waitpoint.server.auth.access import Access
from waitpoint.server.auth.guard import Guard
from waitpoint.server.auth.tokens import Tokens

__all__ = ["Access", "Guard", "Tokens"]
