"""Event streams: transformers that make further projections, the opt-in ones and those of a user."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.behaviours.conftest import Consumed
from tests.behaviours.graphs import thread
from tests.behaviours.speaking import EMPTY, Speaker, asks, chain, fails, speaks, whole
from waitpoint.config import get_stream_writer
from waitpoint.errors import ConfigError
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.stream import (
    CustomTransformer,
    ProtocolEvent,
    StreamChannel,
    StreamTransformer,
    TasksTransformer,
    UpdatesTransformer,
)


def writes(state: Any) -> Any:
    get_stream_writer()({"progress": 1})
    return {}


class Methods(StreamTransformer):
    """Lists the methods of the events of its graph, and of those below."""

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.ends: list[str] = []
        self.channel: StreamChannel[str] = StreamChannel("methods")

    def init(self) -> dict[str, Any]:
        return {"methods": self.channel, "ends": self.ends}

    def process(self, event: ProtocolEvent) -> bool:
        if event["method"] != "values" or len(event["params"]["namespace"]) > len(self.scope):
            self.channel.push(event["method"])
        return True

    def finalize(self) -> None:
        self.channel.push("last")
        self.ends.append("finalized")

    def fail(self, error: BaseException) -> None:
        self.ends.append(f"failed: {error!r}")


# --- those to be asked for --------------------------------------------------------------------------------------------


def test_custom_parts_updates_and_tasks_are_projections_on_demand(saver: Any, consumed: Consumed) -> None:
    """B203"""
    graph = chain(saver, writes, inner=chain(None, writes, whole))
    options: Any = {"transformers": [CustomTransformer, UpdatesTransformer, TasksTransformer]}
    assert consumed(graph, "custom", EMPTY, thread(), **options) == [{"progress": 1}]
    updates = consumed(graph, "updates", EMPTY, thread(), **options)
    assert [next(iter(update)) for update in updates] == ["writes", "inner"]
    tasks = consumed(graph, "tasks", EMPTY, thread(), **options)
    assert [(task["name"], "input" in task) for task in tasks] == [
        ("writes", True),
        ("writes", False),
        ("inner", True),
        ("inner", False),
    ]
    events = consumed(graph, "events", EMPTY, thread(), **options)
    assert {"custom", "updates", "tasks"} < {event["method"] for event in events}
    assert [len(e["params"]["namespace"]) for e in events if e["method"] == "custom"] == [0, 1]


def test_updates_show_the_questions_last(saver: Any, consumed: Consumed) -> None:
    """B203, architecture 3"""
    graph, config = chain(saver, asks), thread()
    updates = consumed(graph, "updates", EMPTY, config, transformers=[UpdatesTransformer])
    assert updates == [{"__interrupt__": graph.get_state(config).interrupts}]


def test_handles_have_the_same_projections(saver: Any) -> None:
    """B198, B203"""
    graph = chain(saver, inner=chain(None, writes))
    run = graph.stream_events(EMPTY, thread(), version="v3", transformers=[CustomTransformer])
    (handle,) = run.subgraphs
    assert (list(handle.custom), list(run.custom)) == ([{"progress": 1}], [])


# --- a user's own -----------------------------------------------------------------------------------------------------


def test_a_named_channel_is_a_projection_and_shows_its_items_as_events(saver: Any, consumed: Consumed) -> None:
    """B205"""
    graph = chain(saver, speaks(Speaker(texts=["hello"])))
    methods = consumed(graph, "methods", EMPTY, thread(), transformers=[Methods])
    assert (methods[0], methods[-1]) == ("messages", "last")
    events = consumed(graph, "events", EMPTY, thread(), transformers=[Methods])
    shown = [event for event in events if event["method"] == "custom:methods"]
    assert [event["params"]["data"] for event in shown] == methods
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))


def test_a_channel_without_a_name_is_in_no_event_and_other_projections_are_as_they_are(saver: Any) -> None:
    """B205"""

    class Counts(StreamTransformer):
        def init(self) -> dict[str, Any]:
            self.counts: StreamChannel[int] = StreamChannel()
            self.total = {"events": 0}
            return {"counts": self.counts, "total": self.total}

        def process(self, event: ProtocolEvent) -> bool:
            self.total["events"] += 1
            self.counts.push(self.total["events"])
            return True

    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3", transformers=[Counts])
    assert [event["method"] for event in run] == ["values", "messages", "values"]
    assert (list(run.counts), run.total) == ([1, 2, 3], {"events": 3})


def test_a_transformer_is_made_for_each_nested_graph_with_its_namespace(saver: Any) -> None:
    """B205"""
    scopes: list[tuple[str, ...]] = []

    def factory(scope: tuple[str, ...]) -> StreamTransformer:
        scopes.append(scope)
        return Methods(scope)

    run = chain(saver, inner=chain(None, whole)).stream_events(EMPTY, thread(), version="v3", transformers=[factory])
    events = list(run)
    (handle,) = run.subgraphs
    assert scopes == [(), handle.path]
    assert list(handle.methods) == ["messages", "last"]
    told = [e for e in events if e["method"] == "custom:methods" and e["params"]["namespace"]]
    assert [e["params"]["data"] for e in told] == ["messages", "last"]


def test_a_transformer_may_take_events_out_and_change_them_before_others_see_them(saver: Any) -> None:
    class Hides(StreamTransformer):
        before_builtins = True

        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: ProtocolEvent) -> bool:
            said = event["params"]["data"]
            if event["method"] == "messages" and said[0].get("delta"):
                said[0]["delta"]["text"] = "*" * len(said[0]["delta"]["text"])
            return event["method"] != "values"

    graph = chain(saver, speaks(Speaker(texts=["pass word"])))
    run = graph.stream_events(EMPTY, thread(), version="v3", transformers=[Hides])
    assert [list(message.text) for message in run.messages] == [["*****", "*****"]]
    assert {event["method"] for event in run} == {"messages"}
    assert run.output["messages"][0].content == "pass word "


def test_a_transformer_hears_how_the_run_ended(saver: Any) -> None:
    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3", transformers=[Methods])
    assert run.output
    assert run.ends == ["finalized"]
    run = chain(saver, fails).stream_events(EMPTY, thread(), version="v3", transformers=[Methods])
    with pytest.raises(KeyError):
        _ = run.output
    assert run.ends == ["failed: KeyError('broken')"]


@pytest.mark.parametrize("where", ["process", "finalize"])
def test_an_error_of_a_transformer_is_an_error_of_the_run(saver: Any, consumed: Consumed, where: str) -> None:
    """B196"""

    class Breaks(StreamTransformer):
        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: ProtocolEvent) -> bool:
            if where == "process":
                raise LookupError("transformer")
            return True

        def finalize(self) -> None:
            raise LookupError("transformer")

    with pytest.raises(LookupError, match="transformer"):
        consumed(chain(saver, whole), "output", EMPTY, thread(), transformers=[Breaks])


def test_a_transformer_may_abort_the_run(saver: Any, consumed: Consumed) -> None:
    """B206"""

    class Stops(StreamTransformer):
        def init(self) -> dict[str, Any]:
            return {}

        def bound(self, mux: Any) -> None:
            self.mux = mux

        def process(self, event: ProtocolEvent) -> bool:
            if event["method"] == "messages":
                stopping = self.mux.root.abort()
                if stopping is not None:
                    self.schedule(stopping)
            return True

    graph, config = chain(saver, whole, asks), thread()
    assert len(consumed(graph, "values", EMPTY, config, transformers=[Stops])) in (1, 2)
    assert [q.value for q in graph.invoke(None, config)["__interrupt__"]] == ["ok?"]


async def test_what_was_scheduled_is_cancelled_when_the_run_fails(saver: Any) -> None:
    told: list[str] = []

    class Waits(StreamTransformer):
        requires_async = True

        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: ProtocolEvent) -> bool:
            self.schedule(self._wait())
            return True

        async def _wait(self) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.append("cancelled")
                raise

    run = await chain(saver, fails).astream_events(EMPTY, thread(), version="v3", transformers=[Waits])
    with pytest.raises(KeyError):
        await run.output()
    await asyncio.sleep(0)
    assert told == ["cancelled"]


def test_transformers_of_a_compiled_graph_are_part_of_each_run(saver: Any, consumed: Consumed) -> None:
    builder: Any = StateGraph(MessagesState).add_node("whole", whole).add_edge(START, "whole")
    graph = builder.compile(checkpointer=saver, transformers=[UpdatesTransformer])
    assert [list(update) for update in consumed(graph, "updates", EMPTY, thread())] == [["whole"]]
    assert consumed(graph, "methods", EMPTY, thread(), transformers=[Methods])[-1] == "last"


def test_two_projections_of_one_name_are_refused(saver: Any) -> None:
    with pytest.raises(ConfigError, match="'methods', which another one has"):
        chain(saver, whole).stream_events(EMPTY, thread(), version="v3", transformers=[Methods, Methods])


def test_a_transformer_without_projections_is_told_to_have_some(saver: Any) -> None:
    with pytest.raises(NotImplementedError, match="return a dict of projections"):
        chain(saver, whole).stream_events(EMPTY, thread(), version="v3", transformers=[StreamTransformer])


def test_a_mode_that_does_not_exist_is_refused(saver: Any, consumed: Consumed) -> None:
    class Wants(Methods):
        required_stream_modes = ("nothing",)

    with pytest.raises(ConfigError, match="Unknown stream mode 'nothing'"):
        consumed(chain(saver, whole), "output", EMPTY, thread(), transformers=[Wants])


# --- asynchronous ones ------------------------------------------------------------------------------------------------


class Looks(StreamTransformer):
    """Looks each event up somewhere before the next one comes."""

    def init(self) -> dict[str, Any]:
        self.seen: list[str] = []
        return {"seen": self.seen}

    async def aprocess(self, event: ProtocolEvent) -> bool:
        await asyncio.sleep(0)
        self.seen.append(event["method"])
        return True

    async def afinalize(self) -> None:
        await asyncio.sleep(0)
        self.seen.append("finalized")

    async def afail(self, error: BaseException) -> None:
        await asyncio.sleep(0)
        self.seen.append("failed")


async def test_an_asynchronous_transformer_is_awaited(saver: Any) -> None:
    run = await chain(saver, whole).astream_events(EMPTY, thread(), version="v3", transformers=[Looks])
    await run.output()
    assert run.seen == ["values", "messages", "values", "finalized"]
    run = await chain(saver, fails).astream_events(EMPTY, thread(), version="v3", transformers=[Looks])
    with pytest.raises(KeyError):
        await run.output()
    assert run.seen == ["values", "failed"]


def test_an_asynchronous_transformer_is_refused_in_a_blocking_run(saver: Any) -> None:
    with pytest.raises(ConfigError, match="'Looks' works in asynchronous runs only"):
        chain(saver, whole).stream_events(EMPTY, thread(), version="v3", transformers=[Looks])

    class Both(Looks):
        supports_sync = True

    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3", transformers=[Both])
    assert (len(run.output["messages"]), run.seen) == (2, [])


@pytest.mark.parametrize("on_error", ["raise", "log"])
async def test_what_a_transformer_schedules_is_awaited_before_the_run_ends(
    saver: Any, on_error: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Scores(StreamTransformer):
        requires_async = True

        def __init__(self, scope: tuple[str, ...] = ()) -> None:
            self.scope = scope

        def init(self) -> dict[str, Any]:
            self.scores: StreamChannel[int] = StreamChannel()
            return {"scores": self.scores}

        def process(self, event: ProtocolEvent) -> bool:
            if event["method"] == "messages":
                self.schedule(self._score(event["params"]["data"][0].content), on_error=on_error)
            return True

        async def _score(self, text: str) -> None:
            for _ in range(3):
                await asyncio.sleep(0)
            if text == "wrong":
                raise LookupError("scores")
            self.scores.push(len(text))

    run = await chain(saver, whole).astream_events(EMPTY, thread(), version="v3", transformers=[Scores])
    assert [score async for score in run.scores] == [9]

    def says_wrong(state: Any) -> Any:
        return {"messages": ["wrong"]}

    run = await chain(saver, says_wrong).astream_events(EMPTY, thread(), version="v3", transformers=[Scores])
    if on_error == "raise":
        with pytest.raises(LookupError, match="scores"):
            await run.output()
    else:
        assert len((await run.output())["messages"]) == 1
        assert "What transformer 'Scores' scheduled has failed" in caplog.text


class Late(StreamTransformer):
    """Has an item more when the run has ended, and then fails."""

    requires_async = True

    def init(self) -> dict[str, Any]:
        self.late: StreamChannel[str] = StreamChannel()
        return {"late": self.late}

    async def afinalize(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        self.late.push("late")
        for _ in range(5):
            await asyncio.sleep(0)
        raise LookupError("too late")


async def test_nobody_misses_what_comes_while_the_run_ends(saver: Any) -> None:
    """B196"""
    run = await chain(saver, whole).astream_events(EMPTY, thread(), version="v3", transformers=[Late])
    seen: list[str] = []

    async def follow(delay: int) -> None:
        for _ in range(delay):
            await asyncio.sleep(0)
        async for item in run.late:
            seen.append(item)

    ends = await asyncio.gather(*(follow(delay) for delay in range(0, 200, 5)), run.output(), return_exceptions=True)
    assert seen == ["late"] * 40
    assert {repr(end) for end in ends} == {"LookupError('too late')"}


def test_a_transformer_that_reads_gets_what_is_there(saver: Any, consumed: Consumed) -> None:
    class Reads(StreamTransformer):
        supports_sync = True

        def init(self) -> dict[str, Any]:
            self.mine: StreamChannel[str] = StreamChannel()
            self.found: StreamChannel[list[str]] = StreamChannel()
            return {"mine": self.mine, "found": self.found}

        def process(self, event: ProtocolEvent) -> bool:
            self.mine.push(event["method"])
            return True

        def finalize(self) -> None:
            self.found.push(list(self.mine))

        async def afinalize(self) -> None:
            self.found.push([method async for method in self.mine])

    found = consumed(chain(saver, whole), "found", EMPTY, thread(), transformers=[Reads])
    assert found == [["values", "messages", "values"]]


# --- channels ---------------------------------------------------------------------------------------------------------


def test_a_channel_belongs_to_a_run_before_it_is_read() -> None:
    channel: StreamChannel[int] = StreamChannel()
    with pytest.raises(TypeError, match="belongs to no run yet"):
        iter(channel)


def test_iterators_of_a_channel_do_not_depend_on_each_other(saver: Any) -> None:
    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3")
    one, other = run.values.tee(2)
    assert len(next(one)["messages"]) == 0
    assert [len(values["messages"]) for values in other] == [0, 2]
    assert [len(values["messages"]) for values in one] == [2]


async def test_iterators_of_a_channel_do_not_depend_on_each_other_on_an_event_loop(saver: Any) -> None:
    run = await chain(saver, whole).astream_events(EMPTY, thread(), version="v3")
    one, other = run.values.atee(2)
    assert len((await anext(one))["messages"]) == 0
    assert [len(values["messages"]) async for values in other] == [0, 2]
    assert [len(values["messages"]) async for values in one] == [2]


def test_a_channel_with_a_bound_keeps_the_newest_items(saver: Any) -> None:
    class Last(StreamTransformer):
        def init(self) -> dict[str, Any]:
            self.last: StreamChannel[str] = StreamChannel(maxlen=2)
            return {"last": self.last}

        def process(self, event: ProtocolEvent) -> bool:
            self.last.push(event["method"])
            return True

    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3", transformers=[Last])
    assert run.output
    assert list(run.last) == ["messages", "values"]
