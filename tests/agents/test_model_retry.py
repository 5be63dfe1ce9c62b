"""ModelRetryMiddleware and ModelFallbackMiddleware: a model that fails is asked again, or another one is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError, ModelRateLimitError
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI

from waitpoint.agents.middleware.model_fallback import ModelFallbackMiddleware
from waitpoint.agents.middleware.model_retry import ModelRetryMiddleware
from waitpoint.agents.middleware.types import ModelRequest, ModelResponse
from waitpoint.errors import GraphDrained, GraphInterrupt, ReplayMismatch, UnknownModelError

OWN, SECOND, THIRD = (FakeListChatModel(responses=[name]) for name in ("own", "second", "third"))


class Provider:
    """Answers with what the model says, unless an error is listed for it; notes who was asked."""

    def __init__(self, **errors: BaseException) -> None:
        self.errors, self.asked = errors, []  # type: ignore[var-annotated]

    def __call__(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        name = request.model.responses[0]  # type: ignore[attr-defined]
        self.asked.append(name)
        if name in self.errors:
            raise self.errors[name]
        return ModelResponse([AIMessage(name)])

    async def later(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        return self(request)


def run(middleware: Any, provider: Provider, how: str) -> Any:
    request: ModelRequest[Any] = ModelRequest(model=OWN, messages=[HumanMessage("hi")], model_settings={"seed": 1})
    if how == "sync":
        return middleware.wrap_model_call(request, provider).result[0].content
    return asyncio.run(middleware.awrap_model_call(request, provider.later)).result[0].content


both = pytest.mark.parametrize("how", ["sync", "async"])
control_flow = pytest.mark.parametrize(
    "error", [GraphInterrupt(), GraphDrained(), ReplayMismatch("changed")], ids=lambda e: type(e).__name__
)


def retry(**options: Any) -> ModelRetryMiddleware:
    return ModelRetryMiddleware(**{"initial_delay": 0.0, **options})


# --- the same model again ---


@both
def test_a_model_that_answers_is_asked_once(how: str) -> None:
    provider = Provider()
    assert run(retry(), provider, how) == "own"
    assert provider.asked == ["own"]


@both
def test_after_the_last_attempt_a_message_says_what_failed(how: str) -> None:
    provider = Provider(own=ModelRateLimitError("slow down"))
    assert run(retry(), provider, how) == "Model call failed after 3 attempts with ModelRateLimitError: slow down"
    assert provider.asked == ["own"] * 3


@both
def test_on_failure_error_raises_and_a_function_gives_the_text(how: str) -> None:
    with pytest.raises(TimeoutError, match="slow"):
        run(retry(on_failure="error"), Provider(own=TimeoutError("slow")), how)
    assert run(retry(on_failure=lambda e: f"sorry: {e}"), Provider(own=TimeoutError("slow")), how) == "sorry: slow"


@both
def test_an_error_that_another_try_cannot_mend_is_raised_at_once(how: str) -> None:
    provider = Provider(own=ModelAuthenticationError("who are you"))
    with pytest.raises(ModelAuthenticationError):
        run(retry(), provider, how)
    assert provider.asked == ["own"]


@both
@control_flow
def test_what_the_engine_must_see_is_not_tried_again(error: BaseException, how: str) -> None:
    provider = Provider(own=error)
    with pytest.raises(type(error)):
        run(retry(retry_on=lambda e: True), provider, how)
    assert provider.asked == ["own"]


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^max_delay must be >= 0"):
        ModelRetryMiddleware(max_delay=-0.5)


# --- another model ---


@both
def test_the_others_are_not_asked_while_the_agents_own_model_answers(how: str) -> None:
    provider = Provider()
    assert run(ModelFallbackMiddleware(SECOND), provider, how) == "own"
    assert provider.asked == ["own"]


@both
def test_the_next_model_is_asked_when_one_fails_and_each_call_begins_with_the_own(how: str) -> None:
    provider = Provider(own=TimeoutError(), second=ModelAuthenticationError())
    middleware = ModelFallbackMiddleware(SECOND, THIRD)
    for _ in range(2):
        assert run(middleware, provider, how) == "third"
    assert provider.asked == ["own", "second", "third"] * 2


@both
def test_if_all_fail_the_last_exception_is_raised_and_shows_those_before(how: str) -> None:
    first, last = TimeoutError("first"), ValueError("last")
    with pytest.raises(ValueError, match="last") as raised:
        run(ModelFallbackMiddleware(SECOND), Provider(own=first, second=last), how)
    assert raised.value.__context__ is first


@both
@control_flow
def test_a_pause_is_no_failure_of_the_model(error: BaseException, how: str) -> None:
    provider = Provider(own=error)
    with pytest.raises(type(error)):
        run(ModelFallbackMiddleware(SECOND), provider, how)
    assert provider.asked == ["own"]


def test_another_model_gets_the_same_request() -> None:
    seen: list[ModelRequest[Any]] = []

    def handler(request: ModelRequest[Any]) -> ModelResponse[Any]:
        seen.append(request)
        if request.model is OWN:
            raise TimeoutError
        return ModelResponse([AIMessage("ok")])

    ModelFallbackMiddleware(SECOND).wrap_model_call(ModelRequest(model=OWN, messages=[HumanMessage("hi")]), handler)
    assert [request.model for request in seen] == [OWN, SECOND]
    assert seen[0].messages == seen[1].messages


def test_models_are_made_of_their_names_and_a_name_of_nobody_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (made,) = ModelFallbackMiddleware("openai:gpt-5.5").models
    assert isinstance(made, ChatOpenAI)
    with pytest.raises(UnknownModelError, match="mystery"):
        ModelFallbackMiddleware(SECOND, "mystery")
