"""Makes an agent of its data, with the names of either library."""

import importlib
from collections import Counter
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel

from tests.agents.scripted import Scripted, calls
from tests.differential.agents import Library
from tests.differential.generated.agent_shapes import Said, Shape
from tests.differential.generated.graph_building import later

ARGS: dict[str, dict[str, Any]] = {
    "add": {"a": 1, "b": 2},
    "count": {"what": "notes"},
    "login": {"user": "ana"},
    "slow": {"what": "tea"},
    "fail": {"how": "badly"},
    "flaky": {"what": "tea"},
    "several": {"what": "sky"},
    "say": {"what": "so"},
    "last": {"text": "bye"},
    "strange": {},
    "misfit": {"a": "one"},
    "ask": {"what": "way"},
    "clerk": {"task": "sums"},
}
EDITED: dict[str, dict[str, Any]] = {**{name: {**args} for name, args in ARGS.items()}, "add": {"a": 5, "b": 6}}
ENOUGH = 12  # texts that the model has when its script is over


class Weather(BaseModel):
    """The weather."""

    sky: str
    degrees: int


class Clerk(Scripted):
    """A model that asks, and is done with the answer, whichever instance of it is called."""

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        is_answered = isinstance(messages[-1], ToolMessage)
        ask = calls(("ask_clerk", "k1", {"what": str(messages[-1].content)}))
        message = AIMessage("clerk done") if is_answered else ask
        return ChatResult(generations=[ChatGeneration(message=message)])


