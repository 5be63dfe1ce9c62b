"""Takes a tool call to its tool: the node, what is injected, how it is recorded, what becomes of errors."""
