"""A compiled graph as its users call it: invoke, stream, their async forms, and the thread's state.

Thin faces: each call becomes an `Invocation`, a `Session` runs it, a driver obeys.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Literal, cast

from waitpoint import runtime as runtimes
from waitpoint import stream as streams
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.config import RECURSION_LIMIT, merged
from waitpoint.engine import drawing, inner, nested, snapshots, updates
from waitpoint.engine.breakpoints import Breakpoints, checked
from waitpoint.engine.commands import Emit
from waitpoint.engine.composing import Composable
from waitpoint.engine.declared import Declared
from waitpoint.engine.detailing import metadata_from
from waitpoint.engine.drive import Parts, drive
from waitpoint.engine.drive_async import AsyncParts, drive_async, in_thread
from waitpoint.engine.invocation import Invocation
from waitpoint.engine.scope import Surroundings
from waitpoint.engine.session import Session
from waitpoint.engine.shown import Shape, View, event_shape, shape_of
from waitpoint.engine.typed import is_typed
from waitpoint.errors import CheckpointerRequiredError, ConfigError, UsageError
from waitpoint.records import Durability, OnPending, StateSnapshot, StateUpdate
from waitpoint.stream.listener import unheard
from waitpoint.stream.owned import Owned

if TYPE_CHECKING:
    from waitpoint.engine.drawing import Drawing
    from waitpoint.stream.mux import Factory
    from waitpoint.stream.pump import Part


class Runner(Composable):
    """A graph that can be run. Holds no state of any thread, so one object serves all."""

    # --- running ---

    def invoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        version: Literal["v1", "v2"] = "v1",
        **options: Any,
    ) -> Any:
        """Run to the next rest and return the output.

        If questions are open, the output has them as a list under `"__interrupt__"`; with `version="v2"` it is a
        `GraphOutput` with `value`, `interrupts` and `next`, and a state of a class is an instance of it. `input` is a
        new input, None (go on with what needs no answer) or a `Command`. `options`: `interrupt_before`,
        `interrupt_after`, `durability` ("sync", "async", "exit"), `control`, `output_keys`, `on_pending` ("refuse",
        "withdraw": what new input does to open questions), `wait` (False: do not await another process that runs the
        thread) and `debug`.

        Raises:
            PendingQuestionsError, ThreadBusyError: new input on a thread that has something else to do.
            UnknownInterruptError, AlreadyAnsweredError: an answer that no open question takes.
            pydantic.ValidationError: an answer that does not fit its question's schema.
            Whatever a node raises; the thread can be continued.
        """
        if stream_mode != "values":
            options["version"] = version
            return list(self.stream(input, config, context=context, stream_mode=stream_mode, **options))
        session = self._session(input, config, context, options)
        session.is_typed = is_typed(version)
        live = nested.through(session)
        for part in drive(session.steps(), threads=_at_once(session)):
            if live is not None:
                live.put(part)
        return nested.concluded(session)

    def stream(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        version: Literal["v1", "v2"] = "v1",
        **options: Any,
    ) -> Iterator[Any]:
        """Run to the next rest, yielding parts as they come; `options` are those of `invoke`.

        `stream_mode` is one of "values", "updates", "custom", "messages", "tasks", "tools", "checkpoints", "debug", or
        a list of them (default "updates"); a list makes each part a pair (mode, payload), `subgraphs` puts the namespace
        first. With `version="v2"` each part is a dict with `type`, `ns` and `data`.
        """
        shape = shape_of(stream_mode, subgraphs, version)
        session = self._session(input, config, context, options, shape)
        view = View(shape, session.call.spec, session.call.shown_ns)
        # Closed by name: a consumer that leaves must not depend on when the garbage is collected.
        with closing(self._parts(session, shape)) as parts:
            for part in parts:
                yield from view.of(part)

    def _parts(self, session: Session, shape: Shape) -> Generator[Emit]:
        outer_modes = session.call.around.live_modes  # what the graph around this one shows of it
        live = None
        if shape.live or self.spec.is_function:
            live = Parts()
            nested.go_live(session, live, shape.subgraphs)
        with closing(drive(session.steps(), live, _at_once(session))) as run:
            for part in run:
                if part.mode in outer_modes:
                    session.call.live.put(part)
                yield part
        if session.parent is not None:
            nested.concluded(session)

    async def ainvoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        version: Literal["v1", "v2"] = "v1",
        **options: Any,
    ) -> Any:
        """Do what `invoke` does, from an event loop."""
        if stream_mode != "values":
            options["version"] = version
            parts = self.astream(input, config, context=context, stream_mode=stream_mode, **options)
            return [part async for part in parts]
        session = self._session(input, config, context, options)
        session.is_typed = is_typed(version)
        live = nested.through(session)
        async for part in drive_async(session.steps(), session.saver(), at_once=_at_once(session)):
            if live is not None:
                live.put(part)
        return nested.concluded(session)

    async def astream(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        version: Literal["v1", "v2"] = "v1",
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Do what `stream` does, from an event loop."""
        shape = shape_of(stream_mode, subgraphs, version)
        session = self._session(input, config, context, options, shape)
        view = View(shape, session.call.spec, session.call.shown_ns)
        async with aclosing(Owned(self._aparts(session, shape))) as parts:
            async for part in parts:
                for shown in view.of(part):
                    yield shown

    async def _aparts(self, session: Session, shape: Shape) -> AsyncGenerator[Emit]:
        outer_modes = session.call.around.live_modes
        live = AsyncParts()
        if shape.live or self.spec.is_function:
            nested.go_live(session, live, shape.subgraphs)
        driven = drive_async(session.steps(), session.saver(), live, _at_once(session))
        async with aclosing(Owned(driven)) as run:
            async for part in run:
                if part.mode in outer_modes:
                    session.call.live.put(part)
                yield part
        if session.parent is not None:
            nested.concluded(session)

    def stream_events(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        version: str = "v2",
        context: Any = None,
        transformers: Sequence[Factory] | None = None,
        **options: Any,
    ) -> streams.GraphRunStream:
        """Return a run that goes on as far as it is consumed, by messages, values, subgraphs, output or raw events.

        `version` must be "v3". `transformers` are classes (or functions of a namespace) that make further projections;
        `options` are those of `invoke`. Errors are raised where the run is consumed.
        """
        _check_events(version, options)

        def parts(modes: tuple[str, ...]) -> Generator[Part]:
            shape = event_shape(modes)
            session = self._session(input, config, context, options, shape)
            own = len(session.call.shown_ns)
            with closing(self._parts(session, shape)) as run:
                for part in run:
                    if part.mode in modes:
                        yield part.ns[own:], part.mode, part.payload

        return streams.run_of(parts, (*self.transformers, *(transformers or ())))

    def astream_events(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        version: Literal["v2", "v3"] = "v2",
        context: Any = None,
        transformers: Sequence[Factory] | None = None,
        **options: Any,
    ) -> Any:
        """Stream events, from an event loop: await the run of version "v3", or iterate over the events of version "v2".

        Version "v3" is what `stream_events` returns. Version "v2" is LangChain's own form: events like `on_chain_start`,
        `on_chat_model_stream` and `on_tool_end` of the graph, its nodes, and what runs in them; its filters are
        `include_names`, `include_types`, `include_tags` and the same with `exclude`.
        """
        if version == "v2":
            filters = {name: options.pop(name) for name in streams.FILTERS if name in options}
            _check_events("v3", options)
            if transformers:
                raise ConfigError(
                    "Transformers make projections, which event streams of version 'v2' have not; use \"v3\""
                )

            def parts(given: Any, full: dict[str, Any]) -> AsyncGenerator[Any]:
                return self.astream(given, full, context=context, **options)  # type: ignore[return-value]

            return streams.chain_events(self.name, parts, input, self.own(config), filters)
        return self._arun(input, config, version, context, transformers, options)

    async def _arun(
        self, input: Any, config: Any, version: str, context: Any, transformers: Sequence[Factory] | None,
        options: dict[str, Any],
    ) -> streams.AsyncGraphRunStream:  # fmt: skip
        _check_events(version, options)

        def parts(modes: tuple[str, ...]) -> AsyncGenerator[Part]:
            return self.araw_parts(input, config, modes, context=context, **options)

        return streams.async_run_of(parts, (*self.transformers, *(transformers or ())))

    async def araw_parts(
        self,
        input: Any,
        config: Mapping[str, Any] | None,
        modes: tuple[str, ...],
        *,
        context: Any = None,
        **options: Any,
    ) -> AsyncGenerator[Part]:
        """Run, yielding (namespace, mode, payload) as the loop makes them, nested graphs too, for who translates them.

        Besides the modes of `astream` there is "lifecycle"; what is said (`Said`) comes whole in mode "messages".
        """
        shape = event_shape(modes)
        session = self._session(input, config, context, options, shape)
        own = len(session.call.shown_ns)
        async with aclosing(Owned(self._aparts(session, shape))) as run:
            async for part in run:
                if part.mode in modes:
                    yield part.ns[own:], part.mode, part.payload

    # --- the thread's state ---

    def get_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """Return the thread at its newest checkpoint, or at the one that `config` names."""
        return snapshots.current(self, self.own(config), subgraphs=subgraphs)

    def get_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: Mapping[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """Yield the thread's checkpoints, newest first; each with the record of its step."""
        return snapshots.history(self, self.own(config), filter, before, limit)

    def get_subgraphs(self, *, namespace: str | None = None, recurse: bool = False) -> Iterator[tuple[str, Declared]]:
        """Yield the graphs inside this one, by the names of their nodes; with `recurse` also those inside them.

        `namespace` picks the one of exactly that name, whole segments joined by "|" ("research|plan" with `recurse`).
        """
        return inner.subgraphs(self, namespace, recurse=recurse)

    async def aget_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> AsyncIterator[tuple[str, Declared]]:
        """Do what `get_subgraphs` does, from an event loop."""
        for found in self.get_subgraphs(namespace=namespace, recurse=recurse):
            yield found

    def update_state(
        self, config: Mapping[str, Any], values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> dict[str, Any]:
        """Write to the state as if `as_node` had returned `values`; return the config of the new checkpoint.

        Open questions of the present step are withdrawn in the same transaction.
        """
        return updates.update(self, self.own(config), [[StateUpdate(values, as_node, task_id)]])

    def bulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Write several supersteps of updates, a checkpoint each; return the config of the last."""
        return updates.update(self, self.own(config), supersteps, bulk=True)

    async def aget_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """Do what `get_state` does, from an event loop."""
        return await in_thread(self.get_state, config, subgraphs=subgraphs)

    async def aget_state_history(self, config: Mapping[str, Any], **options: Any) -> AsyncIterator[StateSnapshot]:
        """Do what `get_state_history` does, from an event loop."""
        history = self.get_state_history(config, **options)
        while (snapshot := await in_thread(next, history, None)) is not None:
            yield snapshot

    async def aupdate_state(
        self, config: Mapping[str, Any], values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> dict[str, Any]:
        """Do what `update_state` does, from an event loop."""
        return await in_thread(self.update_state, config, values, as_node, task_id)

    async def abulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Do what `bulk_update_state` does, from an event loop."""
        return await in_thread(self.bulk_update_state, config, supersteps)

    # --- drawing ---

    def get_graph(self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False) -> Drawing:
        """Return nodes and edges, to be drawn by `draw_mermaid()` or `draw_ascii()` or told by `to_json()`.

        `xray` draws the graphs in nodes too, a number that many levels of them. With the config of a thread, the nodes
        that wait are marked with their open questions.
        """
        return drawing.drawn(self, xray, snapshots.waiting(self, self.own(config), xray=bool(xray)))

    async def aget_graph(self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False) -> Drawing:
        """Do what `get_graph` does, from an event loop."""
        return await in_thread(self.get_graph, config, xray=xray)

    # --- making sessions ---

    def _session(
        self, input: Any, config: Mapping[str, Any] | None, context: Any, options: dict[str, Any],
        shape: Shape | None = None,
    ) -> Session:  # fmt: skip
        scope = runtimes.current.get()
        if scope is not None and nested.belongs(self, scope, config):
            full = merged(scope.config, self.config, config)
        else:
            scope, full = None, merged(self.config, config)
        if "callbacks" in full:
            full["callbacks"] = unheard(full["callbacks"])
        limit = full.setdefault("recursion_limit", RECURSION_LIMIT)
        if not isinstance(limit, int) or limit < 1:
            raise ConfigError(f"`recursion_limit` is {limit!r}; give a whole number of at least 1")
        wait = options.pop("wait", True)
        control = options.pop("control", None) or (runtimes.RunControl() if scope is None else None)
        around = Surroundings(full, self._context(context, scope), self.store, control)
        around.cache = self.cache
        call = Invocation(self.spec, self.registry, input, around)
        call.recursion_limit, call.step_timeout = limit, self.step_timeout
        call.lacks_context = context is None and self.context_schema is not None
        call.modes = frozenset(shape.modes) if shape is not None else frozenset()
        call.metadata = metadata_from(full)
        self._apply(call, options)
        if scope is not None:
            keeps = self.checkpointer is not False and runtimes.attempt.get().recorder is not None
            if self.spec.asker is not None and not keeps:
                raise self._nobody_asked()
            return nested.session(self, call, scope)
        if isinstance(self.checkpointer, BaseCheckpointSaver):
            call.saver, call.key = self.checkpointer, self.key_of(full)
            call.checkpoint_ns, call.checkpoint_id = snapshots.place(full)
        elif self.checkpointer is True:
            raise UsageError(
                f"Graph {self.name!r} was compiled with checkpointer=True, which is for graphs inside another graph; to "
                f"run it by itself, compile it with a saver"
            )
        elif self.spec.asker is not None:
            raise self._nobody_asked()
        return Session(call, wait=wait)

    def _nobody_asked(self) -> CheckpointerRequiredError:
        return CheckpointerRequiredError(
            f"Graph {self.name!r} has no checkpointer, nor has one that calls it, and {self.spec.asker} in it asks questions "
            f"that nobody could ever answer; give the outermost one a saver, for instance checkpointer=InMemorySaver()"
        )

    def _apply(self, call: Invocation, options: dict[str, Any]) -> None:
        call.debug = self.debug
        if not options:
            call.breakpoints = Breakpoints(self._before, self._after)
            return
        before, after = options.pop("interrupt_before", None), options.pop("interrupt_after", None)
        call.breakpoints = Breakpoints(
            self._before if before is None else checked(before, self._nodes, "interrupt_before"),
            self._after if after is None else checked(after, self._nodes, "interrupt_after"),
        )
        call.durability = _choice(options, "durability", ("sync", "async", "exit"), "async")
        call.on_pending = cast("OnPending", _choice(options, "on_pending", ("refuse", "withdraw"), "refuse"))
        options.pop("print_mode", None)
        keys = options.pop("output_keys", None)
        if keys is not None:
            call.output_keys(keys)
        debug = options.pop("debug", None)
        if debug is not None:
            call.debug = bool(debug)
        if options:
            raise ConfigError(
                f"Unknown argument {next(iter(options))!r} of invoke() or stream() of graph {self.name!r}"
            )

    def _context(self, context: Any, scope: runtimes.Scope | None) -> Any:
        if context is None and scope is not None:
            return scope.runtime.context
        schema = self.context_schema
        if isinstance(context, Mapping) and schema is not None and not _is_typed_dict(schema):
            return schema(**context)
        return context


def _check_events(version: str, options: Mapping[str, Any]) -> None:
    if version != "v3":
        raise ConfigError(f"`version` is {version!r}, and event streams have the form 'v3' only; pass version=\"v3\"")
    for name in ("stream_mode", "subgraphs"):
        if name in options:
            raise ConfigError(f"Event streams choose their modes themselves; leave out `{name}`, or use stream()")


def _is_typed_dict(schema: Any) -> bool:
    return isinstance(schema, type) and issubclass(schema, dict)


def _choice(options: dict[str, Any], name: str, allowed: tuple[str, ...], default: str) -> Durability:
    value = options.pop(name, None)
    if value is None:
        value = default
    if value not in allowed:
        raise ConfigError(f"`{name}` is {value!r}; give one of {', '.join(map(repr, allowed))}")
    return cast("Durability", value)


def _at_once(session: Session) -> int | None:
    limit = session.call.around.config.get("max_concurrency")
    return limit if isinstance(limit, int) and limit > 0 else None
