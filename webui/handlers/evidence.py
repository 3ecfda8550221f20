"""The evidence panel: the passage behind a mark, on the page it came from."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread

from core.errors import DocumentError, NotFoundError, ParlourError, StorageError
from core.messages.computed import COMPUTED
from core.rag.attribution import words_of
from core.rag.citations import BETWEEN, claim_around, sentence_of, supporting_spans
from core.rag.document import Passage
from core.rag.page_content import kind_of
from core.rag.places import letters_of, proof_on_page
from core.rag.row_numbers import read
from core.reading.senses import is_heard
from core.runs.untold import untold
from core.storage.kept_pages import kept_pages
from webui.panels.evidence import UNREAD, Listing, Lists, ShownPage, ShownText, evidence_html
from webui.panels.evidence_text import Found, form_rows
from webui.panels.player import player_html, second_of
from webui.render.citations import BESIDE, claimed_sentences, marked_text
from webui.views import EVIDENCE, Place, ShownReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from core.rag.document import Document, Rectangle
    from core.rag.library import Library
    from core.rag.page_content import PageContent
    from core.runs.reply import Reply
    from core.storage.base import FileRecord, StoredMessage
    from core.storage.kept_pages import PagePlace
    from core.workspace.workspace import Workspace
    from webui.handlers.desk import Desk
    from webui.panels.evidence import Shown
    from webui.views import Panel, View
    from webui.words import Words

    KeptPages = Mapping[tuple[str, int], PagePlace]

_TRIED = "try"  # what belongs to no reply, but to a question that was tried in a library: `try.<library>`
_FOUND = "look"  # and to words that the palette found in a document: `look.<document>`
_INSIDE = "inside"  # and to the files in a document: `inside.<document>`
_DIGITS = 4  # of the number of a sentence
_STEP = 50  # chunks of a document that are listed at once
_READ_WITHIN = 1.0  # seconds for which a page that is still being read is waited for; then the script asks `again`
_LOOKS_EVERY = 0.25
_NOWHERE = (NotFoundError, DocumentError, StorageError)


async def cited(desk: Desk, view: View, message_id: str, number: int, occurrence: int = 0) -> None:
    """Open the passage that a mark in a reply names.

    Args:
        occurrence: Which of the marks that say so, from 0: it decides which sentence is looked for in the passage.

    Raises:
        NotFoundError: The reply is not part of the conversation that the tab shows, or has no such passage.
    """
    look = _begun(view)
    async with desk.reading(view) as workspace:
        reply = await _reply(desk, workspace, view, message_id)
        opened = next((passage for passage in reply.passages if passage["number"] == number), None)
        if opened is None:
            raise NotFoundError("There is no such passage.")
        document_id, page = str(opened.get("document_id")), opened.get("page")
        listing = view.place.listing if view.place and view.place.document_id == document_id else None
        place = Place(message_id, document_id, page, None, number, occurrence, listing=listing)
        await _show(workspace, view, reply, place, look)


async def tried(desk: Desk, view: View, library_id: str, question: str, number: int) -> None:
    """Open one of the passages that a question finds in a named library.

    Args:
        number: Which of the passages, from 1.

    Raises:
        NotFoundError: There is no such library, or not so much is found there any more.
    """
    look = _begun(view)
    async with desk.workspace(view) as workspace:
        reply = _found(question, await workspace.libraries.tried(library_id, question))
        opened = next((passage for passage in reply.passages if passage["number"] == number), None)
        if opened is None:
            raise NotFoundError("There is no such passage.")
        place = Place(f"{_TRIED}.{library_id}", str(opened["document_id"]), opened["page"], None, number)
        await _show(workspace, view, reply, place, look)


async def found(desk: Desk, view: View, document_id: str, chunk: int, text: str) -> None:
    """Open a passage that the search of the palette found, on its page.

    Args:
        document_id: Of the document, in the index.
        chunk: The passage's number.
        text: The words that were looked for.

    Raises:
        NotFoundError: There is no such document that the owner may read, or it has no such passage.
    """
    look = _begun(view)
    async with desk.workspace(view) as workspace:
        async with workspace.holding(document_id) as library:
            passage = await to_thread.run_sync(library.pages.chunk, document_id, chunk)
        reply = _found(text or passage.text, [passage])
        place = Place(f"{_FOUND}.{document_id}", document_id, passage.page, None, 1)
        await _show(workspace, view, reply, place, look)


async def inside(desk: Desk, view: View, record_id: str) -> None:
    """Open a document that holds files, at the first of them, with all of them to choose from.

    Args:
        record_id: Of a document of the conversation that the tab shows.

    Raises:
        NotFoundError: There is no such document there, or nothing of it was read.
    """
    look = _begun(view)
    async with desk.reading(view) as workspace:
        record = await workspace.documents.get(record_id)
        document_id = record.library_id
        if record.conversation_id != view.shown_id or document_id is None:
            raise NotFoundError("There is no such document.")
        async with _holding(workspace, document_id) as library:
            files = await to_thread.run_sync(_files_in, library, document_id)
        if not files:
            raise NotFoundError("There is no such document.")
        reply = replace(_found(record.name, files), doubted=(record.name,))  # no words of it are cited
        await _show(workspace, view, reply, Place(f"{_INSIDE}.{document_id}", document_id, None, None, 1), look)


async def again(desk: Desk, view: View) -> None:
    """Show what is open with its page, if that was read meanwhile; what was clicked since then comes before it."""
    place, looks, is_read = view.place, view.looks, False
    if place is None or UNREAD not in view.evidence:
        return
    try:
        async with desk.reading(view) as workspace:
            is_read = not await workspace.documents.is_being_read(place.document_id)
            reply = place.found or await _reply(desk, workspace, view, place.message_id)
            drawn = await _draw(workspace, view, reply, place, is_read=is_read)
    except ParlourError:  # deleted meanwhile, say: what stands there stays, and is not asked for again
        drawn = None
    if view.looks != looks or view.place != place or UNREAD not in view.evidence:
        return
    if drawn is None:
        view.evidence = view.evidence.replace(UNREAD, "")
    elif is_read or drawn.is_there:
        view.place, view.evidence = drawn.place, drawn.markup


async def paged(desk: Desk, view: View, document_id: str, number: int, part: int = 0) -> None:
    """Turn to another page of a document that the open reply came from, or part of one; past its ends nothing happens.

    Raises:
        NotFoundError: No evidence is open, or the document is not part of it.
    """
    place, look = _open_place(view), _begun(view)
    async with desk.reading(view) as workspace:
        reply = await _reply(desk, workspace, view, place.message_id)
        if all(passage.get("document_id") != document_id for passage in reply.passages):
            raise NotFoundError("There is no such document.")
        turned = replace(
            place, document_id=document_id, page=number or None, part=part or None, number=None, chunk=None
        )
        await _show(workspace, view, reply, turned, look, only_if_there=True)


async def listed(desk: Desk, view: View, start: int) -> None:
    """Unfold the list of all chunks of the open document, from the one at `start`; below 0 fold it.

    Raises:
        NotFoundError: No evidence is open.
    """
    place, look = _open_place(view), _begun(view)
    async with desk.reading(view) as workspace:
        if start == 0 and place.listing is None:
            async with _holding(workspace, place.document_id) as library:
                start = await to_thread.run_sync(_first_of, library, place)
        reply = await _reply(desk, workspace, view, place.message_id)
        await _show(workspace, view, reply, replace(place, listing=max(start, -1)), look)


async def chosen(desk: Desk, view: View, chunk: int) -> None:
    """Show a chunk of the open document on its page.

    Raises:
        NotFoundError: No evidence is open, or the document has no such chunk.
    """
    place, look = _open_place(view), _begun(view)
    async with desk.reading(view) as workspace:
        async with _holding(workspace, place.document_id) as library:
            found = await to_thread.run_sync(library.pages.chunk, place.document_id, chunk)
        shown = replace(place, page=found.page, part=None, number=None, chunk=chunk)
        await _show(workspace, view, await _reply(desk, workspace, view, place.message_id), shown, look)


def _open_place(view: View) -> Place:
    if view.place is None:
        raise NotFoundError("No evidence is open.")
    return view.place


class _Look(NamedTuple):
    """What the panel shall show now: it is shown unless something else was asked for meanwhile.

    Args:
        over: What stood there when it was asked for.
    """

    number: int
    over: Panel | None


def _begun(view: View) -> _Look:
    over = view.panel
    view.looks += 1
    view.side = ""
    return _Look(view.looks, over)


async def _reply(desk: Desk, workspace: Workspace, view: View, message_id: str) -> ShownReply:
    """What the marks of a reply lead to. The text of a mark can be forged, so the reply is looked up.

    `<reply>.beside<n>` is its n-th sentence of a passage that stands beside the answer, `<reply>.computed` what was
    computed for it and it does not tell. `<reply>.<n>` is what a search for its n-th claim finds, as if that sentence
    were the reply: where that bears the sentence out, its sign is gone for good. `try.<library>` is what the question
    found that was tried there last, `look.<document>` what the palette found in it, and `inside.<document>` the files
    in it.
    """
    replied, _, claim = message_id.partition(".")
    if replied in {_TRIED, _FOUND, _INSIDE}:
        place = _open_place(view)
        if place.message_id != message_id or place.found is None:
            raise NotFoundError("This is not shown any more.")
        return place.found
    message = await workspace.conversations.message(replied)
    if message.conversation_id != view.shown_id:
        raise NotFoundError("This reply is in another conversation.")
    reply = await workspace.runs.reply(message)
    if not claim:
        return await to_thread.run_sync(_as_shown, reply.snapshot())
    if claim.startswith(BESIDE):
        return _beside(reply, claim.removeprefix(BESIDE))
    if claim == COMPUTED:
        return _computed(reply)
    said = await to_thread.run_sync(claimed_sentences, reply.snapshot())
    index = int(claim) if claim.isascii() and claim.isdigit() else len(said)
    if index >= len(said) or not said[index]:
        raise NotFoundError("There is no such sentence.")
    if view.demo is not None:
        raise NotFoundError("Nothing is searched in a demonstration.", key="demo_only")
    asked = await _asked(workspace, message)
    found = await _sought(desk, workspace, view, said[index], asked)
    if not found.doubted and reply.claims[index].verdict != "supported":
        same = words_of(said[index])
        await workspace.runs.bear_out(message, {at for at, one in enumerate(said) if words_of(one) == same})
        desk.views.changed(view.owner, view.conversation_id)
    return found


def _beside(reply: Reply, number: str) -> ShownReply:
    """A sentence of a passage as if it were the reply: it is what is marked there."""
    index = int(number) if number.isascii() and number.isdigit() and len(number) <= _DIGITS else len(reply.left_out)
    if index >= len(reply.left_out):
        raise NotFoundError("There is no such sentence.")
    one = reply.left_out[index]
    return ShownReply(f"{one.sentence} [{one.passage}]", reply.passages)


def _computed(reply: Reply) -> ShownReply:
    """What was computed as if it were the reply, which may say something else."""
    found = untold(reply)
    if not found:
        raise NotFoundError("There is no such sentence.")
    return ShownReply("\n\n".join(f"{one.get('text') or ''} [{one['number']}]" for one in found), reply.passages)


def _as_shown(reply: Reply) -> ShownReply:
    """A reply with its marks, and what is not proved of it."""
    said = zip(claimed_sentences(reply), reply.claims, strict=True)
    doubted = tuple(sentence for sentence, one in said if one.verdict == "unsupported")
    return ShownReply(marked_text(reply), reply.passages, doubted=doubted)


async def _asked(workspace: Workspace, message: StoredMessage) -> str:
    """The question that a reply answers; "" where it is not stored."""
    if message.parent_id is None:
        return ""
    question = await workspace.conversations.message(message.parent_id)
    return "\n".join(part.get_text_content() for part in question.parts)


async def _sought(desk: Desk, workspace: Workspace, view: View, sentence: str, asked: str) -> ShownReply:
    documents = tuple(await workspace.documents.within_reach(view.conversation_id))
    known = view.place.found if view.place else None
    if known and (known.sought, known.among) == (sentence, documents):
        return known  # a search may cost money
    found = await workspace.conversation(view.conversation_id).find(sentence)
    if not found:
        raise NotFoundError("Nothing like it was found in the documents.", key="claim_not_found")
    proved = await desk.engine.services.checking.supports(sentence, found, asked)
    return replace(_found(sentence, found, documents), doubted=() if proved else (sentence,))


def _found(sought: str, found: Sequence[Passage], among: tuple[str, ...] = ()) -> ShownReply:
    """What was sought as if it were a reply that cites all that was found."""
    passages = [{**passage.as_dict(), "number": number} for number, passage in enumerate(found, 1)]
    marks = "".join(f"[{number}]" for number, _ in enumerate(found, 1))
    return ShownReply(f"{sought} {marks}", passages, sought, among)


async def _show(
    workspace: Workspace, view: View, reply: ShownReply, place: Place, look: _Look, *, only_if_there: bool = False
) -> None:
    drawn = await _draw(workspace, view, reply, place)
    if not drawn.is_there and place.document_id:
        drawn = await _once_read(workspace, view, reply, place, look)
    if view.looks != look.number or (only_if_there and not drawn.is_there):
        return
    view.cover(look.over, EVIDENCE)
    view.place, view.evidence = drawn.place, drawn.markup


async def _once_read(workspace: Workspace, view: View, reply: ShownReply, place: Place, look: _Look) -> _Drawn:
    """The panel once its page was read, or after a second; what was brought in has replies before documents."""
    ends = time.monotonic() + _READ_WITHIN
    while await workspace.documents.is_being_read(place.document_id):
        drawn = await _draw(workspace, view, reply, place, is_read=False)
        if drawn.is_there or time.monotonic() > ends or view.looks != look.number:
            return drawn
        await asyncio.sleep(_LOOKS_EVERY)
    return await _draw(workspace, view, reply, place)


async def _draw(workspace: Workspace, view: View, reply: ShownReply, place: Place, *, is_read: bool = True) -> _Drawn:
    sound = await _sound(workspace, view.shown_id, place.document_id)
    known = _Known(await _kept_pages(workspace, view.shown_id), sound, is_read=is_read)
    async with _holding(workspace, place.document_id) as library:
        return await to_thread.run_sync(_drawn, library, reply, place, view.words, known)


@asynccontextmanager
async def _holding(workspace: Workspace, document_id: str) -> AsyncGenerator[Library]:
    """The index that has a document: somebody else's, too, as long as it is shared; the owner's where none has it."""
    async with AsyncExitStack() as opened:
        try:
            library = await opened.enter_async_context(workspace.holding(document_id))
        except NotFoundError:
            library = await workspace.index()
        yield library


async def _sound(workspace: Workspace, conversation_id: str, document_id: str) -> FileRecord | None:
    """The recording whose transcript a document of the conversation is."""
    try:
        documents = await workspace.documents.list(conversation_id)
        made = next((one for one in documents if one.library_id == document_id), None)
        file = await workspace.files.record(made.file_id) if made is not None else None
    except NotFoundError:
        return None
    return file if file is not None and is_heard(file) else None


async def _kept_pages(workspace: Workspace, conversation_id: str) -> KeptPages:
    """The pictures of pages that came along with a conversation, without their documents."""
    try:
        return kept_pages(await workspace.conversations.settings(conversation_id))
    except NotFoundError:  # a library is looked at, and no conversation is open
        return {}


# ---- in a thread


class _Known(NamedTuple):
    """What is known of the document beside the index.

    Args:
        pages: Pictures that came along without their documents.
        sound: The recording whose transcript it is.
        is_read: Whether it is no longer being read.
    """

    pages: KeptPages
    sound: FileRecord | None
    is_read: bool


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The panel, and whether the document has what it shows."""

    place: Place
    markup: str
    is_there: bool


