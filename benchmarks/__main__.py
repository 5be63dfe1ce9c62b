"""Print the table of all cases, or of those that are named."""

from __future__ import annotations

from benchmarks import (
    agents,
    eight_threads,
    functional_tasks,
    import_time,
    long_loop,
    long_thread,
    nested_graphs,
    parallel_questions,
    pause_and_resume,
    streaming,
    superstep,
)
from benchmarks.measure import main

main(
    {
        "pause_and_resume": pause_and_resume.measure,
        "superstep": superstep.measure,
        "parallel_questions": parallel_questions.measure,
        "long_thread": long_thread.measure,
        "import_time": import_time.measure,
        "eight_threads": eight_threads.measure,
        "streaming": streaming.measure,
        "nested_graphs": nested_graphs.measure,
        "functional_tasks": functional_tasks.measure,
        "long_loop": long_loop.measure,
        "agent_conversation": agents.conversation,
        "agent_fifty_calls": agents.fifty_calls,
    }
)
