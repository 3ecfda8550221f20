"""A conversation as Markdown, to be read: the branch in sight, calls folded away, citations as footnotes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from core.export.turns import MARK
from core.export.where_cited import place_in_words
from core.messages.message import FUNCTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from core.export.schema import (
        ExportedCall,
        ExportedCitation,
        ExportedDoubt,
        ExportedFile,
        ExportedThought,
        ExportedTurn,
        ExportHead,
    )
    from core.languages import Lang
    from core.messages.content import ContentItem
    from core.messages.message import Message


LABELS: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "untitled": "A conversation",
        "exported": "Exported from Parlour, {when} UTC.",
        "others": "{n} turns of other versions are not in sight; the JSON export has them.",
        "other": "1 turn of another version is not in sight; the JSON export has it.",
        "user": "You",
        "assistant": "Assistant",
        "thought": "Thought",
        "step": "Step {n}",
        "arguments": "Called with",
        "result": "Result",
        "no_result": "There is no result.",
        "file": "File",
        "image": "Picture",
        "audio": "Sound",
        "video": "Video",
        "bytes": "{n} bytes",
        "waiting": "not over yet",
        "asked": "waits to be allowed",
        "done": "done",
        "failed": "failed",
        "refused": "not allowed",
        "call_stopped": "stopped",
        "running": "This reply was still being written when it was exported.",
        "paused": "This reply pauses here.",
        "stopped": "This reply was stopped here.",
        "error": "This reply broke off: {why}",
        "interrupted": "This reply was interrupted here.",
        "edited": "edited by the reader",
        "judged": "sentences judged by {model}",
        "checked": "{n} of {total} sentences resemble what was found",
        "doubted": "doubtful: {said}",
        "differs": "{text} (here “{words}”, there “{instead}”)",
        "absent": "{text} (“{words}” was not found)",
        "more": "the passage says more: {said}",
        "computed": "counted by program: {said}",
        "uncounted": "no program counted this; figures of several rows may be wrong",
        "up": "marked as good",
        "down": "marked as bad",
        "down_for": "marked as bad: {why}",
        "apart": " ",
    },
    "zh": {
        "untitled": "对话",
        "exported": "由 Parlour 导出，{when}（UTC）。",
        "others": "另有 {n} 条属于其他版本，此处未显示；JSON 导出中有全部内容。",
        "other": "另有 1 条属于其他版本，此处未显示；JSON 导出中有全部内容。",
        "user": "你",
        "assistant": "助手",
        "thought": "思考",
        "step": "第 {n} 步",
        "arguments": "参数",
        "result": "结果",
        "no_result": "没有结果。",
        "file": "文件",
        "image": "图片",
        "audio": "音频",
        "video": "视频",
        "bytes": "{n} 字节",
        "waiting": "尚未结束",
        "asked": "等待许可",
        "done": "完成",
        "failed": "失败",
        "refused": "未获许可",
        "call_stopped": "已停止",
        "running": "导出时，这条回复还在生成中。",
        "paused": "这条回复在此暂停。",
        "stopped": "这条回复在此被停止。",
        "error": "这条回复中断了：{why}",
        "interrupted": "这条回复在此中断。",
        "edited": "由读者修改",
        "judged": "句子由 {model} 判断",
        "checked": "{total} 句中有 {n} 句与找到的内容相近",
        "doubted": "存疑：{said}",
        "differs": "{text}（此处为“{words}”，原文为“{instead}”）",
        "absent": "{text}（未找到“{words}”）",
        "more": "段落还说：{said}",
        "computed": "由程序计算：{said}",
        "uncounted": "没有程序统计过；涉及多行数据的数字可能有误",
        "up": "标记为好",
        "down": "标记为不好",
        "down_for": "标记为不好：{why}",
        "apart": "",
    },
}


_FENCE: Final = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)")
_MARKS: Final = re.compile(r"`{3,}|~{3,}")
_HEADING: Final = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_DASHES: Final = re.compile(r"( {0,3})(-{1,}|={1,})([ \t]*)")
_TAG: Final = re.compile(r"<(?!https?://[^\s<>`]+>)(?=[A-Za-z/!?])")
_BARE: Final = r"(?<!\\)((?:\\\\)*)"  # before a sign that no backslash takes the meaning from
_LINK: Final = re.compile(
    _BARE + r"\](?=\()(?!\(\s*(?:<?(?:https?://|mailto:)|[/?#)]|[^\s:&\\%<>()]+[/?#)\s]))", re.IGNORECASE
)
"""The end of a link's text, but for one whose target is on the web, a mail address, or has no scheme at all."""
_LIVE: Final = re.compile(_BARE + r"(?=!\[|\[\^)")
_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]#|~$!^]")
_BELOW: Final = 2  # levels that headings move down
_DEEPEST: Final = 6

