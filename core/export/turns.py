"""A stored turn as it is handed out: without keys, its passages numbered, its calls beside their results."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from core.export.schema import (
    ExportedCall,
    ExportedCitation,
    ExportedClaim,
    ExportedDoubt,
    ExportedInner,
    ExportedReason,
    ExportedRun,
    ExportedThought,
    ExportedTurn,
)
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, Message
from core.messages.transcript import Transcript
from core.rag.called import name_here
from core.runs.claim_check import claimed_sentences, marked_texts
from core.runs.log import ClaimsChecked, ClaimsJudged, LoggedEvent, NestedEvent, RunFinished, message_events
from core.runs.reply import CallBlock, CallState, Reply, TextBlock
from core.runs.rows import events_of, logged_of
from core.runs.steps import thoughts_of
from core.runs.untold import untold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.export.redaction import Redaction
    from core.messages.events import Event
    from core.rag.called import Names
    from core.rag.claims.rules import Reason
    from core.storage.base import AgentThought, RunRecord
    from core.storage.whole_conversations import WholeTurn

MARK = re.compile(r"\[(\d{1,3}(?:[,，、;] ?\d{1,3}){0,9})\](?!\()")
_TOO_LONG = "[…]"  # in place of a video's frames and the like, which cannot be named


def moment(seconds: float) -> datetime:
    """A time of the store."""
    return datetime.fromtimestamp(seconds, UTC)


def turn_of(
    whole: WholeTurn,
    redaction: Redaction,
    *,
    shown: bool,
    beside: bool = False,
    so_far: Sequence[LoggedEvent] = (),
    names: Names | None = None,
) -> ExportedTurn:
    """A turn.

    Args:
        redaction: Takes the keys out.
        shown: Whether it is on the branch in sight.
        beside: Whether it is one of two replies that are shown side by side.
        so_far: Of a reply that is being written, or was when its process was killed, what has happened.
        names: What the conversation calls its documents; a reply may have been stored under another name.
    """
    stored, messages, thoughts = whole.message, list(whole.message.parts), whole.thoughts
    if so_far:
        messages = Transcript(message_events(so_far)).messages()
        thoughts = tuple(thoughts_of(whole.run, messages, so_far)) if whole.run is not None else ()
    checked = _checked(messages, so_far or logged_of(whole.checked))
    messages = [_message(one, redaction) for one in _marked(messages, checked)]
    noted = [one.event for one in logged_of((*whole.checked, *whole.noted))]
    events = [*events_of(messages), *noted]
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, start=1))
    if stored.status != "running":
        reply.apply(LoggedEvent(reply.seen + 1, 0.0, RunFinished(stored.status)))
    return ExportedTurn(
        id=stored.id,
        parent_id=stored.parent_id,
        role=stored.role,
        status=stored.status,
        shown=shown,
        beside=beside,
        created_at=moment(stored.created_at),
        messages=tuple(_numbered(one, reply) for one in messages),
        calls=tuple(_calls(messages, reply)),
        inner=tuple(_inner(so_far or logged_of(whole.within), redaction, reply)),
        thoughts=tuple(_thought(one, redaction) for one in thoughts),
        citations=tuple(_citations(reply, names or {})),
        run=_run(whole.run, redaction) if whole.run is not None else None,
        edited=reply.edited,
        rating=reply.rating or None,
        rated_for=redaction.said(reply.rated_for),
        judged_by=redaction.said(reply.judged.model) if reply.judged is not None else "",
        checked=len(checked.claims) if checked is not None else 0,
        claims=tuple(_claims(checked, redaction)) if checked is not None else (),
        doubted=tuple(_doubts(checked, redaction)) if checked is not None else (),
        left_out=tuple(redaction.said(one.sentence) for one in reply.left_out),
        computed=tuple(redaction.said(str(one.get("text") or "")) for one in untold(reply)),
        uncounted=bool(reply.uncounted),
    )


def _checked(messages: list[Message], logged: Sequence[LoggedEvent]) -> Reply | None:
    """The reply as it was checked, without marks that the check set; `None` where it was not."""
    checked = [one.event for one in logged if isinstance(one.event, ClaimsChecked | ClaimsJudged)]
    if not checked:
        return None
    events = [*events_of(messages), *checked]
    return Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, start=1))


def _doubts(reply: Reply, redaction: Redaction) -> Iterator[ExportedDoubt]:
    for claim, sentence in zip(reply.claims, claimed_sentences(reply), strict=True):
        if claim.verdict != "supported" and sentence:
            reason = claim.reason
            words, instead = (redaction.said(reason.words), redaction.said(reason.rival)) if reason else ("", "")
            text = redaction.said(" ".join(sentence.split()))
            yield ExportedDoubt(text=text, verdict=claim.verdict, words=words, instead=instead)


def _claims(reply: Reply, redaction: Redaction) -> Iterator[ExportedClaim]:
    judged = {(one.block, one.end): one.borne_out for one in reply.judged.said} if reply.judged is not None else {}
    for claim, sentence in zip(reply.claims, claimed_sentences(reply), strict=True):
        if sentence:
            yield ExportedClaim(
                text=redaction.said(" ".join(sentence.split())),
                verdict=claim.verdict,
                numbers=claim.numbers,
                reasons=tuple(_reason(one, redaction) for one in claim.reasons),
                judged=judged.get((claim.block, claim.end)),
            )


def _reason(one: Reason, redaction: Redaction) -> ExportedReason:
    words, instead = redaction.said(one.words), redaction.said(one.rival)
    return ExportedReason(kind=one.kind, words=words, instead=instead, passage=one.passage)


def _marked(messages: list[Message], reply: Reply | None) -> list[Message]:
    """With the marks that the page shows at sentences which the passages bear out, also where the model set none."""
    if reply is None:
        return messages
    blocks = marked_texts(reply)
    texts = {block.text: blocks[at] for at, block in enumerate(reply.blocks) if isinstance(block, TextBlock)}
    return [
        one.model_copy(update={"content": texts[one.content]})
        if one.role == ASSISTANT and isinstance(one.content, str) and one.content in texts
        else one
        for one in messages
    ]


def _message(message: Message, redaction: Redaction) -> Message:
    machine, call = message.role == FUNCTION, message.function_call
    extra = dict(message.extra or {})
    passages = extra.pop("passages", None)
    cleaned = redaction.machine if machine and not passages else redaction.said
    kept: dict[str, Any] = redaction.value(extra)
    if passages:
        kept["passages"] = redaction.value(passages, machine=False)
    content = message.content
    return Message(
        message.role,
        cleaned(content) if isinstance(content, str) else [_item(one, redaction, machine=machine) for one in content],
        name=redaction.said(message.name) if message.name else message.name,
        function_call={"name": redaction.said(call.name), "arguments": redaction.arguments(call.arguments)}
        if call is not None
        else None,
        reasoning_content=redaction.said(message.reasoning_content)
        if isinstance(message.reasoning_content, str)
        else None,
        extra=kept if message.extra is not None else None,
    )


def _item(item: ContentItem, redaction: Redaction, *, machine: bool) -> ContentItem:
    if item.type == "text":
        return ContentItem(text=redaction.value(item.value, machine=machine))
    if isinstance(item.value, list):
        return ContentItem(video=[redaction.address(one) for one in item.value] or _TOO_LONG)
    return ContentItem(**{item.type: redaction.address(item.value)})


def _numbered(message: Message, reply: Reply) -> Message:
    """With numbers in place of its passages."""
    passages = (message.extra or {}).get("passages")
    if not passages:
        return message
    numbers = {_identity(one): one["number"] for one in reply.passages}
    found = [numbers[_identity(one)] for one in passages if _identity(one) in numbers]
    return message.model_copy(update={"extra": {**(message.extra or {}), "passages": found}})


def _inner(logged: Iterable[LoggedEvent], redaction: Redaction, reply: Reply) -> Iterable[ExportedInner]:
    """What the agents said and did that were called, each under its call."""
    told: dict[tuple[str, ...], list[Event]] = {}
    for one in logged:
        if isinstance(one.event, NestedEvent):
            told.setdefault(tuple(one.event.calls), []).append(one.event.event)
    for calls, events in told.items():
        messages = (_message(one, redaction) for one in Transcript(events).messages())
        within = tuple(map(redaction.machine, calls))  # as the calls' own messages have them
        yield ExportedInner(calls=within, messages=tuple(_numbered(one, reply) for one in messages))


def _identity(passage: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(passage.get(name)) for name in ("document_id", "chunk_id", "text"))


def _calls(messages: Sequence[Message], reply: Reply) -> Iterable[ExportedCall]:
    results = {_call_id(one): index for index, one in enumerate(messages) if one.role == FUNCTION}
    ended: list[CallState] = [block.state for block in reply.blocks if isinstance(block, CallBlock)]
    made = [(index, one) for index, one in enumerate(messages) if one.role != FUNCTION and one.function_call]
    for (index, message), state in zip(made, ended, strict=True):
        call = message.function_call
        if call is None:
            continue
        result = results.get(_call_id(message))
        extra = (messages[result].extra or {}) if result is not None else {}
        yield ExportedCall(
            id=_call_id(message),
            name=call.name,
            arguments=_read(call.arguments),
            state=state,
            failed=str(extra["failed"]) if extra.get("failed") else None,
            message=index,
            result=result,
        )


def _call_id(message: Message) -> str:
    return str((message.extra or {}).get("function_id") or "")


def _citations(reply: Reply, names: Names) -> Iterable[ExportedCitation]:
    texts = (block.text for block in reply.blocks if isinstance(block, TextBlock))
    cited = {int(number) for text in texts for mark in MARK.finditer(text) for number in re.findall(r"\d+", mark[1])}
    for one in reply.passages:
        page, document_id = one.get("page"), str(one.get("document_id") or "")
        yield ExportedCitation(
            number=one["number"],
            document=name_here(names, document_id, str(one.get("document") or "")),
            document_id=document_id,
            page=page if isinstance(page, int) else None,
            heading=str(one.get("heading") or ""),
            url=str(one.get("url") or ""),
            text=str(one.get("text") or ""),
            cited=one["number"] in cited,
            rectangles=tuple(_places(one.get("rectangles"))),
        )


def _places(given: Any) -> Iterable[tuple[float, float, float, float]]:
    """Rectangles of a passage; what is none is left out: tools of others may say anything."""
    for one in cast("list[Any]", given) if isinstance(given, list) else ():
        corners = cast("list[Any]", one) if isinstance(one, list | tuple) else []
        if len(corners) == 4 and all(isinstance(at, int | float) and isfinite(at) for at in corners):
            x0, y0, x1, y1 = map(float, corners)
            yield (x0, y0, x1, y1)


def _thought(step: AgentThought, redaction: Redaction) -> ExportedThought:
    given = redaction.arguments(step.tool_input) if step.tool_input else None
    return ExportedThought(
        id=step.id,
        message_id=step.message_id,
        thought=redaction.said(step.thought),
        tool_name=redaction.said(step.tool_name) if step.tool_name is not None else None,
        tool_input=_read(given) if given else None,
        observation=redaction.machine(step.observation) if step.observation is not None else None,
        position=step.position,
        created_at=step.created_at,
    )


def _run(record: RunRecord, redaction: Redaction) -> ExportedRun:
    return ExportedRun(
        id=record.id,
        model=redaction.said(record.model),
        status=record.status,
        error=redaction.value(record.error) if record.error is not None else None,
        usage=record.usage,
        started_at=moment(record.started_at),
        finished_at=moment(record.finished_at) if record.finished_at is not None else None,
    )


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
