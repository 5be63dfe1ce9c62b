"""Makes a chat model from its name, `provider:model`, with the package of that provider.

Rule: a provider's package is imported when one of its models is asked for, and nothing is sent before the model is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from waitpoint.core.names import suggestion
from waitpoint.errors import ConfigError, MissingPackageError, UnknownModelError

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

Settings = dict[str, Any]


def init_chat_model(model: str | BaseChatModel, *, model_provider: str | None = None, **settings: Any) -> BaseChatModel:
    """Return the chat model of that name; a model that is made already is returned as it is.

    A name is split at its first colon if a known provider stands before it: `"openai:gpt-5.5"`,
    `"openrouter:z-ai/glm-5.2"`, `"ollama:qwen3:8b"`. Of well-known names the provider is inferred (`"gpt-5.5"`,
    `"claude-sonnet-5"`). With `model_provider` the whole string is the name.

    Settings (`temperature`, `max_tokens`, ...) go to the provider's class. `base_url` and `api_key` mean the same for
    every provider, however its package calls them.

    Raises:
        UnknownModelError: the provider is unknown, or cannot be told from the name.
        MissingPackageError: the provider's package is not installed; the text says what to install.
        ConfigError: neither a name nor a model, or a setting that cannot be set.
    """
    if not isinstance(model, str):
        return _made_already(model, {"model_provider": model_provider, **settings})
    for key in ("configurable_fields", "config_prefix"):
        if settings.pop(key, None) is not None:
            raise ConfigError(
                f"model '{model}' cannot be made with '{key}': a model has its settings from the start; call "
                "`configurable_fields` of the finished model instead"
            )
    provider, name = split_name(model, model_provider)
    return _made(provider, name, settings)


def split_name(model: str, model_provider: str | None = None) -> tuple[str, str]:
    """Return the provider's name as it stands in `PROVIDERS`, and what the provider calls the model.

    >>> split_name("ollama:qwen3:8b")
    ('ollama', 'qwen3:8b')
    >>> split_name("claude-sonnet-5")
    ('anthropic', 'claude-sonnet-5')
    """
    model = model.strip()
    before, colon, after = (part.strip() for part in model.partition(":"))
    named = _known(before) if colon else None
    if model_provider is not None:
        provider = _known(model_provider)
        if provider is None:
            raise _unknown_provider(model_provider, model)
        name = after if named == provider else model
    elif named is not None:
        provider, name = named, after
    else:
        provider, name = _inferred(model), model
    if not name:
        raise UnknownModelError(
            f"'{model}' names no model; write the model's name after the provider's, as in 'openai:gpt-5.5'",
            model=model,
        )
    return provider, name


@dataclass(frozen=True, slots=True)
class Provider:
    """Where the chat model of a provider is, and what its class calls the settings that mean the same everywhere."""

    package: str
    maker: str  # a class of the package's module, or what makes one: "Class.from_model_id"
    names: Mapping[str, str] = field(default_factory=dict)
    module: str = ""  # unless it is the package's name
    prepare: Callable[[Settings], Settings] = dict


def _for_ollama(settings: Settings) -> Settings:
    """Put into the client's own settings what the class has no name for; a hosted server wants the key as a header."""
    client = dict(settings.pop("client_kwargs", None) or {})
    key = settings.pop("api_key", None)
    if key is not None:
        secret = key.get_secret_value() if hasattr(key, "get_secret_value") else key
        client["headers"] = {"Authorization": f"Bearer {secret}", **(client.get("headers") or {})}
    if "timeout" in settings:
        client["timeout"] = settings.pop("timeout")
    return {**settings, "client_kwargs": client} if client else settings


def _for_fireworks(settings: Settings) -> Settings:
    """Take the address that Fireworks documents, which ends in the version: its client adds that by itself."""
    address = settings.get("base_url")
    return {**settings, "base_url": address.rstrip("/").removesuffix("/v1")} if isinstance(address, str) else settings


def _for_hugging_face(settings: Settings) -> Settings:
    """Ask the hosted models unless told otherwise: the class would download the model into this process."""
    return {"backend": "endpoint", **settings}


