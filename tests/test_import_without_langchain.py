"""The graph API and the memory saver work where langchain-core is not installed."""

import subprocess
import sys

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "langchain_core":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.graph import END, START, MessagesState, StateGraph
from waitpoint.types import Command, interrupt, step

def ask(state):
    return {"answer": interrupt("go?"), "effect": step(len, "four")}

graph = StateGraph(dict).add_node(ask).add_edge(START, "ask").add_edge("ask", END).compile(checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
graph.invoke({}, thread)
print(graph.invoke(Command(resume="yes"), thread))
print(sorted(name for name in ("langchain_core", "pydantic") if name in sys.modules))
"""


def test_a_graph_asks_and_is_answered_without_langchain_core() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout
    assert said.splitlines() == ["{'answer': 'yes', 'effect': 4}", "[]"]
