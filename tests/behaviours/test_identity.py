"""An answer belongs to a question, never to a position: what may change between pause and resume, and what then happens."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, chain, the_id, thread
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Interrupt, interrupt

Deploy = Callable[[str], Callable[..., Any]]


class Switch:
    """What a deterministic body reads that is not: flags set between pause and resume."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)


def answers_by_name(switch: Switch) -> Callable[..., Any]:
    def node(state: State) -> State:
        answers = []
        if "a" in switch.names:
            answers.append(("a", interrupt("a?")))
        if "b" in switch.names:
            answers.append(("b", interrupt("b?")))
        if "c" in switch.names:
            answers.append(("c", interrupt("c?")))
        return {"log": answers}

    return node


def test_a_question_added_before_the_answered_one_is_asked(saver: Any, call: Call) -> None:
    """Section 5: questions may be added and no answer moves"""
    switch, config = Switch("b"), thread()
    graph = chain(saver, answers_by_name(switch))
    call(graph, {"log": []}, config)
    switch.names = ["a", "b"]
    result = call(graph, Command(resume="B"), config)
    assert [i.value for i in asked(result)] == ["a?"]
    assert call(graph, Command(resume="A"), config) == {"log": [("a", "A"), ("b", "B")]}


def test_a_question_added_behind_an_answered_one_is_asked(saver: Any, call: Call) -> None:
    """Section 5"""
    switch, config = Switch("a"), thread()
    graph = chain(saver, answers_by_name(switch))
    call(graph, {"log": []}, config)
    switch.names = ["a", "c"]
    assert [i.value for i in asked(call(graph, Command(resume="A"), config))] == ["c?"]
    assert call(graph, Command(resume="C"), config) == {"log": [("a", "A"), ("c", "C")]}


def test_a_dropped_question_takes_its_answer_with_it(saver: Any, call: Call) -> None:
    """Section 5: questions may be dropped and no answer moves to the next"""
    switch, config = Switch("a", "b"), thread()
    graph = chain(saver, answers_by_name(switch))
    call(graph, {"log": []}, config)
    switch.names = ["b"]
    result = call(graph, Command(resume="A"), config)
    assert [i.value for i in asked(result)] == ["b?"]
    assert call(graph, Command(resume="B"), config) == {"log": [("b", "B")]}


def test_a_dropped_question_among_answered_ones_moves_nothing(saver: Any) -> None:
    """Section 5"""
    switch, config = Switch("a", "b", "c"), thread()
    graph = chain(saver, answers_by_name(switch))
    graph.invoke({"log": []}, config)
    graph.invoke(Command(resume="A"), config)
    graph.invoke(Command(resume="B"), config)
    switch.names = ["b", "c"]
    assert graph.invoke(Command(resume="C"), config) == {"log": [("b", "B"), ("c", "C")]}


def ordered(order: list[str]) -> Callable[..., Any]:
    def node(state: State) -> State:
        return {"log": [(name, interrupt({"about": name})) for name in order]}

    return node


def test_reordered_questions_keep_their_answers(saver: Any, call: Call) -> None:
    """Section 5: one site, payloads in another order"""
    order, config = ["a", "b", "c"], thread()
    graph = chain(saver, ordered(order))
    call(graph, {"log": []}, config)
    call(graph, Command(resume="A"), config)
    call(graph, Command(resume="B"), config)
    order.reverse()
    assert call(graph, Command(resume="C"), config) == {"log": [("c", "C"), ("b", "B"), ("a", "A")]}


def test_items_added_to_and_dropped_from_a_loop_keep_their_answers(saver: Any, call: Call) -> None:
    """Section 5"""
    order, config = ["a", "b"], thread()
    graph = chain(saver, ordered(order))
    call(graph, {"log": []}, config)
    call(graph, Command(resume="A"), config)
    order[:] = ["x", "a"]
    assert [i.value for i in asked(call(graph, Command(resume="B"), config))] == [{"about": "x"}]
    order.append("b")
    assert call(graph, Command(resume="X"), config) == {"log": [("x", "X"), ("a", "A"), ("b", "B")]}


def test_a_reworded_question_is_asked_again(saver: Any, call: Call) -> None:
    """Section 5: a yes to one text is no yes to another"""
    texts, config = {"now": "Delete 3 files?"}, thread()

    def node(state: State) -> State:
        return {"log": [(texts["now"], interrupt(texts["now"]))]}

    graph = chain(saver, node)
    first = the_id(call(graph, {"log": []}, config))
    texts["now"] = "Delete 3000 files?"
    result = call(graph, Command(resume={first: "yes"}), config)
    (question,) = asked(result)
    assert question.value == "Delete 3000 files?"
    assert question.id != first
    assert call(graph, Command(resume="no"), config) == {"log": [("Delete 3000 files?", "no")]}


