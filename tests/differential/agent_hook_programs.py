"""Agents with middleware, to be played on Waitpoint and on LangChain."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage

from tests.agents.scripted import calls
from tests.differential.agent_programs import SUM, add, fail, greet, program
from tests.differential.agents import Agent, Library


def noting(lib: Library, notes: list[Any], name: str) -> Any:
    """Return middleware that notes its hooks in turn."""

    def noted(hook: str) -> Any:
        def note(self: Any, state: Any, runtime: Any) -> None:
            notes.append((len(notes), name, hook, len(state["messages"])))

        return note

    def around_model(self: Any, request: Any, handler: Any) -> Any:
        notes.append((len(notes), name, "model in"))
        response = handler(request)
        notes.append((len(notes), name, "model out"))
        return response

    def around_tool(self: Any, request: Any, handler: Any) -> Any:
        notes.append((len(notes), name, "tool in", request.tool_call["name"], request.tool.name))
        answer = handler(request)
        notes.append((len(notes), name, "tool out", answer.content))
        return answer

    async def later_model(self: Any, request: Any, handler: Any) -> Any:
        notes.append((len(notes), name, "model in"))
        response = await handler(request)
        notes.append((len(notes), name, "model out"))
        return response

    async def later_tool(self: Any, request: Any, handler: Any) -> Any:
        notes.append((len(notes), name, "tool in", request.tool_call["name"], request.tool.name))
        answer = await handler(request)
        notes.append((len(notes), name, "tool out", answer.content))
        return answer

    hooks: dict[str, Any] = {h: noted(h) for h in ("before_agent", "before_model", "after_model", "after_agent")}
    hooks |= {"wrap_model_call": around_model, "wrap_tool_call": around_tool}
    hooks |= {"awrap_model_call": later_model, "awrap_tool_call": later_tool}
    return type(name, (lib.AgentMiddleware,), hooks)()


@program
def the_order_of_hooks(lib: Library, notes: list[Any]) -> Agent:
    return Agent([SUM, "ok"], [add], [noting(lib, notes, name) for name in ("A", "B", "C")])


@program
def hooks_that_update(lib: Library, notes: list[Any]) -> Agent:
    class State(lib.AgentState):  # type: ignore[name-defined,misc]
        turns: NotRequired[int]

    def count(state: Any, runtime: Any) -> Any:
        return {"turns": state.get("turns", 0) + 1}

    def remark(state: Any, runtime: Any) -> Any:
        return {"messages": [HumanMessage("by the way")]} if state["turns"] == 1 else None

    return Agent(
        [SUM, "ok"], [add], [lib.before_model(count, state_schema=State), lib.before_model(remark, state_schema=State)]
    )


def jump(lib: Library, hook: str, to: str, *, when: int = 0, **update: Any) -> Any:
    """Return middleware whose hook jumps the n-th time."""
    times: list[int] = []

    def jumping(state: Any, runtime: Any) -> Any:
        times.append(1)
        return {"jump_to": to, **update} if len(times) - 1 == when else None

    return getattr(lib, hook)(jumping, can_jump_to=[to])


@program
def a_jump_to_the_end_before_all(lib: Library, notes: list[Any]) -> Agent:
    return Agent([], [add], [jump(lib, "before_agent", "end", messages=[AIMessage("no")])])


@program
def a_jump_to_the_end_before_a_turn(lib: Library, notes: list[Any]) -> Agent:
    return Agent([SUM], [add], [jump(lib, "before_model", "end", when=1), noting(lib, notes, "A")], differs=["jump"])


@program
def a_jump_to_the_end_after_a_turn(lib: Library, notes: list[Any]) -> Agent:
    return Agent(["hm"], [add], [noting(lib, notes, "A"), jump(lib, "after_model", "end")], differs=["jump"])


@program
def a_jump_to_the_model(lib: Library, notes: list[Any]) -> Agent:
    again = jump(lib, "after_model", "model", messages=[HumanMessage("are you sure?")])
    return Agent(["yes", "really"], [add], [noting(lib, notes, "A"), again, noting(lib, notes, "B")])


@program
def a_jump_from_the_end_to_the_model(lib: Library, notes: list[Any]) -> Agent:
    again = jump(lib, "after_agent", "model", messages=[HumanMessage("one more")])
    return Agent([SUM, "yes", "ok"], [add], [again])


@program
def messages_that_a_hook_removes(lib: Library, notes: list[Any]) -> Agent:
    def trim(state: Any, runtime: Any) -> Any:
        return {"messages": [RemoveMessage(id=m.id) for m in state["messages"] if m.type == "human"]}

    return Agent([SUM, "ok"], [add], [lib.after_model(trim)])


@program
def a_model_that_is_asked_again(lib: Library, notes: list[Any]) -> Agent:
    def twice(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except TimeoutError:
            return handler(request.override(messages=[*request.messages, HumanMessage("again")]))

    return Agent([TimeoutError("slow"), "ok"], [add], [lib.wrap_model_call(twice)])


@program
def a_model_that_is_not_asked(lib: Library, notes: list[Any]) -> Agent:
    return Agent([], [add], [lib.wrap_model_call(lambda request, handler: AIMessage("cached"))])


@program
def an_answer_rewritten(lib: Library, notes: list[Any]) -> Agent:
    def louder(request: Any, handler: Any) -> Any:
        response = handler(request)
        return lib.ModelResponse(result=[AIMessage(response.result[0].content.upper())])

    return Agent(["ok"], [add], [lib.wrap_model_call(louder)])


@program
def tools_chosen_for_a_turn(lib: Library, notes: list[Any]) -> Agent:
    def fewer(request: Any, handler: Any) -> Any:
        notes.append([t.name for t in request.tools])
        return handler(request.override(tools=[t for t in request.tools if t.name == "add"]))

    return Agent([SUM, "ok"], [add, greet], [lib.wrap_model_call(fewer)])


@program
def a_tool_that_the_agent_does_not_have(lib: Library, notes: list[Any]) -> Agent:
    more = lib.wrap_model_call(lambda request, handler: handler(request.override(tools=[*request.tools, greet])))
    return Agent([calls(("greet", "c1", {"name": "ana"})), "ok"], [add], [more])


@program
def a_tool_that_middleware_runs(lib: Library, notes: list[Any]) -> Agent:
    def more(request: Any, handler: Any) -> Any:
        return handler(request.override(tools=[*request.tools, greet]))

    def ours(request: Any, handler: Any) -> Any:
        notes.append(None if request.tool is None else request.tool.name)
        return handler(request.override(tool=greet) if request.tool is None else request)

    return Agent(
        [calls(("greet", "c1", {"name": "ana"}), ("add", "c2", {"a": 1, "b": 2})), "ok"],
        [add],
        [lib.wrap_model_call(more), lib.wrap_tool_call(ours)],
    )


@program
def tools_of_middleware(lib: Library, notes: list[Any]) -> Agent:
    def shown(request: Any, handler: Any) -> Any:
        notes.append([t.name for t in request.tools])
        return handler(request)

    return Agent([calls(("greet", "c1", {"name": "ana"})), "ok"], [add], [lib.wrap_model_call(shown, tools=[greet])])


@program
def updates_beside_the_answer(lib: Library, notes: list[Any]) -> Agent:
    class State(lib.AgentState):  # type: ignore[name-defined,misc]
        cost: NotRequired[Annotated[list[int], operator.add]]

    def around(cost: int) -> Any:
        def priced(request: Any, handler: Any) -> Any:
            response = handler(request)
            return lib.ExtendedModelResponse(response, command=lib.Command(update={"cost": [cost]}))

        return lib.wrap_model_call(priced, state_schema=State, name=f"priced{cost}")

    return Agent([SUM, "ok"], [add], [around(1), around(2)])


@program
def updates_of_a_call_that_was_repeated(lib: Library, notes: list[Any]) -> Agent:
    def twice(request: Any, handler: Any) -> Any:
        handler(request)
        return handler(request)

    def remarked(request: Any, handler: Any) -> Any:
        response = handler(request)
        remark = HumanMessage(f"said {response.result[0].content}")
        return lib.ExtendedModelResponse(response, command=lib.Command(update={"messages": [remark]}))

    return Agent(["one", "two"], [add], [lib.wrap_model_call(twice), lib.wrap_model_call(remarked)])


@program
def a_call_that_is_rewritten(lib: Library, notes: list[Any]) -> Agent:
    def more(request: Any, handler: Any) -> Any:
        args = {**request.tool_call["args"], "b": 40}
        return handler(request.override(tool_call={**request.tool_call, "args": args}))

    return Agent([SUM, "ok"], [add], [lib.wrap_tool_call(more)])


@program
def a_call_that_is_not_made(lib: Library, notes: list[Any]) -> Agent:
    def no(request: Any, handler: Any) -> Any:
        return ToolMessage("not today", tool_call_id=request.tool_call["id"], name=request.tool_call["name"])

    return Agent([SUM, "ok"], [add], [lib.wrap_tool_call(no)])


@program
def a_call_that_is_repeated(lib: Library, notes: list[Any]) -> Agent:
    def flaky(what: str) -> str:
        """Fail once."""
        notes.append(what)
        if len(notes) == 1:
            raise TimeoutError("slow")
        return f"{what} after {len(notes)}"

    def again(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except TimeoutError:
            return handler(request)

    return Agent([calls(("flaky", "c1", {"what": "tea"})), "ok"], [flaky], [lib.wrap_tool_call(again)])


@program
def an_error_that_middleware_tells(lib: Library, notes: list[Any]) -> Agent:
    def told(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(f"failed: {error}", tool_call_id=request.tool_call["id"], status="error")

    return Agent([calls(("fail", "c1", {"how": "badly"})), "ok"], [fail], [lib.wrap_tool_call(told)])


@program
def answers_that_a_hook_gives(lib: Library, notes: list[Any]) -> Agent:
    def denied(state: Any, runtime: Any) -> Any:
        found = [c for c in state["messages"][-1].tool_calls if c["name"] == "greet"]
        return (
            {"messages": [ToolMessage("denied", tool_call_id=c["id"], name="greet") for c in found]} if found else None
        )

    both = calls(("greet", "c1", {"name": "ana"}), ("add", "c2", {"a": 1, "b": 2}))
    return Agent([both, calls(("greet", "c3", {"name": "bo"})), "ok"], [add, greet], [lib.after_model(denied)])


@program
def the_name_of_an_agent(lib: Library, notes: list[Any]) -> Agent:
    return Agent([SUM, "ok"], [add], options={"name": "clerk"})


@program
def context_for_all(lib: Library, notes: list[Any]) -> Agent:
    @dataclass
    class Context:
        user: str

    def note(state: Any, runtime: Any) -> None:
        notes.append(("hook", runtime.context.user))

    def whose(runtime: lib.ToolRuntime) -> str:
        """Say whose."""
        return f"of {runtime.context.user}, {len(runtime.state['messages'])} messages, {runtime.tool_call_id}"

    return Agent(
        [calls(("whose", "c1", {})), "ok"],
        [whose],
        [lib.before_model(note)],
        {"context_schema": Context},
        call={"context": Context("ana")},
    )


@program
def keys_that_are_private(lib: Library, notes: list[Any]) -> Agent:
    from waitpoint.agents.state import PrivateStateAttr as ours

    private = ours if lib.name == "waitpoint" else __import__("langchain.agents.middleware.types", fromlist=["x"])
    mark = private if lib.name == "waitpoint" else private.PrivateStateAttr

    class State(lib.AgentState):  # type: ignore[name-defined,misc]
        secret: NotRequired[Annotated[str, mark]]
        topic: NotRequired[str]

    def set_it(state: Any, runtime: Any) -> Any:
        notes.append((state.get("secret"), state.get("topic")))
        return {"secret": "s"}

    def see_it(state: Any, runtime: Any) -> None:
        notes.append((state.get("secret"), state.get("topic")))

    first = lib.before_agent(set_it, state_schema=State)
    return Agent(
        ["ok"], [add], [first, lib.after_model(see_it, state_schema=State)], keys={"topic": "t", "secret": "x"}
    )
