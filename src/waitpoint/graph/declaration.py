"""A declaration: what the builder was told so far, before anything is checked as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from waitpoint.core.spec import Call, Channel
from waitpoint.errors import GraphValidationError
from waitpoint.graph.schema import Schema, is_same_channel, named, read_schema
from waitpoint.records import CachePolicy, RetryPolicy, TimeoutPolicy


@dataclass(slots=True, eq=False)
class StateNodeSpec:
    """A declared node. `ends` are the destinations it may name in a `Command`, a mapping gives them labels."""

    call: Call
    input_schema: Any
    metadata: Mapping[str, Any]
    retry_policy: tuple[RetryPolicy, ...] | None
    cache_policy: CachePolicy | None
    error_handler: Call | None
    ends: tuple[str, ...] | Mapping[str, str] | None
    defer: bool
    timeout: TimeoutPolicy | None


@dataclass(slots=True, eq=False)
class BranchSpec:
    """A declared router. `ends` maps its results to node names; None: it returns names."""

    call: Call
    ends: Mapping[Any, str] | None
    input_schema: Any | None


@dataclass(slots=True, eq=False)
class NodeDefaults:
    """What nodes without their own get at `compile()`."""

    retry_policy: tuple[RetryPolicy, ...] | None = None
    cache_policy: CachePolicy | None = None
    error_handler: Call | None = None
    timeout: TimeoutPolicy | None = None


@dataclass(slots=True, eq=False)
class Declaration:
    """Nodes, edges and schemas as declared; sets that keep their order are dicts with None."""

    state_schema: Any
    input_schema: Any
    output_schema: Any
    context_schema: Any
    nodes: dict[str, StateNodeSpec] = field(default_factory=dict)
    edges: dict[tuple[str, str], None] = field(default_factory=dict)
    waiting_edges: dict[tuple[tuple[str, ...], str], None] = field(default_factory=dict)
    branches: dict[str, dict[str, BranchSpec]] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    managed: dict[str, str] = field(default_factory=dict)
    schemas: dict[Any, Schema] = field(default_factory=dict)
    defaults: NodeDefaults = field(default_factory=NodeDefaults)

    def add_schema(self, declared: Any, *, may_have_managed: bool = True) -> Schema:
        """Add a schema's keys to the graph's.

        Raises:
            GraphValidationError: a key has two reducers, or an input or output holds a managed value.
        """
        if declared in self.schemas:
            return self.schemas[declared]
        schema = read_schema(declared)
        if schema.managed and not may_have_managed:
            raise GraphValidationError(
                f"Invalid managed channels detected in {named(declared)}: {', '.join(schema.managed)}. Managed "
                f"channels are not permitted in Input/Output schema - the engine fills them, nobody passes them; "
                f"declare them in the state's schema"
            )
        for key, channel in schema.channels.items():
            known = self.channels.get(key)
            if known is None:
                self.channels[key] = channel
            elif channel.kind != "last" and not is_same_channel(known, channel):
                raise GraphValidationError(
                    f"Channel '{key}' already exists with a different type - {named(declared)} gives it another "
                    f"reducer than an earlier schema did; use one reducer, or leave it out in all but one of them"
                )
        self.managed.update(schema.managed)
        self.schemas[declared] = schema
        return schema

    def all_edges(self) -> Iterator[tuple[str, str]]:
        """Iterate over all edges as pairs, those that wait for several nodes too."""
        yield from self.edges
        for sources, target in self.waiting_edges:
            for source in sources:
                yield source, target
