"""Tries a call of the model again after it failed, and ends the turn with a message when it failed for good."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from waitpoint.agents.middleware.retrying import OnFailure, RetryingMiddleware, RetryOn, atried, default_retry_on, tried
from waitpoint.agents.middleware.types import (
    AsyncModelHandler,
    ModelCallResult,
    ModelHandler,
    ModelRequest,
    ModelResponse,
)


class ModelRetryMiddleware(RetryingMiddleware):
    """Try a failed call of the model again, after waits that grow.

    `retry_on` says which exceptions count; by default all but those that say of themselves, as the errors of models in
    langchain-core do, that another try is of no use. After the last attempt `on_failure` decides: "continue" answers
    with an `AIMessage` that names the number of attempts and the exception; "error" raises the exception; a function
    makes the message's text of it.

    Raises `ConfigError` (a `ValueError`) for negative numbers and an `on_failure` that does not exist.
    """

    def __init__(
        self,
        *,
        max_retries: int = 2,
        retry_on: RetryOn = default_retry_on,
        on_failure: OnFailure = "continue",
        backoff_factor: float = 2.0,
        initial_delay: float = 1.0,
        max_delay: float = 60.0,
        jitter: bool = True,
    ) -> None:
        super().__init__(max_retries, retry_on, on_failure, backoff_factor, initial_delay, max_delay, jitter)

    def wrap_model_call(self, request: ModelRequest[Any], handler: ModelHandler) -> ModelCallResult[Any]:
        """Call the model until it answers or no attempt is left."""
        return tried(self, lambda: handler(request), self._failed)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncModelHandler) -> ModelCallResult[Any]:
        """Do what `wrap_model_call` does, from an event loop."""
        return await atried(self, lambda: handler(request), self._failed)

    def _failed(self, error: Exception, attempts: int) -> ModelResponse[Any]:
        return ModelResponse([AIMessage(content=self.failure_text("Model call", error, attempts))])
