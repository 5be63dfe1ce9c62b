"""Keeps results that need not be computed again: the port (`base`), and the caches behind it."""
