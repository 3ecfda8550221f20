"""`check_claims`: which sentences of an answer its passages bear out, for programs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from core.bridge.sync import run as run_sync
from core.errors import SettingsError, WrongParametersError, shown
from core.llm.base import BaseChatModel
from core.rag.citations import cited_numbers
from core.rag.claims.judge import borne_out
from core.rag.claims.rules import Reason
from core.rag.claims.weighing import Claim, Verdict, claims_of, claims_without_passages
from core.rag.document import Passage

Verdicts: TypeAlias = Sequence[bool | None]
ClaimJudge: TypeAlias = (
    str | Mapping[str, Any] | BaseChatModel | Callable[[list[str], list[Passage]], Verdicts | Awaitable[Verdicts]]
)


# Share of words from where on a sentence is supported, and weak: words alone do not tell invention from paraphrase, so
# that hardly any must be there before likeness speaks against a sentence that no rule does.
_ABOUT_IT = (0.2, 0.1)
_GAP_BEFORE_A_STOP = re.compile(
    r"\s{3,}(?=[.,;:!?。，、；：！？]|$)"
)  # where a mark was: it has three characters and more
_GAP = re.compile(r"\s{3,}")


def check_claims(
    answer: str,
    passages: Sequence[Passage | Mapping[str, Any] | str],
    question: str = "",
    judge: ClaimJudge | None = None,
) -> list[Claim]:
    """As `acheck_claims`, from synchronous code."""
    if judge is None:
        return _by_rules(answer, passages_of(passages), question)
    return run_sync(acheck_claims(answer, passages, question, judge))


async def acheck_claims(
    answer: str,
    passages: Sequence[Passage | Mapping[str, Any] | str],
    question: str = "",
    judge: ClaimJudge | None = None,
) -> list[Claim]:
    """The sentences of an answer that claim something, each with what the passages say to it.

    Rules compare names, figures, dates, roles, conditions and denials, in English and Chinese; they find what is said
    otherwise or nowhere, and not everything that is false. What they find nothing against is put to the judge, where
    there is one, all of it in one call; of what it does not decide, the rules' verdict stays.

    Without passages all of them are unsupported, and a sentence with a mark that leads to no passage is weak at best.

    Args:
        answer: Markdown; marks such as `[1]` point to passages. Code, headings, tables, questions, greetings,
            thanks and short phrases claim nothing.
        passages: What the answer rests on: as `Library.find` gives them, as dicts with a `text`, or as texts.
        question: What is answered; its words in the answer prove nothing.
        judge: A chat model, or what `get_chat_model` takes; or a function that is given the sentences and the passages
            and says of each sentence whether they bear it out (`None`: undecided). It may be a coroutine.

    Raises:
        SettingsError: A passage is of another kind, or the judge's model cannot be made.
        ModelServiceError: The judge's model failed.
    """
    given = passages_of(passages)
    claims = _by_rules(answer, given, question)
    open_ones = list(dict.fromkeys(one.sentence for one in claims if _is_open(one)))
    if judge is None or not open_ones or not given:
        return claims
    decided = dict(zip(open_ones, await _decided(judge, open_ones, given, question), strict=False))
    return [_judged(one, is_borne_out=decided.get(one.sentence)) if _is_open(one) else one for one in claims]


def _by_rules(answer: str, passages: Sequence[Passage], question: str) -> list[Claim]:
    if not passages:
        claims = claims_without_passages(answer, question)
    else:
        claims = claims_of(answer, passages, asked=question, score_from=_ABOUT_IT)
    named = [replace(one, sentence=_without_gaps(one.sentence)) for one in claims]
    return [_held_against_marks(one, answer, len(passages)) for one in named]


def _held_against_marks(claim: Claim, answer: str, passages: int) -> Claim:
    """The claim, weak at best where one of its marks leads to none of so many passages."""
    lost = [one for one in cited_numbers(answer[claim.start : claim.end]) if not 0 < one <= passages]
    if not lost or not passages:
        return claim
    verdict: Verdict = "weak" if claim.verdict == "supported" else claim.verdict
    return replace(claim, verdict=verdict, reasons=(*claim.reasons, Reason("mark", f"[{lost[0]}]")))


def _is_open(claim: Claim) -> bool:
    """Whether a judge decides: a mark that leads nowhere says nothing of the sentence itself."""
    return all(one.kind == "mark" for one in claim.reasons)


def _without_gaps(sentence: str) -> str:
    """The sentence as a person would write it where its marks were."""
    return _GAP.sub(" ", _GAP_BEFORE_A_STOP.sub("", sentence))


async def _decided(judge: ClaimJudge, sentences: list[str], passages: list[Passage], question: str) -> Verdicts:
    if callable(judge) and not isinstance(judge, BaseChatModel):
        said = judge(sentences, passages)
        return await said if isawaitable(said) else said
    from core.llm.open_model import get_chat_model

    return await borne_out(get_chat_model(judge), sentences, passages, question)


def _judged(claim: Claim, *, is_borne_out: bool | None) -> Claim:
    if is_borne_out is None:
        return claim
    if is_borne_out:
        return replace(claim, judge="model", verdict="weak" if claim.reasons else "supported")
    return replace(claim, judge="model", verdict="unsupported", passages=())


def passages_of(given: Sequence[Passage | Mapping[str, Any] | str]) -> list[Passage]:
    """Passages, however they are given. Raises SettingsError."""
    if isinstance(given, str | bytes | Mapping):  # whose letters or keys would be taken for passages
        said = f"passages of check_claims must be a list, not {shown(given)}."
        raise WrongParametersError(said, hint="Write check_claims(passages=[…]).", name="passages")
    return [_passage(one, number) for number, one in enumerate(given, 1)]


def _passage(one: object, number: int) -> Passage:
    if isinstance(one, Passage):
        return one
    if isinstance(one, str):
        return Passage(one, 1.0, "", "", None)
    given: Mapping[str, Any] = cast("Mapping[str, Any]", one) if isinstance(one, Mapping) else dict[str, Any]()
    text, page = given.get("text"), given.get("page")
    if isinstance(text, str):
        name, heading = str(given.get("document") or ""), str(given.get("heading") or "")
        return Passage(text, 1.0, name, "", page if isinstance(page, int) else None, heading=heading)
    hint = "Give passages as Library.find returns them, dicts with a text, or texts."
    raise SettingsError(f"Passage {number} cannot be read: it is {type(cast('object', one)).__name__}.", hint=hint)
