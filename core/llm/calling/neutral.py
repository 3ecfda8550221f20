"""Text from documents, tools and people is data: it cannot forge our tags or a model's special tokens."""

from __future__ import annotations

import re

# `<|im_start|>` and its kin in any vendor's spelling, and the turn marks of Llama, Mistral and Gemma.
_TOKENS = re.compile(r"<(?=[|｜])|<(?=/?(?:s|start_of_turn|end_of_turn|bos|eos)>)|\[(?=/?INST\])", re.IGNORECASE)
_TAGS = re.compile(r"<(?=\s*/?\s*(?:tool_call|tool_response|tools|think|system)\b)", re.IGNORECASE)

_BREAK = "\u200b"  # zero-width space: the text still reads the same, but is no token any more


def without_tokens(text: str) -> str:
    """`text` with the special tokens of chat models broken apart."""
    return _TOKENS.sub(_broken, text)


def neutral(text: str) -> str:
    """`text` with special tokens and our own tags broken apart, for results and documents."""
    return _TAGS.sub(_broken, without_tokens(text))


def _broken(match: re.Match[str]) -> str:
    return match.group() + _BREAK