# Data, in the order in which errors list them: what a user may write before the colon.
PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("langchain-openai", "ChatOpenAI"),
    "anthropic": Provider("langchain-anthropic", "ChatAnthropic"),
    "google": Provider("langchain-google-genai", "ChatGoogleGenerativeAI"),
    "openrouter": Provider("langchain-openrouter", "ChatOpenRouter"),
    "fireworks": Provider("langchain-fireworks", "ChatFireworks", prepare=_for_fireworks),
    "baseten": Provider("langchain-baseten", "ChatBaseten"),
    "ollama": Provider("langchain-ollama", "ChatOllama", {"max_tokens": "num_predict"}, prepare=_for_ollama),
    "azure_openai": Provider("langchain-openai", "AzureChatOpenAI"),
    "azure_ai": Provider(
        "langchain-azure-ai",
        "AzureAIOpenAIApiChatModel",
        {"base_url": "endpoint", "api_key": "credential"},
        "langchain_azure_ai.chat_models",
    ),
    "google_vertexai": Provider("langchain-google-vertexai", "ChatVertexAI"),
    "google_anthropic_vertex": Provider(
        "langchain-google-vertexai", "ChatAnthropicVertex", module="langchain_google_vertexai.model_garden"
    ),
    "bedrock": Provider("langchain-aws", "ChatBedrock", {"base_url": "endpoint_url"}),
    "bedrock_converse": Provider("langchain-aws", "ChatBedrockConverse"),
    "bedrock_mantle_anthropic": Provider("langchain-aws", "ChatAnthropicMantle"),
    "bedrock_mantle_openai": Provider("langchain-aws", "ChatOpenAIMantle"),
    "anthropic_bedrock": Provider("langchain-aws", "ChatAnthropicBedrock", {"api_key": "bedrock_api_key"}),
    "mistralai": Provider("langchain-mistralai", "ChatMistralAI"),
    "groq": Provider("langchain-groq", "ChatGroq"),
    "cohere": Provider("langchain-cohere", "ChatCohere", {"api_key": "cohere_api_key"}),
    "deepseek": Provider("langchain-deepseek", "ChatDeepSeek"),
    "xai": Provider("langchain-xai", "ChatXAI"),
    "together": Provider("langchain-together", "ChatTogether"),
    "huggingface": Provider(
        "langchain-huggingface",
        "ChatHuggingFace.from_model_id",
        {"model": "model_id", "base_url": "endpoint_url", "api_key": "huggingfacehub_api_token"},
        prepare=_for_hugging_face,
    ),
    "nvidia": Provider("langchain-nvidia-ai-endpoints", "ChatNVIDIA"),
    "perplexity": Provider("langchain-perplexity", "ChatPerplexity"),
    "ibm": Provider("langchain-ibm", "ChatWatsonx", {"model": "model_id", "base_url": "url"}),
    "upstage": Provider("langchain-upstage", "ChatUpstage"),
    "litellm": Provider("langchain-litellm", "ChatLiteLLM", {"base_url": "api_base"}),
    "meta": Provider("langchain-meta", "ChatMetaModel"),
}

ALIASES: Mapping[str, str] = {"google_genai": "google"}

# Names that only one provider gives: no tag after a colon, no maker before a slash, as those have that many serve.
# `gpt-oss` is open, so it is not among them.
INFERRED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bedrock", re.compile(r"(?:(?:us|eu|apac|global)\.)?(?:amazon|anthropic|meta)\.")),
    ("openai", re.compile(r"ft:(?:gpt-|o\d)|(?:gpt-(?!oss)|chatgpt-|codex-|text-davinci|o\d)[^:/]*$")),
    ("anthropic", re.compile(r"claude[^:/]*$")),
    ("google", re.compile(r"gemini[^:/]*$")),
    ("cohere", re.compile(r"command[^:/]*$")),
    ("mistralai", re.compile(r"(?:mi(?:s|x|nis)tral|magistral|codestral|devstral|pixtral)[^:/]*$")),
    ("deepseek", re.compile(r"deepseek[^:/]*$")),
    ("xai", re.compile(r"grok[^:/]*$")),
    ("perplexity", re.compile(r"sonar[^:/]*$")),
    ("upstage", re.compile(r"solar[^:/]*$")),
    ("fireworks", re.compile(r"accounts/fireworks/")),
)


