"""What a running task asks of its journal: `interrupt()` and `step()`."""

from waitpoint.interrupts.ask import interrupt
from waitpoint.interrupts.step import step

__all__ = ["interrupt", "step"]
