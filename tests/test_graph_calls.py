"""Calls: what can be a node, and what is injected."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Optional
from unittest.mock import MagicMock

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda

from tests.later_annotations import late, later, unresolved
from waitpoint import config as ours
from waitpoint.errors import GraphValidationError, NodeError
from waitpoint.graph.calls import has_async_body, is_async, make_call, name_of
from waitpoint.graph.hints import command_destinations, input_hint, literal_returns
from waitpoint.runtime import Runtime, StreamWriter


class BaseStore:
    """Stands for the store's port: the name of the class is what counts."""


class MyStore(BaseStore):
    pass


MaybeStore = Optional[BaseStore]  # noqa: UP045 - another object than `BaseStore | None`


class Odd:
    pass


ODD = Odd()


def wants(function: Any) -> dict[str, str]:
    call = make_call(function, "n")
    assert call.kind == "function"
    assert call.takes_input
    return dict(call.wants)


def test_a_function_of_the_state_wants_nothing() -> None:
    assert wants(lambda state: None) == {}


@pytest.mark.parametrize("name", ["config", "writer", "store", "runtime", "previous", "error"])
def test_a_bare_parameter_asks_by_its_name(name: str) -> None:
    assert wants(eval(f"lambda state, {name}: None")) == {name: name}
    assert wants(eval(f"lambda state, *, {name}: None")) == {name: name}


@pytest.mark.parametrize("name", ["config", "writer", "store", "runtime", "previous"])
def test_a_default_does_not_stop_the_injection(name: str) -> None:
    assert wants(eval(f"lambda state, {name}=None: None")) == {name: name}


def test_types_ask_under_any_name() -> None:
    def node(
        state: Any, c: RunnableConfig, o: ours.RunnableConfig, r: Runtime[Odd], s: BaseStore, m: MyStore
    ) -> None: ...

    assert wants(node) == {"c": "config", "o": "config", "r": "runtime", "s": "store", "m": "store"}


def test_optional_types_ask_too() -> None:
    def node(
        state: Any, *, c: RunnableConfig | None = None, s: MaybeStore = None, e: NodeError | None = None
    ) -> None: ...

    assert wants(node) == {"c": "config", "s": "store", "e": "error"}


def test_a_stream_writer_is_known_by_name_and_type() -> None:
    def node(state: Any, writer: StreamWriter, report: Callable[[Any], None] = print) -> None: ...

    assert wants(node) == {"writer": "writer"}


def test_a_config_annotated_as_a_mapping_is_the_config() -> None:
    def node(state: Any, config: dict[str, Any]) -> None: ...
    def other(state: Any, config: Mapping[str, Any]) -> None: ...

    assert wants(node) == wants(other) == {"config": "config"}


def test_runtime_and_previous_ask_whatever_their_annotation() -> None:
    def node(state: Any, runtime: Odd, previous: int) -> None: ...

    assert wants(node) == {"runtime": "runtime", "previous": "previous"}


def test_a_parameter_of_another_type_keeps_its_default() -> None:
    def node(state: Any, store: Odd = ODD, config: int = 3, error: Any = None, size: int = 1) -> None: ...

    assert wants(node) == {}


def test_annotations_that_are_texts_are_resolved() -> None:
    assert wants(late) == {"c": "config", "runtime": "runtime"}


def test_annotations_that_cannot_be_resolved_are_known_by_their_text() -> None:
    assert wants(unresolved) == {"c": "config", "r": "runtime", "s": "store", "e": "error"}


def test_a_parameter_that_nothing_fills_is_refused_by_name() -> None:
    def node(state: Any, client: Odd) -> None: ...

    with pytest.raises(GraphValidationError, match="'n' has a parameter 'client' that nothing fills"):
        make_call(node, "n")


def test_an_optional_parameter_of_its_own_stays_out() -> None:
    def node(state: Any, *args: int, size: int = 1, **kwargs: int) -> None: ...

    assert wants(node) == {}


def test_a_function_without_parameters_gets_no_input() -> None:
    call = make_call(lambda: None, "n")
    assert (call.takes_input, call.wants) == (False, {})


def test_a_function_of_the_runtime_alone_gets_no_input() -> None:
    def node(runtime: Runtime[None]) -> None: ...
    def other(*, config: RunnableConfig) -> None: ...

    call = make_call(node, "n")
    assert (call.takes_input, call.wants) == (False, {"runtime": "runtime"})
    call = make_call(other, "n")
    assert (call.takes_input, call.wants) == (False, {"config": "config"})


