"""The seven providers that are tested with their own packages: a model's name, its wire format, where its API starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel

from tests.providers.anthropic_wire import AnthropicWire
from tests.providers.gemini_wire import GeminiWire
from tests.providers.ollama_wire import OllamaWire
from tests.providers.openai_wire import BasetenWire, FireworksWire, OpenAIWire, OpenRouterWire
from tests.providers.server import KEY, Provider, Turn, Wire, serving
from waitpoint.chat_models import init_chat_model


@dataclass(frozen=True)
class Served:
    """A model by name, and the server that stands for its provider."""

    model: str
    wire: Wire
    base: str = ""  # what the provider's documented address has after the host
    has_call_ids: bool = True

    def __str__(self) -> str:
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        return self.model.partition(":")[2]

    def make(self, url: str, **settings: Any) -> BaseChatModel:
        return init_chat_model(self.model, base_url=url + self.base, api_key=KEY, **settings)

    @contextmanager
    def serve(self, *turns: Turn) -> Iterator[tuple[Provider, BaseChatModel]]:
        """Start the server with what it has to say, and make a model that speaks to it."""
        with serving(self.wire, *turns) as provider:
            yield provider, self.make(provider.url)


SEVEN = (
    Served("openai:gpt-5.5", OpenAIWire(), "/v1"),
    Served("anthropic:claude-sonnet-5", AnthropicWire()),
    Served("google:gemini-3.6-flash", GeminiWire(), has_call_ids=False),
    Served("openrouter:z-ai/glm-5.2", OpenRouterWire(), "/api/v1"),
    Served("fireworks:accounts/fireworks/models/glm-5p2", FireworksWire(), "/inference/v1"),
    Served("baseten:zai-org/GLM-5.2", BasetenWire(), "/v1"),
    Served("ollama:north-mini-code-1.0", OllamaWire(), has_call_ids=False),
)
