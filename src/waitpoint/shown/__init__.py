"""Threads and questions as people see them, on a terminal or in a browser."""
