"""What the next message of a conversation will take: its parts in tokens, the room for them, and what it may cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError
from core.llm.layers.fit_context import DEFAULT_MAX_INPUT_TOKENS, Costs
from core.llm.request import ChatRequest
from core.llm.usage import cost_of as price_of
from core.messages.message import SYSTEM, Message, Usage
from core.runs.log import ModelCalled
from core.runs.rows import logged_of
from core.workspace.assistants import Steered
from core.workspace.saving import grouped, of_documents, of_history, of_tools, with_price
from core.workspace.steering import Saved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.agents.retrieval import Material
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.models.pool import ActiveModel
    from core.storage.base import StoredMessage
    from core.tools.base import BaseTool
    from core.workspace.saving import Saving
    from core.workspace.services import OwnerServices

_USUAL_REPLY: Final = 400
"""Tokens of a reply where the conversation has none to learn from."""


@dataclass(frozen=True, slots=True)
class SecondPrice:
    """What the next message costs a second time, where two models answer it.

    Args:
        label: What the page calls the second model.
        free: Whether it runs on this machine.
        cost: In dollars; `None` where its price is not known.
    """

    label: str
    free: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Meter:
    """The next message, before it is sent. All counts are tokens, by the model's own counter.

    Args:
        room: What the model is given at most; 0 where there is no limit.
        reserved: What is kept free for the reply, where a limit of it is set.
        instructions: Of the system message.
        tools: Of the tools on offer.
        tool_count: How many these are.
        files: Of what is looked up in documents for the next question, about.
        history: Of what is sent again of earlier messages.
        messages: How many those are.
        draft: Of what is typed.
        exact: Whether the counter is the model's own; else it estimates.
        free: Whether the model runs on this machine.
        cost: What the next message will cost about, in dollars; `None` where the price is not known.
        spent: What the conversation has cost so far, likewise.
        paid: Whether anything of it was paid for, or may have been.
        whole: Whether the files are all of the documents, and not passages of them.
        savings: What makes the next message smaller, offered or done.
        label: What the page calls the model.
        second: The model that answers beside it, if one does.
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
    whole: bool = False
    savings: tuple[Saving, ...] = ()
    label: str = ""
    second: SecondPrice | None = None

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
    second: BaseChatModel | None = field(default=None, repr=False)

    async def with_draft(self, draft: str) -> Meter:
        """The meter with what is typed, counted beside the loop."""
        tokens = await asyncio.to_thread(Costs(self.model).of, Message("user", draft)) if draft.strip() else 0
        meter = replace(self.meter, draft=tokens)
        asked = min(meter.taken, meter.room) if meter.room else meter.taken
        usage = Usage(prompt_tokens=asked, completion_tokens=self.reply, total_tokens=asked + self.reply)
        cost = 0.0 if meter.free else await price_of(usage, self.model.model, self.model.service)
        beside, model = meter.second, self.second
        if beside is not None and model is not None and not beside.free:
            beside = replace(beside, cost=await price_of(usage, model.model, model.service))
        return replace(meter, cost=cost, second=beside)


@dataclass(frozen=True, slots=True)
class _Told:
    """What the model is given beside the conversation; nothing where an agent does not say.

    Args:
        instructions: The system message.
        chosen: Parameters.
        material: Of the documents within reach.
        here: Which tools are on or off.
        sent_of: What of earlier messages is sent again.
    """

    instructions: str = ""
    tools: tuple[BaseTool, ...] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict[str, Any])
    material: Material | None = None
    here: Mapping[str, bool] = field(default_factory=dict[str, bool])
    sent_of: Callable[[list[Message]], list[Message]] = list


@dataclass(frozen=True, slots=True)
class _Held:
    """What the conversation holds, and how its owner wants it to be given.

    Args:
        summaries: By their last turn.
        sums_up: Whether the model that answers makes more of them.
    """

    thread: Sequence[StoredMessage]
    saved: Saved
    summaries: Mapping[str, str]
    sums_up: bool


