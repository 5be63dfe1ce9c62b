"""Pages on which people see what waits, decide, and look at threads."""

from waitpoint.inbox.router import Doors, router_of

__all__ = ["Doors", "router_of"]
