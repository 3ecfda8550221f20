"""Has the model of a conversation judge the sentences of a reply: with its price first, to be stopped at any time."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from core.bridge.pool import BoundedDict
from core.errors import NotFoundError, ParlourError
from core.llm.ledger import recorded_by
from core.llm.usage import cost_of
from core.runs.beside import exchange_of
from core.runs.judgement import judged_by, open_in
from core.runs.ledger import RunLedger
from core.runs.log import RunLog
from core.runs.reply import TextBlock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from core.llm.base import BaseChatModel
    from core.runs.beside import AnsweringModel, Beside
    from core.runs.judgement import Open
    from core.runs.log import ClaimsJudged, RunEvent
    from core.runs.manager import OwnerRuns
    from core.runs.reply import Reply
    from core.runs.run import Run
    from core.storage.base import StoredMessage
    from core.storage.stores import OwnerStores

_LOG = logging.getLogger(__name__)
_REMEMBERED: Final = 1_000
_NEVER, _ALWAYS = "never", "always"
_SETTLES_WITHIN: Final = 5.0  # seconds for the account of a call


@dataclass(frozen=True, slots=True)
class JudgingState:
    """How far the judgement of a reply has come; once there is one, it stands in the reply's log.

    Args:
        kind: `offered`: its price was asked for. `working`: the model is asked. `failed`: it could not be.
        model: What the page calls the model.
        tokens: About how many it reads and writes for it.
        free: Whether it runs on this machine.
        cost: What it costs about, in dollars; `None` where that is not known.
        error: What went wrong, as a run has it, in JSON: a state is compared as a whole.
    """

    kind: Literal["offered", "working", "failed"]
    model: str
    tokens: int = 0
    free: bool = False
    cost: float | None = None
    error: str = ""


class Judgings:
    """The judgements of the process that are offered, under way or failed.

    Args:
        on: Whether sentences are checked here at all, and models asked about them.
    """

    def __init__(self, *, on: bool = True) -> None:
        self.on = on
        self.states = BoundedDict[tuple[str, str], JudgingState](_REMEMBERED)
        self.tasks: dict[tuple[str, str], asyncio.Task[None]] = {}


class OwnerJudging:
    """Judgements of one owner's replies.

    Args:
        every: Those of the process.
        beside: Lets them go on beside all else.
        changed: Called with the conversation when something of one changed.
    """

    def __init__(
        self,
        every: Judgings,
        beside: Beside,
        stores: OwnerStores,
        runs: OwnerRuns,
        changed: Callable[[str], None],
    ) -> None:
        self._every = every
        self._beside = beside
        self._owner = stores.owner
        self._stores = stores
        self._runs = runs
        self._changed = changed

    async def may(self) -> bool:
        """Whether a judgement is offered at replies. Raises StorageError."""
        return self._every.on and (await self._stores.preferences.get()).judge != _NEVER

    async def states(self, replies: Mapping[str, Reply]) -> dict[str, JudgingState | None] | None:
        """As `state`, of replies by their ids; `None` where no judgement is offered. Raises StorageError."""
        has_claims = any(reply.claims for reply in replies.values())
        found = {one: self.state(one) for one in replies} if has_claims else {}
        # What is under way can be stopped, whatever is wished meanwhile.
        is_working = any(one is not None and one.kind == "working" for one in found.values())
        return found if is_working or (found and await self.may()) else None

    def state(self, message_id: str) -> JudgingState | None:
        """How far the judgement of a reply has come; `None` where none was asked for, or it is done."""
        return self._every.states.get((self._owner, message_id))

    async def offer(self, message: StoredMessage, model: AnsweringModel) -> JudgingState | None:
        """Say which model would judge a reply, and at what price; `None` where there is nothing to judge.

        Raises:
            NotFoundError: The reply is gone, or somebody else's.
            StorageError: The database failed.
        """
        asked, _ = await self._asked(message)
        if self.state(message.id) is not None and self._is_working(message.id):
            return self.state(message.id)
        if not self._every.on or not asked.sentences:
            return None
        offer = await _priced(asked, model)
        return self.state(message.id) if self._is_working(message.id) else self._put(message, offer)

    def withdraw(self, message: StoredMessage) -> None:
        """Take an offer or a failure out of sight."""
        if not self._is_working(message.id):
            self._put(message, None)

    async def begin(self, message: StoredMessage, model: AnsweringModel) -> None:
        """Have a reply judged by the model whose price was shown; without an offer nothing happens, nor twice.

        Where the conversation has another model since, or it another price, that is offered instead.

        Raises:
            NotFoundError: The reply is gone, or somebody else's.
            StorageError: The database failed.
        """
        offered = self.state(message.id)
        if offered is None or self._is_working(message.id):
            return
        asked, _ = await self._asked(message)
        now = await _priced(asked, model)
        if self.state(message.id) != offered or self._is_working(message.id):
            return  # somebody was faster
        if replace(offered, kind="offered", error="") != now:
            self._put(message, now)
            return
        self._put(message, replace(now, kind="working"))
        self._start(message, model, at_once=True)

    async def stop(self, message: StoredMessage) -> None:
        """Stop the judgement of a reply; what the rules say stays."""
        task = self._every.tasks.get((self._owner, message.id))
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        self._put(message, None)

    async def after(self, run: Run, model: AnsweringModel) -> None:
        """Have a reply that is whole judged, where its owner wants that for all of them."""
        try:
            if not self._every.on or (await self._stores.preferences.get()).judge != _ALWAYS:
                return
            message = await self._stores.conversations.message(run.message_id)
            asked, _ = await self._asked(message)
            if not asked.sentences:
                return
            working = replace(await _priced(asked, model), kind="working")
            if not self._is_working(message.id):
                self._put(message, working)
                self._start(message, model, at_once=False)
        except NotFoundError:
            _LOG.debug("A conversation was deleted before its reply was judged.")
        except ParlourError as error:
            _LOG.info("A reply is not judged: %s", error)

    # ---- inside

    def _is_working(self, message_id: str) -> bool:
        return (self._owner, message_id) in self._every.tasks

    def _put(self, message: StoredMessage, state: JudgingState | None) -> JudgingState | None:
        key = (self._owner, message.id)
        if state is None:
            self._every.states.pop(key, None)
        else:
            self._every.states[key] = state
        self._changed(message.conversation_id)
        return state

    def _start(self, message: StoredMessage, model: AnsweringModel, *, at_once: bool) -> None:
        key = (self._owner, message.id)
        task = self._every.tasks[key] = asyncio.create_task(self._work(message, model, at_once=at_once))

        async def work() -> None:
            try:
                await asyncio.wait({task})
            finally:
                if task.cancel():  # Parlour ends: the account of a call that was broken off is still written
                    await asyncio.wait({task}, timeout=_SETTLES_WITHIN)
                if self._every.tasks.get(key) is task:
                    del self._every.tasks[key]
                self._changed(message.conversation_id)

        self._beside.begin(self._stores, work(), "judging")

    async def _asked(self, message: StoredMessage) -> tuple[Open, str]:
        """What a model can be asked about a reply, and the question that it answers."""
        reply: Reply = await self._runs.reply(message)
        texts = {at: block.text for at, block in enumerate(reply.blocks) if isinstance(block, TextBlock)}
        claims, passages = reply.claims, list(reply.passages)
        if reply.status != "complete" or message.run_id is None:
            claims = ()
        question, _ = exchange_of(await self._stores.conversations.thread(message.conversation_id, message.id))
        return await asyncio.to_thread(open_in, claims, texts, passages), question

    async def _work(self, message: StoredMessage, model: AnsweringModel, *, at_once: bool) -> None:
        working = self.state(message.id)
        try:
            asked, question = await self._asked(message)

            async def judge(ready: BaseChatModel) -> ClaimsJudged:
                return await judged_by(ready, model.label, asked, question)

            async with self._account(message):
                if at_once:
                    with model.in_use():
                        made = await judge(await model.ready())
                else:
                    made = await self._beside.made(judge, model)
            if made is not None:
                await self._runs.note(message, made)
            self._put(message, None)
        except NotFoundError:
            _LOG.debug("A conversation was deleted before its reply was judged.")
        except ParlourError as error:
            self._fail(message, working, _told(error))
        except Exception:  # noqa: BLE001 - logged below; what the rules say stays
            _LOG.exception("A reply could not be judged.")
            self._fail(message, working, {"key": "unexpected"})

    def _fail(self, message: StoredMessage, working: JudgingState | None, error: Mapping[str, Any]) -> None:
        if working is not None:
            self._put(message, replace(working, kind="failed", error=json.dumps(error)))

    @asynccontextmanager
    async def _account(self, message: StoredMessage) -> AsyncGenerator[None]:
        """The account of a reply that is over, for the calls of the block."""

        async def add(event: RunEvent) -> None:
            await self._runs.note(message, event)

        ledger = RunLedger(RunLog(), add)
        ledger.close()
        ledger.when_late(lambda: self._changed(message.conversation_id))
        with recorded_by(ledger):
            try:
                yield
            finally:
                await asyncio.shield(ledger.settled(_SETTLES_WITHIN))


async def _priced(asked: Open, loader: AnsweringModel) -> JudgingState:
    """An offer: what one call takes and costs."""
    usage = asked.usage
    model: BaseChatModel | None = getattr(loader, "model", None)
    free = model is not None and model.service.here
    cost = None if model is None or free else await cost_of(usage, model.model, model.service)
    return JudgingState("offered", loader.label, usage.total_tokens, free, cost)


def _told(error: ParlourError) -> dict[str, Any]:
    from core.runs.run import as_dict

    return as_dict(error)
