"""Tool calls as bubbles: one line with shape, name, time and a few words; inside, what went in and what came back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from webui.render.entries import bubble
from webui.render.evidence import where
from webui.render.html import escaped
from webui.render.markdown import fenced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.runs.reply import CallBlock, Reply
    from webui.render.entries import Entry
    from webui.words import Words

# The page shows the beginning of a long result; the model was given what the runner let through.
LONGEST = 6_000
_SUMMARY = 60
_SHAPES: Mapping[str, str] = {"waiting": "p-run", "running": "p-run", "done": "p-ok", "failed": "p-bad"}


def call_entries(calls: Sequence[CallBlock], reply: Reply, words: Words, message_id: str) -> list[Entry]:
    """Bubbles of calls that were made together: one, or a parent with its children side by side.

    Args:
        calls: In the order of the model.
        reply: What they belong to.
        words: The reader's.
        message_id: The reply's, which marks point to.
    """
    numbers = {_address(passage): int(passage["number"]) for passage in reversed(reply.passages)}
    if len(calls) == 1:
        return [_call_entry(calls[0], words, message_id, numbers)]
    parent = f"{message_id}.{calls[0].call_id}"
    over = all(call.state in {"done", "failed"} for call in calls)
    head = bubble(_together(calls, words, over=over), "", "done" if over else "pending", bubble_id=parent)
    return [head, *(_call_entry(call, words, message_id, numbers, parent) for call in calls)]


def _address(passage: Mapping[str, Any]) -> tuple[Any, ...]:
    return passage.get("document_id"), passage.get("chunk_id"), passage.get("text")


def _together(calls: Sequence[CallBlock], words: Words, *, over: bool) -> str:
    if not over:
        return f'<span class="p-st p-run"></span>{escaped(words("reply.at_once", n=len(calls)))}'
    failed = sum(call.state == "failed" for call in calls)
    begins = [call.started_at for call in calls if call.started_at is not None]
    ends = [call.started_at + (call.seconds or 0.0) for call in calls if call.started_at is not None]
    seconds = words.seconds(max(ends) - min(begins)) if begins else words.seconds(0)
    key = "reply.tools_failed" if failed else "reply.tools"
    shape = "p-bad" if failed == len(calls) else "p-ok"
    return f'<span class="p-st {shape}"></span>{escaped(words(key, n=len(calls), seconds=seconds, failed=failed))}'


def _call_entry(
    call: CallBlock, words: Words, message_id: str, numbers: Mapping[tuple[Any, ...], int], parent: str = ""
) -> Entry:
    running = call.state in {"waiting", "running"}
    inside = [*_given(call, words), *_came_back(call, words, message_id, numbers)]
    # Side by side they stay one line each: the parent is open already.
    state = "pending" if running and not parent else "done"
    return bubble(_title(call, words), "\n".join(inside), state, parent_id=parent)


def _title(call: CallBlock, words: Words) -> str:
    spent = f' <span class="p-dur">{escaped(words.seconds(call.seconds))}</span>' if call.seconds is not None else ""
    summary = _summary(call, words)
    return (
        f'<span class="p-st {_SHAPES[call.state]}"></span><span class="p-tool">{escaped(call.name)}</span>{spent}'
        f'<span class="p-sr"> {escaped(words(f"reply.state_{call.state}"))} </span>'
        + (f' <span class="p-sum">{escaped(summary)}</span>' if summary else "")
    )


def _summary(call: CallBlock, words: Words) -> str:
    """A few words beside the name: why it failed, or what it was asked."""
    if call.state == "failed":
        if call.result is None:
            return words("reply.cut")
        reason = str((call.result.extra or {}).get("failed", ""))
        return words(f"failed.{reason}") if f"failed.{reason}" in words else words("reply.failed")
    given = _arguments(call)
    if isinstance(given, dict):
        values = cast("dict[str, Any]", given).values()
        texts = [value for value in values if isinstance(value, str | int | float) and str(value).strip()]
        if texts:
            quoted = isinstance(texts[0], str)
            text = _short(" ".join(str(texts[0]).split()), _SUMMARY)
            return words("reply.quoted", text=text) if quoted else text
    return ""


def _arguments(call: CallBlock) -> Any:
    """The arguments as values; None while they are not whole."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return None


def _given(call: CallBlock, words: Words) -> list[str]:
    given = _arguments(call)
    if given == {}:
        return []
    text = call.arguments if given is None else json.dumps(given, ensure_ascii=False, indent=_indent(given))
    if not text.strip():
        return []
    return [_caption(words("reply.given")), "", *fenced(_short(text, LONGEST), "json"), ""]


def _indent(given: Any) -> int | None:
    """Short arguments stand on one line."""
    return None if len(json.dumps(given, ensure_ascii=False)) <= _SUMMARY else 2


def _came_back(call: CallBlock, words: Words, message_id: str, numbers: Mapping[tuple[Any, ...], int]) -> list[str]:
    if call.result is None:
        return []
    found: list[dict[str, Any]] = list((call.result.extra or {}).get("passages") or ())
    if found:
        rows = "".join(_passage(passage, words, message_id, numbers[_address(passage)]) for passage in found)
        return [_caption(words("reply.came_back")), "", f'<div class="p-found">{rows}</div>', ""]
    caption = words("reply.failed" if call.state == "failed" else "reply.came_back")
    text = call.result.get_text_content()
    if not text.strip():
        return [_caption(caption), "", f'<p class="p-none">{escaped(words("reply.nothing"))}</p>', ""]
    return [_caption(caption), "", *fenced(_short(text, LONGEST), _language(text)), ""]


def _passage(passage: Mapping[str, Any], words: Words, message_id: str, number: int) -> str:
    text = escaped(_short(" ".join(str(passage.get("text", "")).split()), 160))
    return (
        f'<p><a class="cite" href="#cite-{escaped(message_id)}-{number}">{number}</a> '
        f'<span>{text}</span> <span class="p-where">{escaped(where(passage, words))}</span></p>'
    )


def _language(text: str) -> str:
    if text.lstrip()[:1] not in {"{", "["}:
        return ""
    try:
        json.loads(text)
    except ValueError:
        return ""
    return "json"


def _caption(text: str) -> str:
    return f'<p class="p-cap">{escaped(text)}</p>'


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