def test_an_equal_question_at_another_place_is_another_question(saver: Any, call: Call) -> None:
    """Section 5: while the code is unchanged an answer never moves to another site"""
    where, config = {"second": False}, thread()

    def node(state: State) -> State:
        if where["second"]:
            return {"log": [("second", interrupt("sure?"))]}
        return {"log": [("first", interrupt("sure?"))]}

    graph = chain(saver, node)
    first = the_id(call(graph, {"log": []}, config))
    where["second"] = True
    result = call(graph, Command(resume="yes"), config)
    assert the_id(result) != first
    assert call(graph, Command(resume="second yes"), config) == {"log": [("second", "second yes")]}


def helper() -> Any:
    return interrupt("sure?")


def through(name: str) -> Any:
    return name, helper()


def test_one_helper_called_from_two_places_asks_two_questions(saver: Any, call: Call) -> None:
    """Section 5: the site is the whole stack of the user's frames"""
    where, config = {"second": False}, thread()

    def node(state: State) -> State:
        if where["second"]:
            return {"log": [through("second")]}
        return {"log": [through("first")]}

    graph = chain(saver, node)
    call(graph, {"log": []}, config)
    where["second"] = True
    assert len(asked(call(graph, Command(resume="yes"), config))) == 1
    assert call(graph, Command(resume="other yes"), config) == {"log": [("second", "other yes")]}


def test_equal_questions_one_after_the_other_are_told_apart_by_their_order(saver: Any, call: Call) -> None:
    """Section 5: occurrence among questions equal in all else"""

    def node(state: State) -> State:
        return {"log": [interrupt("again?") for _ in range(3)]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume=1), config)
    call(graph, Command(resume=2), config)
    assert call(graph, Command(resume=3), config) == {"log": [1, 2, 3]}


# --- keys and ignored paths ---


def test_a_key_separates_equal_questions(saver: Any, call: Call) -> None:
    """Section 5: keys in another order keep their answers"""
    order, config = ["x", "y"], thread()

    def node(state: State) -> State:
        return {"log": [(k, interrupt("sure?", key=k)) for k in order]}

    graph = chain(saver, node)
    call(graph, {"log": []}, config)
    order.reverse()
    assert asked(call(graph, Command(resume="X"), config))[0].value == "sure?"
    assert {q.key: q.status for q in saver.pending(answerable=False)} == {"x": "answered", "y": "open"}
    assert call(graph, Command(resume="Y"), config) == {"log": [("y", "Y"), ("x", "X")]}


def test_a_key_never_lets_another_payload_pass(saver: Any, call: Call) -> None:
    """Section 5: a key only separates equal payloads"""
    texts, config = {"now": "old?"}, thread()

    def node(state: State) -> State:
        return {"log": [interrupt(texts["now"], key="k")]}

    graph = chain(saver, node)
    call(graph, {"log": []}, config)
    texts["now"] = "new?"
    assert [i.value for i in asked(call(graph, Command(resume="old"), config))] == ["new?"]
    assert call(graph, Command(resume="new"), config) == {"log": ["new"]}


def test_a_changed_key_is_another_question(saver: Any) -> None:
    """Section 5"""
    keys, config = {"now": "k1"}, thread()

    def node(state: State) -> State:
        return {"log": [interrupt("sure?", key=keys["now"])]}

    graph = chain(saver, node)
    first = the_id(graph.invoke({"log": []}, config))
    keys["now"] = "k2"
    assert the_id(graph.invoke(Command(resume=1), config)) != first


def test_a_key_is_text(saver: Any) -> None:
    """Section 5"""

    def node(state: State) -> State:
        return {"log": [interrupt("sure?", key=3)]}  # type: ignore[call-overload]

    with pytest.raises(ValueError, match="`key`"):
        chain(saver, node).invoke({"log": []}, thread())


def test_ignored_paths_may_vary(saver: Any, call: Call) -> None:
    """Section 5: `ignore` names what may vary"""
    n, config = {"now": 1}, thread()

    def node(state: State) -> State:
        n["now"] += 1
        card = {"text": "sure?", "at": n["now"], "items": [{"id": 1, "age": n["now"]}, {"id": 2, "age": -n["now"]}]}
        return {"log": [interrupt(card, ignore=["at", "items[].age"])]}

    graph = chain(saver, node)
    question = the_id(call(graph, {"log": []}, config))
    assert call(graph, Command(resume={question: "yes"}), config) == {"log": ["yes"]}


