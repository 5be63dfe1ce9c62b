"""Print the table of all cases, or of those that are named."""

from __future__ import annotations

from benchmarks import agents, eight_threads, import_time, long_thread, parallel_questions, pause_and_resume, superstep
from benchmarks.measure import main

main(
    {
        "pause_and_resume": pause_and_resume.measure,
        "superstep": superstep.measure,
        "parallel_questions": parallel_questions.measure,
        "long_thread": long_thread.measure,
        "import_time": import_time.measure,
        "eight_threads": eight_threads.measure,
        "agent_conversation": agents.conversation,
        "agent_fifty_calls": agents.fifty_calls,
    }
)