_HTML: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def plain(text: str) -> str:
    """Text in a line that stands as it is, whatever signs are in it."""
    line = _SPECIAL.sub(lambda found: "\\" + found[0], " ".join(text.split()))
    return re.sub("[&<>]", lambda found: _HTML[found[0]], line)


def about(turn: ExportedTurn, words: Mapping[str, str]) -> list[str]:
    """Who wrote a turn, when, and what its reader made of it; nothing of it is safe for Markdown or HTML yet.

    Args:
        words: Those of `LABELS`.
    """
    model = [turn.run.model] if turn.run is not None and turn.run.model else []
    edited = [words["edited"]] if turn.edited else []
    why = "down_for" if turn.rating == "down" and turn.rated_for else turn.rating
    rated = [words[why].format(why=turn.rated_for)] if why else []
    judged = [words["judged"].format(model=turn.judged_by)] if turn.judged_by else []
    more = [words["more"].format(said=" / ".join(turn.left_out))] if turn.left_out else []
    computed = [words["computed"].format(said=" / ".join(turn.computed))] if turn.computed else []
    uncounted = [words["uncounted"]] if turn.uncounted else []
    return [
        *(*model, *edited, turn.created_at.strftime(_WHEN), *rated, *judged),
        *(*_checked(turn, words), *more, *computed, *uncounted),
    ]


def _checked(turn: ExportedTurn, words: Mapping[str, str]) -> list[str]:
    """How many sentences what was found bears out, and which it does not clearly."""
    total, doubted = turn.checked, turn.doubted
    if not total or (turn.uncounted and not doubted):  # in place of what would calm
        return []
    said = [words["checked"].format(n=total - len(doubted), total=total)]
    if doubted:
        named = " / ".join(_doubt(one, words) for one in doubted)
        said.append(words["doubted"].format(said=named))
    return said


def _doubt(one: ExportedDoubt, words: Mapping[str, str]) -> str:
    if not one.words:
        return one.text
    return words["differs" if one.instead else "absent"].format(text=one.text, words=one.words, instead=one.instead)


def speaker(turn: ExportedTurn, words: Mapping[str, str]) -> str:
    """Whose turn it is; of two replies side by side, which model's. Nothing of it is safe for Markdown or HTML yet.

    Args:
        words: Those of `LABELS`.
    """
    model = turn.run.model if turn.beside and turn.run is not None else ""
    return f"{words[turn.role]} · {model}" if model else words[turn.role]


def html(text: str) -> str:
    """Text in a line of HTML."""
    return re.sub("[&<>]", lambda found: _HTML[found[0]], " ".join(text.split()))


def fenced(text: str, info: str = "") -> str:
    """Text as a block of code, whatever is in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    body = re.sub(r"\r\n?", "\n", text).rstrip("\n")
    return f"{marks}{info}\n{body}\n{marks}"


def safe(text: str, *, lines: bool = False, prose: Callable[[str], str] | None = None) -> str:
    """Markdown that stays within its place.

    Args:
        lines: Whether line breaks are kept, as a person meant them.
        prose: Changes what is not code, after it was made safe.
    """
    written = re.sub(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]", "\n", text).strip("\n").split("\n")
    out: list[str] = []
    for part, is_code in _parts(written):
        out += part if is_code else _prose(part, lines=lines, prose=prose)
    return "\n".join(out)


def _parts(written: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Blocks of code and what is between them; where a fence is not plainly one, there is no code at all."""
    blocks = _blocks(written)
    if blocks is None:
        yield [_MARKS.sub(lambda run: "".join("\\" + mark for mark in run[0]), line) for line in written], False
        return
    at = 0
    for start, end, closing in blocks:
        yield written[at:start], False
        yield [*written[start:end], *closing], True
        at = end
    yield written[at:], False


