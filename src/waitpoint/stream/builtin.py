"""The transformers that every run has (values, messages, lifecycle), and those to be asked for."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from waitpoint.stream.channel import StreamChannel
from waitpoint.stream.mux import Mux
from waitpoint.stream.transformer import ProtocolEvent, StreamTransformer

SubgraphStatus = Literal["started", "completed", "failed", "interrupted", "drained"]


class LifecyclePayload(TypedDict):
    """What happened to a nested graph. `interrupts` are the questions it rests with."""

    event: SubgraphStatus
    namespace: list[str]
    graph_name: NotRequired[str]
    trigger_call_id: NotRequired[str]
    error: NotRequired[str]
    interrupts: NotRequired[tuple[Any, ...]]


class NativeTransformer(StreamTransformer):
    """One with a single channel of its own name, which belongs to every run."""

    is_native: ClassVar[bool] = True
    name: ClassVar[str] = ""

    def init(self) -> dict[str, Any]:
        self.channel: StreamChannel[Any] = StreamChannel()
        return {self.name: self.channel}

    def bound(self, mux: Mux) -> None:
        self.mux = mux

    def is_mine(self, event: ProtocolEvent, method: str) -> bool:
        """Whether an event is of this method, and of this graph itself."""
        return event["method"] == method and tuple(event["params"]["namespace"]) == self.scope


class ValuesTransformer(NativeTransformer):
    """The state at the start and after each step."""

    name = "values"

    def process(self, event: ProtocolEvent) -> bool:
        if self.is_mine(event, "values"):
            self.mux.values, self.mux.interrupts = event["params"]["data"], event["params"].get("interrupts", ())
            self.channel.push(self.mux.values)
        return True


class MessagesTransformer(NativeTransformer):
    """One stream for each message, which fills while a model speaks."""

    name = "messages"

    def init(self) -> dict[str, Any]:
        self._open: dict[Any, Any] = {}
        return super().init()

    def process(self, event: ProtocolEvent) -> bool:
        if self.is_mine(event, "messages"):
            said, metadata = event["params"]["data"]
            if isinstance(said, dict):
                self._speak(said, metadata)
            else:
                self._whole(said, metadata)
        return True

    def _speak(self, said: dict[str, Any], metadata: dict[str, Any]) -> None:
        call = metadata.get("run_id")
        kind = said.get("event")
        if kind == "message-start":
            self._open[call] = self._begun(said.get("id"), metadata)
        stream = self._open.get(call)
        if stream is None:
            return
        stream.dispatch(said)
        if kind in ("message-finish", "error"):
            del self._open[call]
        if kind == "message-start":
            self.channel.push(stream)

    def _whole(self, message: Any, metadata: dict[str, Any]) -> None:
        from langchain_core.language_models._compat_bridge import message_to_events

        stream = self._begun(message.id, metadata)
        for event in message_to_events(message):
            stream.dispatch(event)
        self.channel.push(stream)

    def _begun(self, name: str | None, metadata: dict[str, Any]) -> Any:
        from langchain_core.language_models.chat_model_stream import AsyncChatModelStream, ChatModelStream

        where: dict[str, Any] = {"namespace": list(self.scope), "node": metadata.get("langgraph_node")}
        where["message_id"] = name
        if self.mux.is_async:
            asynchronous = AsyncChatModelStream(**where)
            asynchronous.set_arequest_more(self.mux.root.pump)
            return asynchronous
        stream = ChatModelStream(**where)
        stream.set_request_more(self.mux.root.pump)
        return stream

    def fail(self, error: BaseException) -> None:
        for stream in self._open.values():
            stream.fail(error)


class LifecycleTransformer(NativeTransformer):
    """When graphs nested in this one start and end, however deep."""

    name = "lifecycle"

    def process(self, event: ProtocolEvent) -> bool:
        if event["method"] == "lifecycle":
            ns = tuple(event["params"]["data"]["namespace"])
            if ns != self.scope and ns[: len(self.scope)] == self.scope:
                self.channel.push(event["params"]["data"])
        return True


class _ModeTransformer(NativeTransformer):
    """Shows the parts of a stream mode as they are."""

    def process(self, event: ProtocolEvent) -> bool:
        if self.is_mine(event, self.name):
            self.channel.push(event["params"]["data"])
        return True


class CustomTransformer(_ModeTransformer):
    """What nodes write to mode `custom`."""

    name = "custom"
    required_stream_modes = ("custom",)


class UpdatesTransformer(_ModeTransformer):
    """What each task returned, as mode `updates` shows it."""

    name = "updates"
    required_stream_modes = ("updates",)


class TasksTransformer(_ModeTransformer):
    """The start and end of each task, as mode `tasks` shows them."""

    name = "tasks"
    required_stream_modes = ("tasks",)


class CheckpointsTransformer(_ModeTransformer):
    """The checkpoints as they are made, as mode `checkpoints` shows them."""

    name = "checkpoints"
    required_stream_modes = ("checkpoints",)


class DebugTransformer(_ModeTransformer):
    """Checkpoints and tasks with their steps and times, as mode `debug` shows them."""

    name = "debug"
    required_stream_modes = ("debug",)
