"""What the evidence panel shows of a document: looked up in its index, which takes a thread."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.errors import DocumentError, NotFoundError, StorageError
from core.observing import count
from core.rag.attribution import words_of
from core.rag.called import name_here
from core.rag.citations import BETWEEN, claim_around, sentence_of, supporting_spans
from core.rag.document import Passage
from core.rag.not_read import is_not_read, told
from core.rag.page_content import kind_of
from core.rag.places import letters_of, proof_on_page
from core.rag.row_numbers import read
from webui.panels.evidence import Listing, Lists, ShownPage, ShownText, evidence_html
from webui.panels.evidence_text import Found, form_rows
from webui.panels.player import player_html, second_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.document import Document, Rectangle
    from core.rag.library import Library
    from core.rag.page_content import PageContent
    from core.storage.base import FileRecord
    from core.storage.kept_pages import PagePlace
    from webui.panels.evidence import Shown
    from webui.views import Place, ShownReply
    from webui.words import Words

    KeptPages = Mapping[tuple[str, int], PagePlace]

TRIED: Final = "try"
"""What belongs to no reply, but to a question that was tried in a library: `try.<library>`."""
FOUND: Final = "look"
"""And to words that the palette found in a document: `look.<document>`."""
INSIDE: Final = "inside"
"""And to the files in a document: `inside.<document>`."""
_STEP = 50  # chunks of a document that are listed at once
_NOWHERE = (NotFoundError, DocumentError, StorageError)


class Known(NamedTuple):
    """What is known of the document beside the index.

    Args:
        pages: Pictures that came along without their documents.
        sound: The recording whose transcript it is.
        is_read: Whether it is no longer being read.
        names: What the conversation calls its documents, by their ids in the index; several where it has one twice.
        is_taken_back: Whether it stands in a library that is not shared with the reader any more.
    """

    pages: KeptPages
    sound: FileRecord | None
    is_read: bool
    names: Mapping[str, Sequence[str]]
    is_taken_back: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """The panel.

    Args:
        is_there: Whether the document has what it shows.
        is_whole: Whether it shows all that it ever will, what is cited among it.
    """

    place: Place
    markup: str
    is_there: bool
    is_whole: bool


def panel_of(library: Library, reply: ShownReply, place: Place, words: Words, known: Known) -> Drawn:
    """The panel for a place, as far as the index has what it shows."""
    found, reply = reply, _as_called(reply, place, known)
    shown, cited_in_text = _shown(library, reply, place, known)
    if shown is None:
        shown = _kept_page(reply, place, known.pages)
    is_whole = shown is not None and not (isinstance(shown, ShownPage) and shown.is_unread)
    if not is_whole and known.is_read and isinstance(shown, ShownPage):
        shown = replace(shown, is_unread=False)  # it will not come
    listing = _listing(library, place, shown, words)
    start = listing.start if listing and listing.chunks else None
    state = _state(library, place.document_id)
    nothing = "taken_back" if known.is_taken_back else "gone" if known.is_read else "unread"
    if state == "ready" or (state and known.is_read):
        nothing = "no_picture"
    opened, sound = _opened(library, reply, place), known.sound
    player = _player(sound, reply, place, opened, words) if sound is not None else ""
    if isinstance(shown, ShownText):
        shown = _in_its_language(shown, words)
    markup = evidence_html(
        _in_their_language(reply.passages, words),
        place.number,
        words,
        message_id=place.message_id,
        page=shown,
        lists=Lists(reply.uncited, cited_in_text, listing, _why(reply, place, words), nothing, player),
    )
    there = replace(place, listing=start, found=found if found.sought else None)
    return Drawn(there, markup, shown is not None, is_whole)


def _as_called(reply: ShownReply, place: Place, known: Known) -> ShownReply:
    """The reply with its documents under the names that the conversation has for them."""
    if _is_of_files(place):  # these have names of their own
        return reply
    passages = [
        {**one, "document": name_here(known.names, one["document_id"], str(one.get("document") or ""))}
        if one.get("document_id") in known.names
        else one
        for one in reply.passages
    ]
    return replace(reply, passages=passages)


def _in_their_language(passages: Sequence[Mapping[str, Any]], words: Words) -> list[Mapping[str, Any]]:
    """The passages, where one says that a file was not read in the language of the page."""
    return [
        {**one, "text": told(text, words.spoken)} if is_not_read(text := str(one.get("text") or "")) else one
        for one in passages
    ]


def _in_its_language(shown: ShownText, words: Words) -> ShownText:
    """The same of a page with what is marked on it."""
    blocks = tuple(
        replace(one, text=told(one.text, words.spoken)) if is_not_read(one.text) else one
        for one in shown.content.blocks
    )
    found = tuple(
        replace(one, text=told(one.text, words.spoken), cited=()) if is_not_read(one.text) else one
        for one in shown.found
    )
    return replace(shown, content=replace(shown.content, blocks=blocks), found=found)


def _is_of_files(place: Place) -> bool:
    return place.message_id.startswith(f"{INSIDE}.")


def _name(document: Document, reply: ShownReply, place: Place, known: Known) -> str:
    """What a document is called here: in the index the same bytes have the name that they came with last, anywhere."""
    names = (str(one.get("document") or "") for one in reply.passages if one.get("document_id") == document.id)
    cited_as = "" if _is_of_files(place) else next(names, "")
    return cited_as or name_here(known.names, document.id, document.name)


def _shown(
    library: Library, reply: ShownReply, place: Place, known: Known
) -> tuple[Shown | None, tuple[tuple[int, int], ...]]:
    """What is shown of the page, and what is cited of the open passage; `None` where the document is gone."""
    opened = _opened(library, reply, place)
    has_mark = opened is not None and place.number is not None and not _is_doubted(reply, place)
    said = sentence_of(reply.text, place.number or 0, place.occurrence) if has_mark else ""
    cited_in_text = (
        tuple(supporting_spans(said, opened.text)) if opened and said and not is_not_read(opened.text) else ()
    )
    try:
        document = library.document(place.document_id)
        document = replace(document, name=_name(document, reply, place, known))
        if kind_of(document.media_type) == "page":
            content = _content(library, place)
            if content is None or not content.is_undrawn:
                page = _page(library, document, place, opened, said, content)
                return page and replace(page, unproved=_unproved(reply, place, content)), cited_in_text
        return _text(library, document, reply, place, opened, cited_in_text), cited_in_text
    except _NOWHERE:
        return None, cited_in_text


def _player(sound: FileRecord, reply: ShownReply, place: Place, opened: Passage | None, words: Words) -> str:
    """The recording at the second at which what is cited is said."""
    said = sentence_of(reply.text, place.number, place.occurrence) if place.number is not None else ""
    second = second_of(said, opened.text) if opened is not None else 0
    return player_html(sound.id, second, sound.name, words, moving=sound.media_type.startswith("video/"))


def _kept_page(reply: ShownReply, place: Place, kept: KeptPages) -> ShownPage | None:
    """The picture of the page that came along with the conversation, without its document."""
    there = kept.get((place.document_id, place.page)) if place.page is not None else None
    if there is None:
        return None
    named = (str(one.get("document") or "") for one in reply.passages if one.get("document_id") == there.document_id)
    size = (there.width, there.height)
    return ShownPage(there.document_id, next(named, ""), there.page, None, size, file=there.file)


def _is_doubted(reply: ShownReply, place: Place) -> bool:
    """Whether the sentence that the open passage is shown for is marked as unproved: nothing is its proof then."""
    if reply.sought or not reply.doubted or place.number is None:
        return bool(reply.doubted)
    said = words_of(claim_around(reply.text, place.number, place.occurrence))
    return any(words_of(one) == said for one in reply.doubted)


def _why(reply: ShownReply, place: Place, words: Words) -> str:
    """What the passages were searched for, where it is not the reply that found them."""
    if not reply.sought:
        return ""
    if place.message_id.startswith(f"{FOUND}."):
        return words("evidence.looked_for", words=reply.sought)
    if _is_of_files(place):
        return words("evidence.inside", name=reply.sought, n=len(reply.passages))
    if place.message_id.startswith(f"{TRIED}."):
        return words("evidence.tried", question=reply.sought)
    return words("claims.closest" if reply.doubted else "claims.again", claim=reply.sought)


def files_in(library: Library, document_id: str) -> list[Passage]:
    """How each file within a document begins, or why it was not read, under its own name.

    Files are its outermost headings.
    """
    first: dict[str, Passage] = {}
    for one in library.context.whole([document_id], unread=True):
        if one.heading:
            first.setdefault(one.heading.split(BETWEEN)[0], one)
    return [replace(one, document=name) for name, one in first.items()]


def _state(library: Library, document_id: str) -> str | None:
    """How far a document is in the index; `None` where it is not there."""
    try:
        return library.document(document_id).status
    except _NOWHERE:
        return None


def _opened(library: Library, reply: ShownReply, place: Place) -> Passage | None:
    """The passage that is open: one of the reply's, or one chosen from the list."""
    try:
        if place.chunk is not None:
            return library.pages.chunk(place.document_id, place.chunk)
        found = next((one for one in reply.passages if one["number"] == place.number), None)
        return Passage.from_dict({"score": 0.0, **found}) if found else None
    except (KeyError, TypeError, ValueError, *_NOWHERE):
        return None


