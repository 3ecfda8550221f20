"""Counting and cutting by tokens, against what Qwen-Agent did with the same vocabulary."""

from __future__ import annotations

import pytest

from core.llm import tokens
from core.llm.tokens import counter_for
from tests.golden.claimed import Record, name, of

QWEN = counter_for("qwen-max")
BETTER = {"neg": "The peer takes a negative limit from the end of the text; a limit below zero leaves nothing."}


@pytest.mark.parametrize("record", of("tokenizer.count"), ids=name)
def test_the_count_is_the_same(record: Record) -> None:
    assert QWEN.count(record["input"]) == record["output"]


@pytest.mark.parametrize("record", of("tokenizer.encode"), ids=name)
def test_the_tokens_are_the_same(record: Record) -> None:
    assert tokens.QWEN.tokens(record["input"]) == record["output"]


@pytest.mark.parametrize("record", of("tokenizer.truncate"), ids=name)
def test_the_cut_is_the_same_or_better(record: Record) -> None:
    asked = record["input"]
    assert asked["start_token"] == 0
    cut = QWEN.shortened(asked["text"], asked["max_token"], both_ends=asked["keep_both_sides"])
    assert bool(record.get("peer_bug")) == (record["id"] in BETTER)
    assert cut == ("" if record["id"] in BETTER else record["output"])
