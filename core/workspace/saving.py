"""What makes the next messages of a conversation smaller: by one act each, with the tokens that it saves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from core.agents.summarize import summary_turn
from core.llm.usage import cost_of as price_of
from core.messages.message import Usage
from core.runs.history_summary import Shortened
from core.toolbox.toolbox import bringer
from core.workspace.levels import apply, checked_change, mapping_of
from core.workspace.steering import LeftOut, Saved
from core.workspace.usable import WEB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.retrieval import Material
    from core.llm.base import BaseChatModel
    from core.llm.layers.fit_context import Costs
    from core.messages.message import Message
    from core.storage.base import StoredMessage
    from core.tools.base import BaseTool
    from core.workspace.services import OwnerServices

LEAST: Final = 200
"""Tokens below which nothing is offered: it would not be worth what is given up for it."""
_SUMMARY: Final = 400
"""Tokens of a summary that is not made yet: it is asked to be at most 300 words."""
_NOTHING: Final[Mapping[str, bool | None]] = MappingProxyType({})
_STAY: Final = 2  # questions, with what came after them
_MOST_TOOLS: Final = 2  # offers to leave tools out

Kind = Literal["passages", "summary", "leave_out", "tools"]
KINDS: Final[tuple[Kind, ...]] = ("passages", "summary", "leave_out", "tools")


@dataclass(frozen=True, slots=True)
class Saving:
    """One act that makes messages smaller, or one that was done and can be taken back.

    Args:
        kind: `passages` in place of whole documents; a `summary` of the first turns, or to `leave_out` these; to use
            no `tools` of a kind any more.
        about: What it is about: the last turn, or who brings the tools.
        tokens: That it saves in each message.
        count: Of the turns or tools.
        names: Of the documents or tools.
        done: Whether it was chosen; then it can be taken back.
        pending: Whether a summary is still to be made, with the next message.
        cost: Of making it, in dollars; `None` where that is not known.
        free: Whether it costs nothing to make.
    """

    kind: Kind
    about: str
    tokens: int
    count: int = 0
    names: tuple[str, ...] = ()
    done: bool = False
    pending: bool = False
    cost: float | None = None
    free: bool = True

    @property
    def key(self) -> str:
        """Which it is, to be chosen or taken back."""
        return f"{self.kind}:{self.about}"


# ---- what there is to be saved


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a conversation's history takes, and what can be saved of it.

    Args:
        tokens: As it is sent.
        read: Tokens that a summary which is offered would be made of.
        savings: Offered, or done.
    """

    tokens: int
    read: int = 0
    savings: tuple[Saving, ...] = ()


def of_history(
    thread: Sequence[StoredMessage],
    sent: Sequence[Sequence[Message]],
    costs: Costs,
    chosen: Shortened | None,
    summaries: Mapping[str, str],
    *,
    sums_up: bool,
) -> Beginning:
    """What the turns of a conversation take, and what can be saved of them.

    Args:
        sent: The messages of each turn, without what is not sent again.
        chosen: How its beginning is given.
        summaries: Those that are made already, by their last turn.
        sums_up: Whether the model that answers makes summaries.
    """
    each = [sum(map(costs.of, messages)) for messages in sent]
    total, found = sum(each), list[Saving]()
    done = chosen.turns(thread) if chosen is not None else 0

    def short(turns: int, *, summed_up: bool) -> int:
        """Tokens of what takes the place of the first turns."""
        text = summaries.get(thread[turns - 1].id) if summed_up else None
        if not summed_up:
            return 0
        return _SUMMARY if text is None else sum(map(costs.of, summary_turn(text, (), "en")))

    saved = 0
    if chosen is not None and done and (sums_up or not chosen.summed_up):
        saved = sum(each[:done]) - short(done, summed_up=chosen.summed_up)
        kind: Kind = "summary" if chosen.summed_up else "leave_out"
        pending = chosen.summed_up and chosen.last not in summaries
        found.append(Saving(kind, chosen.last, max(saved, 0), done, done=True, pending=pending))
    asked = [at for at, turn in enumerate(thread) if turn.role == "user"]
    cut = asked[-_STAY] if len(asked) > _STAY else 0
    if cut > done:
        gain = sum(each[:cut]) - short(cut, summed_up=sums_up)
        if gain - max(saved, 0) >= LEAST:
            pending = sums_up and thread[cut - 1].id not in summaries
            kind = "summary" if sums_up else "leave_out"
            found.insert(0, Saving(kind, thread[cut - 1].id, gain - max(saved, 0), cut, pending=pending))
    return Beginning(max(total - saved, 0), sum(each[:cut]), tuple(found))