def _drawn(library: Library, reply: ShownReply, place: Place, words: Words, known: _Known) -> _Drawn:
    shown, cited_in_text = _shown(library, reply, place)
    if shown is None:
        shown = _kept_page(reply, place, known.pages)
    listing = _listing(library, place, shown)
    start = listing.start if listing and listing.chunks else None
    state = _state(library, place.document_id)
    nothing = "gone" if known.is_read else "unread"
    if state == "ready" or (state and known.is_read):
        nothing = "no_picture"
    opened, sound = _opened(library, reply, place), known.sound
    player = _player(sound, reply, place, opened, words) if sound is not None else ""
    markup = evidence_html(
        reply.passages,
        place.number,
        words,
        message_id=place.message_id,
        page=shown,
        lists=Lists(reply.uncited, cited_in_text, listing, _why(reply, place, words), nothing, player),
    )
    return _Drawn(replace(place, listing=start, found=reply if reply.sought else None), markup, shown is not None)


def _shown(library: Library, reply: ShownReply, place: Place) -> tuple[Shown | None, tuple[tuple[int, int], ...]]:
    """What is shown of the page, and what is cited of the open passage; `None` where the document is gone."""
    opened = _opened(library, reply, place)
    has_mark = opened is not None and place.number is not None and not _is_doubted(reply, place)
    said = sentence_of(reply.text, place.number or 0, place.occurrence) if has_mark else ""
    cited_in_text = tuple(supporting_spans(said, opened.text)) if opened and said else ()
    try:
        document = library.document(place.document_id)
        if kind_of(document.media_type) == "page":
            content = _content(library, place)
            if content is None or not content.is_undrawn:
                return _page(library, document, place, opened, said, content), cited_in_text
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
    if place.message_id.startswith(f"{_FOUND}."):
        return words("evidence.looked_for", words=reply.sought)
    if place.message_id.startswith(f"{_INSIDE}."):
        return words("evidence.inside", name=reply.sought, n=len(reply.passages))
    if place.message_id.startswith(f"{_TRIED}."):
        return words("evidence.tried", question=reply.sought)
    return words("claims.closest" if reply.doubted else "claims.again", claim=reply.sought)


