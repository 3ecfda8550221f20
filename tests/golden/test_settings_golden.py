"""Settings of a call, language, thoughts and stop words, against what Qwen-Agent made of them."""

from __future__ import annotations

from typing import Any

import pytest

from core.llm.layers.reply import StopScanner
from core.llm.request import has_chinese, merge_generate
from core.testing.scripted_model import ScriptedModel
from tests.golden.claimed import Record, name, of

ASK: Any = [{"role": "user", "content": "q"}]


@pytest.mark.parametrize("record", of("merge_generate_cfgs"), ids=name)
def test_settings_are_merged_the_same(record: Record) -> None:
    assert merge_generate(*record["input"]) == record["output"]


@pytest.mark.parametrize("record", of("has_chinese_chars"), ids=name)
def test_the_same_characters_are_chinese(record: Record) -> None:
    assert has_chinese(str(record["input"])) == record["output"]


@pytest.mark.parametrize("record", of("truncate_at_stop_word"), ids=name)
def test_a_text_ends_before_its_stop_word(record: Record) -> None:
    scanner = StopScanner(record["input"]["stop"])
    text = scanner.feed(record["input"]["text"])
    assert [scanner.stopped, text + scanner.close()] == record["output"]


@pytest.mark.parametrize("record", of("postprocess_stop_words"), ids=name)
def test_a_reply_ends_before_its_stop_word_and_loses_nothing_else(record: Record) -> None:
    text, stop = record["input"]["text"], record["input"]["stop"]
    (reply,) = ScriptedModel(text).chat(ASK, stream=False, extra_generate_cfg={"stop": stop})
    if text.endswith("Observation"):
        # Better: the peer deletes a last word that is the beginning of a stop word, though it may well be meant; a
        # service that stops at a word sends no part of it.
        assert reply["content"] == text
    else:
        assert reply["content"] == record["output"][0]["content"][0]["text"]


@pytest.mark.parametrize("record", of("rm_think"), ids=name)
def test_a_thought_at_the_start_is_no_part_of_the_text(record: Record) -> None:
    begun = "</think>" in record["input"] and "<think>" not in record["input"]
    reply: Any = ScriptedModel(record["input"]).chat(
        ASK, stream=False, extra_generate_cfg={"thought_in_content": begun}
    )
    text = "".join(message["content"] for message in reply)
    thought = "".join(message.get("reasoning_content", "") for message in reply)
    if record["input"].count("</think>") > 1:
        # Better: the first closing tag ends the thought at once; the peer waits for the last one and drops what is
        # between them, which a reply on its way cannot know.
        assert text == "y</think>\nz"
    else:
        assert text == record["output"]
    assert bool(thought) == ("</think>" in record["input"])  # better: the peer throws the thought away
