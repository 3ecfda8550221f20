"""The evidence panel: the passage behind a mark, on the page it came from."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread

from core.errors import NotFoundError, ParlourError
from core.messages.computed import COMPUTED
from core.rag.attribution import words_of
from core.reading.libraries import names_of
from core.reading.senses import is_heard
from core.runs.claim_check import claimed_sentences
from core.runs.untold import untold
from core.storage.kept_pages import kept_pages
from webui.handlers.evidence_drawn import FOUND, INSIDE, TRIED, Known, files_in, first_of, panel_of
from webui.panels.evidence import UNREAD
from webui.render.citations import BESIDE, marked_text
from webui.views import EVIDENCE, Place, ShownReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from core.rag.document import Passage
    from core.rag.library import Library
    from core.runs.reply import Reply
    from core.storage.base import DocumentRecord, FileRecord, StoredMessage
    from core.workspace.workspace import Workspace
    from webui.handlers.desk import Desk
    from webui.handlers.evidence_drawn import Drawn, KeptPages
    from webui.views import Panel, View

_DIGITS = 4  # of the number of a sentence
_READ_WITHIN = 1.0  # seconds for which a page that is still being read is waited for; then the script asks `again`
_LOOKS_EVERY = 0.25


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
        place = Place(f"{TRIED}.{library_id}", str(opened["document_id"]), opened["page"], None, number)
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
        place = Place(f"{FOUND}.{document_id}", document_id, passage.page, None, 1)
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
            files = await to_thread.run_sync(files_in, library, document_id)
        if not files:
            raise NotFoundError("There is no such document.")
        reply = replace(_found(record.name, files), doubted=(record.name,))  # no words of it are cited
        await _show(workspace, view, reply, Place(f"{INSIDE}.{document_id}", document_id, None, None, 1), look)


async def again(desk: Desk, view: View) -> None:
    """Show what is open with its page, if that was read meanwhile; what was clicked since then comes before it."""
    place, looks, is_read = view.place, view.looks, False
    if place is None or UNREAD not in view.evidence:
        return
    try:
        async with desk.reading(view) as workspace:
            is_read = not await workspace.is_being_read(place.document_id)
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
                start = await to_thread.run_sync(first_of, library, place)
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
    if replied in {TRIED, FOUND, INSIDE}:
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
    if not drawn.is_whole and place.document_id:
        drawn = await _once_read(workspace, view, reply, place, look)
    if view.looks != look.number or (only_if_there and not drawn.is_there):
        return
    view.cover(look.over, EVIDENCE)
    view.place, view.evidence = drawn.place, drawn.markup


async def _once_read(workspace: Workspace, view: View, reply: ShownReply, place: Place, look: _Look) -> Drawn:
    """The panel once its page was read, or after a second; what was brought in has replies before documents."""
    ends = time.monotonic() + _READ_WITHIN
    while await workspace.is_being_read(place.document_id):
        drawn = await _draw(workspace, view, reply, place, is_read=False)
        if drawn.is_there or time.monotonic() > ends or view.looks != look.number:
            return drawn
        await asyncio.sleep(_LOOKS_EVERY)
    return await _draw(workspace, view, reply, place)


async def _draw(workspace: Workspace, view: View, reply: ShownReply, place: Place, *, is_read: bool = True) -> Drawn:
    documents = await _documents(workspace, view.shown_id)
    sound = await _sound(workspace, documents, place.document_id)
    pages, names = await _kept_pages(workspace, view.shown_id), names_of(documents)
    lost = await _is_taken_back(workspace, view.shown_id, place.document_id)
    known = Known(pages, sound, is_read=is_read, names=names, is_taken_back=lost)
    async with _holding(workspace, place.document_id) as library:
        return await to_thread.run_sync(panel_of, library, reply, place, view.words, known)


async def _is_taken_back(workspace: Workspace, conversation_id: str, document_id: str) -> bool:
    """Whether a document stands in a library of a conversation that is not shared any more."""
    with suppress(NotFoundError):
        return bool(conversation_id) and await workspace.libraries.has_lost(conversation_id, document_id)
    return False


@asynccontextmanager
async def _holding(workspace: Workspace, document_id: str) -> AsyncGenerator[Library]:
    """The index that has a document: somebody else's, too, as long as it is shared; the owner's where none has it."""
    async with AsyncExitStack() as opened:
        try:
            library = await opened.enter_async_context(workspace.holding(document_id))
        except NotFoundError:
            library = await workspace.index()
        yield library


async def _documents(workspace: Workspace, conversation_id: str) -> Sequence[DocumentRecord]:
    """The conversation's own documents."""
    try:
        return await workspace.documents.list(conversation_id)
    except NotFoundError:  # a library is looked at, and no conversation is open
        return ()


async def _sound(workspace: Workspace, documents: Sequence[DocumentRecord], document_id: str) -> FileRecord | None:
    """The recording whose transcript a document of the conversation is."""
    made = next((one for one in documents if one.library_id == document_id), None)
    try:
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
