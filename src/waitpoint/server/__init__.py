"""The face to callers over a network: HTTP for every client that exists, behind one application."""

from waitpoint.server.app import create_app

__all__ = ["create_app"]
