"""A question on its way in: its files checked before and after they are sent, pages that it names, and the engine."""

from __future__ import annotations

import binascii
import re
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypedDict, cast

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import ConflictError, NotFoundError, QuotaError, TooManyRequestsError
from core.models.model_name import ModelName
from core.rag.parsers.catalog import HEAD
from core.reading.attachments import LINK, UNTAKEN, kind_of, link_name, true_name, without_added
from core.storage.files import media_type_of_head
from core.workspace.levels import Level
from webui.context import json_body, text_of
from webui.handlers.queue import queue_up
from webui.render.refused import refusal_data, refusal_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.errors import ParlourError
    from core.runs.manager import Reservation
    from core.storage.base import FileRecord
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.handlers.desk import Desk
    from webui.uploads import Upload, Uploads
    from webui.views import View
    from webui.words import Words


_MOST = 3
_LONGEST_QUESTION = 4000  # letters; whoever writes more does not just name a page
_URL = r"https?://[^\s<>\"“”，。；！？、（）《》【】]+"
_ALONE = re.compile(rf"\s*{_URL}(?:\s+{_URL})*\s*", re.IGNORECASE)
_ASKED = re.compile(
    r"\W*(?:(?:please|can you|could you|请|麻烦|帮我|你)\W*)*"
    r"(?:(?:read|summari[sz]e|open|fetch|load|look at|translate)(?![a-z-])|"
    r"阅读|读|总结|概括|归纳|看|打开|获取|翻译)"
    rf"\W*(?:\w+\W+){{0,4}}?\w{{0,12}}?{_URL}",
    re.IGNORECASE,
)
_URLS = re.compile(_URL, re.IGNORECASE)
_AFTER = ".,;:!?)]}'*_"  # what belongs to the sentence, not to the address


def pages_to_read(text: str) -> list[str]:
    """The addresses that a message asks to be read, three at most.

    Args:
        text: As it stands in the composer.
    """
    if len(text) > _LONGEST_QUESTION or not (_ALONE.fullmatch(text) or _ASKED.match(text)):
        return []
    found = (_plain(address) for address in _URLS.findall(text))
    return list(dict.fromkeys(found))[:_MOST]


def _plain(address: str) -> str:
    end = address.rstrip(_AFTER)
    # A bracket that the address itself opened is its own, as in many an encyclopedia.
    return f"{end})" if end.count("(") > end.count(")") and address[len(end) :].startswith(")") else end


