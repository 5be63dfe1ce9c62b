"""Agents without approvals, to be played on Waitpoint and on LangChain."""

from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException, tool
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.agents.scripted import calls
from tests.differential.agents import Agent, Library, Program

PROGRAMS: list[Program] = []


def program(make: Program) -> Program:
    """Put a program on the list."""
    PROGRAMS.append(make)
    return make


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


@tool(return_direct=True)
def final(text: str) -> str:
    """Say the last word."""
    return text


@tool
def fail(how: str) -> str:
    """Fail."""
    raise ValueError(how)


class Weather(BaseModel):
    """The weather."""

    sky: str
    degrees: int


@dataclass
class Place:
    """A place."""

    name: str


class Mood(TypedDict):
    """A mood."""

    good: bool


SUM = calls(("add", "c1", {"a": 1, "b": 2}))


@program
def no_tools(lib: Library, notes: list[Any]) -> Agent:
    return Agent(["hi"])


@program
def one_tool(lib: Library, notes: list[Any]) -> Agent:
    return Agent([SUM, "3"], [add])


@program
def tools_at_once(lib: Library, notes: list[Any]) -> Agent:
    both = calls(("add", "c1", {"a": 1, "b": 2}), ("greet", "c2", {"name": "ana"}), ("add", "c3", {"a": 3, "b": 4}))
    return Agent([both, SUM, "done"], [add, greet])


@program
def an_unknown_tool(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("sub", "c1", {})), "sorry"], [add, greet])


@program
def arguments_that_do_not_fit(lib: Library, notes: list[Any]) -> Agent:
    def read(state: Annotated[dict[str, Any], lib.InjectedState], path: str) -> str:
        """Read a file."""
        return path

    def statuses(state: Any, runtime: Any) -> None:
        notes.extend((m.status, "state" in m.content) for m in state["messages"] if isinstance(m, ToolMessage))

    before = lib.before_model(statuses)
    return Agent([calls(("read", "c1", {"path": [1]})), calls(("read", "c2", {"path": "a"})), "ok"], [read], [before])


@program
def two_arguments_that_do_not_fit(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("add", "c1", {"a": "one"})), "ok"], [add])


@program
def a_tool_raises(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("fail", "c1", {"how": "badly"}))], [fail])


@program
def a_tool_exception_that_the_tool_handles(lib: Library, notes: list[Any]) -> Agent:
    def refuse(what: str) -> str:
        """Refuse."""
        raise ToolException(f"no {what}")

    return Agent(
        [calls(("refuse", "c1", {"what": "way"})), "ok"], [StructuredTool.from_function(refuse, handle_tool_error=True)]
    )


@program
def results_of_all_forms(lib: Library, notes: list[Any]) -> Agent:
    def give(form: str) -> Any:
        """Give a result."""
        return {
            "object": {"grüße": [1, None, True]},
            "number": 1.5,
            "none": None,
            "blocks": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "list": [1, 2],
            "empty": [],
            "instance": Place("here"),
        }[form]

    forms = ("object", "number", "none", "blocks", "list", "empty", "instance")
    return Agent([calls(*(("give", f"c{n}", {"form": form}) for n, form in enumerate(forms))), "ok"], [give])


@program
def a_result_with_an_artifact(lib: Library, notes: list[Any]) -> Agent:
    @tool(response_format="content_and_artifact")
    def make(what: str) -> Any:
        """Make something."""
        return f"made {what}", {"what": what}

    return Agent([calls(("make", "c1", {"what": "tea"})), "ok"], [make])


@program
def a_tool_gives_its_own_message(lib: Library, notes: list[Any]) -> Agent:
    def own(runtime: lib.ToolRuntime) -> Any:
        """Answer."""
        return ToolMessage("mine", tool_call_id=runtime.tool_call_id, name="renamed", status="error")

    return Agent([calls(("own", "c1", {})), "ok"], [own])


@program
def a_tool_updates_the_state(lib: Library, notes: list[Any]) -> Agent:
    class State(lib.AgentState):  # type: ignore[name-defined,misc]
        user: NotRequired[str]

    def login(user: str, runtime: lib.ToolRuntime) -> Any:
        """Log in."""
        answer = ToolMessage(f"welcome {user}", tool_call_id=runtime.tool_call_id)
        return lib.Command(update={"user": user, "messages": [answer]})

    def whoami(state: Annotated[Any, lib.InjectedState]) -> str:
        """Say who."""
        return str(state["user"])

    return Agent(
        [calls(("login", "c1", {"user": "ana"})), calls(("whoami", "c2", {})), "ok"],
        [login, whoami],
        options={"state_schema": State},
    )


@program
def a_tool_gives_several_updates(lib: Library, notes: list[Any]) -> Agent:
    class State(lib.AgentState):  # type: ignore[name-defined,misc]
        seen: NotRequired[str]

    def look(runtime: lib.ToolRuntime) -> Any:
        """Look."""
        answer = ToolMessage("looked", tool_call_id=runtime.tool_call_id, name="look")
        return [lib.Command(update={"seen": "sky"}), answer]

    return Agent([calls(("look", "c1", {})), "ok"], [look], options={"state_schema": State})


@program
def return_direct(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("final", "c1", {"text": "bye"}))], [add, final])


@program
def return_direct_of_all_calls(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("final", "c1", {"text": "a"}), ("final", "c2", {"text": "b"}))], [add, final])


@program
def return_direct_beside_another_call(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("final", "c1", {"text": "a"}), ("add", "c2", {"a": 1, "b": 1})), "ok"], [add, final])


