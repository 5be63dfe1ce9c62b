"""Runs tool calls: the node, the way of a call to its tool, and the gate before it."""
