"""Keeps what outlives a thread: the port (`base`), and the stores behind it."""