class Builder:
    """Builds with one library. What tools do is noted in `done`."""

    def __init__(self, library: Library, shape: Shape) -> None:
        self.library, self.shape = library, shape
        self.done: Counter[str] = Counter()
        self.model = Scripted(*self.replies("c", shape.replies), *["over"] * ENOUGH)

    def replies(self, letter: str, said: tuple[Said, ...]) -> list[Any]:
        """Return what the model says, its calls numbered."""
        out: list[Any] = []
        for turn, reply in enumerate(said):
            if reply.fails:
                out.append(TimeoutError("no answer"))
                continue
            made = [
                ("add" if name == "misfit" else name, f"{letter}{turn}.{n}", ARGS[name])
                for n, name in enumerate(reply.tools)
            ]
            if self.shape.result == "tool" and not made and letter == "c":
                made = [("Weather", f"{letter}{turn}.w", {"sky": "blue", "degrees": turn if turn % 2 else "cold"})]
            text = '{"sky": "grey", "degrees": 3}' if self.shape.result == "provider" and not made else f"turn {turn}"
            out.append(calls(*made, text=text))
        return out

    def agent(self) -> Any:
        """Return the agent, with a saver of its own."""
        lib, shape = self.library, self.shape
        options: dict[str, Any] = {"system_prompt": "be kind"} if shape.prompt else {}
        if shape.result == "tool":
            options["response_format"] = lib.ToolStrategy(Weather)
        elif shape.result == "provider":
            options["response_format"] = lib.ProviderStrategy(Weather)

        class State(lib.AgentState):  # type: ignore[name-defined,misc]
            user: NotRequired[Annotated[str, later]]

        return lib.create_agent(
            self.model, self.tools(), middleware=self.middleware(), state_schema=State, checkpointer=self.saver(), **options
        )  # fmt: skip

    def saver(self) -> Any:
        name = "langgraph" if self.library.name == "langchain" else "waitpoint"
        return importlib.import_module(f"{name}.checkpoint.memory").InMemorySaver()

    # --- tools ---

    def tools(self) -> list[Any]:
        """Return all tools: the model calls those of its script."""
        return [*self.simple_tools(), *self.failing_tools(), *self.telling_tools(), self.clerk()]

    def simple_tools(self) -> list[Any]:
        done = self.done

        @tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            done["add"] += 1
            return a + b

        @tool
        def slow(what: str) -> list[dict[str, str]]:
            """Make something."""
            return [{"type": "text", "text": f"made {what}"}]

        @tool(return_direct=True)
        def last(text: str) -> str:
            """Say the last word."""
            done["last"] += 1
            return text

        return [add, slow, last]

    def failing_tools(self) -> list[Any]:
        done = self.done

        @tool
        def fail(how: str) -> str:
            """Fail."""
            done["fail"] += 1
            raise ValueError(how)

        @tool
        def flaky(what: str) -> str:
            """Fail every other time."""
            done["flaky"] += 1
            if done["flaky"] % 2:
                raise TimeoutError("slow")
            return f"{what} at last"

        return [fail, flaky]

    def telling_tools(self) -> list[Any]:
        lib = self.library

        def count(what: str, state: Annotated[Any, lib.InjectedState]) -> str:
            """Count messages."""
            return f"{what}: {[m.type for m in state['messages']].count('ai')} by {state.get('user')}"

        def login(user: str, runtime: lib.ToolRuntime) -> Any:  # type: ignore[name-defined]
            """Log in."""
            welcome = ToolMessage(f"welcome {user}", tool_call_id=runtime.tool_call_id, name="login")
            return lib.Command(update={"user": user, "messages": [welcome]})

        def several(what: str, call: Annotated[str, lib.InjectedToolCallId]) -> Any:
            """Look."""
            return [lib.Command(update={"user": what}), ToolMessage("looked", tool_call_id=call, name="several")]

        def say(what: str, runtime: lib.ToolRuntime) -> str:  # type: ignore[name-defined]
            """Say something meanwhile."""
            runtime.stream_writer({"said": what})
            return f"said {what}"

        def ask(what: str) -> str:
            """Ask somebody."""
            return f"answered {lib.interrupt(f'which {what}?')}"

        return [count, login, several, say, ask]

    def clerk(self) -> Any:
        """Return a tool that runs another agent, which asks too."""
        lib = self.library

        @tool
        def ask_clerk(what: str) -> str:
            """Ask somebody."""
            return f"the clerk heard {lib.interrupt(f'clerk: {what}?')}"

        @tool
        def clerk(task: str) -> str:
            """Let another agent do it."""
            inner = lib.create_agent(Clerk(), [ask_clerk], name="clerk")
            return str(inner.invoke({"messages": [("user", task)]})["messages"][-2].content)

        return clerk

    # --- what stands around ---

    def middleware(self) -> list[Any]:
        lib, shape = self.library, self.shape
        out = [self.made(name) for name in shape.around]
        if shape.mode:
            rules = {tool: {"allowed_decisions": list(allowed)} for tool, allowed in shape.gated}
            out.insert(0, lib.HumanInTheLoopMiddleware(rules, interrupt_mode=shape.mode))
        return out

    def made(self, name: str) -> Any:
        """Return a middleware by its name here."""
        lib = self.library
        if name == "tool retry":
            return lib.ToolRetryMiddleware(max_retries=1, initial_delay=0.0, retry_on=(TimeoutError,))
        if name == "tool error":
            return lib.ToolErrorMiddleware(on_error=told_error, aon_error=told_error_later)
        if name == "model retry":
            return lib.ModelRetryMiddleware(max_retries=1, initial_delay=0.0)
        if name == "fallback":
            return lib.ModelFallbackMiddleware(Scripted(*["instead"] * ENOUGH))
        if name == "model limit":
            return lib.ModelCallLimitMiddleware(thread_limit=5, run_limit=3)
        if name == "tool limit":
            return lib.ToolCallLimitMiddleware(run_limit=3, exit_behavior="continue")
        if name == "limit of one":
            return lib.ToolCallLimitMiddleware(tool_name="add", run_limit=1, exit_behavior="error")
        if name == "dynamic":
            return lib.dynamic_prompt(lambda request: f"{len(request.state['messages'])} so far")
        return self.hooks()

    def hooks(self) -> Any:
        """Return a middleware with all of the hooks around turns, one of which adds a message."""
        done = self.done

        def noted(hook: str) -> Any:
            def note(self: Any, state: Any, runtime: Any) -> Any:
                done[f"{hook} {len(state['messages'])}"] += 1
                return {"messages": [HumanMessage("go on")]} if hook == "before_agent" else None

            return note

        names = ("before_agent", "before_model", "after_model", "after_agent")
        return type("Hooks", (self.library.AgentMiddleware,), {name: noted(name) for name in names})()


def told_error(error: Exception, request: Any) -> str | None:
    return f"told: {error}" if isinstance(error, ValueError) else None


async def told_error_later(error: Exception, request: Any) -> str | None:
    return told_error(error, request)