@program
def a_result_by_a_tool(lib: Library, notes: list[Any]) -> Agent:
    found = calls(("Weather", "w1", {"sky": "blue", "degrees": 20}))
    return Agent([SUM, found], [add], options={"response_format": lib.ToolStrategy(Weather)})


@program
def a_result_by_the_provider(lib: Library, notes: list[Any]) -> Agent:
    return Agent(
        [SUM, '{"sky": "blue", "degrees": 20}'], [add], options={"response_format": lib.ProviderStrategy(Weather)}
    )


@program
def a_result_by_what_the_model_can(lib: Library, notes: list[Any]) -> Agent:
    return Agent(
        ['{"name": "here"}'], options={"response_format": Place}, model={"profile": {"structured_output": True}}
    )


@program
def a_result_as_a_dataclass(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("Place", "p1", {"name": "here"}))], [add], options={"response_format": Place})


@program
def a_result_as_a_typed_dict(lib: Library, notes: list[Any]) -> Agent:
    return Agent([calls(("Mood", "m1", {"good": True}))], options={"response_format": Mood})


@program
def a_result_by_a_json_schema(lib: Library, notes: list[Any]) -> Agent:
    schema = {"title": "count", "description": "A count.", "type": "object", "properties": {"n": {"type": "integer"}}}
    return Agent([calls(("count", "n1", {"n": 1}))], [add], options={"response_format": schema})


@program
def a_result_of_a_union(lib: Library, notes: list[Any]) -> Agent:
    return Agent(
        [calls(("Place", "p1", {"name": "here"}))],
        [add],
        options={"response_format": lib.ToolStrategy(Weather | Place)},
    )


@program
def a_result_with_a_text_of_its_own(lib: Library, notes: list[Any]) -> Agent:
    strategy = lib.ToolStrategy(Weather, tool_message_content="noted")
    return Agent(
        [calls(("Weather", "w1", {"sky": "grey", "degrees": 3}))], [add], options={"response_format": strategy}
    )


@program
def a_result_beside_a_call(lib: Library, notes: list[Any]) -> Agent:
    both = calls(("add", "c1", {"a": 1, "b": 2}), ("Weather", "w1", {"sky": "grey", "degrees": 3}))
    return Agent([both], [add], options={"response_format": lib.ToolStrategy(Weather)})


@program
def a_misfit_told_in_a_text(lib: Library, notes: list[Any]) -> Agent:
    wrong, right = ({"sky": "grey", "degrees": d} for d in ("cold", 3))
    strategy = lib.ToolStrategy(Weather, handle_errors="again, please")
    return Agent(
        [calls(("Weather", "w1", wrong)), calls(("Weather", "w2", right))],
        [add],
        options={"response_format": strategy},
        differs=["status"],
    )


@program
def a_misfit_told_by_a_function(lib: Library, notes: list[Any]) -> Agent:
    def told(error: Exception) -> str:
        notes.append(type(error).__name__)
        return type(error).__name__

    two = calls(("Weather", "w1", {"sky": "grey", "degrees": 3}), ("Weather", "w2", {"sky": "blue", "degrees": 3}))
    right = calls(("Weather", "w3", {"sky": "grey", "degrees": 3}))
    strategy = lib.ToolStrategy(Weather, handle_errors=told)
    return Agent([two, right], [add], options={"response_format": strategy}, differs=["status"])


@program
def a_misfit_that_is_not_told(lib: Library, notes: list[Any]) -> Agent:
    strategy = lib.ToolStrategy(Weather, handle_errors=False)
    return Agent([calls(("Weather", "w1", {"sky": 1}))], [add], options={"response_format": strategy})


@program
def a_misfit_of_the_provider(lib: Library, notes: list[Any]) -> Agent:
    return Agent(["no JSON"], [add], options={"response_format": lib.ProviderStrategy(Weather)})


@program
def a_system_prompt(lib: Library, notes: list[Any]) -> Agent:
    return Agent([SUM, "ok"], [add], options={"system_prompt": "be kind"})


@program
def a_dynamic_prompt(lib: Library, notes: list[Any]) -> Agent:
    @lib.dynamic_prompt  # type: ignore[misc]
    def prompt(request: Any) -> str:
        return f"{len(request.state['messages'])} so far; was {request.system_prompt}"

    return Agent([SUM, "ok"], [add], [prompt], {"system_prompt": "be kind"})


@program
def a_dynamic_prompt_as_a_message(lib: Library, notes: list[Any]) -> Agent:
    return Agent(["ok"], [add], [lib.dynamic_prompt(lambda request: SystemMessage([{"type": "text", "text": "x"}]))])


class Deep(BaseModel):
    """Arguments with limits."""

    count: int = Field(gt=0, description="How many.")
    tags: list[str] = Field(default_factory=list)


@program
def a_tool_with_a_schema_class(lib: Library, notes: list[Any]) -> Agent:
    @tool(args_schema=Deep)
    def many(count: int, tags: list[str]) -> str:
        """Take many."""
        return f"{count} {tags}"

    return Agent(
        [calls(("many", "c1", {"count": 2})), calls(("many", "c2", {"count": 1, "tags": ["a"]})), "ok"], [many]
    )


@program
def a_tool_with_a_json_schema(lib: Library, notes: list[Any]) -> Agent:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    made = StructuredTool(name="count", description="Count.", args_schema=schema, func=lambda **given: f"{given}")
    return Agent([calls(("count", "c1", {"n": 1})), "ok"], [made])


@program
def a_provider_tool(lib: Library, notes: list[Any]) -> Agent:
    def shown(request: Any, handler: Any) -> Any:
        notes.append([t if isinstance(t, dict) else t.name for t in request.tools])
        return handler(request)

    return Agent(["ok"], [add, {"type": "web_search"}], [lib.wrap_model_call(shown)])