def _blocks(written: list[str]) -> list[tuple[int, int, list[str]]] | None:
    """Where blocks of code begin and end, with the line that is missing at the end; `None` where that is not sure."""
    found: list[tuple[int, int, list[str]]] = []
    at = 0
    while at < len(written):
        opening = _FENCE.fullmatch(written[at])
        if opening is None:
            if _MARKS.search(written[at]):
                return None
            at += 1
            continue
        end = _end(written, at, opening)
        if end is None:
            return None
        closed = end <= len(written)
        found.append((at, min(end, len(written)), [] if closed else [opening["indent"] + opening["marks"]]))
        at = min(end, len(written))
    return found


def _end(written: list[str], start: int, opening: re.Match[str]) -> int | None:
    """The line after a block of code, one more than there are where nothing closes it; `None` where it is not sure."""
    indent, marks = opening["indent"], opening["marks"]
    deep = len(indent) > 3
    for at in range(start + 1, len(written)):
        line = written[at]
        closing = re.fullmatch(r"([ \t]*)(`{3,}|~{3,})[ \t]*", line)
        if closing is not None and closing[2][0] == marks[0] and len(closing[2]) >= len(marks):
            return at + 1 if closing[1] == indent and (not deep or len(closing[2]) == len(marks)) else None
        if (line.strip() and not line.startswith(indent)) or (deep and (not line.strip() or _MARKS.search(line))):
            return None
    return None if deep else len(written) + 1


def _prose(part: list[str], *, lines: bool, prose: Callable[[str], str] | None) -> list[str]:
    out: list[str] = []
    block: list[str] = []
    for line in [*part, ""]:
        if line.strip():
            block.append(line)
            continue
        has_code = all(_spans(one) is not None for one in block)
        out += [_line(one, has_code=has_code, prose=prose) for one in block]
        if lines and block:
            last = len(out) - 1
            for index in range(len(out) - len(block), last):
                out[index] = out[index].rstrip() + "  "
        block = []
        out.append("")
    return out[:-1]


def _spans(line: str) -> list[str] | None:
    """The line cut into text and code in turns; `None` where it is not sure what is code."""
    if "`" not in line:
        return [line]
    if "\\`" in line:
        return None
    cut = re.split(r"(`+)", line)  # text, marks, text, marks, …
    parts: list[str] = [cut[0]]
    at = 1
    while at < len(cut):
        marks = cut[at]
        closing = next((index for index in range(at + 2, len(cut), 2) if cut[index] == marks), None)
        if closing is None:
            return None
        parts += ["".join(cut[at : closing + 1]), cut[closing + 1]]
        at = closing + 2
    return parts


def _line(line: str, *, has_code: bool, prose: Callable[[str], str] | None) -> str:
    begins = line.lstrip(" ")[:1]
    dashes = _DASHES.fullmatch(line) if begins and begins in "-=" else None
    if dashes is not None:  # under a line of text it would make a heading of it
        return f"{dashes[1]}***" if len(dashes[2]) > 2 and dashes[2][0] == "-" else f"{dashes[1]}\\{dashes[2]}"
    if begins == "#" and _HEADING.match(line):
        line = _HEADING.sub(lambda found: found[1] + "#" * min(_DEEPEST, len(found[2]) + _BELOW), line, count=1)
    parts = _spans(line) if has_code else None
    if parts is None:
        return _text(line, prose)
    return "".join(_text(part, prose) if index % 2 == 0 else part for index, part in enumerate(parts))


def _text(text: str, prose: Callable[[str], str] | None) -> str:
    if "<" in text:
        text = _TAG.sub("&lt;", text)
    if "[" in text or "]" in text:
        text = _LINK.sub(r"\1\\]", text).replace("]:", "]&#58;")  # or it says where links lead
        text = _LIVE.sub(r"\1\\", text)
    return prose(text) if prose is not None else text


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
        self._lang: Lang = lang
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
        named: str | None = None
        yield from self._named(turn)
        for index, message in enumerate(turn.messages):
            if turn.role == "assistant" and message.role != FUNCTION and (message.name or None) != named:
                named = message.name or None
                yield f"### {plain(named)}" if named else ""
            if index in calls:
                yield self._call(calls[index], next(steps, None), turn)
            elif index not in answered:
                yield from self._said(message, turn, known, notes)
        yield self._ending(turn)
        yield "\n".join(self._note(known[number], note) for number, note in notes.items())

    def _named(self, turn: ExportedTurn) -> Iterator[str]:
        yield f"## {plain(speaker(turn, self._words))}"
        yield f"<sub>{' · '.join(map(plain, about(turn, self._words)))}</sub>"

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
        place = place_in_words(one, self._lang)
        page = f", {place}" if place else ""
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
