"""Chat models by name, at the path users of LangChain know."""

from langchain_core.language_models.chat_models import BaseChatModel

from waitpoint.agents.models import init_chat_model

__all__ = ["BaseChatModel", "init_chat_model"]
