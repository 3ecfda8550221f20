"""A conversation as one HTML page: what is in sight, calls folded away, and at the end the pages that replies cite.

It needs no script and no network. A mark is a link to its passage, which stands beside the picture of its page; where
there is room, the page shows itself next to the text when its mark is pressed. All text is escaped where it is put in.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, cast

from core.export.cited_pages import cited_sentences, page_of
from core.export.html_style import PRINTED, SCREEN, hash_of
from core.export.markdown import LABELS, about, speaker
from core.export.prose_html import Prose, linked
from core.export.turns import MARK
from core.export.where_cited import where_cited
from core.messages.message import FUNCTION
from core.rag.document import numbered_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from core.export.cited_pages import CitedPages, PageKey, PagePicture
    from core.export.schema import ExportedCall, ExportedCitation, ExportedFile, ExportedTurn, ExportHead
    from core.languages import Lang
    from core.messages.content import ContentItem
    from core.messages.message import Message

MORE: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "evidence": "Evidence",
        "picture": "Picture",
        "from_web": "{alt} (a picture on {host})",
        "made": "Nothing is fetched from the network. Replies can be wrong.",
        "no_page": "The page itself is not here.",
        "no_slide": "The slide itself is not here.",
        "no_sheet": "The sheet itself is not here.",
        "of_reply": "{number} in reply {n}:",
        "list": "{n} conversations",
        "shared": "Shared from Parlour, {when} UTC.",
    },
    "zh": {
        "evidence": "依据",
        "picture": "图片",
        "from_web": "{alt}（{host} 上的图片）",
        "made": "不会从网络获取任何内容。回答可能有误。",
        "no_page": "此处没有这一页的图像。",
        "no_slide": "此处没有这张幻灯片的图像。",
        "no_sheet": "此处没有这个工作表的图像。",
        "of_reply": "第 {n} 条回复中的 {number}：",
        "list": "{n} 个对话",
        "shared": "由 Parlour 分享，{when}（UTC）。",
    },
}
WHEN: Final = "%Y-%m-%d %H:%M"
"""How a page writes a moment, which is in UTC."""
_STATES: Final = {"done": "", "failed": "bad", "refused": "bad"}
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SPACED_MARK: Final = re.compile(f" ?{MARK.pattern}")
_JOINED: Final = "\u2060"  # keeps a mark on the line of its word
_UNFIT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Cited:
    """A passage that is cited.

    Args:
        anchor: Where its marks lead.
        sentences: Those that name it.
        reply: Which of the replies cites it, from 1.
    """

    anchor: str
    citation: ExportedCitation
    sentences: tuple[str, ...]
    reply: int = 1


def inline_picture(png: bytes) -> str:
    """A picture that stands in the page itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