def test_what_is_not_ignored_may_not_vary(saver: Any, call: Call) -> None:
    """Section 5"""
    n, config = {"now": 1}, thread()

    def node(state: State) -> State:
        return {"log": [interrupt({"text": f"sure {n['now']}?", "at": n["now"]}, ignore=["at"])]}

    graph = chain(saver, node)
    first = the_id(call(graph, {"log": []}, config))
    n["now"] = 2
    assert the_id(call(graph, Command(resume="yes"), config)) != first


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ((1, 2), [1, 2], True),
        (-0.0, 0.0, True),
        (1, 1.0, False),
        (True, 1, False),
        ("1", 1, False),
        (None, False, False),
        ({"a": None}, {}, False),
        ([], {}, False),
    ],
    ids=repr,
)
def test_equal_payloads_are_one_question(saver: Any, before: Any, after: Any, same: bool) -> None:
    """Section 5: the canonical digest says what is equal"""
    payload, config = {"now": before}, thread()

    def node(state: State) -> State:
        return {"log": [interrupt(payload["now"])]}

    graph = chain(saver, node)
    first = the_id(graph.invoke({"log": []}, config))
    payload["now"] = after
    result = graph.invoke(Command(resume="yes"), config)
    assert (result == {"log": ["yes"]}) is same
    if not same:
        assert the_id(result) != first


# --- deploys ---


@pytest.fixture
def deploy() -> Iterator[Deploy]:
    """Return a way to load a module's next version: what its source calls `node` is the node of today."""
    name = "shop_of_the_test"

    def load(source: str) -> Callable[..., Any]:
        module = ModuleType(name)
        code = compile("from waitpoint.types import interrupt\n" + textwrap.dedent(source), f"/app/{name}.py", "exec")
        exec(code, module.__dict__)
        sys.modules[name] = module
        return module.node  # type: ignore[no-any-return]

    yield load
    sys.modules.pop(name, None)


def one(store: Store, node: Callable[..., Any]) -> Any:
    graph = StateGraph(State).add_node("node", node).add_edge(START, "node")
    return graph.compile(checkpointer=store.again())


OLD = """
def node(state):
    return {"log": [("a", interrupt("a?")), ("b", interrupt("b?"))]}
"""

NEW: dict[str, tuple[str, Any]] = {
    "moved down": (
        """
        import math

        def unrelated():
            return math.pi

        def node(state):
            return {"log": [("a", interrupt("a?")), ("b", interrupt("b?"))]}
        """,
        [("a", "A"), ("b", "B")],
    ),
    "rewritten": (
        """
        def node(state):
            first = interrupt("a?")
            print(end="")
            second = interrupt("b?")
            return {"log": [("a", first), ("b", second)]}
        """,
        [("a", "A"), ("b", "B")],
    ),
    "split into helpers": (
        """
        def ask(name):
            return name, interrupt(f"{name}?")

        def node(state):
            return {"log": [ask("a"), ask("b")]}
        """,
        [("a", "A"), ("b", "B")],
    ),
    "reordered": (
        """
        def node(state):
            return {"log": [("b", interrupt("b?")), ("a", interrupt("a?"))]}
        """,
        [("b", "B"), ("a", "A")],
    ),
    "renamed": (
        """
        def another_name(state):
            return {"log": [("a", interrupt("a?")), ("b", interrupt("b?"))]}

        node = another_name
        """,
        [("a", "A"), ("b", "B")],
    ),
    "made a coroutine's neighbour": (
        """
        class Asking:
            def node(self, state):
                return {"log": [("a", interrupt("a?")), ("b", interrupt("b?"))]}

        node = Asking().node
        """,
        [("a", "A"), ("b", "B")],
    ),
}


@pytest.mark.parametrize("change", NEW)
def test_answers_survive_a_deploy_that_keeps_the_questions(store: Store, deploy: Deploy, change: str) -> None:
    """Section 5: if a recorded function is gone or changed, key and payload decide"""
    config = thread()
    old = one(store, deploy(OLD))
    old.invoke({"log": []}, config)
    old.invoke(Command(resume="A"), config)
    source, expected = NEW[change]
    assert one(store, deploy(source)).invoke(Command(resume="B"), config) == {"log": expected}


def test_the_same_code_loaded_again_is_the_same_place(store: Store, deploy: Deploy) -> None:
    """Section 5: another process compiles the same source anew"""
    config = thread()
    one(store, deploy(OLD)).invoke({"log": []}, config)
    one(store, deploy(OLD)).invoke(Command(resume="A"), config)
    assert one(store, deploy(OLD)).invoke(Command(resume="B"), config) == {"log": [("a", "A"), ("b", "B")]}


