"""Tool calls as bubbles: a line with state, name, time and a summary; adjacent calls under one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from core.runs.reply import CallBlock, ReasoningBlock, TextBlock
from webui.render.call_body import DRAWING, address_of, agent_outcome, agent_question, answer_things, call_body
from webui.render.entries import bubble, face, inside_bubble, message_entry
from webui.render.markup import escaped
from webui.render.tool_words import label_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.runs.reply import Block, Reply
    from webui.render.entries import Entry
    from webui.words import Words

_SUMMARY = 60
_LEAST_SAID = 0.1  # seconds; shorter times are not shown
_SHAPES: Mapping[str, str] = {
    "waiting": "p-run",
    "running": "p-run",
    "asked": "p-ask",
    "done": "p-ok",
    "failed": "p-bad",
    "refused": "p-not",
    "stopped": "p-halt",
}
_OVER = frozenset({"done", "failed", "refused", "stopped"})


def adjacent_calls(
    blocks: Sequence[Block], at: int, alone: Callable[[CallBlock], bool] = lambda _: False
) -> tuple[list[CallBlock | ReasoningBlock], int]:
    """The adjacent calls from `at` on: reasoning may be between them, but no text.

    Args:
        at: Where the first call is.
        alone: Which calls are never grouped.

    Returns:
        The calls and the reasoning between them, and the index of the next block.
    """
    found: list[CallBlock | ReasoningBlock] = []
    whole, after = 0, at
    first = blocks[at] if at < len(blocks) else None
    if isinstance(first, CallBlock) and alone(first):
        return [first], at + 1
    for index, block in enumerate(blocks[at:], at + 1):
        if isinstance(block, TextBlock) and not block.text.strip():
            continue
        if not isinstance(block, CallBlock | ReasoningBlock) or (isinstance(block, CallBlock) and alone(block)):
            break
        if first is not None and block.speaker != first.speaker:
            break
        found.append(block)
        if isinstance(block, CallBlock):
            whole, after = len(found), index
    return found[:whole], after


@dataclass(frozen=True, slots=True)
class CallDrawing:
    """Renders calls.

    Args:
        reply: The whole reply that they belong to.
        message_id: The reply's, which marks point to.
        cast: The names of all who may speak: a call of one of these is a question to an agent.
        thought: Makes the bubble of reasoning between calls, under a parent.
        inner: Makes the entries of a called agent, under the bubble of the call.
    """

    reply: Reply
    words: Words
    message_id: str
    cast: frozenset[str]
    thought: Callable[[ReasoningBlock, str], Entry]
    inner: Callable[[CallBlock, str], list[Entry]]

    def entries(self, blocks: Sequence[CallBlock | ReasoningBlock], parent: str = "", *, closed: bool) -> list[Entry]:
        """The bubbles of adjacent calls: one, or several under a common line.

        Args:
            blocks: From `adjacent_calls`.
            parent: The bubble around them, if any.
            closed: Whether no further call can join them: something follows, or the reply is over.
        """
        calls = [block for block in blocks if isinstance(block, CallBlock)]
        drawn = self._drawn(calls, parent)
        if len(blocks) == 1:
            return self._entries(calls[0], parent) + drawn
        head = f"{self.message_id}.{calls[0].address}"
        over = closed and all(call.state in _OVER for call in calls)
        state = "done" if over and not any(map(shows_pictures, calls)) else "pending"
        found = [bubble(_together(calls, self.words, over=over), "", state, bubble_id=head, parent_id=parent)]
        for one in blocks:
            found += self._entries(one, head, beside=True) if isinstance(one, CallBlock) else [self.thought(one, head)]
        return found + drawn

    def _drawn(self, calls: Sequence[CallBlock], parent: str) -> list[Entry]:
        """The pictures and files that were made for the answer, shown before its text."""
        found = [one for call in calls for one in answer_things(call, self.message_id, self.words)]
        markup = f'<div class="p-files p-things p-drawn">{"".join(dict.fromkeys(found))}</div>'
        return [inside_bubble(markup, parent) if parent else message_entry("assistant", markup)] if found else []

    def _entries(self, call: CallBlock, parent: str, *, beside: bool = False) -> list[Entry]:
        again = self.reply.status != "running" and not call.within
        if self.is_agent(call):
            return self._asked(call, parent, again=again)
        inside = call_body(call, self.words, self.message_id, self._numbers(), again=again)
        running = call.state in {"waiting", "running"}
        # Grouped calls stay folded, for their parent is open already; pictures are always shown.
        opened = (running and not beside) or shows_pictures(call)
        return [bubble(_title(call, self.words), inside, "pending" if opened else "done", parent_id=parent)]

    def _asked(self, call: CallBlock, parent: str, *, again: bool) -> list[Entry]:
        """The bubble of a question to an agent, with everything that the agent says and does."""
        own = f"{self.message_id}/{call.address}"
        opened = call.state not in _OVER or shows_pictures(call)
        state = "pending" if opened else "done"
        asked = agent_question(call, self.words, self.message_id)
        end = agent_outcome(call, self.words, self.message_id, self._numbers(), again=again)
        found = [
            bubble(_title(call, self.words, _agent_of(call, self.cast)), asked, state, bubble_id=own, parent_id=parent)
        ]
        return [*found, *self.inner(call, own), *([inside_bubble(end, own)] if end else [])]

    def is_agent(self, call: CallBlock) -> bool:
        """Whether a call asks an agent."""
        return call.inner is not None or call.name in self.cast

    def _numbers(self) -> dict[tuple[Any, ...], int]:
        return {address_of(passage): int(passage["number"]) for passage in reversed(self.reply.passages)}


def shows_pictures(call: CallBlock) -> bool:
    """Whether the bubble of a call holds pictures."""
    if call.name in DRAWING:
        return False
    return call.state == "done" and call.result is not None and any(one.type == "image" for one in call.result.items)


def _together(calls: Sequence[CallBlock], words: Words, *, over: bool) -> str:
    n, asked = len(calls), any(call.state == "asked" for call in calls)
    if not over:
        said, shape = words("reply.at_once" if _at_once(calls) else "call.using", n=n), "p-run"
        if asked and not any(call.state in {"waiting", "running"} for call in calls):
            shape = "p-ask"
    else:
        said, shape = words("call.used", n=n, seconds=words.seconds(_worked(calls))), "p-ok"
        counts = [(state, sum(call.state == state for call in calls)) for state in ("failed", "refused", "stopped")]
        told = [words(f"call.{state}", n=count) for state, count in counts if count]
        said = words("lang.comma").join([said, *told])
        lost = next((state for state, count in counts if count == n), "")
        shape = _SHAPES[lost] if lost else shape
    return f'<span class="p-st {shape}"></span>{escaped(said)}'


def _at_once(calls: Sequence[CallBlock]) -> bool:
    """Whether the calls ran in parallel: none began after another had ended."""
    ends = [
        call.started_at + (call.seconds or 0.0) for call in calls if call.state in _OVER and call.started_at is not None
    ]
    first = min(ends, default=None)
    if first is None:
        return True
    begins = [call.started_at for call in calls if call.started_at is not None]
    return max(begins) < first and not any(call.state == "waiting" for call in calls)


def _worked(calls: Sequence[CallBlock]) -> float:
    """Seconds in which at least one call ran; reasoning and approvals in between are not counted."""
    spans = sorted(
        (call.started_at, call.started_at + (call.seconds or 0.0)) for call in calls if call.started_at is not None
    )
    worked = end = 0.0
    for begin, stop in spans:
        worked += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    return worked


def _agent_of(call: CallBlock, cast: frozenset[str]) -> str:
    """The name of the agent that is asked, which may differ from the tool's."""
    spoke = list(call.inner.speakers) if call.inner is not None else []
    return spoke[0] if len(spoke) == 1 and call.name not in cast else call.name


