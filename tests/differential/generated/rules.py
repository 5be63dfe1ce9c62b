"""What is meant to differ: one rule for each, with the words of the page that tells users of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from tests.differential import play
from tests.differential.generated import telling
from tests.differential.generated.graph_shapes import Graph, inner_graphs

RuleT = TypeVar("RuleT", bound=Callable[..., Any])
DOCUMENTED: dict[str, str] = {}


def documented(sentence: str) -> Callable[[RuleT], RuleT]:
    """Say where the page about the differences has the one that a rule levels."""

    def named(rule: RuleT) -> RuleT:
        DOCUMENTED[sentence] = rule.__name__
        return rule

    return named


# --- what a user does differently ---

ASKING = ("ask", "asks")  # bodies, or tasks


@documented("answers go to questions by their order")
def beside(kinds: tuple[str, ...], asking: str) -> tuple[str, ...]:
    """Return what may stand beside questions: after another answer or a caught error, a task there takes an old answer."""
    return tuple(kind for kind in kinds if asking == "ask" or kind != "caught")


@documented("answers go to questions by their order")
def may_be_bare(graph: Graph) -> bool:
    """Return whether answers may be without ids: one to a graph in a node is taken for the node's next question there."""
    nodes = [node for inner in (graph, *inner_graphs(graph)) for node in inner.nodes]
    kinds = [[act.kind for act in node.acts] for node in nodes]
    return all(found != ["call", "ask"] for found in kinds)


@documented("new input on a waiting thread drops its question")
def new_input() -> bool:
    """New input closes what is open, by an option here."""
    return True


@documented("a partial answer runs unanswered siblings again")
def partial(modes: tuple[str, ...]) -> bool:
    """Some of several questions are answered where the runs of the others are not shown."""
    return not {"tasks", "debug", "checkpoints", "custom", "messages"} & set(modes)


@documented("a run that goes on may take two steps more than `recursion_limit`")
def limit(given: Any, kind: str) -> int:
    """Return how many steps more a call gets here."""
    return 0 if isinstance(given, dict) else 1 if kind == "replay" else 2


@documented("a run that goes on may take two steps more than `recursion_limit`")
def is_cut(came: Any, kind: str) -> bool:
    """Return whether a run that went on was cut: how far it came is not the same."""
    return kind != "input" and "GraphRecursionError" in (came, came[-1] if isinstance(came, tuple) else None)


@documented("a join that was left half done counts on with the next input")
def begins_anew(graph: Graph) -> bool:
    """Return whether new input comes to the same: it does where nothing is half done."""
    return all(edge.kind != "join" for edge in graph.edges)


@documented("a replay goes past the first breakpoint")
def stops_again(graph: Graph) -> bool:
    """Return whether a run from an old checkpoint comes to the same: it does without breakpoints."""
    return not graph.before and not graph.after


@documented("a fork or a copy of an old checkpoint may leave graphs with a memory at their newest state")
def copies_all(graph: Graph) -> bool:
    """Return whether a copy comes to the same."""
    return all(inner.memory is not True for inner in inner_graphs(graph))


@documented('with `durability="sync"`, a graph with `checkpointer=False` fails')
def durability_for(graph: Graph, durability: str | None) -> str | None:
    """Return a durability that works there; with `exit`, a graph that a function called runs again there."""
    calls = durability == "exit" and any(inner_graphs(graph))
    return None if calls or any(inner.memory is False for inner in inner_graphs(graph)) else durability


@documented("an update without `as_node` goes on from the node that ran last")
def chooses_itself(snapshot: Any, *, only_edges: bool) -> bool:
    """Return whether `as_node` may be left out: after a step of nodes reached by edges, and where nothing has run."""
    if snapshot.metadata is None or snapshot.parent_config is None:
        return True
    return only_edges and snapshot.metadata["source"] == "loop"


@documented("an update as a node that is due is its result in the history")
@documented("a failed task has no result in the history, whatever its error handler returned")
def without_results(told: dict[str, Any]) -> None:
    """Leave out the results of tasks, in the history of a thread that was updated, or of one with error handlers."""
    for task in told["tasks"]:
        task["result"] = None


@documented("and those that a durable record rests on")
def is_without_history(durability: str | None, *, in_order: bool) -> bool:
    """Return whether results of tasks side by side make the history differ."""
    return durability == "exit" and not in_order


# --- what is told differently ---


@documented("an update of a thread that waits drops what finished tasks of the step wrote, in memories too")
def loses_nothing(snapshot: Any, graph: Graph) -> bool:
    """Return whether no task of the step that waits has finished, and no graph with a memory has begun in it."""
    return all(task.result is None for task in snapshot.tasks) and (not snapshot.interrupts or copies_all(graph))


@documented("and those that a durable record rests on")
def state(told: dict[str, Any], durability: str | None) -> dict[str, Any]:
    """With `exit`, whether there is a checkpoint before this one is left out."""
    if durability == "exit":
        del told["has_parent"]
    without_the_past(told)
    return told


@documented("a finished task shows its nested graph as it paused last")
def without_the_past(told: dict[str, Any]) -> None:
    """Leave out the state of graphs in tasks that have finished."""
    for task in told["tasks"]:
        if task["result"] is not None:
            task["state"] = None
        elif isinstance(task["state"], dict):
            without_the_past(task["state"])


