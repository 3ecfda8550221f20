"""What an owner says to a reply while it is written, whichever process writes it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from core.errors import ConflictError, NotFoundError
from core.runs.approvals import already_decided
from core.runs.elsewhere import heard
from core.runs.log import ApprovalAsked
from core.runs.owner_replies import OwnerReplies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.runs.run import Run
    from core.tools.approval import Decision


class SaidToRuns(OwnerReplies):
    """The replies of one owner, and what the owner decides, types and wants while they are written."""

    async def ask_again(self, conversation_id: str, tool: str) -> None:
        """Let the conversation's run ask for a tool that was let run in it. Raises StorageError."""
        run = self._mine(conversation_id)
        if run is not None:
            run.questions.ask_again(tool)
        elif self._elsewhere.live(conversation_id) is not None:
            with suppress(ConflictError):  # it is over, or the tool is asked for anew by whoever goes on with it
                # Each time it is taken back it is asked anew: it may have been let run again in between.
                await self._elsewhere.ask(conversation_id, "ask_again", f"again {tool} {uuid4().hex}", {"tool": tool})

    async def enough(self, conversation_id: str) -> None:
        """Let the conversation's run answer with what it has read by now. Raises StorageError."""
        run = self._mine(conversation_id)
        if run is not None:
            run.enough.set()
        elif self._elsewhere.live(conversation_id) is not None:
            with suppress(ConflictError):  # it is over, or was told so
                await self._elsewhere.ask(conversation_id, "enough", "enough", {})

    async def decide(
        self, conversation_id: str, call_id: str, decision: Decision, *, always: bool = False
    ) -> ApprovalAsked:
        """Answer the question whether a call may run; the first answer counts, in whichever process it is given.

        Args:
            always: Whether the tool may run unasked in this run from now on.

        Returns:
            What was asked; `may_be_always` says whether `always` was heeded.

        Raises:
            BadArgumentsError: Edited arguments do not fit the tool; nothing is decided.
            ConflictError: key `already_decided`: it is answered, or its call or the whole run is over; `elsewhere`:
                another process writes the reply, and does not answer. It stays decided.
            NotFoundError: There is no such call, or the run is somebody else's.
        """
        run = await self._written_here(conversation_id)
        if run is not None:
            run.questions.check(call_id, decision)
            return await run.questions.decide(call_id, decision, always=always)
        followed = await self._elsewhere.find(conversation_id)
        asked = [one.asked for one in (followed.reply().asking if followed is not None else ()) if one.asked]
        question = next((one for one in asked if one.call_id == call_id), None)
        if question is None:
            raise already_decided()
        arguments = dict(decision.arguments) if decision.arguments is not None else None
        given = {"call_id": call_id, "allowed": decision.allowed is True, "arguments": arguments, "always": always}
        key = f"decide {call_id} {question.until}"  # a call may be asked about again
        if arguments is not None:  # and what does not fit may be mended
            key += f" {uuid4().hex}"
        answer = heard(await self._elsewhere.ask(conversation_id, "decide", key, given))
        return ApprovalAsked(**answer["asked"])

    async def give(self, conversation_id: str, input_id: str, values: Mapping[str, Any] | None) -> None:
        """Answer what a server wants to know during a call; the first answer counts.

        Args:
            values: By name; `None` for a no.

        Raises:
            ConflictError: key `already_decided`: it is answered, or its call or the whole run is over; `elsewhere`:
                another process writes the reply, and does not answer.
            NotFoundError: The run is somebody else's.
        """
        run = self._mine(conversation_id)
        if run is not None:
            run.inputs.give(input_id, values)
            return
        given = {"input_id": input_id, "values": dict(values) if values is not None else None}
        heard(await self._elsewhere.ask(conversation_id, "give", f"give {input_id}", given))

    async def _written_here(self, conversation_id: str) -> Run | None:
        """A conversation's live run; one that lets this process go is none, once it has. Raises NotFoundError."""
        run = self._mine(conversation_id)
        if run is None or not run.resting.begun:
            return run
        await run.wait()
        return None

    def _mine(self, conversation_id: str) -> Run | None:
        """A conversation's live run. Raises NotFoundError where it is somebody else's."""
        run = self._table.live.get(conversation_id)
        if run is not None and run.owner != self._owner:
            raise NotFoundError("There is no such conversation.", kind="conversation")
        return run