class HtmlWriter:
    """Writes turn after turn, then the evidence.

    Args:
        files: What is known of files, by the address that messages name them by; it may grow.
        lang: The language of what is not the conversation's own.
        printed: For paper: nothing is folded.
        images: Where pictures come from, as a content policy says it.
        source: The address of a file beside the page, by its own; "" where it is not there.
    """

    def __init__(
        self,
        files: dict[str, ExportedFile],
        lang: Lang = "en",
        *,
        printed: bool = False,
        images: str = "data:",
        source: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.files, self._printed = files, printed
        self._lang: Lang = lang
        self._words: Mapping[str, str] = {**LABELS[lang], **MORE[lang]}
        self._images, self._source = images, source
        self._prose = Prose(self._elsewhere, drawn=not printed)
        self._turns = self._replies = 0
        self.cited: list[Cited] = []

    def head(self, head: ExportHead, others: int = 0) -> str:
        """What stands before the turns; `others` turns are out of sight."""
        title = _plain(head.conversation.title) or self._words["untitled"]
        return page_head(title, self._origin(head, others), self._lang, printed=self._printed, images=self._images)

    def turns(self, turns: Iterable[ExportedTurn]) -> str:
        """Some turns, one after the other."""
        return "".join(map(self._turn, turns))

    def foot(self) -> str:
        """The end, after the evidence."""
        told = "" if self._printed else f"<footer>{_text(self._words['made'])}</footer>\n"
        return f"{told}</body>\n</html>\n"

    def _origin(self, head: ExportHead, others: int) -> str:
        """Where the page comes from, and what is not on it."""
        words = self._words
        said = words["exported"].format(when=head.exported_at.strftime(WHEN))
        if others:
            said += words["apart"] + words["other" if others == 1 else "others"].format(n=others)
        return said

    def _turn(self, turn: ExportedTurn) -> str:
        self._turns += 1
        self._replies += turn.role == "assistant"
        known = {one.number: one for one in turn.citations}
        calls = {call.message: call for call in turn.calls}
        answered = {call.result for call in turn.calls}
        parts: list[str] = []
        named: str | None = None
        for index, message in enumerate(turn.messages):
            if turn.role == "assistant" and message.role != FUNCTION and (message.name or None) != named:
                named = message.name or None
                parts.append(f"<h3>{_text(named)}</h3>" if named else "")
            if index in calls:
                parts.append(self._call(calls[index], turn))
            elif index not in answered:
                parts += self._said(message, turn, known)
        self._note_cited(turn)
        when = f'<p class="by">{" · ".join(map(_text, about(turn, self._words)))}</p>'
        said = "\n".join(filter(None, [*parts, self._ending(turn), when]))
        who = _text(speaker(turn, self._words))
        made = f'<article class="{turn.role}"><h2 class="who">{who}</h2>\n{said}\n</article>\n'
        if not turn.beside:
            return made
        return f'<div class="beside">\n{made}' if turn.shown else f"{made}</div>\n"

    def _note_cited(self, turn: ExportedTurn) -> None:
        texts = [one.get_text_content() for one in turn.messages if one.role == "assistant"]
        for one in turn.citations:
            if one.cited:
                said = tuple(cited_sentences(texts, one.number))
                self.cited.append(Cited(self._anchor(one.number), one, said, self._replies))

    def _anchor(self, number: int) -> str:
        return f"c-{self._turns}-{number}"

    def _said(self, message: Message, turn: ExportedTurn, known: Mapping[int, ExportedCitation]) -> Iterator[str]:
        if isinstance(message.reasoning_content, str) and message.reasoning_content.strip():
            yield self._folded(_text(self._words["thought"]), self._prose.html(_plain(message.reasoning_content)))

        def cite(text: str) -> str:
            return _SPACED_MARK.sub(lambda mark: self._marks(mark, known), text)

        for item in message.items:
            if item.type != "text":
                yield self._file(item)
            elif item.text and message.role == FUNCTION:
                yield f"<pre>{_text(item.text)}</pre>"
            elif item.text and turn.role == "user":
                yield f'<p class="said" dir="auto">{linked(_plain(item.text))}</p>'
            elif item.text:
                yield f'<div dir="auto">{self._prose.html(_plain(item.text), cite if known else None)}</div>'

    def _marks(self, mark: re.Match[str], known: Mapping[int, ExportedCitation]) -> str:
        """Links for the numbers of a mark; a mark that points nowhere stays."""
        numbers = [int(number) for number in re.findall(r"\d+", mark[1])]
        if any(number not in known for number in numbers):
            return mark[0]
        if self._printed:
            return _JOINED + "".join(f'<sup><b class="mark">{number}</b></sup>' for number in numbers)
        links = (f'<a class="mark" href="#{self._anchor(number)}">{number}</a>' for number in numbers)
        return _JOINED + "".join(links)

    def _call(self, call: ExportedCall, turn: ExportedTurn) -> str:
        words = self._words
        state = "call_stopped" if call.state == "stopped" else "waiting" if call.state == "running" else call.state
        shape = f'<span class="st {_STATES.get(call.state, "off")}"></span>'
        body = [f"<p>{_text(words['arguments'])}</p>", f"<pre>{_text(_arguments(call.arguments))}</pre>"]
        for inner in turn.inner:
            if inner.calls[:1] == (call.id,):
                body += [f"<pre>{_text(one.get_text_content())}</pre>" for one in inner.messages]
        if call.result is None:
            body.append(f"<p>{_text(words['no_result'])}</p>")
        else:
            body.append(f"<p>{_text(words['result'])}</p>")
            for item in turn.messages[call.result].items:
                body.append(f"<pre>{_text(item.text or '')}</pre>" if item.type == "text" else self._file(item))
        return self._folded(f"{shape}<code>{_text(call.name)}</code> · {_text(words[state])}", "\n".join(body))

    def _folded(self, summary: str, body: str) -> str:
        if self._printed:
            return f'<div class="call"><p>{summary}</p>{body}</div>'
        return f"<details><summary>{summary}</summary><div>{body}</div></details>"

    def _file(self, item: ContentItem) -> str:
        lines: list[str] = []
        for address in _addresses(item):
            known, source = self.files.get(address), self._source(address)
            name = _text(self._called(address, item))
            about = f"{name} <small>{self._words['bytes'].format(n=f'{known.size:,}')}</small>" if known else name
            if source and known is not None and known.media_type in _PICTURES:
                about = f'<img src="{escape(source)}" alt="{name}">{about}'
            lines.append(f"<li>{f'<a href={chr(34)}{escape(source)}{chr(34)}>{about}</a>' if source else about}</li>")
        return f'<ul class="files">{"".join(lines)}</ul>'

    def file_name(self, item: ContentItem) -> str:
        """What the page calls a file of a message."""
        return ", ".join(self._called(address, item) for address in _addresses(item))

    def _called(self, address: str, item: ContentItem) -> str:
        known = self.files.get(address)
        if known is None and re.match(r"https?://", address):
            return address
        return (known.name if known else "") or self._words.get(item.type, "")

    def _ending(self, turn: ExportedTurn) -> str:
        if turn.status == "complete":
            return ""
        error = (turn.run.error if turn.run is not None else None) or {}
        why = str(error.get("message") or error.get("key") or "") or "…"
        return f'<p class="ending">{_text(self._words[turn.status].format(why=why))}</p>'

    def _elsewhere(self, alt: str, host: str) -> str:
        said = alt or self._words["picture"]
        return self._words["from_web"].format(alt=said, host=host) if host else said

    # ---- evidence

    def pages(self) -> dict[PageKey | str, list[Cited]]:
        """What is cited, page by page in the order of the first mark; passages without one stand by document."""
        found: dict[PageKey | str, list[Cited]] = {}
        for one in self.cited:
            key = page_of(one.citation) or (one.citation.url or one.citation.document)
            found.setdefault(key, []).append(one)
        return found

    def evidence(self, cited: list[Cited], pages: CitedPages, picture: PagePicture | None, source: str) -> str:
        """One page that is cited, with its passages.

        Args:
            cited: The passages on it.
            pages: Knows where their sentences stand.
            picture: The page, if there is a picture of it.
            source: The address of that picture.
        """
        first, words = cited[0].citation, self._words
        where = _text(where_cited(first, self._lang))
        sheet = self._sheet(cited, pages, picture, source) if picture is not None else ""
        missing = _text(words[f"no_{numbered_as(first.document)}"])
        told = "" if picture is not None or first.page is None else f'<p class="note">{missing}</p>'
        items = "".join(map(self._passage, cited))
        listed = items if self._printed else f"<ol>{items}</ol>"
        return f'<section class="page"><h3>{where}</h3>{sheet}{told}{listed}</section>\n'

    def evidence_begins(self) -> str:
        """The heading above the pages."""
        name = _text(self._words["evidence"])
        return f'</main>\n<aside class="evidence" aria-label="{name}"><h2>{name}</h2>\n'

    def _sheet(self, cited: list[Cited], pages: CitedPages, picture: PagePicture, source: str) -> str:
        width, height = picture.size
        image = f'<img src="{escape(source)}" alt="{_text(cited[0].citation.document)}" loading="lazy">'
        if self._printed:
            return f'<p><img src="{escape(source)}" width="440"></p>'
        rectangles: list[str] = []
        for one in cited:
            borne = pages.borne_out(one.citation, one.sentences)
            rectangles += [_rectangle(at, "borne") for at in borne]
            rectangles += [_rectangle(at, "passage") for at in one.citation.rectangles]
        marks = f'<svg viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none">{"".join(rectangles)}</svg>'
        return f'<div class="sheet">{image}{marks}</div>'

    def _passage(self, one: Cited) -> str:
        citation = one.citation
        heading = f"<b>{_text(citation.heading)}</b> " if citation.heading else ""
        address = citation.url if re.match(r"https?://", citation.url) else ""
        link = f' <a href="{_text(address)}" rel="noreferrer noopener">{_text(address)}</a>' if address else ""
        said = f"{heading}{_text(citation.text)}{link}"
        if self._printed:  # no mark leads anywhere, and each reply counts from 1
            several = any(other.reply != one.reply for other in self.cited)
            label = self._words["of_reply"].format(number=citation.number, n=one.reply) if several else citation.number
            return f'<p class="cited" dir="auto"><b class="mark">{label}</b> {said}</p>'
        number = f'<a class="mark" href="#{one.anchor}">{citation.number}</a>'
        return f'<li class="cited" id="{one.anchor}">{number}<p dir="auto">{said}</p></li>'


def page_head(title: str, note: str, lang: Lang, *, printed: bool = False, images: str = "data:") -> str:
    """The beginning of a page, whose policy lets nothing run and nothing be fetched.

    Args:
        title: What it is called.
        note: What is said of it.
        printed: For paper.
        images: Where pictures come from, as a content policy says it.
    """
    style = PRINTED if printed else SCREEN
    policy = f"default-src 'none'; img-src {images}; style-src {hash_of(style)}; base-uri 'none'; form-action 'none'"
    head = (
        "" if printed else f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    )
    return (
        f'<!doctype html>\n<html lang="{lang}">\n<head>\n<meta charset="utf-8">\n{head}'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{_text(title)}</title>\n</head>\n'
        f'<body>\n<header><h1 dir="auto">{_text(title)}</h1>'
        f'<p class="note">{_text(note)}</p></header>\n<main>\n'
    )


def _addresses(item: ContentItem) -> Iterator[str]:
    values: list[Any] = item.value if isinstance(item.value, list) else [item.value]
    for value in values:
        yield str(cast("dict[str, Any]", value).get("data", "") if isinstance(value, dict) else value)


def _rectangle(at: tuple[float, float, float, float], kind: str) -> str:
    x0, y0, x1, y1 = at
    box = f'x="{x0:.2f}" y="{y0:.2f}" width="{max(0.0, x1 - x0):.2f}" height="{max(0.0, y1 - y0):.2f}"'
    return f'<rect class="{kind}" {box}/>'


def _plain(text: str) -> str:
    """Text without signs that no page may have."""
    return _UNFIT.sub("\ufffd", text)


def _text(text: str) -> str:
    return escape(_plain(text))


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, indent=2)
