"""Questions and replies: sends, changes, repeats and continues them, one live run per conversation."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from core.agents.language import language_of
from core.answering import Answering
from core.errors import ConflictError, NotFoundError, StorageError
from core.messages.events import ToolFinished
from core.messages.invisible import Cleaned, without_invisible
from core.messages.transcript import Transcript
from core.reading.attachments import LONGEST_SHOWN, checked_text, excerpt, kind_of, title_of, user_message, with_text
from core.runs.continuing import beginning_of, beginning_with
from core.runs.log import LoggedEvent, spoken
from core.runs.rows import events_of
from core.runs.terms import Beginning
from core.storage.base import busy, file_ids
from core.storage.conversations import clean

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.agents.assistant import Assistant
    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.models.loading import ModelLoader
    from core.reading.attachments import Lang
    from core.reading.intake import Intake
    from core.runs.left import Left
    from core.runs.manager import Runs
    from core.runs.remembering import Remembering
    from core.runs.run import Run
    from core.runs.terms import Terms
    from core.storage.base import DocumentRecord, FileRecord, StoredMessage
    from core.storage.conversations import ConversationStore
    from core.storage.files import FileStore

_OPENS_WITHIN = 20.0  # seconds, until a password has shown whether it is right


class Turns:
    """Begins runs. What a run waits for (model, documents) it waits for inside, where it can be stopped.

    Args:
        conversations: Where turns are kept.
        files: Where attachments are kept.
        runs: Where replies are made.
        intake: Where documents are read.
        loader: Finds the model of an owner.
        agent: Makes the assistant of a conversation with a model.
        terms: What a run of a conversation may do.
        remembering: Sums up what a model cannot read any more.
    """

    def __init__(  # noqa: PLR0913 - what a turn is made of
        self,
        conversations: ConversationStore,
        files: FileStore,
        runs: Runs,
        *,
        intake: Intake,
        loader: Callable[[str], Awaitable[ModelLoader]],
        agent: Callable[[str, str, BaseChatModel], AbstractAsyncContextManager[Assistant]],
        terms: Callable[[str, str], Awaitable[Terms]],
        remembering: Remembering,
    ) -> None:
        self._conversations = conversations
        self._files = files
        self._runs = runs
        self._intake = intake
        self._loader = loader
        self._agent = agent
        self._terms = terms
        self._remembering = remembering

    async def send(self, owner: str, conversation_id: str, text: str, file_ids: Sequence[str], lang: Lang) -> Run:
        """A user's message, and the run that answers it."""
        plain, removed = _readable(text, len(file_ids))
        thread = await self._conversations.thread(owner, conversation_id)
        self._refuse_if_busy(conversation_id)
        files = [await self._files.record(owner, file_id) for file_id in file_ids]
        pasted: FileRecord | None = None
        if len(plain) > LONGEST_SHOWN:
            # A small model cannot cope with so much at once; as a document all of it stays within reach.
            name = "pasted text.txt" if lang == "en" else "粘贴的文本.txt"
            pasted = await self._files.put(owner, name, plain.encode())
            files.append(pasted)
            plain = excerpt(plain)
        message = user_message(plain, files, "pasted_as_document" if pasted is not None else "", removed)
        try:
            return await self._ask(owner, conversation_id, message, thread, lang)
        except BaseException:
            if pasted is not None:  # no message names it
                with suppress(StorageError):
                    await self._files.delete(owner, pasted.id)
            raise

    async def edit(self, owner: str, message_id: str, text: str, lang: Lang) -> Run:
        """A changed question beside the old one, with its files, and the run that answers it."""
        old = await self._conversations.message(owner, message_id)
        if old.role != "user":
            raise NotFoundError("Only a question can be changed.", kind="message")
        files = sum(item.type != "text" for item in old.parts[0].items)
        plain, removed = _readable(text, files)
        self._refuse_if_busy(old.conversation_id)
        thread = await self._thread_to(owner, old.conversation_id, old.parent_id)
        return await self._ask(owner, old.conversation_id, with_text(old.parts[0], plain, removed), thread, lang)

    async def regenerate(self, owner: str, message_id: str, lang: Lang) -> Run:
        """Another reply beside `message_id` (or to it, where it is a question)."""
        message = await self._conversations.message(owner, message_id)
        question_id = message.id if message.role == "user" else message.parent_id
        return await self._answer(owner, message.conversation_id, question_id, lang)

    async def continue_(self, owner: str, message_id: str, lang: Lang) -> Run:
        """A reply beside `message_id` that begins with all there is of it and goes on."""
        broken_off = await self._conversations.message(owner, message_id)
        if broken_off.role != "assistant":
            raise NotFoundError("Only a reply can be continued.", kind="message")
        self._refuse_if_busy(broken_off.conversation_id)
        logged = await self._logged(owner, broken_off)
        earlier = beginning_of(logged)
        # After its calls it goes on with what they gave; a text that broke off is begun anew, its search as well.
        after_calls = bool(earlier) and isinstance(earlier[-1].event, ToolFinished)
        said = Transcript(spoken(earlier)).messages() if after_calls else broken_off.parts
        beginning = Beginning(earlier, begun=frozenset() if after_calls else None)
        return await self._answer(owner, broken_off.conversation_id, broken_off.parent_id, lang, said, beginning)

    async def run_again(
        self, owner: str, message_id: str, call_id: str, arguments: Mapping[str, Any], lang: Lang
    ) -> Run:
        """A reply beside `message_id` that makes one of its calls with other arguments, and goes on from there."""
        old = await self._conversations.message(owner, message_id)
        if old.role != "assistant":
            raise NotFoundError("Only a reply has calls.", kind="message")
        self._refuse_if_busy(old.conversation_id)
        earlier = beginning_with(await self._logged(owner, old), call_id, arguments)
        said = Transcript(spoken(earlier)).messages()
        beginning = Beginning(earlier, begun=frozenset())
        return await self._answer(owner, old.conversation_id, old.parent_id, lang, said, beginning)

    async def resume(self, left: Left) -> Run:
        """Let a reply that a dead process left in the middle of its calls go on."""
        owner, conversation_id = left.record.owner_id, left.record.conversation_id
        place = await self._conversations.message(owner, left.record.message_id)
        thread = await self._thread_to(owner, conversation_id, place.parent_id)
        history = _said(thread)
        loader = await self._loader(owner)
        lang = language_of(history)
        question = history[-1] if history else None
        answering = await self._answering(owner, thread, conversation_id, question, lang, loader)
        terms = await self._terms(owner, conversation_id)
        return await self._runs.resume(left, answering, history=[*history, *left.messages()], terms=terms)

    async def read_again(self, owner: str, document_id: str, lang: Lang, password: str = "") -> DocumentRecord:
        """Read a document once more; the question that could not be answered without it is answered then."""
        record = await self._intake.retry(owner, document_id, password)
        if password:
            record = await self._intake.first_sign(owner, document_id, _OPENS_WITHIN)
        if record.conversation_id is not None and record.status != "failed":
            with suppress(ConflictError):
                await self._answer_after_all(owner, record.conversation_id, record, lang)
        return record

    async def _answer_after_all(self, owner: str, conversation_id: str, record: DocumentRecord, lang: Lang) -> None:
        thread = await self._conversations.thread(owner, conversation_id)
        if len(thread) < 2 or thread[-1].status != "error" or record.file_id not in file_ids(thread[-2].parts):
            return
        error = (await self._runs.reply(owner, thread[-1])).error or {}
        if str(error.get("key", "")).startswith(("document_", "fetch_")):
            await self.regenerate(owner, thread[-1].id, lang)

    async def _ask(
        self, owner: str, conversation_id: str, message: Message, thread: Sequence[StoredMessage], lang: Lang
    ) -> Run:
        loader = await self._loader(owner)
        return await self._runs.start(
            owner,
            conversation_id,
            await self._answering(owner, thread, conversation_id, message, lang, loader),
            user=message,
            parent_id=thread[-1].id if thread else None,
            history=[*_said(thread), message],
            model=loader.label,
            title=title_of(message),
            terms=await self._terms(owner, conversation_id),
        )

    async def _answer(
        self,
        owner: str,
        conversation_id: str,
        question_id: str | None,
        lang: Lang,
        said: Sequence[Message] = (),
        beginning: Beginning = Beginning(),  # noqa: B008 - frozen
    ) -> Run:
        self._refuse_if_busy(conversation_id)
        thread = await self._thread_to(owner, conversation_id, question_id)
        history = _said(thread)
        question = history[-1] if history else None
        loader = await self._loader(owner)
        return await self._runs.start(
            owner,
            conversation_id,
            await self._answering(owner, thread, conversation_id, question, lang, loader),
            user=None,
            parent_id=question_id,
            history=[*history, *said],
            model=loader.label,
            beginning=beginning,
            terms=await self._terms(owner, conversation_id),
        )

    async def _logged(self, owner: str, reply: StoredMessage) -> list[LoggedEvent]:
        """What happened while a reply was made; what would have, where no run made it."""
        logged = await self._runs.events(owner, reply.run_id) if reply.run_id else []
        return logged or [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(reply.parts), start=1)]

    async def _answering(
        self,
        owner: str,
        thread: Sequence[StoredMessage],
        conversation_id: str,
        question: Message | None,
        lang: Lang,
        loader: ModelLoader,
    ) -> Answering:
        """Who answers; the question's documents are being read from now on."""
        files = await self._files_of(owner, question) if question is not None else []
        documents = [file for file in files if kind_of(file) == "document"]
        needed = [(await self._intake.add(owner, conversation_id, file)).id for file in documents]
        return Answering(
            owner,
            conversation_id,
            agent=lambda model: self._agent(owner, conversation_id, model),
            loader=loader,
            intake=self._intake,
            files=self._files,
            remembering=self._remembering,
            thread=thread,
            needed=needed,
            lang=lang,
        )

    async def _files_of(self, owner: str, message: Message) -> list[FileRecord]:
        """The files that came with a message and are still here."""
        found: list[FileRecord] = []
        for about in (message.extra or {}).get("files") or ():
            try:
                found.append(await self._files.record(owner, str(about["id"])))
            except NotFoundError:
                continue
        return found

    async def _thread_to(self, owner: str, conversation_id: str, leaf_id: str | None) -> list[StoredMessage]:
        return await self._conversations.thread(owner, conversation_id, leaf_id) if leaf_id is not None else []

    def _refuse_if_busy(self, conversation_id: str) -> None:
        if self._runs.live(conversation_id) is not None:
            raise busy()


def _said(thread: Sequence[StoredMessage]) -> list[Message]:
    return [message for turn in thread for message in turn.parts]


def _readable(text: str, files: int) -> Cleaned:
    """A question without what no model should read and no page can be sent. Raises ParlourError, as `checked_text`."""
    plain, removed = without_invisible(clean(checked_text(text, files)))
    return Cleaned(checked_text(plain, files) if removed else plain, removed)