async def with_price(saving: Saving, history: int, model: BaseChatModel) -> Saving:
    """An offer with what it costs to make, once.

    Args:
        history: Tokens that are read for a summary.
    """
    if not saving.pending or saving.done or model.service.here:
        return saving
    usage = Usage(prompt_tokens=history, completion_tokens=_SUMMARY, total_tokens=history + _SUMMARY)
    return replace(saving, free=False, cost=await price_of(usage, model.model, model.service))


def of_documents(material: Material, *, passages: bool) -> tuple[Saving, ...]:
    """Whether documents can be searched in place of being given whole, or are.

    Args:
        passages: Whether that was chosen.
    """
    gain = material.whole - material.passages
    if not material.whole or (gain < LEAST and not passages):
        return ()
    return (Saving("passages", "", max(gain, 0), names=material.names, done=passages),)


def of_tools(
    tools: Sequence[BaseTool], cost: Mapping[str, int], left_out: Mapping[str, LeftOut], here: Mapping[str, bool]
) -> tuple[Saving, ...]:
    """The tools that take most, to be left out here; and those that were.

    Args:
        tools: Those on offer.
        cost: Their tokens, by who brings them.
        left_out: By who brought them.
        here: Which tools are on or off here.
    """
    done = [
        Saving("tools", name, one.tokens, names=tuple(one.before), done=True)
        for name, one in left_out.items()
        if one.before and all(here.get(tool) is False for tool in one.before)
    ]
    groups = grouped(tools)
    dear = sorted((name for name in groups if cost[name] >= LEAST), key=lambda name: -cost[name])[:_MOST_TOOLS]
    offers = [
        Saving("tools", name, cost[name], len(groups[name]), tuple(one.full_name for one in groups[name]))
        for name in dear
    ]
    return (*offers, *done)


def grouped(tools: Sequence[BaseTool]) -> dict[str, list[BaseTool]]:
    """Tools by who brings them; those of the web together, Parlour's own each by itself."""
    groups: dict[str, list[BaseTool]] = {}
    for tool in tools:
        name = tool.full_name
        groups.setdefault("web" if name in WEB else bringer(name) or name, []).append(tool)
    return groups


# ---- choosing


async def choose(services: OwnerServices, conversation_id: str, offer: Saving, *, on: bool) -> None:
    """Save tokens in a conversation from its next message on, or take that back.

    Args:
        offer: Of `Meter.savings`.

    Raises:
        NotFoundError: The conversation is not there.
        StorageError: The database failed.
    """

    def change(settings: dict[str, Any]) -> dict[str, Any]:
        saved = Saved.of(settings)
        if offer.kind == "tools":
            return _left_out(settings, saved, offer) if on else _taken_back(settings, saved, offer.about)
        if offer.kind == "passages":
            return replace(saved, passages=on).into(settings)
        return replace(saved, history=Shortened(offer.about, offer.kind == "summary") if on else None).into(settings)

    await services.stores.conversations.configure(conversation_id, change)


def _left_out(settings: Mapping[str, Any], saved: Saved, offer: Saving) -> dict[str, Any]:
    """Tools switched off, each by its name: said of a tool, that outranks what is said of who brings it."""
    own = mapping_of(settings.get("tools"))
    was = saved.tools[offer.about].before if offer.about in saved.tools else _NOTHING
    names = [*offer.names, *([offer.about] if bringer(offer.about) else [])]
    before = {name: was.get(name) if own.get(name) is False and name in was else own.get(name) for name in names}
    tools = {**saved.tools, offer.about: LeftOut(before, offer.tokens)}
    return replace(saved, tools=tools).into(apply(settings, checked_change({"tools": dict.fromkeys(names, False)})))


def _taken_back(settings: Mapping[str, Any], saved: Saved, about: str) -> dict[str, Any]:
    """Tools switched as they were before."""
    before = saved.tools[about].before if about in saved.tools else _NOTHING
    tools = {name: one for name, one in saved.tools.items() if name != about}
    return replace(saved, tools=tools).into(apply(settings, checked_change({"tools": dict(before)})))
