"""An entrypoint with tasks, under a name of the module and one of the package."""

from typing import Any

import langgraph.types
from langgraph import func
from langgraph.checkpoint import memory
from langgraph.config import get_stream_writer


@func.task
def draft(topic: str) -> str:
    get_stream_writer()(f"drafting {topic}")
    return f"about {topic}"


@func.entrypoint(checkpointer=memory.InMemorySaver())
def write(topic: str) -> dict[str, Any]:
    text = draft(topic).result()
    verdict = langgraph.types.interrupt({"text": text})
    return {"text": text, "verdict": verdict}


def main() -> list[Any]:
    config = {"configurable": {"thread_id": "1"}}
    parts = list(write.stream("tea", config, stream_mode="custom"))
    done = write.invoke(langgraph.types.Command(resume="good"), config)
    return [parts, done]
