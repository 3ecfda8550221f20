"""A conversation as Markdown, to be read: the branch in sight, calls folded away, citations as footnotes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from core.export.labels import LABELS
from core.export.markdown_text import fenced, html, plain, safe
from core.export.turns import MARK
from core.messages.message import FUNCTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from core.export.labels import Lang
    from core.export.schema import (
        ExportedCall,
        ExportedCitation,
        ExportedFile,
        ExportedThought,
        ExportedTurn,
        ExportHead,
    )
    from core.messages.content import ContentItem
    from core.messages.message import Message

_WHEN: Final = "%Y-%m-%d %H:%M"
_LONGEST_PASSAGE: Final = 600  # characters; the other form has all of it


class MarkdownWriter:
    """Writes turn after turn; footnotes are numbered through all of them.

    Args:
        files: What is known of files, by the address that messages name them by; it may grow.
        lang: The language of what is not the conversation's own.
    """

    def __init__(self, files: Mapping[str, ExportedFile], lang: Lang = "en") -> None:
        self._files = files
        self._words = LABELS[lang]
        self._notes = 0

    def head(self, head: ExportHead, others: int = 0) -> str:
        """The title; `others` turns are on branches out of sight."""
        words = self._words
        said = words["exported"].format(when=head.exported_at.strftime(_WHEN))
        if others:
            said += words["apart"] + words["other" if others == 1 else "others"].format(n=others)
        return f"# {plain(head.conversation.title) or words['untitled']}\n\n*{said}*\n"

    def turns(self, turns: Iterable[ExportedTurn]) -> str:
        """Some turns, one after the other."""
        return "".join(map(self.turn, turns))

    def turn(self, turn: ExportedTurn) -> str:
        """A turn under its speaker's name."""
        return "\n" + "\n\n".join(part for part in self._parts(turn) if part) + "\n"

    def _parts(self, turn: ExportedTurn) -> Iterator[str]:
        notes: dict[int, int] = {}
        known = {one.number: one for one in turn.citations}
        calls = {call.message: call for call in turn.calls}
        answered = {call.result for call in turn.calls}
        steps = iter([step for step in turn.thoughts if step.tool_name is not None])
        speaker: str | None = None
        yield from self._named(turn)
        for index, message in enumerate(turn.messages):
            if turn.role == "assistant" and message.role != FUNCTION and (message.name or None) != speaker:
                speaker = message.name or None
                yield f"### {plain(speaker)}" if speaker else ""
            if index in calls:
                yield self._call(calls[index], next(steps, None), turn)
            elif index not in answered:
                yield from self._said(message, turn, known, notes)
        yield self._ending(turn)
        yield "\n".join(self._note(known[number], note) for number, note in notes.items())

    def _named(self, turn: ExportedTurn) -> Iterator[str]:
        when = turn.created_at.strftime(_WHEN)
        model = f"{plain(turn.run.model)} · " if turn.run is not None and turn.run.model else ""
        yield f"## {self._words[turn.role]}"
        yield f"<sub>{model}{when}</sub>"

    def _said(
        self, message: Message, turn: ExportedTurn, known: Mapping[int, ExportedCitation], notes: dict[int, int]
    ) -> Iterator[str]:
        if isinstance(message.reasoning_content, str) and message.reasoning_content.strip():
            yield _folded(self._words["thought"], safe(message.reasoning_content))

        def cite(text: str) -> str:
            return MARK.sub(lambda mark: self._marks(mark, known, notes), text)

        for item in message.items:
            if item.type != "text":
                yield self._file(item)
            elif item.text and message.role == FUNCTION:
                yield fenced(item.text)
            elif item.text:
                yield safe(item.text, lines=turn.role == "user", prose=cite if known else None)

    def _marks(self, mark: re.Match[str], known: Mapping[int, ExportedCitation], notes: dict[int, int]) -> str:
        """Footnotes for the numbers of a mark; a mark that points nowhere stays."""
        numbers = [int(number) for number in re.findall(r"\d+", mark[1])]
        if any(number not in known for number in numbers):
            return mark[0]
        for number in numbers:
            if number not in notes:
                self._notes += 1
                notes[number] = self._notes
        return "".join(f"[^{notes[number]}]" for number in numbers)

    def _note(self, one: ExportedCitation, note: int) -> str:
        page = f", {self._words['page'].format(n=one.page)}" if one.page is not None else ""
        where = f", {_link(one.url)}" if one.url else ""
        heading = f", {plain(one.heading)}" if one.heading else ""
        text = one.text if len(one.text) <= _LONGEST_PASSAGE else f"{one.text[:_LONGEST_PASSAGE]}…"
        return f"[^{note}]: **{plain(one.document)}**{page}{heading}{where}: {plain(text)}"

    def _call(self, call: ExportedCall, step: ExportedThought | None, turn: ExportedTurn) -> str:
        words = self._words
        state = words[
            "call_stopped" if call.state == "stopped" else "waiting" if call.state == "running" else call.state
        ]
        number = f"{words['step'].format(n=step.position)} · " if step is not None else ""
        body = [safe(step.thought)] if step is not None and step.thought and not _is_said(step.thought, turn) else []
        body += [words["arguments"], _arguments(call.arguments), *self._inside((call.id,), turn)]
        if call.result is None:
            body.append(words["no_result"])
        else:
            body.append(words["result"])
            items = turn.messages[call.result].items
            body += [fenced(item.text or "") if item.type == "text" else self._file(item) for item in items]
        return _folded(f"{number}{call.name} · {state}", "\n\n".join(body))

    def _inside(self, calls: tuple[str, ...], turn: ExportedTurn) -> Iterator[str]:
        """What the agent said and did that was called, its own calls folded in turn."""
        said = [one for inner in turn.inner if inner.calls == calls for one in inner.messages]
        results = {_tie(one): one for one in said if one.role == FUNCTION}
        for message in said:
            call = message.function_call
            if call is not None and message.role != FUNCTION:
                result = results.get(_tie(message))
                body = [fenced(call.arguments, "json"), *self._inside((*calls, _tie(message)), turn)]
                body += [self._words["result"], fenced(result.get_text_content())] if result is not None else []
                yield _folded(call.name, "\n\n".join(body))
            elif message.role != FUNCTION:
                name = f"**{plain(message.name)}**" if message.name else ""
                yield "\n\n".join(part for part in (name, *self._said(message, turn, {}, {})) if part)

    def _file(self, item: ContentItem) -> str:
        """A file by its name, type, size and hash; what is on the web by its address."""
        values: list[Any] = item.value if isinstance(item.value, list) else [item.value]
        lines: list[str] = []
        for value in values:
            address = str(cast("dict[str, Any]", value).get("data", "") if isinstance(value, dict) else value)
            known = self._files.get(address)
            about = _link(address)
            if known is not None:
                facts = (known.media_type, self._words["bytes"].format(n=f"{known.size:,}"), f"SHA-256 {known.sha256}")
                about = f"{plain(known.name)} ({plain(', '.join(facts))})".strip()
            lines.append(f"- {self._words[item.type]}: {about}")
        return "\n".join(lines)

    def _ending(self, turn: ExportedTurn) -> str:
        if turn.status == "complete":
            return ""
        error = (turn.run.error if turn.run is not None else None) or {}
        why = plain(str(error.get("message") or error.get("key") or "")) or "…"
        return f"*{self._words[turn.status].format(why=why)}*"


def _folded(summary: str, body: str) -> str:
    return f"<details>\n<summary>{html(summary)}</summary>\n\n{body}\n\n</details>"


def _tie(message: Message) -> str:
    return str((message.extra or {}).get("function_id") or "")


def _link(address: str) -> str:
    return f"<{address}>" if re.fullmatch(r"https?://[^\s<>`]+", address) else plain(address)


def _arguments(given: Any) -> str:
    if isinstance(given, str):
        return fenced(given)
    return fenced(json.dumps(given, ensure_ascii=False, indent=2), "json")


def _is_said(thought: str, turn: ExportedTurn) -> bool:
    """Whether it stands in the reply already, before the call."""
    said = (text for one in turn.messages for text in (one.reasoning_content, one.get_text_content()))
    return any(isinstance(text, str) and text.strip() and text.strip() in thought for text in said)
