"""What the next message of a conversation will take: its parts in tokens, the room for them, and what it may cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError
from core.llm.layers.fit_context import DEFAULT_MAX_INPUT_TOKENS, Costs
from core.llm.request import ChatRequest
from core.llm.usage import cost_of as price_of
from core.messages.message import FUNCTION, SYSTEM, Message, Usage
from core.runs.log import ModelCalled
from core.runs.rows import logged_of
from core.workspace.assistants import Steered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.storage.base import StoredMessage
    from core.workspace.services import OwnerServices

_USUAL_REPLY: Final = 400
"""Tokens of a reply where the conversation has none to learn from."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The next message, before it is sent. All counts are tokens, by the model's own counter.

    Args:
        room: What the model is given at most; 0 where there is no limit.
        reserved: What is kept free for the reply, where a limit of it is set.
        instructions: Of the system message.
        tools: Of the tools on offer.
        tool_count: How many these are.
        files: Of what was looked up for earlier questions.
        history: Of the other earlier messages.
        messages: How many those are.
        draft: Of what is typed.
        exact: Whether the counter is the model's own; else it estimates.
        free: Whether the model runs on this machine.
        cost: What the next message will cost about, in dollars; `None` where the price is not known.
        spent: What the conversation has cost so far, likewise.
        paid: Whether anything of it was paid for, or may have been.
    """

    room: int
    reserved: int
    instructions: int
    tools: int
    tool_count: int
    files: int
    history: int
    messages: int
    draft: int = 0
    exact: bool = True
    free: bool = False
    cost: float | None = None
    spent: float | None = None
    paid: bool = False

    @property
    def taken(self) -> int:
        """All parts together."""
        return self.instructions + self.tools + self.files + self.history + self.draft


@dataclass(frozen=True, slots=True)
class Metering:
    """The parts of a conversation that do not change while a question is typed."""

    meter: Meter
    model: BaseChatModel = field(repr=False)
    reply: int = _USUAL_REPLY

    async def with_draft(self, draft: str) -> Meter:
        """The meter with what is typed, counted beside the loop."""
        tokens = await asyncio.to_thread(Costs(self.model).of, Message("user", draft)) if draft.strip() else 0
        meter = replace(self.meter, draft=tokens)
        asked = min(meter.taken, meter.room) if meter.room else meter.taken
        usage = Usage(prompt_tokens=asked, completion_tokens=self.reply, total_tokens=asked + self.reply)
        cost = 0.0 if meter.free else await price_of(usage, self.model.model, self.model.service)
        return replace(meter, cost=cost)


async def metering(services: OwnerServices, conversation_id: str, model: BaseChatModel, lang: Lang) -> Metering:
    """Count what a conversation holds.

    Args:
        services: Its owner's.
        conversation_id: Empty for a new one.
        model: The one that answers next, as it is loaded.
        lang: The language of the page.

    Raises:
        NotFoundError: The conversation is not the owner's.
        StorageError: It cannot be read.
    """
    thread: Sequence[StoredMessage] = ()
    calls: list[ModelCalled] = []
    if conversation_id:
        thread = await services.stores.conversations.thread(conversation_id)
        rows = await services.stores.runs.account(conversation_id)
        calls = [one.event for one in logged_of(rows) if isinstance(one.event, ModelCalled)]
    instructions, functions, chosen = await _told(services, conversation_id, model, lang)

    def counted() -> Meter:
        costs, generate = Costs(model), {**model.generate_cfg, **chosen}
        said = [message for turn in thread for message in turn.parts]
        looked_up = [message for message in said if message.role == FUNCTION and (message.extra or {}).get("passages")]
        files = sum(map(costs.of, looked_up))
        system = costs.of(Message(SYSTEM, instructions)) if instructions else 0
        given = generate.get("max_input_tokens")
        return Meter(
            room=DEFAULT_MAX_INPUT_TOKENS if given is None else int(float(given)),
            reserved=int(generate.get("max_tokens") or 0),
            instructions=system,
            tools=costs.tools(ChatRequest((), functions, generate, lang)),
            tool_count=len(functions),
            files=files,
            history=sum(map(costs.of, said)) - files,
            messages=len(thread),
            exact=model.counter.exact,
            free=model.service.here,
            spent=_spent(calls),
            paid=any(not one.here for one in calls),
        )

    written = [one.usage.completion_tokens for one in calls if one.purpose == "answer" and one.usage is not None]
    reply = round(sum(written) / len(written)) if written else _USUAL_REPLY
    return Metering(await asyncio.to_thread(counted), model, reply)


def _spent(calls: Sequence[ModelCalled]) -> float | None:
    """What calls cost together; `None` where one has no known price."""
    costs = [0.0 if one.here or one.cached or one.usage is None else one.usage.cost for one in calls]
    return None if None in costs else sum(one or 0.0 for one in costs)


async def _told(
    services: OwnerServices, conversation_id: str, model: BaseChatModel, lang: Lang
) -> tuple[str, tuple[dict[str, Any], ...], Mapping[str, Any]]:
    """The system message, the tools and the parameters that the model is given; nothing where an agent does not say."""
    from core.agents.assistant import WHO  # brings the document readers with it

    if not conversation_id:
        tools = await services.tools.for_model("", small=model.small)
        return WHO[lang], tuple(tool.function for tool in tools), {}
    try:
        async with services.agents.inside(services, conversation_id, model) as agent:
            if not isinstance(agent, Steered):
                return "", (), {}
            inner = agent.assistant
            functions = tuple(tool.function for tool in inner.function_map.values())
            return agent.system_message(lang), functions, inner.extra_generate_cfg
    except ParlourError:  # a tool or an index that cannot be opened: the reply will say so
        return WHO[lang], (), {}