def _content(library: Library, place: Place) -> PageContent | None:
    """What stands on a page; `None` where that cannot be known."""
    try:
        return library.pages.content(place.document_id, place.page)
    except _NOWHERE:
        return None


def _page(
    library: Library, document: Document, place: Place, opened: Passage | None, said: str, content: PageContent | None
) -> ShownPage | None:
    if place.page is None:
        return None
    return ShownPage(
        document_id=document.id,
        document=document.name,
        page=place.page,
        pages=document.pages,
        size=library.page_size(document.id, place.page),
        text_box=library.text_box(document.id, place.page),
        cited=_printed(opened, said, content) if opened and said else (),
        opened=opened.rectangles if opened and place.chunk is not None and _stands(opened, content) else (),
        letters=letters_of(content.blocks) if content else 0.0,
        figures=tuple(one.lines[0][1] for one in content.blocks if one.kind == "figure" and one.lines)
        if content
        else (),
        is_unread=bool(said) and content is None and document.status == "reading",
    )


def _unproved(reply: ShownReply, place: Place, content: PageContent | None) -> frozenset[int]:
    """The numbers of the passages of a page whose words do not stand where they are said to stand."""
    here = (
        one for one in reply.passages if (one.get("document_id"), one.get("page")) == (place.document_id, place.page)
    )
    found: set[int] = set()
    for one in here:
        with suppress(KeyError, TypeError, ValueError):
            if not _stands(Passage.from_dict({"score": 0.0, **one}), content):
                count("parlour.marks.dropped", {"of": "passage"})
                found.add(one["number"])
    return frozenset(found)


