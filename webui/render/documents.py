"""Files and documents in the conversation: pictures, players, chips, and cards with how far a document is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from core.rag.document import numbered_as
from core.rag.parsers.transcript import told_time
from core.reading.intake import is_locked
from core.reading.senses import stead_of
from core.storage.base import FILE_ADDRESS
from webui.render.markup import escaped, invisible_in
from webui.words import LANGUAGES, sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.content import ContentItem
    from core.rag.document import ReadingProgress
    from core.rag.grown.makers import HeldUp
    from core.reading.preparing import Made
    from core.storage.base import DocumentRecord
    from webui.words import Words

_ADDRESS = re.compile(rf"{FILE_ADDRESS}([\w-]+)\Z")


def file_id(item: ContentItem) -> str:
    """The id of the stored file that an item names; "" for anything else."""
    match = _ADDRESS.match(item.value) if isinstance(item.value, str) else None
    return match[1] if match else ""


def item_html(item: ContentItem, about: Mapping[str, Any], words: Words, document: DocumentState | None = None) -> str:
    """Markup for a stored file: a picture, a player, or a chip to download it. Anything else is named, not fetched.

    Args:
        item: The picture, file, sound or video.
        about: `name` and `media_type`, where known.
        document: The file as a document of the conversation.
    """
    stored = file_id(item)
    name = str(about.get("name") or words(_KINDS[item.type]))
    if not stored:
        return f'<p class="p-none">{escaped(name)}</p>'
    # Gradio takes the first part of an absolute media path for a host, so these are relative.
    address = f".{FILE_ADDRESS}{stored}"
    if document is not None and is_damaged(document.record):  # a browser could only show that, once more
        return document_card(document, address, words)
    match item.type:
        case "image":
            shown = f'<a class="p-pic" href="{address}"><img src="{address}" alt="{escaped(name)}"></a>'
            if document is None or stead_of(document.record) == "nothing":  # which the note says
                return shown
            return shown + document_card(document, address, words)
        case "audio" | "video" as kind:
            shown = f'<{kind} controls preload="metadata" src="{address}" title="{escaped(name)}"></{kind}>'
            if document is None or stead_of(document.record) == "nothing":
                return shown
            return shown + document_card(document, address, words)
        case _:
            if _pasted_name().fullmatch(name) and (document is None or document.record.status == "ready"):
                return _pasted(stored, name)
            return _chip(address, name) if document is None else document_card(document, address, words)


_DAMAGED = frozenset({"document_broken", "document_empty", "document_not_what_it_says"})


def is_damaged(record: DocumentRecord) -> bool:
    """Whether the file was not read because it is none of its kind."""
    return record.status == "failed" and (record.error or {}).get("key") in _DAMAGED


_KINDS = {
    "image": "reply.picture",
    "audio": "reply.sound",
    "video": "reply.video",
    "file": "reply.file",
    "text": "reply.file",
}


@cache
def _pasted_name() -> re.Pattern[str]:
    """What the page calls files of pasted text, in any of its languages."""
    said = (sentences(lang)[key] for lang in LANGUAGES for key in ("js.pasted", "js.pasted_letters"))
    names = (re.escape(one).replace(r"\{n\}", r"[\d,]+") for one in said)
    return re.compile(rf"(?:{'|'.join(names)})\.txt")


def _pasted(stored: str, name: str) -> str:
    """A chip that opens the pasted text where it stands."""
    said = escaped(name.removesuffix(".txt"))
    return (
        f'<a class="p-do p-chip p-pasted" role="button" href="#do-pasted-{escaped(stored)}">'
        f'<span class="p-name">{said}</span></a>'
    )


def _chip(address: str, name: str) -> str:
    kind = escaped(PurePosixPath(name).suffix[1:].upper()[:5])
    note = f'<span class="p-kind">{kind}</span>' if kind else ""
    return f'<a class="p-chip" href="{address}?download=1"><span class="p-name">{escaped(name)}</span>{note}</a>'


_PARTS_UNREAD = "document_parts_unread"
_STEP = 5  # per cent: the widths are CSS classes
_NAMED = 3  # files that a note names
# Reading the same bytes again would end the same way.
_FOR_GOOD = frozenset(
    (
        *(f"document_{what}" for what in ("unsupported", "empty", "not_a_file", "not_what_it_says", "protected")),
        "fetch_private",
        "fetch_own",
        "fetch_bad_address",
    )
)


@dataclass(frozen=True, slots=True)
class DocumentState:
    """A document of a conversation.

    Args:
        progress: Of its ingestion; `None` while it is queued.
        preparing: Passages with an embedding, and all of them; `None` once all have one.
        held_up: Why no more get one, as of `held_as`.
    """

    record: DocumentRecord
    progress: ReadingProgress | None = None
    preparing: Made | None = None
    held_up: str = ""

    @property
    def failed_by_meaning(self) -> bool:
        """Whether it was read, and search by meaning could not be prepared."""
        return self.record.status == "ready" and self.preparing is not None and self.held_up == "failed"


def held_as(why: HeldUp, *, keeps: bool) -> str:
    """The name of the sentence that says why search by meaning is not being prepared; "" where it is.

    Args:
        keeps: Whether who reads it looks after the house, and may do something about it.
    """
    return f"{why}_keeper" if keeps and why in {"nobody", "differs"} else why


@dataclass(frozen=True, slots=True)
class Waiting:
    """The documents that a reply waits for.

    Args:
        names: Of those that are still being read.
        searchable: Whether a search finds anything already.
    """

    names: tuple[str, ...]
    searchable: bool


def state_line(state: DocumentState, words: Words) -> str:
    """The state of a document in one line; a card depends on this and the status alone."""
    record = state.record
    match record.status:
        case "reading":
            return _going(record.name, state.progress, words)
        case "ready":
            return _joined([*_facts(record, words), _prepared(state, words)])
        case "failed":
            return words.error(record.error) if record.error else words("reading.failed")
        case "cancelled":
            return _joined(_called_off(state, words))


def document_card(state: DocumentState, address: str, words: Words) -> str:
    """The card of a document: download, state, and actions. The name of one that asks for a password asks for that."""
    record, line = state.record, escaped(state_line(state, words))
    name = escaped(record.name)
    shape = {"reading": '<span class="p-st p-run"></span>', "failed": '<span class="p-st p-bad"></span>'}
    to = f'class="p-chip" href="{address}?download=1" title="{name}"'
    if is_locked(record):
        asks = escaped(words("reading.unlock_it", name=record.name))
        to = f'class="p-do p-chip" role="button" href="#do-unlock-{escaped(record.id)}" title="{asks}"'
    link = (
        f'<a {to}><span class="p-name">{name}</span></a>'
        f'<span class="p-kind">{shape.get(record.status, "")}<span class="p-far">{line}</span></span>'
    )
    acts = _acts(state, words)
    two = " p-two-ways" if acts.count("<a ") > 1 else ""
    return f'<div class="p-doc p-doc-{record.status}{two}">{link}{acts}{_bar(state)}</div>'


def in_stead(state: DocumentState, kind: str, words: Words) -> str:
    """What is said of a file that was read for a model without the sense for it; "" where that is not over, or failed.

    Args:
        kind: `image`, `audio` or `video`.
    """
    stead = stead_of(state.record)
    if stead not in {"text", "nothing"}:
        return ""
    return words(f"note.{kind}_{'as' if stead == 'text' else 'without'}_text", **_made_by(state.record, words))


def _made_by(record: DocumentRecord, words: Words) -> dict[str, str]:
    by = str((record.facts or {}).get("by") or "")
    return {"name": record.name, "by": by or words("note.by_unknown")}


def waiting_line(waiting: Waiting, message_id: str, words: Words) -> str:
    """The line of a reply that waits for documents, with a link to ask at once."""
    one = len(waiting.names) == 1
    said = words("reading.waiting_one", name=waiting.names[0]) if one else ""
    said = said or words("reading.waiting", n=len(waiting.names))
    now = escaped(words("reading.ask_now"))
    link = f' <a class="p-do p-word" role="button" href="#do-asknow-{escaped(message_id)}">{now}</a>'
    text = f'<span class="p-st p-run"></span><span>{escaped(said)}</span>{link if waiting.searchable else ""}'
    return f'<p class="p-wait p-wait-read">{text}</p>'


def missing_notes(missing: list[dict[str, Any]], words: Words) -> str:
    """Notes on the documents that an answer does not cover."""
    notes = (f'<p class="p-note">{escaped(_without(one, words))}</p>' for one in missing)
    return "\n\n".join(notes)


def partly_read_notes(parts: Sequence[Mapping[str, Any]], words: Words) -> str:
    """Notes on long documents of which only the beginning was read, and one on those of which nothing was."""
    begun = [_read_part(one, words) for one in parts if _number(one, "last")]
    names = [str(one.get("name", "")) for one in parts if not _number(one, "last")]
    shown, left = words("lang.comma").join(names[:_NAMED]), len(names) - _NAMED
    bare = [words("reading.read_none" + ("_more" if left > 0 else ""), names=shown, n=left)] if names else []
    return "\n\n".join(f'<p class="p-note">{escaped(one)}</p>' for one in [*begun, *bare])


def named_note(names: Sequence[Any], words: Words) -> str:
    """The note that an answer rests on the files alone that its question names."""
    said = words("reading.named", names=words("lang.comma").join(map(str, names)))
    return f'<p class="p-note">{escaped(said)}</p>'


def _read_part(part: Mapping[str, Any], words: Words) -> str:
    first, last = _number(part, "first"), _number(part, "last")
    key = f"reading.read_{part.get('of', 'page')}" + ("" if last > first else "_one")
    return words(key, name=part.get("name", ""), first=first, last=last, total=_number(part, "total"))


def _without(missing: Mapping[str, Any], words: Words) -> str:
    name, status = missing.get("name", ""), missing.get("status")
    pages, total = _number(missing, "pages"), _number(missing, "total")
    if status == "untaken":
        return words("reading.left_untaken" if total > 1 else "reading.left_untaken_one", n=total, names=name)
    if status == "failed" or (status == "cancelled" and not missing.get("found")):
        return words("reading.left_cancelled" if status == "cancelled" else "reading.left_failed", name=name)
    if status == "preparing":
        return words("reading.left_preparing", name=name, n=pages, total=total)
    if pages and total:
        return words(f"reading.left_{status}_at", name=name, n=pages, total=total)
    return words("reading.left_begun", name=name)


def _called_off(state: DocumentState, words: Words) -> list[str]:
    record = state.record
    pages, total = (_number(record.facts, name) for name in ("pages", "total"))
    if record.library_id is None:
        return [words("reading.cancelled"), _at(record.name, pages, total, words) if pages and total else ""]
    kind = f"reading.stopped_{numbered_as(record.name)}" if pages and total else "reading.stopped"
    wrong = words.error(record.error) if record.error else ""
    return [words(kind, n=pages, total=total), *_found(record.facts or {}, words), _prepared(state, words), wrong]


def _going(name: str, progress: ReadingProgress | None, words: Words) -> str:
    if progress is None:
        return words("reading.waits")
    if progress.fetching:
        return words("reading.fetching")
    if progress.length:
        return words("reading.heard", done=told_time(progress.heard), total=told_time(progress.length))
    # Words of a page are recognised before it is read to its end, and counted as one of those that are read.
    scanned = min(progress.scanned, progress.pages) if progress.total else progress.scanned
    figures = {"scanned": scanned, "tables": progress.tables, "chunks": progress.chunks}
    figures["invisible"] = progress.invisible
    seconds = words.seconds(progress.seconds, whole=True) if progress.seconds >= 1 else ""
    at = _at(name, progress.pages, progress.total, words) if progress.total or not progress.rows else ""
    return _joined([at, _at_row(progress, words), *_found(figures, words), seconds])


def _at_row(progress: ReadingProgress, words: Words) -> str:
    """How far the reading of a long sheet is."""
    if not progress.rows:
        return ""
    share = int(100 * min(progress.row / progress.rows, 1.0))
    return words("reading.at_row", n=f"{progress.row:,}", total=f"{progress.rows:,}", share=share)


def _facts(record: DocumentRecord, words: Words) -> list[str]:
    facts = record.facts or {}
    pages = _number(facts, "total") or record.pages or 0
    seconds = facts.get("seconds")
    if facts.get("known"):
        took = words("reading.known")
    else:
        took = words.seconds(seconds) if isinstance(seconds, float) and seconds >= 0.1 else ""
    counted = _counted(f"reading.{numbered_as(record.name)}", pages, words)
    if isinstance(length := facts.get("length"), float) and length:
        counted = told_time(length)
    return [counted, *_found(facts, words), took]


def _prepared(state: DocumentState, words: Words) -> str:
    """Progress of the embeddings, or why there is none; empty once all are there."""
    if state.preparing is None:
        return ""
    if state.held_up:
        return words(f"reading.held_{state.held_up}")
    done, total = state.preparing
    return words("reading.by_meaning", done=f"{done:,}", total=f"{total:,}") if done else words("reading.vectors")


def _found(facts: Mapping[str, Any], words: Words) -> list[str]:
    keys = (("scanned", "scanned"), ("tables", "tables"), ("chunks", "passages"))
    counted = [_counted(f"reading.{key}", _number(facts, name), words) for name, key in keys]
    return [*counted, invisible_in(facts, words)]


def _counted(key: str, number: int, words: Words) -> str:
    if not number:
        return ""
    return words(f"{key}_one") if number == 1 else words(key, n=number)


def _at(name: str, pages: int, total: int | None, words: Words) -> str:
    if not total:
        return words("reading.begins")
    return words(f"reading.at_{numbered_as(name)}", n=max(1, min(pages, total)), total=total)


def _joined(parts: list[str]) -> str:
    return " · ".join(part for part in parts if part)


def _number(facts: Mapping[str, Any] | None, name: str) -> int:
    value = (facts or {}).get(name)
    return value if isinstance(value, int) else 0


def _bar(state: DocumentState) -> str:
    progress = state.progress
    if state.record.status != "reading" or progress is None:
        return ""
    share = share_of(progress)
    if share is None:
        return ""
    return f'<span class="p-bar p-b{round(share * 100 / _STEP) * _STEP}"></span>'


def share_of(progress: ReadingProgress) -> float | None:
    """How much of a document is read, from 0 to 1; `None` where it is not known."""
    if progress.length:
        return min(progress.heard / progress.length, 1.0)
    part = progress.row / progress.rows if progress.rows else 0.0
    if not progress.total:
        return min(part, 1.0) if progress.rows else None
    return min((max(0, progress.pages) + part) / progress.total, 1.0)


def _acts(state: DocumentState, words: Words) -> str:
    """The actions on a document: at most one, but two for one that was read in part.

    One that holds files shows them; its name is for downloading it, as every name is.
    """
    record = state.record
    key = (record.error or {}).get("key")
    if record.status == "reading":
        acts = ("cancel",)
    elif is_locked(record):
        acts = ("unlock",)
    elif record.status == "cancelled":
        acts = ("again",) if record.library_id is None else ("rest", "forget")
    else:
        holds_files = record.status == "ready" and (record.name.lower().endswith(".zip") or key == _PARTS_UNREAD)
        failed = record.status == "failed" and key not in _FOR_GOOD
        acts = ("again",) if failed else ("meaning",) if state.failed_by_meaning else ("inside",) if holds_files else ()
    links = "".join(_act(act, record, words) for act in acts)
    return f'<span class="p-ways">{links}</span>' if links else ""


def _act(act: str, record: DocumentRecord, words: Words) -> str:
    label, about = escaped(words(f"reading.{act}")), escaped(words(f"reading.{act}_it", name=record.name))
    address = f"#do-{'reread' if act in {'again', 'rest', 'meaning'} else act}-{escaped(record.id)}"
    return f'<a class="p-do p-word" role="button" href="{address}" title="{about}">{label}</a>'