async def metering(
    services: OwnerServices, conversation_id: str, model: BaseChatModel, lang: Lang, beside: ActiveModel | None = None
) -> Metering:
    """Count what a conversation holds.

    Args:
        services: Its owner's.
        conversation_id: Empty for a new one.
        model: The one that answers next, as it is loaded.
        lang: The language of the page.
        beside: The second model that answers, where there is one.

    Raises:
        NotFoundError: The conversation is not the owner's.
        StorageError: It cannot be read.
    """
    thread: Sequence[StoredMessage] = ()
    calls: list[ModelCalled] = []
    saved, summaries = Saved(), dict[str, str]()
    if conversation_id:
        conversations = services.stores.conversations
        thread = await conversations.thread(conversation_id)
        saved = Saved.of(await conversations.settings(conversation_id))
        summaries = await services.stores.summaries.list(conversation_id)
        rows = await services.stores.runs.account(conversation_id)
        calls = [one.event for one in logged_of(rows) if isinstance(one.event, ModelCalled)]
    told = await _told(services, conversation_id, model, lang)
    held = _Held(thread, saved, summaries, services.remembering.sums_up(model))
    counted, read = await asyncio.to_thread(_counted, held, told, model, lang)
    meter = replace(
        counted,
        savings=tuple([await with_price(one, read, model) for one in counted.savings]) if conversation_id else (),
        spent=_spent(calls),
        paid=any(not one.here for one in calls),
        second=_second(beside),
    )
    written = [one.usage.completion_tokens for one in calls if one.purpose == "answer" and one.usage is not None]
    reply = round(sum(written) / len(written)) if written else _USUAL_REPLY
    return Metering(meter, model, reply, beside.loader.model if beside is not None else None)


def _counted(held: _Held, told: _Told, model: BaseChatModel, lang: Lang) -> tuple[Meter, int]:
    """The parts and savings, and the tokens that a summary which is offered would be made of."""
    costs, generate = Costs(model), {**model.generate_cfg, **told.chosen}
    saved, material, given = held.saved, told.material, generate.get("max_input_tokens")
    sent = [told.sent_of(list(turn.parts)) for turn in held.thread]
    history = of_history(held.thread, sent, costs, saved.history, held.summaries, sums_up=held.sums_up)
    files = 0 if material is None else material.passages if saved.passages else material.whole or material.passages
    tools, dear = _of_tools(told.tools, lambda few: costs.tools(ChatRequest((), few, generate, lang)))
    savings = (
        *(of_documents(material, passages=saved.passages) if material is not None else ()),
        *history.savings,
        *of_tools(told.tools, dear, saved.tools, told.here),
    )
    meter = Meter(
        room=DEFAULT_MAX_INPUT_TOKENS if given is None else int(float(given)),
        reserved=int(generate.get("max_tokens") or 0),
        instructions=costs.of(Message(SYSTEM, told.instructions)) if told.instructions else 0,
        tools=tools,
        tool_count=len(told.tools),
        files=files,
        history=history.tokens,
        messages=len(held.thread),
        exact=model.counter.exact,
        free=model.service.here,
        whole=bool(files and material is not None and material.whole and not saved.passages),
        savings=savings,
        label=model.label,
    )
    return meter, history.read


def _of_tools(
    tools: Sequence[BaseTool], count: Callable[[tuple[dict[str, Any], ...]], int]
) -> tuple[int, dict[str, int]]:
    """The tokens of all tools, and those that go with each who brings some."""
    total = count(tuple(tool.function for tool in tools))
    groups = grouped(tools)
    without = {
        name: count(tuple(tool.function for tool in tools if tool not in group)) for name, group in groups.items()
    }
    return total, {name: total - rest for name, rest in without.items()}


def _second(beside: ActiveModel | None) -> SecondPrice | None:
    if beside is None:
        return None
    model = beside.loader.model
    return SecondPrice(beside.loader.label, free=beside.inside or (model is not None and model.service.here))


def _spent(calls: Sequence[ModelCalled]) -> float | None:
    """What calls cost together; `None` where one has no known price."""
    costs = [0.0 if one.here or one.cached or one.usage is None else one.usage.cost for one in calls]
    return None if None in costs else sum(one or 0.0 for one in costs)


async def _told(services: OwnerServices, conversation_id: str, model: BaseChatModel, lang: Lang) -> _Told:
    """What the model is given in a conversation."""
    from core.agents.assistant import WHO  # brings the document readers with it

    if not conversation_id:
        return _Told(WHO[lang], tuple(await services.tools.for_model("", small=model.small)))
    try:
        async with services.agents.inside(services, conversation_id, model) as agent:
            if not isinstance(agent, Steered):
                return _Told()
            inner = agent.assistant
            return _Told(
                agent.system_message(lang),
                tuple(inner.function_map.values()),
                inner.extra_generate_cfg,
                await inner.material(),
                agent.steering.tools,
                inner.sent_of,
            )
    except ParlourError:  # a tool or an index that cannot be opened: the reply will say so
        return _Told(WHO[lang])
