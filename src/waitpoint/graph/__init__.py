"""What the user declares: a graph of nodes over a state."""

from waitpoint.graph.message import MessagesState, add_messages
from waitpoint.graph.state import StateGraph
from waitpoint.records import END, START

__all__ = ["END", "START", "MessagesState", "StateGraph", "add_messages"]