def _made_already(model: Any, settings: Settings) -> BaseChatModel:
    from langchain_core.language_models.chat_models import BaseChatModel

    if not isinstance(model, BaseChatModel):
        raise ConfigError(
            f"a model is a chat model or a name such as 'openai:gpt-5.5', not {_said(model)}; give one of these"
        )
    given = [key for key, value in settings.items() if value is not None]
    if given:
        raise ConfigError(
            f"'{type(model).__name__}' is a model already, so {_listed(given)} cannot be set any more; set it where the "
            "model is made"
        )
    return model


def _said(value: Any) -> str:
    if value is None:
        return "None"
    # What `bind`, `bind_tools` and `with_config` return runs a model without being one.
    inner = " (give the model that it binds)" if hasattr(value, "bound") else ""
    return f"'{type(value).__name__}'{inner}"


def _known(provider: str) -> str | None:
    written = provider.strip().lower().replace("-", "_")
    written = ALIASES.get(written, written)
    return written if written in PROVIDERS else None


def _inferred(model: str) -> str:
    for provider, pattern in INFERRED:
        if pattern.match(model.lower()):
            return provider
    before, colon, _ = model.partition(":")
    if colon:
        raise _unknown_provider(before, model)
    raise UnknownModelError(
        f"no provider can be told from the model name '{model}' ({_the_known()}); write one before it, as in "
        f"'openrouter:{model}', or pass `model_provider`",
        model=model,
    )


def _unknown_provider(provider: str, model: str) -> UnknownModelError:
    import difflib

    close = difflib.get_close_matches(provider.strip().lower(), [*PROVIDERS, *ALIASES], n=1)
    cure = f"did you mean '{close[0]}'?" if close else f"write a known one first, as in 'ollama:{model}'"
    return UnknownModelError(
        f"'{provider}' of model '{model}' is no known provider ({_the_known()}); {cure}", model=model, provider=provider
    )


def _the_known() -> str:
    return f"known: {_listed(PROVIDERS)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _made(provider: str, name: str, settings: Settings) -> BaseChatModel:
    entry = PROVIDERS[provider]
    maker: Any = _module(entry, f"{provider}:{name}")
    for part in entry.maker.split("."):
        maker = getattr(maker, part, None)
    if maker is None:
        raise MissingPackageError(
            f"the package '{entry.package}' that is installed has no '{entry.maker}', which model '{provider}:{name}' "
            f"needs; run `pip install --upgrade {entry.package}`",
            package=entry.package,
        )
    wanted = {entry.names.get(key, key): value for key, value in {"model": name, **settings}.items()}
    wanted = entry.prepare(wanted)
    _refuse_what_would_be_dropped(maker, wanted, f"{provider}:{name}")
    made: BaseChatModel = maker(**wanted)
    return made


def _module(entry: Provider, model: str) -> Any:
    module = entry.module or entry.package.replace("-", "_")
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # Another module may be what is missing: then the package is there and broken, and that is what to report.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise MissingPackageError(
            f"model '{model}' needs the package '{entry.package}', which is not installed; run "
            f"`pip install {entry.package}`",
            package=entry.package,
        ) from error


def _refuse_what_would_be_dropped(maker: Any, settings: Settings, model: str) -> None:
    """Refuse a setting that the class neither declares nor passes on: pydantic would drop it without a word."""
    fields = getattr(maker, "model_fields", None)
    if fields is None or "model_kwargs" in fields or maker.model_config.get("extra", "ignore") != "ignore":
        return
    known = {*fields, *(f.alias for f in fields.values() if f.alias)}
    dropped = [key for key in settings if key not in known]
    if dropped:
        raise ConfigError(f"model '{model}' has no setting '{dropped[0]}'{suggestion(dropped[0], sorted(known))}")
