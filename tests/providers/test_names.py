"""Which provider a model's name means, what is said when none, and how settings reach the provider's class."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import langchain.chat_models
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from pydantic import SecretStr

from tests.providers.server import KEY, Turn, serving
from tests.providers.seven import Served
from waitpoint.agents.models import ALIASES, PROVIDERS, split_name
from waitpoint.chat_models import init_chat_model
from waitpoint.errors import ConfigError, MissingPackageError, UnknownModelError, UsageError

PREFIXED = {
    "openrouter:z-ai/glm-5.2": ("openrouter", "z-ai/glm-5.2"),
    "openrouter:deepseek/deepseek-r1:free": ("openrouter", "deepseek/deepseek-r1:free"),
    "fireworks:accounts/fireworks/models/glm-5p2": ("fireworks", "accounts/fireworks/models/glm-5p2"),
    "baseten:zai-org/GLM-5.2": ("baseten", "zai-org/GLM-5.2"),
    "ollama:north-mini-code-1.0": ("ollama", "north-mini-code-1.0"),
    "ollama:gpt-oss:20b": ("ollama", "gpt-oss:20b"),
    "google:gemini-3.6-flash": ("google", "gemini-3.6-flash"),
    "google_genai:gemini-3.6-flash": ("google", "gemini-3.6-flash"),
    "Google-GenAI: gemini-3.6-flash": ("google", "gemini-3.6-flash"),
    "openai:gpt-5.5": ("openai", "gpt-5.5"),
    "openai:ft:gpt-4o:us:name:1": ("openai", "ft:gpt-4o:us:name:1"),
    "anthropic:claude-sonnet-5": ("anthropic", "claude-sonnet-5"),
    "azure_openai:gpt-5.5": ("azure_openai", "gpt-5.5"),
    "bedrock_converse:amazon.nova-pro-v1:0": ("bedrock_converse", "amazon.nova-pro-v1:0"),
}

BARE = {
    "gpt-5.5": "openai",
    "GPT-5.5": "openai",
    "chatgpt-4o-latest": "openai",
    "o1": "openai",
    "o3-mini": "openai",
    "o4-mini": "openai",
    "ft:gpt-4o:us:name:1": "openai",
    "claude-sonnet-5": "anthropic",
    "gemini-3.6-flash": "google",
    "command-a-03-2025": "cohere",
    "mistral-large-latest": "mistralai",
    "mixtral-8x7b": "mistralai",
    "deepseek-chat": "deepseek",
    "grok-4": "xai",
    "sonar-pro": "perplexity",
    "solar-pro": "upstage",
    "accounts/fireworks/models/glm-5p2": "fireworks",
    "amazon.nova-pro-v1:0": "bedrock",
    "anthropic.claude-sonnet-5-v1:0": "bedrock",
    "meta.llama4-17b-v1:0": "bedrock",
    "us.anthropic.claude-sonnet-5-v1:0": "bedrock",
}


@pytest.mark.parametrize("model", PREFIXED)
def test_a_name_is_split_at_its_first_colon_if_a_known_provider_stands_before_it(model: str) -> None:
    assert split_name(model) == PREFIXED[model]


@pytest.mark.parametrize("model", BARE)
def test_the_provider_of_a_well_known_name_is_inferred(model: str) -> None:
    assert split_name(model) == (BARE[model], model)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_of_the_table_can_stand_before_a_colon(provider: str) -> None:
    assert split_name(f"{provider}:some/model:tag") == (provider, "some/model:tag")


def test_with_a_provider_given_the_whole_string_is_the_name() -> None:
    assert split_name("openai:gpt-5.5", "openrouter") == ("openrouter", "openai:gpt-5.5")
    assert split_name("gpt-oss:20b", "ollama") == ("ollama", "gpt-oss:20b")
    assert split_name("openai:gpt-5.5", "openai") == ("openai", "gpt-5.5")
    assert split_name("gemini-3.6-flash", "google-genai") == ("google", "gemini-3.6-flash")


@pytest.mark.parametrize(
    ("model", "before", "meant"),
    [
        ("opneai:gpt-5.5", "opneai", "openai"),
        ("Antropic:claude-sonnet-5", "Antropic", "anthropic"),
        ("mistral:7b", "mistral", "mistralai"),
        ("fire-works:glm", "fire-works", "fireworks"),
    ],
)
def test_an_unknown_provider_is_refused_with_the_nearest_and_all_that_are_known(
    model: str, before: str, meant: str
) -> None:
    with pytest.raises(UnknownModelError) as caught:
        init_chat_model(model)
    text = str(caught.value)
    assert text.startswith(f"'{before}' of model '{model}' is no known provider")
    assert text.endswith(f"did you mean '{meant}'?")
    assert all(f"'{known}'" in text for known in PROVIDERS)
    assert (caught.value.model, caught.value.provider) == (model, before)
    assert isinstance(caught.value, UsageError | ValueError)


@pytest.mark.parametrize("model", ["gpt-oss:20b", "deepseek-r1:8b", "llama4:latest", "deepseek/deepseek-r1:free"])
def test_a_name_with_a_tag_is_not_taken_for_the_provider_that_first_made_the_model(model: str) -> None:
    with pytest.raises(UnknownModelError, match="no known provider"):
        init_chat_model(model)


@pytest.mark.parametrize(
    "model",
    [
        "llama-4",
        "z-ai/glm-5.2",
        "qwen3",
        "gpt-oss-120b",
        "o",
        "my-gpt-5",
        "deepseek-ai/DeepSeek-V3",
        "mistralai/Mixtral-8x7B",
    ],
)
def test_a_name_that_tells_no_provider_is_refused_with_the_way_to_write_one(model: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        init_chat_model(model)
    assert f"'openrouter:{model}'" in str(caught.value)
    assert all(f"'{known}'" in str(caught.value) for known in PROVIDERS)


@pytest.mark.parametrize("model", ["openai:", "openai: ", ""])
def test_a_provider_without_a_model_is_refused(model: str) -> None:
    with pytest.raises(UnknownModelError):
        init_chat_model(model)


def test_a_model_that_is_made_already_comes_back_as_it_is() -> None:
    model = FakeListChatModel(responses=["hi"])
    assert init_chat_model(model) is model


@pytest.mark.parametrize("given", [None, 5, ["openai:gpt-5.5"], str, FakeListChatModel])
def test_what_is_neither_a_model_nor_a_name_is_refused_in_a_sentence(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"a model is a chat model or a name such as 'openai:gpt-5\.5', not "):
        init_chat_model(given)


def test_what_binds_a_model_is_no_model_and_the_refusal_says_what_to_give() -> None:
    bound: Any = FakeListChatModel(responses=["hi"]).bind(stop=["."])
    with pytest.raises(ConfigError, match=r"not '\w*Binding' \(give the model that it binds\)"):
        init_chat_model(bound)


@pytest.mark.parametrize("setting", [{"temperature": 0}, {"model_provider": "openai"}, {"config_prefix": "a"}])
def test_a_model_that_is_made_already_takes_no_settings(setting: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"is a model already, so '{next(iter(setting))}' cannot be set"):
        init_chat_model(FakeListChatModel(responses=["hi"]), **setting)


@pytest.mark.parametrize("key", ["configurable_fields", "config_prefix"])
def test_settings_that_come_with_each_call_are_refused_with_the_other_way(key: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot be made with '{key}'"):
        init_chat_model("openai:gpt-5.5", **{key: "any"})


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(MissingPackageError, match="run `pip install langchain-groq`") as caught:
        init_chat_model("groq:llama-4")
    assert caught.value.package == "langchain-groq"
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, UsageError)


def install(name: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a package importable that is not installed."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()


def test_a_package_that_is_too_old_is_named_with_the_command_that_brings_it_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("langchain_groq", "class AnotherClass: pass", tmp_path, monkeypatch)
    with pytest.raises(MissingPackageError, match=r"has no 'ChatGroq'.*`pip install --upgrade langchain-groq`"):
        init_chat_model("groq:llama-4")
    sys.modules.pop("langchain_groq")


def test_a_package_whose_own_dependency_is_missing_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("langchain_groq", "import a_client_that_is_not_there", tmp_path, monkeypatch)
    with pytest.raises(ModuleNotFoundError, match="a_client_that_is_not_there"):
        init_chat_model("groq:llama-4")


@pytest.mark.parametrize(
    ("provider", "module", "text", "wanted"),
    [
        (
            "ibm",
            "langchain_ibm",
            "ChatWatsonx = dict",
            {"model_id": "a/b", "url": "http://here", "api_key": "k", "temperature": 0},
        ),
        (
            "huggingface",
            "langchain_huggingface",
            "class ChatHuggingFace:\n    from_model_id = dict",
            {
                "model_id": "a/b",
                "endpoint_url": "http://here",
                "huggingfacehub_api_token": "k",
                "temperature": 0,
                "backend": "endpoint",
            },
        ),
    ],
)
def test_address_and_key_reach_the_class_under_the_names_it_has_for_them(
    provider: str, module: str, text: str, wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(module, text, tmp_path, monkeypatch)
    assert init_chat_model(f"{provider}:a/b", base_url="http://here", api_key="k", temperature=0) == wanted
    sys.modules.pop(module)


def test_ollama_takes_the_settings_that_its_class_has_other_names_for() -> None:
    model: Any = init_chat_model(
        "ollama:qwen3:8b", max_tokens=50, timeout=7, api_key=SecretStr("k"), client_kwargs={"headers": {"x-own": "1"}}
    )
    assert model.model == "qwen3:8b"
    assert model.num_predict == 50
    assert model.client_kwargs == {"timeout": 7, "headers": {"Authorization": "Bearer k", "x-own": "1"}}


def test_a_setting_that_the_class_would_drop_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="'ollama:qwen3' has no setting 'temprature'; did you mean 'temperature'"):
        init_chat_model("ollama:qwen3", temprature=0)


@pytest.mark.parametrize("base", ["/inference/v1", "/inference/v1/", "/inference"])
def test_the_address_that_fireworks_documents_works_and_the_one_its_client_wants(base: str) -> None:
    from tests.providers.openai_wire import FireworksWire

    with serving(FireworksWire(), Turn(texts=("hi",))) as provider:
        model = init_chat_model("accounts/fireworks/models/glm-5p2", base_url=provider.url + base, api_key=KEY)
        assert model.invoke("hello").text == "hi"


def test_a_limit_of_tokens_reaches_the_provider(served: Served) -> None:
    with serving(served.wire, Turn(texts=("hi",))) as provider:
        served.make(provider.url, max_tokens=77).invoke("hello")
        body = provider.requests[0].body
        settings = {**body, **body.get("generationConfig", {}), **body.get("options", {})}
        names = {"max_tokens", "max_completion_tokens", "maxOutputTokens", "num_predict"}
        assert [settings[name] for name in names & settings.keys()] == [77]


def test_the_peer_makes_a_model_of_the_same_class_of_the_same_name(served: Served) -> None:
    provider, _, name = served.model.partition(":")
    peers = {"google": "google_genai"}.get(provider, provider)
    theirs = langchain.chat_models.init_chat_model(
        f"{peers}:{name}", **({} if provider == "ollama" else {"api_key": "k"})
    )
    assert type(served.make("http://127.0.0.1:9")) is type(theirs)


def test_the_path_that_users_of_langchain_know_has_the_names_of_the_peer() -> None:
    import waitpoint.chat_models

    assert sorted(waitpoint.chat_models.__all__) == sorted(langchain.chat_models.__all__)


def test_aliases_mean_providers_of_the_table() -> None:
    assert set(ALIASES.values()) <= PROVIDERS.keys()
    assert not ALIASES.keys() & PROVIDERS.keys()


def test_only_the_package_of_the_model_that_is_asked_for_is_imported() -> None:
    program = """
        import sys
        import waitpoint.chat_models
        def loaded():
            tops = {name.partition(".")[0] for name in sys.modules}
            return sorted(top for top in tops if top.startswith("langchain_") and top != "langchain_protocol")
        print(loaded())
        waitpoint.chat_models.init_chat_model("ollama:qwen3")
        print(loaded())
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=True, capture_output=True, text=True, timeout=50
    ).stdout
    assert said.splitlines() == ["['langchain_core']", "['langchain_core', 'langchain_ollama']"]