def _files_in(library: Library, document_id: str) -> list[Passage]:
    """How each file within a document begins, under its own name: files are its outermost headings."""
    first: dict[str, Passage] = {}
    for one in library.context.whole([document_id]):
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
        opened=opened.rectangles if opened and place.chunk is not None else (),
        letters=letters_of(content.blocks) if content else 0.0,
        figures=tuple(one.lines[0][1] for one in content.blocks if one.kind == "figure" and one.lines)
        if content
        else (),
    )


def _printed(opened: Passage, said: str, content: PageContent | None) -> tuple[Rectangle, ...]:
    """Where what bears the sentence out stands on the page; nothing where that cannot be known."""
    if opened.rows:  # computed from rows whose places are known: the sentence is nowhere on the page
        return opened.rectangles
    return proof_on_page([said], opened.text, content.blocks) if content else ()


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


def _first_of(library: Library, place: Place) -> int:
    """Where to begin listing: a little before the chunks of the page that is shown."""
    if place.page is None:
        return 0
    return max(0, library.pages.position(place.document_id, page=place.page) - 2)


def _listing(library: Library, place: Place, shown: Shown | None) -> Listing | None:
    if shown is None:
        return None
    try:
        total = library.document(place.document_id).chunks
        if place.listing is None or place.listing < 0:
            return Listing(place.document_id, total)
        start = min(place.listing, max(0, total - 1))
        chunks = library.pages.chunks(place.document_id, start, _STEP)
    except _NOWHERE:
        return None
    return Listing(place.document_id, total, start, chunks, _STEP, place.page, place.chunk)
