"""Fitting the context, against what Qwen-Agent did: the same messages, or better ones, and why."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import ContextTooLongError, ModelServiceError
from core.llm.base import BaseChatModel
from core.llm.layers.fit_context import fitted
from core.llm.request import ChatRequest
from core.llm.tokens import counter_for
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel
from tests.golden.claimed import Record, name, of

RECORDS = {record["id"]: record for record in of("truncate_input_messages")}
QWEN = BaseChatModel({"model": "qwen-max"})
COUNT = counter_for("qwen-max").count

BETTER = {
    "fn_two_results_last": "The peer's shortened result lost the name of its tool; ours keeps it.",
    "middle_steps": "The same steps, the same text; the peer's shortened result lost the name of its tool.",
    "assistant_call_truncated": "The peer does not count what is said beside a call and exceeds the room by far.",
    "image_tokens_zero": "The peer puts null in place of a message; ours stays, as a model without eyes reads a note.",
    "prev_turn_one_user_partial": "The peer crashes; ours cuts the first question in its middle.",
    "sys_too_long": "The same refusal, under a class of its own and with a hint.",
    "two_systems": "The same refusal, under a class of its own and with a hint.",
    "assistant_first": "The same refusal, under a class of its own and with a hint.",
}


def ours(record: Record) -> list[dict[str, Any]]:
    messages = tuple(Message(**each) for each in record["input"]["messages"])
    return [each.model_dump() for each in fitted(ChatRequest(messages), record["input"]["max_tokens"], QWEN).messages]


def test_the_vocabulary_of_the_recordings_is_at_hand() -> None:
    assert counter_for("qwen-max").exact


@pytest.mark.parametrize("record", of("truncate_input_messages"), ids=name)
def test_a_conversation_is_fitted_as_recorded_or_better(record: Record) -> None:
    if record["id"] not in BETTER:
        assert ours(record) == record["output"]
        assert not record.get("peer_bug")
    else:
        assert BETTER[record["id"]]
        better(record)


def better(record: Record) -> None:
    """What is held of the records that ours do not repeat."""
    match record["id"]:
        case "fn_two_results_last" | "middle_steps":
            without = [{key: value for key, value in each.items() if key != "name"} for each in ours(record)]
            assert without == record["output"]
            assert ours(record)[-1]["name"] == "f"
        case "assistant_call_truncated":
            question, call, result = ours(record)
            assert result == record["input"]["messages"][-1]
            assert call["function_call"] == record["input"]["messages"][1]["function_call"]
            texts = [question["content"], call["content"], result["content"], str(call["function_call"])]
            assert sum(map(COUNT, texts)) <= 30
        case "image_tokens_zero":
            assert ours(record) == record["input"]["messages"]
            assert record["output"][0] is None
        case "prev_turn_one_user_partial":
            first, second = ours(record)
            assert second == record["input"]["messages"][1]
            assert "..." in first["content"]
            assert COUNT(first["content"]) + COUNT(second["content"]) <= 60
        case "sys_too_long":
            with pytest.raises(ContextTooLongError, match=r"50 tokens.*Make them shorter"):
                ours(record)
        case "two_systems" | "assistant_first":
            with pytest.raises(ModelServiceError) as caught:
                ScriptedModel("never").chat(record["input"]["messages"], stream=False)
            assert caught.value.code == "400"
            assert caught.value.hint
        case other:
            pytest.fail(f"{other} is said to be better, and nothing shows it")
