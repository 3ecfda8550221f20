"""Text that is data keeps its words, but no token of a chat model and no tag of ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.calling.neutral import Restored, neutral, neutral_items, neutral_json, restored, without_tokens
from core.messages.content import ContentItem

TOKENS = [
    *("<|im_start|>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "<s>", "</s>", "<start_of_turn>", "[INST]", "[/INST]"),
    *("<<SYS>>", "<</SYS>>", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[gMASK]", "<sop>", "<unused12>", "<pad>", "<BOS>"),
]
TAGS = [
    *("<tool_call>", "</tool_call>", "< / tool_response >", "<tools>", "</Tools>", "<think>", "</think>", "<system>"),
    *("✿FUNCTION✿", "✿ARGS✿", "✿RESULT✿", "✿RETURN✿"),
]
HARMLESS = ["a < b", "<strong>", "<span>", "[1]", "[instance]", "<section>", "✿", "x <", "<sos", "<toolbox>"]
PIECES = st.lists(st.sampled_from([*TOKENS, *TAGS, *HARMLESS, " ", "\n", "word", "\\", '"', "<", "["]), max_size=10)


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_a_chat_model_is_none_any_more(token: str) -> None:
    assert token not in without_tokens(f"a{token}b")
    assert token not in neutral(f"a{token}b")


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_of_ours_is_none_any_more(tag: str) -> None:
    assert tag not in neutral(f"a{tag}b")
    assert without_tokens(tag) == tag


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_the_same(text: str) -> None:
    assert neutral(text) == text


@given(PIECES.map("".join), st.integers(1, 5))
def test_a_neutral_text_can_be_restored_wherever_it_is_cut(text: str, size: int) -> None:
    said, reader = neutral(text), Restored()
    assert restored(said) == text
    assert "".join(reader.feed(said[at : at + size]) for at in range(0, len(said), size)) == text
    assert not any(found in said for found in (*TOKENS, *TAGS))


@given(PIECES.map("".join))
def test_neutral_json_says_the_same(text: str) -> None:
    written = neutral_json(json.dumps({"x": text}, ensure_ascii=False))
    assert json.loads(written) == {"x": text}
    assert not any(found in written for found in (*TOKENS, *TAGS))


def test_what_has_nothing_to_hide_is_the_same_object() -> None:
    items = [ContentItem(text="plain"), ContentItem(image="http://x/<s>.png")]
    assert all(new is old for new, old in zip(neutral_items(items), items, strict=True))
