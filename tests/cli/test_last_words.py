"""When a conversation ends, the command line shows how it ended, not all that was said."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage

from waitpoint.cli.running import _last_words


def test_of_a_conversation_the_last_message_is_shown_and_the_others_are_counted() -> None:
    output = {"messages": [HumanMessage("a"), AIMessage("b"), AIMessage("all sent")], "cost": 3}
    assert _last_words(output) == {"messages": "(2 before) all sent", "cost": 3}


def test_a_last_message_of_blocks_is_shown_by_its_text() -> None:
    output = {
        "messages": [HumanMessage("a"), AIMessage([{"type": "text", "text": "all "}, {"type": "text", "text": "sent"}])]
    }
    assert _last_words(output) == {"messages": "(1 before) all sent"}


def test_other_outputs_are_shown_whole() -> None:
    for output in (None, 3, {"messages": ["a", "b"]}, {"messages": [AIMessage("a")]}, {"total": 1}):
        assert _last_words(output) == output
