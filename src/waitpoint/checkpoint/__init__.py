"""Keeps threads: the port (`base`), and the stores behind it, each imported only by a program that uses it."""
