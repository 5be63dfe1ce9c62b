"""Values that the engine fills in, at the path users of LangGraph know."""

from waitpoint.graph.managed import IsLastStep, RemainingSteps

__all__ = ["IsLastStep", "RemainingSteps"]
