"""One conversation of an owner: asks, changes, repeats and continues; at most one reply is being written in it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from core.agents.conversation import language_of
from core.errors import ConflictError, NotFoundError, ParlourError, SettingsError, StorageError
from core.messages.events import ToolFinished
from core.messages.transcript import Transcript
from core.models.model_name import MODEL, ModelName
from core.reading.attachments import LONGEST_SHOWN, checked_text, excerpt, kind_of, title_of, user_message, with_text
from core.runs.approvals import with_allowances
from core.runs.log import LoggedEvent, message_events
from core.runs.resumable import Said
from core.runs.resume import answer_in, events_to_continue, events_to_rerun_call
from core.runs.rows import events_of
from core.runs.run import Beginning, RunOptions
from core.storage.base import QUEUED, StoredMessage
from core.storage.conversations import TEMPORARY
from core.storage.second_replies import COMPARED
from core.tools.approval import Decision
from core.workspace.comparing import Comparing, asking_nobody, second_model, with_second_model
from core.workspace.metering import metering
from core.workspace.rewriting import rewritten
from core.workspace.saving import choose as choose_saving
from core.workspace.steering import SECOND_MODEL
from core.workspace.taking import Taking
from core.workspace.turn import Turn, Who

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from core.export.exporting import Exported, Form
    from core.export.inspecting import Inspecting
    from core.export.sharing import Snapshot
    from core.languages import Lang
    from core.messages.message import Message
    from core.models.pool import ModelLoader
    from core.rag.document import Passage
    from core.runs.manager import Live, Reservation
    from core.runs.resumable import ResumableRun
    from core.runs.run import Run
    from core.storage.base import ConversationRecord, FileRecord, QueuedMessage
    from core.tools.approval import Policy
    from core.workspace.metering import Metering
    from core.workspace.services import OwnerServices


class Conversation:
    """What can be done in a conversation. Its runs wait for model and documents inside, where they can be stopped.

    It holds nothing open, so it may be kept. Whether it is there, and its owner's, shows when something is done in it.

    Args:
        services: What it works with, of its owner.
        conversation_id: Which it is.
    """

    def __init__(self, services: OwnerServices, conversation_id: str) -> None:
        self.services = services
        self.owner = services.owner
        self.stores = services.stores
        self.runs = services.runs
        self.id = conversation_id

    # ---- questions and replies

    async def ask(
        self,
        text: str,
        file_ids: Sequence[str] = (),
        lang: Lang = "en",
        held: Reservation | None = None,
        queued: QueuedMessage | None = None,
    ) -> Live:
        """A user's message, and the run that answers it. What it waits for (model, documents) it waits for inside.

        Args:
            file_ids: The files that come with it.
            lang: The language of the page.
            held: The conversation, where the caller has reserved it already.
            queued: The waiting message that this is, which waits no more.

        Raises:
            ParlourError: key `empty_message` or `message_too_long`.
            ConflictError: key `busy`: the conversation is being answered; `queue_changed`: `queued` was changed.
            NotFoundError: The conversation or a file is not the owner's, or `queued` does not wait any more.
            NoSpaceError: The disk is full; nothing was stored.
            TooManyRequestsError: key `reading_full`: as many documents of the owner wait to be read as may;
                `reading_too_many`: it comes with more than ever may.
        """
        plain, removed = checked_text(text, len(file_ids))
        with self.runs.reserve(self.id, held):
            thread = await self.messages()
            files = [await self.stores.files.record(file_id) for file_id in file_ids]
            is_long = len(plain) > LONGEST_SHOWN
            if queued is None and (files or is_long):  # what waited for this moment was let in before
                await self.services.intake.check_room_for(files, more=is_long)
            pasted: FileRecord | None = None
            if is_long:
                # A small model cannot cope with so much at once; as a document all of it stays within reach.
                name = "pasted text.txt" if lang == "en" else "粘贴的文本.txt"
                pasted = await self.stores.files.put(name, plain.encode())
                files.append(pasted)
                plain = excerpt(plain)
            note = "pasted_as_document" if pasted is not None else ""
            message = user_message(plain, files, note, removed, await self.chosen() if files else None)
            try:
                return await self._asked(message, thread, lang, files=files, queued=queued)
            except BaseException:
                if pasted is not None:  # no message names it
                    with suppress(StorageError):
                        await self.stores.files.delete(pasted.id)
                raise

    async def ask_now(
        self, text: str, file_ids: Sequence[str] = (), lang: Lang = "en", held: Reservation | None = None
    ) -> Live:
        """Stop the reply that is being written, and ask at once; what waits, waits on. Raises as `ask` and `stop`."""
        checked_text(text, len(file_ids))
        with self.runs.reserve(self.id, held, stopping=True) as mine:
            await self.stop()
            return await self.ask(text, file_ids, lang, mine)

    async def edit(self, message_id: str, text: str, lang: Lang = "en") -> Live:
        """A changed question beside the old one, with its files, and the run that answers it. Raises as `ask`."""
        old = await self._message(message_id)
        if old.role != "user":
            raise NotFoundError("Only a question can be changed.", kind="message")
        files = sum(item.type != "text" for item in old.parts[0].items)
        plain, removed = checked_text(text, files)
        with self.runs.reserve(self.id):
            thread = await self._thread_to(old.parent_id)
            made = await self._titles_beside(old) if old.parent_id is None else ()
            return await self._asked(with_text(old.parts[0], plain, removed), thread, lang, made=made)

    async def regenerate(
        self, message_id: str, lang: Lang = "en", *, model: ModelName | None = None, beside: ModelName | None = None
    ) -> Live:
        """Another reply beside `message_id` (or to it, where it is a question).

        Args:
            model: Which one writes this reply alone; the conversation keeps the one that it has.
            beside: The second model, which writes one too, and from now on; as `choose_second_model`.

        Raises:
            ConflictError: key `busy`.
            NotFoundError: There is no such message in this conversation.
            SettingsError: The model cannot be had; as `OwnerModels.named`.
        """
        message = await self._message(message_id)
        if model is not None:
            model = await self.services.models.named(model)
        with self.runs.reserve(self.id):
            question = message.id if message.role == "user" else message.parent_id
            if beside is not None:
                await self.choose_second_model(beside)
            return await self._answered(question, lang, model=model, beside=beside)

    async def edit_reply(self, message_id: str, text: str) -> StoredMessage:
        """A reply beside `message_id` whose answer the reader has written; no model is asked.

        What it thought, called and found stays, and so does where its marks lead; nothing in it counts as checked.

        Raises:
            ConflictError: key `busy`: the conversation is being answered.
            NotFoundError: There is no such reply in this conversation.
            ParlourError: key `empty_message` or `message_too_long`.
        """
        old = await self._message(message_id)
        if old.role != "assistant":
            raise NotFoundError("Only a reply can be changed so.", kind="message")
        plain, _ = checked_text(text, 0)
        with self.runs.reserve(self.id):
            place = await rewritten(self.stores, old, await self._logged(old), plain)
        self.services.changed(self.id)
        return place

    async def answer(self, message_id: str) -> str:
        """The text that `edit_reply` takes the place of, as the model wrote it. Raises NotFoundError."""
        reply = await self._message(message_id)
        if reply.role != "assistant":
            raise NotFoundError("Only a reply can be changed so.", kind="message")
        return answer_in(await self._logged(reply))

    async def continue_(self, message_id: str, lang: Lang = "en") -> Live:
        """A reply beside `message_id` that begins with all there is of it and goes on: the button *Continue*.

        A run that a dead process left in the middle of its calls goes on by itself (`resume`), and comes here only
        where it could not. Raises as `regenerate`.
        """
        broken_off = await self._message(message_id)
        if broken_off.role != "assistant":
            raise NotFoundError("Only a reply can be continued.", kind="message")
        with self.runs.reserve(self.id):
            logged = await self._logged(broken_off)
            earlier = events_to_continue(logged)
            # After its calls it goes on with what they gave; a text that broke off is begun anew, its search as well.
            after_calls = bool(earlier) and isinstance(earlier[-1].event, ToolFinished)
            said = Transcript(message_events(earlier)).messages() if after_calls else broken_off.parts
            beginning = Beginning(earlier, may_have_run=frozenset() if after_calls else None)
            return await self._answered(broken_off.parent_id, lang, said, beginning)

    async def fork(self, message_id: str) -> ConversationRecord:
        """A conversation of its own that begins with everything up to this message.

        Raises:
            ConflictError: key `busy`: the message is a reply that is being written.
            NotFoundError: There is no such message in this conversation.
        """
        return await self.stores.whole.fork(self.id, (await self._message(message_id)).id)

    async def run_again(self, message_id: str, call_id: str, arguments: Mapping[str, Any], lang: Lang = "en") -> Live:
        """A reply beside `message_id` that makes one of its calls with other arguments, and goes on from there.

        What came before that call, and what the other calls of its turn gave, is taken over. Raises as `regenerate`.
        """
        old = await self._message(message_id)
        if old.role != "assistant":
            raise NotFoundError("Only a reply has calls.", kind="message")
        with self.runs.reserve(self.id):
            earlier = events_to_rerun_call(await self._logged(old), call_id, arguments)
            said = Transcript(message_events(earlier)).messages()
            return await self._answered(old.parent_id, lang, said, Beginning(earlier, may_have_run=frozenset()))

    async def resume(self, resumable: ResumableRun) -> Run:
        """Let a reply that a dead process left go on. Raises as `OwnerRuns.resume`.

        A second reply to a question does not, nor the text of agents that might begin all over with what they did: it
        is interrupted.
        """
        agents = self.services.agents
        if await self.stores.second_replies.is_place(self.id):
            raise NotFoundError("What it answers is in another conversation.", kind="conversation")
        if resumable.begun and not agents.goes_on:
            raise ParlourError("Its agents may do again what they have done.")
        if resumable.whole and not agents.says_once:
            resumable = resumable.anew()
        place = await self.stores.conversations.message(resumable.record.message_id)
        thread = await self._thread_to(place.parent_id)
        history, terms, asked = _said(thread), await self.terms(), resumable.asked_for
        model, beside = (ModelName.read(asked.model), ModelName.read(asked.beside)) if asked else (None, None)
        who = await self._who(model, beside)
        lang = (asked.lang if asked is not None else None) or language_of(history)
        make = partial(self._turn, thread, await self._files_of(*history[-1:]), lang)
        answerer = Said() if resumable.whole else await make(who.loader)
        given = [*history, *resumable.messages()]
        run = await self.runs.resume(resumable, answerer, history=given, terms=_may(terms, who))
        # A second reply that was begun is another run.
        who = who if resumable.lease.worker == QUEUED else replace(who, second=None)
        return self._after(run, who, make, history, terms, lang)

    async def stop(self) -> None:
        """Stop the conversation's run, if one lives; what there is of the reply stays. Raises as `OwnerRuns.stop`."""
        await self.runs.stop(self.id)
        await self.comparing.stop()

    async def delete(self) -> None:
        """Stop its run and delete it with its messages, runs, documents and the files that nothing else needs.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        with suppress(ConflictError):  # written elsewhere, it ends there as soon as it is gone
            await self.stop()
        await self.comparing.delete()
        await self.services.intake.leave(self.id)
        await self.services.code.forget(self.id)
        await self.stores.shares.remove_of(self.id)
        freed, unread = await self.stores.conversations.delete(self.id)
        await self.stores.shares.remove_of(self.id)  # one that was made in between
        await self.services.intake.delete_unneeded(freed, unread)
        self.services.changed(self.id)

    # ---- its model

    @property
    def comparing(self) -> Comparing:
        """Two models side by side, where a second one was chosen."""
        return Comparing(self.services, self.id)

    async def chosen(self) -> dict[str, Any]:
        """What was chosen for this conversation, by the names in `core.workspace.steering`.

        Raises:
            NotFoundError: There is no such conversation of this owner.
        """
        return await self.stores.conversations.settings(self.id)

    async def model(self) -> ModelName | None:
        """The model that was chosen for this conversation; `None` where the owner's usual one answers.

        Raises:
            NotFoundError: There is no such conversation of this owner.
        """
        return ModelName.read((await self.chosen()).get(MODEL))

    async def choose_model(self, name: ModelName | None) -> None:
        """Let a model answer in this conversation from its next question on; `None` is the owner's usual one.

        Raises:
            NotFoundError: There is no such conversation of this owner.
            SettingsError: The model cannot be had; as `OwnerModels.named`.
        """
        chosen = await self.services.models.named(name) if name is not None else None

        def choose(settings: dict[str, Any]) -> dict[str, Any]:
            others = {key: value for key, value in settings.items() if key != MODEL}
            return {**others, MODEL: chosen.as_json()} if chosen is not None else others

        await self.stores.conversations.configure(self.id, choose)
        self.services.changed(self.id)

    async def choose_second_model(self, name: ModelName | None) -> None:
        """Let another model answer each question beside its own from the next one on, or (`None`) none any more.

        Raises:
            NotFoundError: There is no such conversation of this owner.
            SettingsError: The model cannot be had; as `OwnerModels.named`.
        """
        chosen = await self.services.models.named(name) if name is not None else None
        await self.stores.conversations.configure(self.id, lambda kept: with_second_model(kept, chosen))
        self.services.changed(self.id)

    async def prefer(self, message_id: str) -> None:
        """Go on with one of two replies: its model alone answers from now on, and the other reply is a version of it.

        What is still being written is stopped, and what there is of it stays.

        Raises:
            ConflictError: key `elsewhere`: another process writes the reply that would have to be stopped.
            NotFoundError: There is no such reply in this conversation.
        """
        await self.stop()
        reply = await self._message(message_id)
        compared = await self.comparing.now()
        await self.stores.conversations.turn_to(self.id, reply.id)
        if compared is not None and compared.second is not None and compared.second.id == reply.id:
            with suppress(SettingsError):  # it is not to be had any more: the one before goes on
                await self.choose_model(compared.model)
        await self.choose_second_model(None)

    async def keep(self) -> None:
        """Let a temporary conversation stay, as any other. Raises NotFoundError."""

        def kept(settings: dict[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in settings.items() if name != TEMPORARY}

        await self.stores.conversations.configure(self.id, kept)
        self.services.changed(self.id)

    # ---- all of it

    async def messages(self) -> list[StoredMessage]:
        """The turns that are shown, from the first to the newest. Raises NotFoundError."""
        return await self.stores.conversations.thread(self.id)

    def inspecting(self) -> Inspecting:
        """What stands behind its replies."""
        return Taking(self.services).inspecting

    async def snapshot(self, lang: Lang = "en") -> Snapshot:
        """What is in sight of it as what can be shared. Raises as `core.export.sharing.snapshot`."""
        from core.export.sharing import snapshot  # asked for seldom

        return await snapshot(Taking(self.services).exporting, self.id, lang)

    async def export(self, form: Form, lang: Lang = "en") -> Exported:
        """All of it as a file. Raises as `Exporting.export`."""
        return await Taking(self.services).exporting.export(self.id, form, lang)

    async def printed(self, lang: Lang = "en") -> tuple[str, bytes]:
        """What is in sight of it as PDF. Raises as `Exporting.printed`."""
        return await Taking(self.services).exporting.printed(self.id, lang)

    async def metering(self, lang: Lang = "en") -> Metering | None:
        """What its next message will take, by the model that answers; `None` while that is not loaded.

        Raises:
            NotFoundError: The conversation is not the owner's.
            StorageError: It cannot be read.
        """
        chosen = await self.chosen() if self.id else {}
        loader = await self.services.models.loader(ModelName.read(chosen.get(MODEL)))
        if loader.model is None:
            return None
        second = second_model(chosen)
        beside = await self.services.models.chosen(second) if second is not None else None
        with loader.in_use():
            return await metering(self.services, self.id, loader.model, lang, beside)

    async def save_tokens(self, key: str, lang: Lang = "en", *, on: bool) -> None:
        """Make its messages smaller from the next one on, or take that back; what is not offered is left aside.

        Args:
            key: Of one of its meter's savings.

        Raises:
            NotFoundError: The conversation is not the owner's.
            StorageError: The database failed.
        """
        known = await self.metering(lang)
        offers = known.meter.savings if known is not None else ()
        for offer in offers:
            if offer.key == key and offer.done is not on:
                await choose_saving(self.services, self.id, offer, on=on)
                self.services.changed(self.id)
                return

    # ---- asking first

    async def policy(self) -> Policy:
        """What runs unasked, what asks, and what never runs. Raises NotFoundError."""
        policy = await self.services.tools.rules.policy()
        return with_allowances(policy, await self.allowed())

    async def terms(self) -> RunOptions:
        """What a run of the page may do. Raises NotFoundError."""
        settings = self.services.installation
        return RunOptions(await self.policy(), self.policy, seconds=settings.reply_seconds, cost=settings.reply_cost)

    async def allowed(self) -> list[str]:
        """The tools, by their full names, that the owner let run unasked here. Raises NotFoundError."""
        return await self.stores.allowances.list(self.id)

    async def revoke_allowance(self, tool: str) -> None:
        """Ask for the tool again, from its next call on. Raises NotFoundError."""
        await self.stores.allowances.remove(self.id, tool)
        await self.runs.ask_again(self.id, tool)

    async def decide(
        self,
        call_id: str,
        allowed: bool,  # noqa: FBT001 - the answer
        arguments: Mapping[str, Any] | None = None,
        *,
        always: bool = False,
    ) -> None:
        """Answer the question whether a call may run. The first answer counts.

        Args:
            allowed: Whether it may run.
            arguments: In place of the model's.
            always: Whether the tool may run unasked in this conversation from now on, where that can be promised.

        Raises:
            BadArgumentsError: `arguments` do not fit the tool; the question stays.
            ConflictError: key `already_decided`: somebody was quicker, or the call is over.
            NotFoundError: The conversation is not the owner's, or there is no such call.
        """
        await self.allowed()  # whose it is
        decision = Decision(allowed is True, arguments if allowed is True else None)
        asked = await self.runs.decide(self.id, call_id, decision, always=always)
        if allowed is True and always and asked.may_be_always:
            await self.stores.allowances.add(self.id, asked.name)

    # ---- documents

    async def find(self, sentence: str) -> Sequence[Passage]:
        """What the documents within the conversation's reach say to a sentence. Raises StorageError."""
        async with self.services.within_reach(self.id) as (library, documents):
            return await library.afind(sentence, documents=tuple(documents)) if library is not None else ()

    # ---- inside

    async def _asked(
        self,
        message: Message,
        thread: Sequence[StoredMessage],
        lang: Lang,
        *,
        made: Sequence[str] = (),
        files: Sequence[FileRecord] | None = None,
        queued: QueuedMessage | None = None,
    ) -> Live:
        settings = await self.chosen()
        beside = second_model(settings) if SECOND_MODEL in settings else None
        who = await self._who(ModelName.read(settings.get(MODEL)) or await self.services.models.usual(), beside)
        if beside is None and COMPARED in settings:
            await self.stores.conversations.configure(self.id, lambda kept: with_second_model(kept, None))
        came = await self._files_of(message) if files is None else files
        history, terms = [*_said(thread), message], await self.terms()
        parent_id, title = thread[-1].id if thread else None, title_of(message)
        label = await self.services.agents.label(self.services, self.id, thread, history, who.loader.label)
        if self.runs.hands_over:
            return await self.runs.hand_over(
                self.id, who.asked(lang), message, parent_id, model=label, title=title, retitled=made, queued=queued
            )
        run = await self.runs.start(
            self.id,
            await self._turn(thread, came, lang, who.loader),
            user=message,
            parent_id=parent_id,
            history=history,
            model=label,
            title=title,
            retitled=made,
            terms=_may(terms, who),
            queued=queued,
            asked=who.asked(lang),
        )
        # Nothing is waited for any more: who is cancelled now would take the question back.
        return self._after(run, who, partial(self._turn, thread, came, lang), history, terms, lang)

    async def _who(self, model: ModelName | None = None, beside: ModelName | None = None) -> Who:
        """The model that answers here, or another for once, and what gets it ready; a second one beside it."""
        name = model or await self.model() or await self.services.models.usual()
        second = (beside, await self.services.models.loader(beside)) if beside is not None else None
        return Who(name, await self.services.models.loader(name), second)

    def _after(
        self,
        run: Run,
        who: Who,
        turn: Callable[[ModelLoader], Awaitable[Turn]],
        history: Sequence[Message],
        terms: RunOptions,
        lang: Lang,
    ) -> Run:
        """See to what comes with a reply that has begun: a second one, and what follows its end."""
        if who.second is not None:
            self.comparing.begin(run, partial(turn, who.second[1]), history, who.second, terms)
        return self.services.after(run, who.loader, lang, who.name)

    async def _titles_beside(self, question: StoredMessage) -> list[str]:
        """What the title may be if it was made from a version of the question, and nobody wrote it."""
        versions = await self.stores.conversations.siblings(question.id)
        return [title_of(one.parts[0]) for one in versions]

    async def _answered(
        self,
        question_id: str | None,
        lang: Lang,
        said: Sequence[Message] = (),
        beginning: Beginning = Beginning(),  # noqa: B008 - frozen
        *,
        model: ModelName | None = None,
        beside: ModelName | None = None,
    ) -> Live:
        thread = await self._thread_to(question_id)
        history, terms = _said(thread), await self.terms()
        who, files = await self._who(model, beside), await self._files_of(*history[-1:])
        label = await self.services.agents.label(self.services, self.id, thread, history, who.loader.label)
        asked = who.asked(lang, goes_on=beginning.may_have_run is not None)
        if self.runs.hands_over:
            return await self.runs.hand_over(self.id, asked, None, question_id, model=label, beginning=beginning)
        run = await self.runs.start(
            self.id,
            await self._turn(thread, files, lang, who.loader),
            user=None,
            parent_id=question_id,
            history=[*history, *said],
            model=label,
            beginning=beginning,
            terms=_may(terms, who),
            asked=asked,
        )
        return self._after(run, who, partial(self._turn, thread, files, lang), history, terms, lang)

    async def _turn(
        self, thread: Sequence[StoredMessage], files: Sequence[FileRecord], lang: Lang, loader: ModelLoader
    ) -> Turn:
        """Who answers; the documents among the question's files are being read from now on."""
        documents = [file for file in files if kind_of(file) == "document"]
        needed = [(await self.services.intake.add(self.id, file, is_let_in=True)).id for file in documents]
        return Turn(self.services, self.id, loader=loader, thread=thread, needed=needed, lang=lang)

    async def _files_of(self, *messages: Message) -> list[FileRecord]:
        """The files that came with messages and are still here."""
        found: list[FileRecord] = []
        for about in (one for message in messages for one in (message.extra or {}).get("files") or ()):
            with suppress(NotFoundError):
                found.append(await self.stores.files.record(str(about["id"])))
        return found

    async def _message(self, message_id: str) -> StoredMessage:
        message = await self.stores.conversations.message(message_id)
        if message.conversation_id != self.id:
            raise NotFoundError("This message is in another conversation.", kind="message")
        return message

    async def _logged(self, reply: StoredMessage) -> list[LoggedEvent]:
        """The event log of a reply, rebuilt from its messages where no run made it."""
        logged = await self.runs.events(reply.run_id) if reply.run_id else []
        return logged or [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(reply.parts), start=1)]

    async def _thread_to(self, leaf_id: str | None) -> list[StoredMessage]:
        return await self.stores.conversations.thread(self.id, leaf_id) if leaf_id is not None else []


def _may(terms: RunOptions, who: Who) -> RunOptions:
    return asking_nobody(terms) if who.second is not None else terms


def _said(thread: Sequence[StoredMessage]) -> list[Message]:
    return [message for turn in thread for message in turn.parts]