@documented("the history has the last question of each task")
def listed(told: dict[str, Any], durability: str | None, *, was_updated: bool) -> dict[str, Any]:
    """In the history each task has its last question; with `exit`, results of tasks are left out."""
    del told["interrupts"]
    if durability == "exit":
        told["tasks"] = [task["name"] for task in state(told, durability)["tasks"]]
        return told
    if was_updated:
        without_results(told)
    for task in told["tasks"]:
        task["interrupts"] = task["interrupts"][-1:]
        task["error"] = None
    return told


def result(told: Any) -> Any:
    """Return what a call returned, its questions in an order of their own."""
    if isinstance(told, dict) and "__interrupt__" in told:
        told["__interrupt__"].sort(key=str)
    return told


@documented("what a task of a nested `entrypoint` asks is listed twice in the state")
def asked_once(questions: tuple[Any, ...]) -> list[Any]:
    """Return the values of questions, each id once."""
    return telling.questions({question.id: question for question in questions}.values())


def error(raised: BaseException) -> str:
    """Return the class of an error."""
    kind = type(raised).__name__
    return play.KINDS.get(kind, kind)


@documented("`tasks` has them per task, `checkpoints` and `debug` too")
def without_repeated(found: list[Any]) -> list[Any]:
    """Leave out checkpoints that are shown again, with the questions at which the run rests."""
    seen: set[Any] = set()
    out = []
    for namespace, mode, data in found:
        shown = data["payload"] if mode == "debug" else data
        if mode == "checkpoints" or (mode == "debug" and data["type"] == "checkpoint"):
            key = (mode, shown["config"]["configurable"]["checkpoint_id"])
            if key in seen:
                continue
            seen.add(key)
        out.append((namespace, mode, data))
    return out


@documented("on a resume, `tasks` and `debug` show tasks as started that had finished before")
def without_idle(found: list[Any]) -> list[Any]:
    """Leave out starts without an end."""

    def which(mode: str, data: Any) -> tuple[str, Any]:
        if mode == "debug" and data["type"] != "checkpoint":
            return mode, data["payload"]
        return mode, data if mode == "tasks" else {}

    tasks = [which(mode, data) for _, mode, data in found]
    ended = [(mode, data["id"]) for mode, data in tasks if "result" in data]
    idle = ["input" in data and (mode, data["id"]) not in ended for mode, data in tasks]
    return [part for part, is_idle in zip(found, idle, strict=True) if not is_idle]


@documented("a task whose error the `entrypoint` caught runs again on each resume")
@documented("`tasks` and `debug` show no end of a task that commands its parent")
@documented("streams show an error handler as a task of its own")
def without_tasks(found: list[Any], names: Collection[str]) -> list[Any]:
    """Leave out starts and ends of tasks with these names."""

    def is_one(mode: str, data: Any) -> bool:
        shown = data["payload"] if mode == "debug" else data
        return mode in {"tasks", "debug"} and shown.get("name") in names

    return [(namespace, mode, data) for namespace, mode, data in found if not is_one(mode, data)]


@documented("streams show an error handler as a task of its own")
def by_nodes(found: list[Any]) -> list[Any]:
    """Name the updates of error handlers after their nodes."""
    out = []
    for namespace, mode, data in found:
        if mode == "updates":
            data = {key.removeprefix("__error_handler__"): part for key, part in data.items()}
        out.append((namespace, mode, data))
    return out


@documented("one `__interrupt__` chunk for each paused task")
def asked_last(found: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the parts without questions, and the questions, which are shown once and not in graphs inside."""
    out, asked, values = [], [], {}
    for namespace, mode, data in found:
        if mode in {"values", "updates"} and isinstance(data, dict) and "__interrupt__" in data:
            if not namespace:
                asked += telling.questions(data["__interrupt__"]) or ["breakpoint"]
            data = {key: part for key, part in data.items() if key != "__interrupt__"}
            if mode == "updates" or values.get(namespace) == telling.told(data):
                continue
        if mode == "values":
            values[namespace] = telling.told(data)
        out.append((namespace, mode, data))
    return out, sorted(set(map(str, asked)))


@documented("with `exit`, parts name the parent of the newest stored checkpoint as theirs")
def without_parents(told: Any) -> None:
    """Leave out whether a shown checkpoint has one before it."""
    if isinstance(told, dict):
        told.pop("has_parent", None)
        without_parents(told.get("payload"))


def parts(found: list[Any], *, in_order: bool, durability: str | None) -> list[Any]:
    """Return the parts of a stream: as they came, or those of tasks side by side in an order of their own."""
    names = telling.Names(numbered=in_order)
    found, asked = asked_last(by_nodes(without_idle(without_repeated(found))))
    out = [(names.namespace(namespace), mode, telling.told_part(mode, data, names)) for namespace, mode, data in found]
    if durability == "exit":
        for *_, told in out:
            without_parents(told)
    if in_order:
        return [*out, asked]
    steps = [part for part in out if not part[0] and part[1] in {"values", "checkpoints"}]
    return [*sorted(steps, key=lambda part: part[1]), *sorted((p for p in out if p not in steps), key=repr), asked]
