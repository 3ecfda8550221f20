"""Asking first: what an owner lets tools do, in a conversation and for ever, and the answers to what is asked."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from core.runs.asking import with_allowances
from core.runs.terms import Terms
from core.storage.allowances import Allowances
from core.storage.owner_settings import OwnerSettings
from core.tools.approval import Decision, Mode, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.runs.manager import Runs
    from core.settings import Settings
    from core.storage.database import Database

_LOG = logging.getLogger(__name__)
_CHOSEN = "approval"  # the name of the owner's choices: {"mode", "allow", "ask", "deny"}


class Approving:
    """What runs may do, and who says so.

    Args:
        settings: How much a reply may take.
        database: Where the rules of owners are, and what runs unasked in one conversation.
        runs: Where it is asked.
    """

    def __init__(self, settings: Settings, database: Database, runs: Runs) -> None:
        self._settings = settings
        self.choices = OwnerSettings(database)
        self._allowances = Allowances(database)
        self._runs = runs

    async def policy(self, owner: str, conversation_id: str | None = None) -> Policy:
        """The rules of a run. Raises NotFoundError."""
        policy = policy_of(await self.choices.get(owner, _CHOSEN))
        if conversation_id is None:
            return policy
        return with_allowances(policy, await self._allowances.list(owner, conversation_id))

    async def terms(self, owner: str, conversation_id: str) -> Terms:
        """What a run of the page may do. Raises NotFoundError."""
        policy = await self.policy(owner, conversation_id)
        rules = partial(self.policy, owner, conversation_id)
        return Terms(policy, rules, seconds=self._settings.reply_seconds, cost=self._settings.reply_cost)

    async def allowed(self, owner: str, conversation_id: str) -> list[str]:
        """The tools, by their full names, that the owner let run unasked in a conversation. Raises NotFoundError."""
        return await self._allowances.list(owner, conversation_id)

    async def take_back(self, owner: str, conversation_id: str, tool: str) -> None:
        """Ask for the tool again, from its next call on. Raises NotFoundError."""
        await self._allowances.remove(owner, conversation_id, tool)
        self._runs.ask_again(conversation_id, tool)

    async def decide(
        self,
        owner: str,
        conversation_id: str,
        call_id: str,
        allowed: bool,  # noqa: FBT001 - the answer
        arguments: Mapping[str, Any] | None = None,
        *,
        always: bool = False,
    ) -> None:
        """Answer the question whether a call may run. The first answer counts.

        Args:
            owner: Whose conversation it is.
            conversation_id: The conversation.
            call_id: The call that waits.
            allowed: Whether it may run.
            arguments: In place of the model's.
            always: Whether the tool may run unasked in this conversation from now on; left aside for what may destroy
                something, or reaches an unknown address.

        Raises:
            ConflictError: key `already_decided`: somebody was quicker, or the call is over.
            NotFoundError: The conversation is not the owner's, or there is no such call.
        """
        await self._allowances.list(owner, conversation_id)  # whose it is
        decision = Decision(allowed is True, arguments if allowed is True else None)
        asked = await self._runs.decide(owner, conversation_id, call_id, decision, always=always)
        if allowed is True and always and asked.may_be_always:
            await self._allowances.add(owner, conversation_id, asked.name)


def policy_of(chosen: object) -> Policy:
    """The rules that an owner chose. What makes no sense there is left out, and never makes them laxer."""
    if chosen is None:
        return Policy()
    if not isinstance(chosen, dict):
        _LOG.warning("The rules of an owner cannot be read; everything is asked.")
        return Policy("always")
    rules = cast("dict[str, Any]", chosen)
    mode = rules.get("mode", "writes")
    if mode not in get_args(Mode):
        _LOG.warning("There is no mode %r of asking; everything is asked.", mode)
        mode = "always"
    allow = rules.get("allow")
    allowed = () if isinstance(allow, str) else _patterns(allow)
    return Policy(mode, allowed, _patterns(rules.get("ask")), _patterns(rules.get("deny")))


def _patterns(value: object) -> tuple[str, ...]:
    """Those that are some; one text is one of them."""
    if isinstance(value, str):
        value = [value]
    given = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return tuple(pattern for pattern in given if isinstance(pattern, str) and pattern)
