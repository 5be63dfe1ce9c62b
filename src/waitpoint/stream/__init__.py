"""What a consumer of a run holds: messages as they are said, the projections of a run, and the run itself."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waitpoint.stream.builtin import (
        CheckpointsTransformer,
        CustomTransformer,
        DebugTransformer,
        LifecyclePayload,
        LifecycleTransformer,
        SubgraphStatus,
        TasksTransformer,
        UpdatesTransformer,
    )
    from waitpoint.stream.channel import StreamChannel
    from waitpoint.stream.run import AsyncGraphRunStream, AsyncSubgraphRunStream, GraphRunStream, SubgraphRunStream
    from waitpoint.stream.start import async_run_of as async_run_of
    from waitpoint.stream.start import run_of as run_of
    from waitpoint.stream.subgraphs import SubgraphTransformer
    from waitpoint.stream.traced import FILTERS as FILTERS
    from waitpoint.stream.traced import chain_events as chain_events
    from waitpoint.stream.transformer import ProtocolEvent, StreamTransformer

__all__ = [
    "AsyncGraphRunStream",
    "AsyncSubgraphRunStream",
    "CheckpointsTransformer",
    "CustomTransformer",
    "DebugTransformer",
    "GraphRunStream",
    "LifecyclePayload",
    "LifecycleTransformer",
    "ProtocolEvent",
    "StreamChannel",
    "StreamTransformer",
    "SubgraphRunStream",
    "SubgraphStatus",
    "SubgraphTransformer",
    "TasksTransformer",
    "UpdatesTransformer",
]

_LAZY = {
    "AsyncGraphRunStream": "run",
    "AsyncSubgraphRunStream": "run",
    "CheckpointsTransformer": "builtin",
    "CustomTransformer": "builtin",
    "DebugTransformer": "builtin",
    "GraphRunStream": "run",
    "LifecyclePayload": "builtin",
    "LifecycleTransformer": "builtin",
    "ProtocolEvent": "transformer",
    "StreamChannel": "channel",
    "StreamTransformer": "transformer",
    "SubgraphRunStream": "run",
    "SubgraphStatus": "builtin",
    "SubgraphTransformer": "subgraphs",
    "TasksTransformer": "builtin",
    "UpdatesTransformer": "builtin",
    "FILTERS": "traced",
    "async_run_of": "start",
    "chain_events": "traced",
    "run_of": "start",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
