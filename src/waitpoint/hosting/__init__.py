"""Runs graphs for many callers: accepts runs, executes them, and keeps a log of what they show."""