def _stands(passage: Passage, content: PageContent | None) -> bool:
    """Whether the words of a passage stand in its places, as far as that is known."""
    letters = content.letters if content else None
    is_printed = not (passage.rows or passage.computed)  # what was computed is printed nowhere
    if letters is None or not (is_printed and passage.rectangles):
        return True
    return letters.hold_most(passage.text, passage.rectangles)


def _printed(opened: Passage, said: str, content: PageContent | None) -> tuple[Rectangle, ...]:
    """Where what bears the sentence out stands on the page; nothing where that cannot be known."""
    if opened.rows:  # computed from rows whose places are known: the sentence is nowhere on the page
        return opened.rectangles
    return proof_on_page([said], opened.text, content.blocks, content.letters) if content else ()


def _text(
    library: Library,
    document: Document,
    reply: ShownReply,
    place: Place,
    opened: Passage | None,
    cited_in_text: Sequence[tuple[int, int]],
) -> ShownText:
    passage = opened if opened and place.part is None else None
    content = library.pages.content(document.id, place.page, place.part, passage=passage)
    if content.is_undrawn:
        content = replace(content, blocks=form_rows(content.blocks))
    found = [
        Found(
            one["number"],
            str(one.get("text") or ""),
            is_open,
            tuple(cited_in_text) if is_open else (),
            read(str(one.get("rows") or "")),
        )
        for one in reply.passages
        for is_open in (one["number"] == place.number,)
        if one.get("document_id") == document.id and (content.page is None or one.get("page") == content.page)
    ]
    if opened and place.chunk is not None:
        found.append(Found(None, opened.text, is_open=True))
    pictured = any(block.source for block in content.blocks)
    figures = {one.source: one.number for one in library.figures.of([document.id])} if pictured else {}
    return ShownText(document.id, document.name, document.pages, content, tuple(found), figures)


def first_of(library: Library, place: Place) -> int:
    """Where to begin listing: a little before the chunks of the page that is shown."""
    if place.page is None:
        return 0
    return max(0, library.pages.position(place.document_id, page=place.page) - 2)


def _listing(library: Library, place: Place, shown: Shown | None, words: Words) -> Listing | None:
    if shown is None:
        return None
    try:
        total = library.document(place.document_id).chunks
        if place.listing is None or place.listing < 0:
            return Listing(place.document_id, total)
        start = min(place.listing, max(0, total - 1))
        chunks = library.pages.chunks(place.document_id, start, _STEP)
        chunks = [replace(one, document=shown.document, text=told(one.text, words.spoken)) for one in chunks]
    except _NOWHERE:
        return None
    return Listing(place.document_id, total, start, chunks, _STEP, place.page, place.chunk)
