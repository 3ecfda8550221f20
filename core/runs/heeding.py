"""Does what other processes ask of the runs of this one."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from core.errors import ConflictError, NotFoundError, ParlourError, StorageError
from core.runs.approvals import already_decided
from core.tools.approval import Decision

if TYPE_CHECKING:
    from core.runs.log import ApprovalAsked
    from core.runs.run import Run
    from core.storage.run_news import RunRequest, RunRequests


_LOG = logging.getLogger(__name__)
_EVERY: Final = 0.25
"""Seconds between two looks; they go on only while a reply is written here."""


class Heeding:
    """Looks at what is asked, as long as there are runs here.

    Args:
        requests: Where it is asked.
        worker: This process.
        live: Its runs, by their conversations.
    """

    def __init__(self, requests: RunRequests, worker: str, live: dict[str, Run], *, every: float = _EVERY) -> None:
        self._requests = requests
        self._worker = worker
        self._live = live
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._at_work: set[tuple[str, str]] = set()
        self._work: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Look from now on, until no run lives."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._heed(), name="heed requests")

    async def aclose(self) -> None:
        """End it."""
        tasks = [*self._work, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Begin what is asked and not begun. Raises StorageError."""
        runs = {run.id: run for run in self._live.values()}
        for request in await self._requests.open(self._worker):
            run, this = runs.get(request.run_id), (request.run_id, request.key)
            if run is not None and this not in self._at_work:
                self._at_work.add(this)
                task = asyncio.create_task(self._settle(run, request), name=f"{request.kind} of run {run.id}")
                self._work.add(task)
                task.add_done_callback(self._work.discard)

    async def _heed(self) -> None:
        while self._live:
            try:
                await self.look()
            except StorageError as error:
                _LOG.info("It is not known what other processes ask: %s", error)
            await asyncio.sleep(self._every)

    async def _settle(self, run: Run, request: RunRequest) -> None:
        try:
            try:
                answer = await _done(run, request)
            except (ConflictError, NotFoundError) as error:
                answer = {"error": "gone" if isinstance(error, NotFoundError) else error.words_key}
            await self._requests.settle(request, answer)
        except ParlourError as error:  # it is asked still
            _LOG.warning("What is asked of run %s could not be done: %s", run.id, error)
        except Exception:  # noqa: BLE001 - logged; whoever asked hears nothing, and asks again
            _LOG.exception("What is asked of run %s could not be done.", run.id)
        finally:
            self._at_work.discard((request.run_id, request.key))


async def _done(run: Run, request: RunRequest) -> dict[str, Any]:
    """Do it; the answer. Raises ConflictError, NotFoundError."""
    given: Any = request.payload
    match request.kind:
        case "stop":
            await run.stop()
        case "decide":
            decision = Decision(given["allowed"], given["arguments"])
            asked: ApprovalAsked = await run.questions.decide(given["call_id"], decision, always=given["always"])
            return {"asked": asdict(asked)}
        case "give":
            run.inputs.give(given["input_id"], given["values"])
        case "enough":
            run.enough.set()
        case "ask_again":
            run.questions.ask_again(given["tool"])
        case _:
            _LOG.warning("A newer program asks run %s for what is not known here: %s", run.id, request.kind)
    return {}


def heard(answer: dict[str, Any]) -> dict[str, Any]:
    """What a process has answered.

    Raises:
        ConflictError: It says that somebody was quicker, or that the call is over.
        NotFoundError: It says that there is no such call.
    """
    match answer.get("error"):
        case None:
            return answer
        case "gone":
            raise NotFoundError("There is no such call.", kind="call")
        case _:
            raise already_decided()
