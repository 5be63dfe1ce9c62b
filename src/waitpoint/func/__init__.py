"""What the user declares as plain functions: entrypoints, and tasks that are recorded."""

from waitpoint.func.entrypoints import entrypoint
from waitpoint.func.futures import TaskFuture
from waitpoint.func.tasks import task

__all__ = ["TaskFuture", "entrypoint", "task"]
