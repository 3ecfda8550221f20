"""Functions that are wrong on purpose: each is to be found, and complained of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from core.export.schema import ExportedTurn
from core.rag.document import Block

_FENCE = "```mermaid\n"


def is_linear(text: str) -> int:
    """Nothing is wrong with this one."""
    return sum(letter == "a" for letter in text)


def lists_the_rest(text: str) -> int:
    """For each letter all that follows it is listed: quickly, but more of it the longer the text is."""
    return sum(len(list(text[at:])) for at in range(len(text)))


def lists_the_rest_in_a_drawing(text: str) -> int:
    """As before, after a beginning that seldom comes."""
    return lists_the_rest(text) if text.startswith(_FENCE) else 0


def is_slow(text: str) -> int:
    """In time that grows with the length alone, but far too much of it."""
    return sum(sum(range(3_000)) for _ in text)


def reads_blocks(blocks: Iterable[Block]) -> int:
    """Text comes in values of the house."""
    return sum(lists_the_rest(block.text) for block in blocks)


class Writer:
    """Text comes to a method."""

    def turn(self, turn: ExportedTurn) -> int:
        """A turn of a conversation."""
        return sum(lists_the_rest(message.get_text_content()) for message in turn.messages)


async def waits_first(text: str) -> int:
    """Text comes to a coroutine."""
    await asyncio.sleep(0)
    return lists_the_rest(text)