def test_a_deploy_that_adds_a_question_asks_it(store: Store, deploy: Deploy) -> None:
    """Section 5"""
    config = thread()
    one(store, deploy(OLD)).invoke({"log": []}, config)
    new = one(
        store,
        deploy("""
        def node(state):
            return {"log": [interrupt("first of all?"), interrupt("a?"), interrupt("b?")]}
        """),
    )
    assert [i.value for i in asked(new.invoke(Command(resume="A"), config))] == ["first of all?"]
    assert [i.value for i in asked(new.invoke(Command(resume="F"), config))] == ["b?"]
    assert new.invoke(Command(resume="B"), config) == {"log": ["F", "A", "B"]}


def test_a_deploy_that_drops_the_waiting_question_withdraws_it(store: Store, deploy: Deploy) -> None:
    """Section 5: an open question that an attempt did not reach is withdrawn"""
    config = thread()
    old = one(store, deploy(OLD))
    old.invoke({"log": []}, config)
    second = the_id(old.invoke(Command(resume="A"), config))
    new = one(store, deploy('def node(state):\n    return {"log": [interrupt("a?"), interrupt("c?")]}'))
    result = new.invoke(Command(resume={second: "B"}), config)
    assert [i.value for i in asked(result)] == ["c?"]
    assert new.invoke(Command(resume="C"), config) == {"log": ["A", "C"]}


def test_a_deploy_that_rewords_asks_again(store: Store, deploy: Deploy) -> None:
    """Section 5"""
    config = thread()
    one(store, deploy(OLD)).invoke({"log": []}, config)
    new = one(store, deploy('def node(state):\n    return {"log": [interrupt("Really a?")]}'))
    assert [i.value for i in asked(new.invoke(Command(resume="A"), config))] == ["Really a?"]
    assert new.invoke(Command(resume="RA"), config) == {"log": ["RA"]}


def test_a_deploy_that_only_reorders_equal_questions_goes_by_their_order(store: Store, deploy: Deploy) -> None:
    """Section 5: payloads are all that is left to go by, and they are equal"""
    config = thread()
    twice = 'def node(state):\n    return {"log": [interrupt("sure?"), interrupt("sure?")]}'
    one(store, deploy(twice)).invoke({"log": []}, config)
    one(store, deploy(twice)).invoke(Command(resume=1), config)
    loop = 'def node(state):\n    return {"log": [interrupt("sure?") for _ in range(2)]}'
    assert one(store, deploy(loop)).invoke(Command(resume=2), config) == {"log": [1, 2]}


def test_ids_are_given_once_and_are_the_same_everywhere(store: Store) -> None:
    """Section 5: ids are given once, stored, and the same in result, state, history, stream and list"""
    graph, config = chain(store.saver, ordered(["a"])), thread()
    parts = list(graph.stream({"log": []}, config, stream_mode=["updates", "values", "tasks"]))
    (from_updates,) = next(p["__interrupt__"] for m, p in parts if m == "updates" and "__interrupt__" in p)
    (from_values,) = next(p["__interrupt__"] for m, p in parts if m == "values" and "__interrupt__" in p)
    (from_task,) = (Interrupt(**i) for m, p in parts if m == "tasks" for i in p.get("interrupts", []))
    (from_state,) = graph.get_state(config).interrupts
    (from_history,) = next(s.interrupts for s in graph.get_state_history(config) if s.interrupts)
    (from_list,) = store.again().pending()
    again = asked(chain(store.again(), ordered(["a"])).invoke(None, config))[0]
    shown = (from_updates, from_values, from_state, from_history, from_list, again)
    assert {i.id for i in (from_task, *shown)} == {from_updates.id}


def test_equal_questions_of_different_tasks_are_told_apart_by_their_tasks(saver: Any, call: Call) -> None:
    """Section 5: the task is part of the identity"""

    def again(state: State) -> State:
        return {"log": [interrupt({"about": "a"})]}

    graph, config = chain(saver, ordered(["a"]), again), thread()
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, Command(resume=1), config))
    assert first != second
    assert call(graph, Command(resume=2), config) == {"log": [("a", 1), 2]}


def test_the_ids_of_two_threads_differ(saver: Any) -> None:
    """Section 5"""
    graph = chain(saver, ordered(["a"]))
    found = {the_id(graph.invoke({"log": []}, thread())) for _ in range(3)}
    assert len(found) == 3
