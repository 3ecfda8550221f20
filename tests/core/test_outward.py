"""What other programs may do with an owner's tools, whatever the owner changes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from core.outward import Outward
from core.tools.approval import Policy
from tests.core.runs.note_tools import Held, agent_of, writes

pytestmark = pytest.mark.anyio


async def test_a_rule_set_while_another_program_is_answered_holds_for_the_next_call() -> None:
    held, rules = Held(), {"alice": Policy("never")}
    agent: Any = agent_of(held, writes("1", tool=held.name), writes("2", tool=held.name), "Done.")

    @asynccontextmanager
    async def agent_for(owner: str, documents: list[str]) -> AsyncIterator[Any]:
        yield agent

    async def policy_of(owner: str) -> Policy:
        return rules[owner]

    async def none(owner: str) -> list[Any]:
        return []

    shelf: Any = SimpleNamespace(list=none)
    nothing: Any = None
    outward = Outward(nothing, libraries=shelf, index=nothing, agent=agent_for, policy=policy_of, seconds=20)
    answer = asyncio.create_task(outward.ask("alice", "Write two notes."))
    await held.began.wait()
    rules["alice"] = Policy("never", deny=(held.name,))
    held.released.set()
    assert await answer == "Done."
    assert held.written == ["1"]
