"""Calls other models, in their order, when a model fails."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel

from waitpoint.agents.middleware.types import (
    AgentMiddleware,
    AsyncModelHandler,
    ModelCallResult,
    ModelHandler,
    ModelRequest,
)
from waitpoint.agents.models import init_chat_model
from waitpoint.agents.passing import must_pass


class ModelFallbackMiddleware(AgentMiddleware[Any, Any, Any]):
    """When the agent's model fails, call the first of these models; when that fails, the next.

    Models are instances or strings such as "anthropic:claude-sonnet-4-5". Each call begins with the agent's own model
    again. If all fail, the exception of the last is raised, with those before it as its context.

    Settings of the request, `model_settings` among them, go to every model: leave out what only one provider knows, or
    put middleware inside that sets them by `request.model`.
    """

    def __init__(self, first_model: str | BaseChatModel, *additional_models: str | BaseChatModel) -> None:
        self.models = [
            init_chat_model(model) if isinstance(model, str) else model for model in (first_model, *additional_models)
        ]

    def wrap_model_call(self, request: ModelRequest[Any], handler: ModelHandler) -> ModelCallResult[Any]:
        """Call the agent's model, then the others until one answers."""
        return self._from(0, request, handler)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncModelHandler) -> ModelCallResult[Any]:
        """Do what `wrap_model_call` does, from an event loop."""
        return await self._afrom(0, request, handler)

    def _from(self, index: int, request: ModelRequest[Any], handler: ModelHandler) -> ModelCallResult[Any]:
        try:
            return handler(request)
        except Exception as error:
            if index == len(self.models) or must_pass(error):
                raise
            # Called in here, so that what fails next shows what failed before.
            return self._from(index + 1, request.override(model=self.models[index]), handler)

    async def _afrom(self, index: int, request: ModelRequest[Any], handler: AsyncModelHandler) -> ModelCallResult[Any]:
        try:
            return await handler(request)
        except Exception as error:
            if index == len(self.models) or must_pass(error):
                raise
            return await self._afrom(index + 1, request.override(model=self.models[index]), handler)
