"""The terminal: run, inbox, show, answer, withdraw, continue, threads, trace."""

from waitpoint.cli.program import main

__all__ = ["main"]
