"""The face to callers over a network: HTTP for every client that exists, behind one application."""

from waitpoint.server.app import Security, create_app
from waitpoint.server.auth import Tokens
from waitpoint.server.callers import Caller

__all__ = ["Caller", "Security", "Tokens", "create_app"]
