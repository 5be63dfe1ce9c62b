"""The terminal: run, inbox, show, answer, approve, edit, reject, respond, decide, withdraw, continue, threads, trace."""

from waitpoint.cli.program import main

__all__ = ["main"]