_PRIVATE = {"cache-control": "no-store"}
_LEFT_OUT = "reading_left_out"
_MOST_FILES = 40
_LARGEST = 2**53 - 1  # bytes of a file: the largest whole number that JavaScript has
_LARGEST_REQUEST = _MOST_FILES * (HEAD * 4 // 3 + 1024)  # bytes of a request: the heads in base64, names and sizes
_ALL_NAMED = 10  # files of one reason, each by its name


@dataclass(frozen=True, slots=True)
class _Offered:
    """A file as the page describes it."""

    name: str
    media_type: str
    size: int
    head: bytes


class AttachingRoutes:
    """`POST /uploads/check`: a file that would be refused never leaves the browser, and holds up no other."""

    def __init__(self, context: WebContext, uploads: Uploads) -> None:
        self._engine = context.engine
        self._words = context.words
        self._uploads = uploads

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/uploads/check", self.check, methods=["POST"])]

    async def check(self, request: Request) -> Response:
        """Which of `{"files": [{"name", "size", "head"}]}` would be refused; `head` is the first 64 KiB in base64.

        `model` (`{"service", "model"}`) is the one that the page will ask; without it the owner's usual one. With
        `"alone": true` each file is judged by itself, whatever room there is for all of them. `also` are refusals that
        the page was told before, as `why` has them: the sentences speak of these, too.
        Answers `{"refused": [index, …], "why": [{"key", "details"}, …], "said": sentences, "later": whether some may be
        added later}`, and of what is no document, whatever its name says, by which name it is to be sent:
        `{"renamed": {index: [name, media type]}, "noted": sentences}`.
        """
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        asked = await json_body(request, _LARGEST_REQUEST) or {}
        files, model = _offered(asked), ModelName.read(asked.get("model"))
        alone, also = asked.get("alone") is True, _refusals(asked.get("also"))
        words = self._words(request.headers.get("accept-language", ""))
        if files is None:
            return JSONResponse({}, 400, _PRIVATE)
        refused: dict[int, ParlourError] = {}
        renamed: dict[int, str] = {}
        meant: list[str] = []
        before, taken = self._uploads.size_held(owner), list[_Offered]()
        async with self._engine.workspaces.open(owner) as workspace:
            for index, offered in enumerate(files):
                file = replace(offered, name=true_name(offered.name, offered.media_type, offered.head))
                error = await self._advice(workspace, file, model)
                error = error or (None if alone else await _no_room(workspace, file, before))
                error = error or (None if alone else await _no_turn(workspace, [*taken, file]))
                if error is not None:
                    refused[index] = error
                    if file.name != offered.name:  # else nobody would know which file is meant
                        meant.append(_by_content("attach.is_really", offered.name, file.name, words))
                    continue
                before += file.size
                taken.append(file)
                if file.name != offered.name:
                    renamed[index] = file.name
        together = refusal_text([*also, *refused.values()], words, named=_ALL_NAMED)
        return JSONResponse(
            {
                "refused": list(refused),
                "why": [refusal_data(one) for one in refused.values()],
                "said": "\n".join([*meant, *filter(None, [together])]),
                "later": any(error.words_key == _LEFT_OUT for error in refused.values()),
                "renamed": {index: [name, files[index].media_type] for index, name in renamed.items()},
                "noted": "\n".join(
                    _by_content("attach.read_as", files[index].name, name, words) for index, name in renamed.items()
                ),
            },
            headers=_PRIVATE,
        )

    async def _advice(self, workspace: Workspace, file: _Offered, model: ModelName | None) -> ParlourError | None:
        """Why a file would be refused, asked of what decides when its bytes are there.

        Size and kind are decided as it arrives (`Uploads.receive`), the model when it is sent (`_ask`), and the room
        in the transaction that stores it (`FileStore.put`), of which `_no_room` speaks.
        """
        error = self._uploads.refusal(file.name, file.size, file.head)
        return error or next(iter(await workspace.unsupported_files([file], model)), None)


async def _no_room(workspace: Workspace, file: _Offered, before: int) -> QuotaError | None:
    try:
        await workspace.files.check_room(before + file.size)
    except QuotaError as error:
        error.details["name"] = file.name
        return error
    return None


async def _no_turn(workspace: Workspace, files: Sequence[_Offered]) -> TooManyRequestsError | None:
    """Why the last of these files is left out of the question; where it is sent all the same, `ask` refuses it."""
    if kind_of(files[-1]) != "document":
        return None
    try:
        await workspace.intake.check_room_for(files)
    except TooManyRequestsError as error:
        left_out = {"name": files[-1].name, "limit": error.details["limit"]}
        return TooManyRequestsError("It would not be read.", key=_LEFT_OUT, retry_after=error.retry_after, **left_out)
    return None


def _by_content(key: str, name: str, really: str, words: Words) -> str:
    promised, kind = (PurePosixPath(one).suffix.removeprefix(".").upper() for one in (name, really))
    return words(key, name=name, promised=promised, really=kind)


def _refusals(given: object) -> list[dict[str, Any]]:
    """What the page was told before of files that are refused; anything else in it is passed over."""
    told: list[dict[str, Any]] = []
    for one in cast("list[object]", given) if isinstance(given, list) else []:
        error = cast("dict[str, object]", one) if isinstance(one, dict) else {}
        details = error.get("details")
        if isinstance(details, dict):
            values = {name: text_of(value) for name, value in cast("dict[str, object]", details).items()}
            told.append({"key": text_of(error.get("key")), "details": values})
    return told


def _offered(given: dict[str, Any]) -> list[_Offered] | None:
    """What the page describes; None where it is nothing that the page would send."""
    listed = given.get("files")
    if not isinstance(listed, list) or len(cast("list[object]", listed)) > _MOST_FILES:
        return None
    offered: list[_Offered] = []
    for one in cast("list[object]", listed):
        if not isinstance(one, dict):
            return None
        described = cast("dict[str, object]", one)
        size, name = described.get("size"), text_of(described.get("name"))
        if not isinstance(size, int) or not 0 <= size <= _LARGEST:
            return None
        try:
            head = binascii.a2b_base64(text_of(described.get("head")))[:HEAD]
        except ValueError:
            return None
        offered.append(_Offered(name, media_type_of_head(head, name), size, head))
    return offered


class Draft(TypedDict):
    """What stands in the composer."""

    text: str
    files: list[str]


async def send(desk: Desk, view: View, draft: Draft | None, *, now: bool = False) -> None:
    """Send what stands in the composer; it is emptied once the message is kept, and left alone if it is refused.

    Args:
        now: Stop the reply that is being written, instead of waiting for its end.

    Raises:
        ParlourError: The message is refused; nothing of it is kept.
    """
    text, paths = (draft["text"] or "", draft["files"] or []) if draft else ("", [])
    uploads = [await desk.uploads.find(view.owner, path) for path in paths]
    wanted = view.conversation_id
    arrivals = desk.engine.runs.arrivals
    arrivals.expect(view.owner, view)
    try:
        await start(desk, view, text, [(upload.path, upload.name) for upload in uploads], now=now)
    except BaseException as error:
        arrivals.shown(view.owner, view)
        if not isinstance(error, NotFoundError):
            raise
        if view.opened or not wanted or error.details.get("kind") != "conversation":
            raise
        # The page was loaded at another Parlour, or before a restart, and begins a new conversation: what was chosen
        # for it, such as that it is temporary, is not known here.
        hint = "Look at what is chosen for this chat, then send it again."
        raise ConflictError("The connection was lost meanwhile.", hint=hint, key="tab_moved") from error
    for upload in uploads:
        await desk.uploads.drop(upload)


async def start(desk: Desk, view: View, text: str, files: Sequence[tuple[Path, str]], *, now: bool = False) -> None:
    """Put files, and links to pages that shall be read, into the store and ask, in the tab's conversation or a new one.

    It is the conversation that the tab shows now: storing takes a while, and the reader may turn to another one. While
    it is being answered, here or by another process, the message waits in its queue.

    Args:
        now: Stop the reply that is being written, instead of waiting for its end.

    Raises:
        ConflictError: key `busy`: another message is on its way into the conversation, which is new.
        ParlourError: A file cannot be used, or storing failed; nothing is kept.
    """
    conversation_id, address = view.conversation_id, view.address
    async with view.choosing:  # what was chosen just before the question was sent holds for it
        into = _Into(conversation_id, address, view.libraries, now, view.model, view.draft, view.folder)
    # One that is not there yet goes by the name that the page wishes for it, else by its tab.
    name = into.conversation_id or f"new {into.wanted or id(view)}"
    kept: list[FileRecord] = []
    async with desk.workspace(view) as workspace:
        try:
            try:
                with workspace.runs.reserve(name, stopping=now) as held, into.expected(desk, view.owner):
                    await _store(workspace, text, files, kept)
                    await _ask(workspace, view, text, kept, into, held)
            except ConflictError as error:
                if not into.conversation_id or error.words_key != "busy":
                    raise
                if not kept:
                    await _store(workspace, text, files, kept)
                await _added(workspace, into.conversation_id, kept)
                await queue_up(workspace, view, into.conversation_id, text, kept)
        except BaseException:
            await workspace.files.let_go(kept)  # one that waits by now has them
            raise


async def _store(workspace: Workspace, text: str, files: Sequence[tuple[Path, str]], kept: list[FileRecord]) -> None:
    """Put files, and links to the pages that a question names, into the store, one after another into `kept`."""
    links = pages_to_read(text)
    if files or links:  # a conversation makes its owner known by itself
        await workspace.conversations.ensure_owner()
    given = [(name, path, "") for path, name in files]
    for name, source, kind in [*given, *((link_name(link), link.encode(), LINK) for link in links)]:
        kept.append(await workspace.files.put(name, source, media_type=kind))


@dataclass(frozen=True, slots=True)
class _Into:
    """Where a question goes.

    Args:
        conversation_id: The conversation; empty for a new one.
        wanted: What the page calls that new one in its address already.
        libraries: Those that it uses from the start.
        now: Whether the reply that is being written is stopped for it.
        model: Its own from the start, if any.
        settings: What was chosen for it before it is there.
        folder: The one that it begins in; "" for none.
    """

    conversation_id: str
    wanted: str
    libraries: Sequence[str]
    now: bool
    model: ModelName | None
    settings: Mapping[str, Any]
    folder: str = ""

    def expected(self, desk: Desk, owner: str) -> AbstractContextManager[None]:
        """While it is being stored: who loads the page again now gets the new conversation, not an empty room."""
        return desk.views.creating(owner, self.wanted) if self.wanted and not self.conversation_id else nullcontext()


async def _begin_in(workspace: Workspace, conversation_id: str, folder_id: str, libraries: Sequence[str]) -> None:
    """Put a new conversation into its folder, and let it use these libraries and no other ones of the folder."""
    brought: Sequence[str] = ()
    if folder_id:
        with suppress(NotFoundError):  # deleted meanwhile, as libraries may be
            await workspace.folders.put([conversation_id], folder_id)
            brought = Level.of((await workspace.folders.get(folder_id)).settings).libraries
    for library in dict.fromkeys([*libraries, *brought]):
        if (library in libraries) is not (library in brought):
            with suppress(NotFoundError):
                await workspace.libraries.use(conversation_id, library, on=library in libraries)


async def _ask(
    workspace: Workspace,
    view: View,
    text: str,
    files: Sequence[FileRecord],
    into: _Into,
    held: Reservation,
) -> None:
    fresh, wanted = not into.conversation_id, into.conversation_id
    model = into.model if fresh else await workspace.conversation(wanted).model()
    for refused in await workspace.unsupported_files(files, model):
        raise refused
    if fresh:
        wanted = (await workspace.conversations.create(wanted=into.wanted, settings=into.settings)).id
    conversation = workspace.conversation(wanted)
    try:
        if fresh and model is not None:
            await conversation.choose_model(model)
        if fresh:
            await _begin_in(workspace, wanted, into.folder, into.libraries)
        else:
            await _added(workspace, wanted, files)  # first: the reply is told what is missing
        ask = conversation.ask_now if into.now else conversation.ask
        await ask(text, [file.id for file in files], view.words.spoken, held)
    except BaseException:
        if fresh:
            await conversation.delete()
        raise
    if fresh and not view.conversation_id:  # else the reader has turned to another one meanwhile
        view.show(wanted)
    view.resting = False
    view.wake_up(stale=True)


async def _added(workspace: Workspace, conversation_id: str, files: Sequence[FileRecord]) -> None:
    """Of files that were too many at once, these are there now."""
    if files and UNTAKEN in await workspace.conversations.settings(conversation_id):
        change = partial(without_added, names={file.name for file in files})
        await workspace.conversations.configure(conversation_id, change)


async def stop(desk: Desk, view: View) -> None:
    """Stop the reply; the tab's follower shows how it ends. Raises as `Conversation.stop`."""
    async with desk.workspace(view) as workspace:
        if await workspace.runs.found(view.conversation_id) is not None:  # else it would be said of the next reply
            view.stopping = True
            view.wake_up()
        await workspace.conversation(view.conversation_id).stop()


async def drop(desk: Desk, view: View, path: str) -> None:
    """Forget a file that was taken out of the composer."""
    with suppress(NotFoundError):
        upload: Upload = desk.uploads.of(view.owner, path)
        await desk.uploads.drop(upload)
