"""Waitpoint: a durable human-in-the-loop runtime for AI agents."""

from waitpoint.version import __version__

__all__ = ["__version__"]
