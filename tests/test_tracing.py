"""Spans, as an application gets them that sets OpenTelemetry's SDK up: here with an exporter in memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from waitpoint import clock
from waitpoint.agents import create_agent
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.func import entrypoint, task
from waitpoint.graph import START, StateGraph
from waitpoint.interrupts import step
from waitpoint.types import Answer, Command, RetryPolicy, interrupt

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class State(TypedDict, total=False):
    text: str
    count: int


class Spans:
    """What was exported."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self.exporter = exporter

    @property
    def all(self) -> list[ReadableSpan]:
        return sorted(self.exporter.get_finished_spans(), key=lambda s: s.start_time or 0)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def one(self, name: str) -> ReadableSpan:
        (found,) = self.named(name)
        return found

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]

    def parent(self, span: ReadableSpan) -> str | None:
        if span.parent is None:
            return None
        return next((s.name for s in self.all if s.context.span_id == span.parent.span_id), "?")

    def tree(self) -> dict[str, str | None]:
        return {span.name: self.parent(span) for span in self.all}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Set a provider, as `trace.set_tracer_provider` would, for the length of a test."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield Spans(exporter)
    provider.shutdown()


def one(node: Any, saver: Any = None, name: str = "desk", **options: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("work", node, **options)
    graph.add_edge(START, "work")
    return graph.compile(checkpointer=saver, name=name)


def thread(name: str = "t1") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def asks(state: State) -> State:
    return {"text": interrupt({"secret": state["text"]})}


def run(graph: Any, how: str, given: Any, config: Any = None) -> Any:
    return graph.invoke(given, config) if how == "invoke" else asyncio.run(graph.ainvoke(given, config))


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_run_step_and_task_are_spans_one_inside_the_other(spans: Spans, how: str) -> None:
    run(one(lambda s: {"count": 1}, InMemorySaver()), how, {"text": "a"}, thread())
    assert spans.tree() == {"run desk": None, "step": "run desk", "task work": "step"}
    attributes = dict(spans.one("task work").attributes or {})
    assert attributes.pop("waitpoint.task.id")
    assert attributes == {
        "waitpoint.node": "work",
        "waitpoint.attempt": 1,
        "waitpoint.step": 1,
        "waitpoint.thread.id": "t1",
    }
    assert (spans.one("run desk").attributes or {})["waitpoint.run.end"] == "finished"


def test_a_run_lies_in_the_span_of_its_caller(spans: Spans) -> None:
    with trace.get_tracer("test").start_as_current_span("request"):
        one(lambda s: {"count": 1}).invoke({"text": "a"})
    assert spans.parent(spans.one("run desk")) == "request"
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_the_span_of_a_task_is_current_in_its_body_and_only_there(spans: Spans, how: str) -> None:
    def works(state: State) -> State:
        with trace.get_tracer("test").start_as_current_span("query"):
            return {"count": 1}

    run(one(works), how, {"text": "a"})
    assert spans.parent(spans.one("query")) == "task work"
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_failure_is_an_error_of_task_step_and_run_and_tells_no_text(spans: Spans) -> None:
    def fails(state: State) -> State:
        raise ValueError("card 4242")

    with pytest.raises(ValueError, match="4242"):
        one(fails).invoke({"text": "a"})
    for name in ("task work", "step", "run desk"):
        span = spans.one(name)
        assert span.status.status_code is StatusCode.ERROR
        assert (span.attributes or {})["error.type"] == "ValueError"
    assert not any("4242" in span.to_json() for span in spans.all)


def test_each_try_of_a_task_is_a_span(spans: Spans) -> None:
    tries: list[int] = []

    def fails_once(state: State) -> State:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("once")
        return {"count": len(tries)}

    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
    one(fails_once, retry_policy=policy).invoke({"text": "a"})
    first, second = spans.named("task work")
    assert first.status.status_code is StatusCode.ERROR
    assert second.status.status_code is StatusCode.UNSET
    assert [(s.attributes or {})["waitpoint.attempt"] for s in (first, second)] == [1, 2]


# --- waits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_wait_is_a_span_from_the_question_to_its_answer(spans: Spans, how: str, tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        graph = one(asks, saver)
        asked = run(graph, how, {"text": "hush"}, thread())["__interrupt__"][0]
        assert "wait work" not in spans.names
        before = clock.now()
        run(graph, how, Command(resume=Answer("yes, hush", by="ana")), thread())
    wait, (asking, answering) = spans.one("wait work"), spans.named("run desk")
    assert asking.start_time < wait.start_time < asking.end_time  # type: ignore[operator]
    assert wait.end_time >= round(before * 1e9)  # type: ignore[operator]
    attributes = wait.attributes or {}
    assert attributes["waitpoint.interrupt.id"] == asked.id
    assert attributes["waitpoint.answer.by"] == "ana"
    assert attributes["waitpoint.thread.id"] == "t1"
    assert not any("hush" in span.to_json() for span in spans.all)
    # The wait belongs to the trace of the task that asked, and leads to the run that goes on; that one leads back.
    assert wait.parent is not None
    assert wait.parent.span_id == spans.named("task work")[0].context.span_id
    assert [link.context.span_id for link in wait.links] == [answering.context.span_id]
    assert [link.context.span_id for link in answering.links] == [wait.parent.span_id]


def test_a_pause_is_no_error_and_names_what_it_asks(spans: Spans) -> None:
    asked = one(asks, InMemorySaver()).invoke({"text": "a"}, thread())["__interrupt__"][0]
    assert {span.status.status_code for span in spans.all} == {StatusCode.UNSET}
    assert (spans.one("task work").attributes or {})["waitpoint.interrupt.ids"] == (asked.id,)
    assert (spans.one("run desk").attributes or {})["waitpoint.run.end"] == "waiting"


PROGRAM = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, ConsoleSpanExporter
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

provider = TracerProvider()
exporter = ConsoleSpanExporter(formatter=lambda span: json.dumps(json.loads(span.to_json())) + chr(10))
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
graph = StateGraph(dict)
graph.add_node("work", lambda s: {"answer": interrupt("sure?")})
graph.add_edge(START, "work")
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    given = Command(resume="yes") if sys.argv[2] == "answer" else {"text": "a"}
    graph.compile(checkpointer=saver).invoke(given, {"configurable": {"thread_id": "t1"}})
"""


def test_the_trace_goes_on_in_another_process(tmp_path: Path) -> None:
    def spans_of(what: str) -> dict[str, Any]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "threads.db"), what]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
        return {span["name"]: span for span in map(json.loads, done.stdout.splitlines())}

    asking, answering = spans_of("ask"), spans_of("answer")
    wait, asked = answering["wait work"], asking["task work"]["context"]
    assert wait["parent_id"] == asked["span_id"]
    assert wait["context"]["trace_id"] == asked["trace_id"]
    assert wait["start_time"] < asking["run LangGraph"]["end_time"] < answering["run LangGraph"]["start_time"]
    assert [link["context"]["span_id"] for link in wait["links"]] == [answering["run LangGraph"]["context"]["span_id"]]
    assert answering["run LangGraph"]["links"][0]["context"]["trace_id"] == asked["trace_id"]


def test_trouble_of_a_tracer_leaves_an_answer_where_it_is(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = one(asks, InMemorySaver())
    graph.invoke({"text": "a"}, thread())

    class Broken(TracerProvider):
        def get_tracer(self, *args: Any, **options: Any) -> Any:
            tracer = super().get_tracer(*args, **options)
            start = tracer.start_span

            def started(name: str, *given: Any, **more: Any) -> Any:
                if name.startswith("wait"):
                    raise RuntimeError("no room for spans")
                return start(name, *given, **more)

            tracer.start_span = started  # type: ignore[method-assign]
            return tracer

    monkeypatch.setattr(trace, "_TRACER_PROVIDER", Broken())
    assert graph.invoke(Command(resume="yes"), thread()) == {"text": "yes"}


# --- what runs in tasks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_recorded_effects_are_spans_that_a_replay_does_not_repeat(spans: Spans, how: str) -> None:
    def fetch(page: int) -> str:
        with trace.get_tracer("test").start_as_current_span("query"):
            return f"page {page}"

    def works(state: State) -> State:
        return {"text": step(fetch, 1) + interrupt("sure?")}

    graph = one(works, InMemorySaver())
    run(graph, how, {"text": "a"}, thread())
    run(graph, how, Command(resume="!"), thread())
    effect = next(span for span in spans.all if span.name.startswith("effect"))
    assert effect.name.endswith("fetch")
    assert len(spans.named(effect.name)) == 1
    assert spans.parent(effect) == "task work"
    assert spans.parent(spans.one("query")) == effect.name


def test_an_awaited_effect_is_one_span(spans: Spans) -> None:
    async def fetch(page: int) -> str:
        await asyncio.sleep(0)
        return f"page {page}"

    async def works(state: State) -> State:
        return {"text": await step(fetch, 1) + await step(lambda: fetch(2))}

    asyncio.run(one(works, InMemorySaver()).ainvoke({"text": "a"}, thread()))
    effects = [span for span in spans.all if span.name.startswith("effect")]
    assert [spans.parent(span) for span in effects] == ["task work", "task work"]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_tasks_of_functions_are_spans_inside_the_body_that_calls_them(spans: Spans, how: str) -> None:
    @task
    def double(number: int) -> int:
        return number * 2

    @entrypoint()
    def flow(number: int) -> int:
        return double(number).result() + 1

    assert run(flow, how, 3) == 7
    assert spans.tree() == {"run flow": None, "step": "run flow", "task flow": "step", "task double": "task flow"}


def test_nested_graphs_lie_in_the_task_that_calls_them(spans: Spans) -> None:
    inner = one(lambda s: {"count": 2}, name="inner")
    outer = StateGraph(State)
    outer.add_node("called", lambda s: inner.invoke(s))
    outer.add_node("as_node", inner)
    outer.add_edge(START, "called")
    outer.add_edge("called", "as_node")
    outer.compile(checkpointer=InMemorySaver(), name="outer").invoke({"text": "a"}, thread())
    assert [spans.parent(span) for span in spans.named("run inner")] == ["task called", "task as_node"]
    assert len({span.context.trace_id for span in spans.all}) == 1


def agent(saver: Any) -> Any:
    @tool
    def lookup(name: str) -> str:
        """Look a name up."""
        return f"{name} lives in Rome"

    call = {"name": "lookup", "args": {"name": "hidden"}, "id": "call_1", "type": "tool_call"}
    said = AIMessage("", tool_calls=[call], usage_metadata={"input_tokens": 5, "output_tokens": 7, "total_tokens": 12})

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    return create_agent(Model(messages=iter([said, AIMessage("Rome")])), [lookup], checkpointer=saver, name="helper")


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_models_and_tools_are_spans_by_the_conventions_for_generative_ai(spans: Spans, how: str) -> None:
    found = run(agent(InMemorySaver()), how, {"messages": [HumanMessage("where is hidden?")]}, thread())
    assert isinstance(found["messages"][-2], ToolMessage)
    first, second = spans.named("chat")
    assert spans.parent(first) == spans.parent(second) == "task model"
    assert first.kind is SpanKind.CLIENT
    attributes = first.attributes or {}
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.conversation.id"] == "t1"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (5, 7)
    called = spans.one("execute_tool lookup")
    assert spans.parent(called) == "task tools"
    assert (called.attributes or {})["gen_ai.tool.call.id"] == "call_1"
    assert not any("hidden" in span.to_json() or "Rome" in span.to_json() for span in spans.all)


def test_what_was_said_is_told_when_that_is_asked_for(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")
    agent(InMemorySaver()).invoke({"messages": [HumanMessage("where is hidden?")]}, thread())
    attributes = spans.named("chat")[0].attributes or {}
    said = json.loads(str(attributes["gen_ai.input.messages"]))
    assert said == [{"role": "user", "parts": [{"type": "text", "content": "where is hidden?"}]}]
    answer = json.loads(str(attributes["gen_ai.output.messages"]))
    assert answer[0]["parts"][0]["arguments"] == {"name": "hidden"}
    assert "Rome" in str((spans.one("execute_tool lookup").attributes or {})["gen_ai.tool.call.result"])


# --- no tracer --------------------------------------------------------------------------------------------------------


def test_without_a_provider_nothing_is_traced_and_questions_carry_nothing() -> None:
    saver = InMemorySaver()
    one(asks, saver).invoke({"text": "a"}, thread())
    from waitpoint import codec
    from waitpoint.checkpoint.base import PendingFilter

    (row,) = saver.questions(PendingFilter("t1"))
    assert "traceparent" not in codec.loads(row.extra)


def test_a_run_loads_neither_opentelemetry_nor_langchain() -> None:
    code = """
import sys
from waitpoint.graph import START, StateGraph
graph = StateGraph(dict)
graph.add_node("work", lambda s: {"a": 1})
graph.add_edge(START, "work")
graph.compile().invoke({"a": 0})
print(*[m for m in ("opentelemetry", "langchain_core") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.split() == []
