"""How fast Waitpoint is beside LangGraph: `python -m benchmarks` prints the table."""
