"""What a model says of the sentences of a reply, beside what the rules say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from core.llm.usage import estimated_usage
from core.rag.attribution import sentences_of
from core.rag.claims.judge import borne_out
from core.rag.document import Passage
from core.rag.prose import count_tokens
from core.runs.log import Checked, ClaimsJudged, Judged

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.llm.base import BaseChatModel
    from core.messages.message import Usage

_TOLD = 220  # tokens of what the model is told to do, about
_EACH = 8  # and of its answer, for each sentence


def with_judgement(claims: tuple[Checked, ...], judged: ClaimsJudged | None) -> tuple[Checked, ...]:
    """Claims as a model judged those that the rules find nothing against."""
    said = {} if judged is None else {(one.block, one.end): one.borne_out for one in judged.said}
    return tuple(_judged(one, said.get((one.block, one.end))) for one in claims)


def _judged(claim: Checked, said: bool | None) -> Checked:  # noqa: FBT001 - the verdict itself
    if said is None or claim.reasons:
        return claim
    if not said:
        return claim._replace(verdict="unsupported", numbers=())
    return claim._replace(verdict="supported")


def still_judged(
    judged: ClaimsJudged | None, before: Sequence[Checked], after: Sequence[Checked]
) -> ClaimsJudged | None:
    """What a model said, without the sentences that are checked otherwise since: passages were found for them."""
    if judged is None:
        return None
    was = {(one.block, one.end): one.verdict for one in before}
    now = {(one.block, one.end): one.verdict for one in after}
    return without(judged, {place for place, verdict in now.items() if was.get(place) != verdict})


def without(judged: ClaimsJudged, places: Collection[tuple[int, int]]) -> ClaimsJudged:
    """What a model said, apart from the sentences at these places (block and end): they were proved since."""
    return replace(judged, said=tuple(one for one in judged.said if one[:2] not in places))


class Open(NamedTuple):
    """What a model can be asked about a reply.

    Args:
        sentences: Each once.
        passages: What the reply rests on.
        places: Where each sentence stands: the index of its text, and where it ends there.
    """

    sentences: tuple[str, ...]
    passages: tuple[Passage, ...]
    places: Mapping[str, tuple[tuple[int, int], ...]]

    @property
    def usage(self) -> Usage:
        """About what one call takes."""
        asked = sum(count_tokens(f"{one.heading}\n{one.text}") for one in self.passages)
        asked += sum(count_tokens(one) + 3 for one in self.sentences)
        return estimated_usage(round(asked) + _TOLD, _EACH * len(self.sentences) + _EACH)


def usual_judgement() -> Usage:
    """What one call takes for a usual reply: of ten sentences, from five passages."""
    return estimated_usage(2_200, 100)


def open_in(claims: Sequence[Checked], texts: Mapping[int, str], passages: Iterable[Mapping[str, object]]) -> Open:
    """The sentences of a reply that the rules find nothing against.

    Args:
        texts: Of the reply, by the indices of their blocks.
    """
    said = {(at, end): sentence for at, text in texts.items() for sentence, end in sentences_of(text)}
    places: dict[str, tuple[tuple[int, int], ...]] = {}
    for one in claims:
        sentence = said.get((one.block, one.end), "")
        if sentence and not one.reasons:
            places[sentence] = (*places.get(sentence, ()), (one.block, one.end))
    return Open(tuple(places), tuple(Passage.from_dict(dict(one)) for one in passages), places)


async def judged_by(model: BaseChatModel, label: str, asked: Open, question: str) -> ClaimsJudged:
    """What a model says, asked in one call. Raises ModelServiceError.

    Args:
        label: What the page calls the model.
    """
    said = await borne_out(model, asked.sentences, asked.passages, question)
    decided = [(one, verdict) for one, verdict in zip(asked.sentences, said, strict=True) if verdict is not None]
    places = tuple(Judged(*place, verdict) for one, verdict in decided for place in asked.places[one])
    return ClaimsJudged(label, places, len(places))