def _title(call: CallBlock, words: Words, agent: str = "") -> str:
    """The line of a call; `agent` is the agent's name where the call asks one."""
    is_worth_saying = call.seconds is not None and call.seconds >= _LEAST_SAID and call.state != "refused"
    took = words.seconds(call.seconds or 0.0) if is_worth_saying else ""
    spent = f' <span class="p-dur">{escaped(took)}</span>' if took else ""
    label = label_of(call.name, words)
    told = f' <span class="p-lab">{escaped(label)}</span>' if label and not _same(label, call.name) else ""
    summary, state = _summary(call, words, told=not agent), words(f"reply.state_{call.state}")
    name = f'{face(agent)}<span class="p-asked">{escaped(agent)}</span>' if agent else ""
    name = name or f'<span class="p-tool{" p-labelled" if told else ""}">{escaped(call.name)}</span>'
    heard = "" if summary == state else f'<span class="p-sr"> {escaped(state)} </span>'
    return f'<span class="p-st {_SHAPES[call.state]}"></span>{name}{told}{spent}{heard}{_decided(call, words)}' + (
        f' <span class="p-sum">{escaped(summary)}</span>' if summary else ""
    )


def _same(label: str, name: str) -> bool:
    return label.casefold().replace(" ", "_") == name.casefold()


def _decided(call: CallBlock, words: Words) -> str:
    """The note that the reader allowed the call."""
    if call.asked is None or call.state in {"asked", "refused", "stopped"}:
        return ""
    said = words("call.allowed_changed" if call.edited is not None else "call.allowed")
    return f' <span class="p-gave">{escaped(said)}</span>'


def _summary(call: CallBlock, words: Words, *, told: bool) -> str:
    """A few words beside the name: that it asks, its progress (if `told`), why it failed, or its first argument."""
    if call.state == "asked":
        return words("reply.state_asked")
    if told and call.state == "running" and call.progress is not None and call.progress.text.strip():
        return _short(" ".join(call.progress.text.split()), _SUMMARY)
    if call.state in {"failed", "refused", "stopped"}:
        return _reason(call, words)
    return _first_value(call, words)


def _reason(call: CallBlock, words: Words) -> str:
    reason = str((call.result.extra or {}).get("failed", "")) if call.result is not None else ""
    if f"failed.{reason}" in words:
        return words(f"failed.{reason}")
    if call.state == "failed" and call.result is None and call.input is not None:
        return words("form.over")
    if call.state == "failed":
        return words("reply.failed" if call.result is not None else "reply.cut")
    return words(f"reply.state_{call.state}")


def _first_value(call: CallBlock, words: Words) -> str:
    given: Any = call.edited
    if given is None:
        try:
            given = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return ""
    if isinstance(given, dict):
        values = cast("dict[str, Any]", given).values()
        texts = [value for value in values if isinstance(value, str | int | float) and str(value).strip()]
        if texts:
            text = _short(" ".join(str(texts[0]).split()), _SUMMARY)
            return words("reply.quoted", text=text) if isinstance(texts[0], str) else text
    return ""


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