def test_a_first_parameter_is_the_input_whatever_its_name() -> None:
    assert make_call(lambda config: None, "n").takes_input
    assert make_call(lambda *args: None, "n").takes_input


def test_methods_and_callable_objects_do_without_self() -> None:
    class Node:
        def method(self, state: Any, config: RunnableConfig) -> None: ...
        def __call__(self, state: Any, writer: Any) -> None: ...

    assert wants(Node().method) == {"config": "config"}
    assert wants(Node()) == {"writer": "writer"}


def test_what_a_partial_binds_is_not_injected() -> None:
    def node(client: Odd, state: Any, config: RunnableConfig, store: Any) -> None: ...

    assert wants(functools.partial(node, Odd())) == {"config": "config", "store": "store"}
    assert wants(functools.partial(node, Odd(), store=1)) == {"config": "config"}


def test_a_decorator_that_passes_everything_on_lets_the_injection_through() -> None:
    def node(state: Any, config: RunnableConfig) -> None: ...

    @functools.wraps(node)
    def passing(*args: Any, **kwargs: Any) -> None: ...

    @functools.wraps(node)
    def narrow(state: Any) -> None: ...

    assert wants(passing) == {"config": "config"}
    assert wants(narrow) == {}


def test_coroutine_functions_are_async_in_every_form() -> None:
    async def node(state: Any, size: int = 1) -> None: ...

    class Node:
        async def __call__(self, state: Any) -> None: ...

    class Sync:
        def __call__(self, state: Any) -> None: ...

    assert all(is_async(n) for n in (node, functools.partial(node, size=2), Node(), Node().__call__))
    assert not any(is_async(n) for n in (lambda s: None, Sync(), Sync().__call__, print))


def test_generators_are_refused() -> None:
    def node(state: Any) -> Iterator[int]:
        yield 1

    async def anode(state: Any) -> AsyncIterator[int]:
        yield 1

    for generator in (node, anode, functools.partial(node)):
        with pytest.raises(GraphValidationError, match="'n' is a generator"):
            make_call(generator, "n")


@pytest.mark.parametrize("action", [1, "text", None, {"a": 1}])
def test_what_cannot_be_called_is_refused(action: Any) -> None:
    with pytest.raises(GraphValidationError, match=f"'n' is a {type(action).__name__}, which cannot be called"):
        make_call(action, "n")


def test_a_builtin_without_a_signature_takes_the_input() -> None:
    call = make_call(dict, "n")
    assert (call.takes_input, call.wants) == (True, {})


def test_a_runnable_is_known_by_its_methods() -> None:
    class Tool:
        name = "search"

        def invoke(self, input: Any, config: Any = None) -> Any: ...
        async def ainvoke(self, input: Any, config: Any = None) -> Any: ...

    for runnable in (Tool(), RunnableLambda(lambda x: x)):
        assert make_call(runnable, "n").kind == "runnable"
    assert name_of(Tool()) == "search"
    assert name_of(RunnableLambda(lambda x: x, name="lam")) == "lam"


def test_a_mock_is_a_function_though_it_has_any_method() -> None:
    assert make_call(MagicMock(return_value={}), "n").kind == "function"


def test_a_class_of_runnables_is_not_itself_one() -> None:
    class Tool:
        def __init__(self, state: Any) -> None: ...
        def invoke(self, input: Any, config: Any = None) -> Any: ...
        async def ainvoke(self, input: Any, config: Any = None) -> Any: ...

    assert make_call(Tool, "n").kind == "function"


def test_names_come_from_functions_and_classes() -> None:
    class Node:
        def __call__(self, state: Any) -> None: ...

    def plan(state: Any) -> None: ...

    assert [name_of(n) for n in (plan, Node(), Node, lambda s: s)] == ["plan", "Node", "Node", "<lambda>"]


def test_only_work_that_awaits_can_be_cancelled() -> None:
    async def work(state: Any) -> None: ...

    def plain(state: Any) -> None: ...

    found = [has_async_body(make_call(n, "n")) for n in (work, plain, RunnableLambda(work), RunnableLambda(plain))]
    assert found == [True, False, True, False]


def test_hints_survive_annotations_that_cannot_be_resolved() -> None:
    assert input_hint(later) is not None
    assert command_destinations(later) == ("a", "b")
    assert literal_returns(later) is None
