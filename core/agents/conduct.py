"""How one reply of an agent is made beyond what the agent is: guards, instructions and toolsets of the program's."""

from __future__ import annotations

from contextlib import aclosing
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.agents.conversation import append_system
from core.agents.extras import Extras
from core.agents.tools import tools_from
from core.errors import SettingsError, shown
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta, ToolFinished, ToolStarted
from core.messages.marks import text_of, without_marks
from core.messages.message import USER, Message
from core.tools.approval import Guard
from core.tools.base import BaseTool
from core.tools.run_context import called
from core.tools.run_state import Hook, RunState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.protocol import ExtensibleAgent
    from core.languages import Lang
    from core.llm.request import Stream

_NOBODY: Final[Mapping[Lang, str]] = {
    "en": "This needs somebody's consent, and it was not given.",
    "zh": "这需要有人同意，而没有得到同意。",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """What a guard returns to end the reply.

    Args:
        text: What is answered instead.

    Raises:
        SettingsError: It is no text.
    """

    text: str

    def __post_init__(self) -> None:
        _check_text("text", self.text, 'Stop("I do not talk about that.")')


@dataclass(frozen=True, slots=True)
class Confirm:
    """What a guard returns to have somebody asked, as `approval` says; without a yes the reply ends.

    Args:
        question: Completes "Parlour wants to …".
        otherwise: What is answered without a yes; a sentence of Parlour's by default.

    Raises:
        SettingsError: One of them is no text.
    """

    question: str
    otherwise: str = ""

    def __post_init__(self) -> None:
        _check_text("question", self.question, 'Confirm("send it")')
        if self.otherwise != "":
            _check_text("otherwise", self.otherwise, 'Confirm("send it", otherwise="Then not.")')


def _check_text(name: str, given: object, example: str) -> None:
    if not isinstance(given, str) or not given.strip():
        kind = example.partition("(")[0]
        raise SettingsError(
            f"{name} of {kind} must be a text, not {shown(given)}.", hint=f"Write {example}.", name=name
        )


Verdict: TypeAlias = "str | Stop | Confirm | None"


async def conducted(agent: ExtensibleAgent, asked: list[Message], lang: Lang, kwargs: dict[str, Any]) -> Stream:
    """The reply of an agent that a program has added to, or that is asked for more than text.

    In this order: `before_reply`, input guards, instructions and toolsets, the reply, output guards.

    Args:
        agent: Who answers; a copy of it does.
        asked: The conversation.
        lang: Its language.
        kwargs: As of `stream`; `run_state` is the state of the reply, if it has one.

    Raises:
        SettingsError: A function of the program's returned something else than it may.
    """
    extras = agent.extras or Extras()
    state: RunState = kwargs.pop("run_state", None) or RunState()
    state.messages, state.lang = asked, lang
    own_state = state.with_hooks(extras.hooks) if agent.extras is not None else state
    guard: Guard | None = Guard.of(kwargs.get("approval"))
    asked = await own_state.before_reply(asked)
    question = own_state.context().question
    for hook in extras.input_guards:
        said = await _verdict(hook, own_state, guard, question)
        if isinstance(said, Stop):
            state.stopped = said.text
            for event in _sentence(said.text, agent.name):
                yield event
            return
        if said is not None:
            asked, question = _asking(asked, said), said
            own_state.messages = asked
    own = copy(agent)
    own.function_map = await _tools(agent, extras, own_state)
    messages = own.prompted(asked, lang)
    for text in await _instructions(agent, extras, own_state):
        messages = append_system(messages, text)
    events = own.reply_to(messages, lang=lang, run_state=own_state, **kwargs)
    if extras.output_guards:
        events = guarded(events, extras, own_state, state, guard)
    async with aclosing(events) as reply:
        async for event in reply:
            yield event
    state.stopped = state.stopped or own_state.stopped  # by a guard of an agent that took over


async def _instructions(agent: ExtensibleAgent, extras: Extras, state: RunState) -> list[str]:
    found: list[str] = []
    for one in extras.instructions:
        said: object = await called(one, state.context())
        if said is not None and not isinstance(said, str):
            shown = getattr(one, "__name__", type(one).__name__)
            text = f"The instructions {shown!r} returned {type(said).__name__}, and must return a text."
            raise SettingsError(text, hint="Return a text, or None.")
        found += [said] if said else []
    told = getattr(state.output, "kind", None)
    if told is not None and not agent.leads_agents:
        found.append(told.instruction(state.lang))
    return found


async def _tools(agent: ExtensibleAgent, extras: Extras, state: RunState) -> dict[str, BaseTool]:
    """The agent's tools, and those of its toolsets as they are for this reply."""
    tools = dict(agent.function_map)
    for one in extras.toolsets:
        found: object = await called(one, state.context())
        tools |= tools_from(cast("Sequence[Any]", found))
    return tools


async def _verdict(hook: Hook, state: RunState, guard: Guard | None, text: str) -> str | Stop | None:
    """What a guard says of a text: another text, a stop, or nothing. Raises SettingsError."""
    said: object = await called(hook, state.context(), text)
    if isinstance(said, Confirm):
        return None if await _confirmed(said, guard, state) else Stop(said.otherwise or _NOBODY[state.lang])
    if said is None or isinstance(said, str | Stop):
        return said
    name = getattr(hook, "__name__", type(hook).__name__)
    text = f"The guard {name!r} returned {type(said).__name__}, which is no verdict."
    raise SettingsError(text, hint='Return None, another text, Stop("…") or Confirm("…").')


class _Question(BaseTool):
    """Stands where a tool would, so that one `approval` decides about what guards want to know, too."""

    name = "confirm"
    description = "Asks whether the reply may go on."
    writes = True
    needs_consent = True  # rules about tools are no answer to what a guard wants to know

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def wants(self, arguments: Mapping[str, Any], lang: Lang = "en") -> str:
        """The question."""
        del arguments, lang
        return self._question


async def _confirmed(asking: Confirm, guard: Guard | None, state: RunState) -> bool:
    if guard is None:
        return False
    asked = {"question": asking.question}
    decision = await guard.decide(_Question(asking.question), _confirm_id(asking, state), asked, state.messages)
    return decision.allowed is True


def _confirm_id(asking: Confirm, state: RunState) -> str:
    """The same for the same question to the same turn, so that an answer is heard after a restart."""
    turn = sum(one.role == USER for one in state.messages)
    state.meter.confirmed[asking.question] += 1
    about = f"{turn} {state.meter.confirmed[asking.question]} {asking.question}"
    return f"confirm_{sha256(about.encode('utf-8', 'replace')).hexdigest()[:16]}"


async def guarded(events: Stream, extras: Extras, state: RunState, whole: RunState, guard: Guard | None) -> Stream:
    """The events, each message held back until the guards have seen its text; calls and results pass."""
    held: list[Event] = []
    async with aclosing(events) as source:
        async for event in source:
            if isinstance(event, ToolStarted | ToolFinished):
                yield event
                continue
            held.append(event)
            if not isinstance(event, MessageFinished):
                continue
            told, held = held, []
            for one in await _seen(told, extras, state, whole, guard):
                yield one
            if whole.stopped:
                return
    for event in held:
        yield event


async def _seen(
    told: list[Event], extras: Extras, state: RunState, whole: RunState, guard: Guard | None
) -> list[Event]:
    """The events of one message, with the text that the guards let through."""
    text = before = text_of(told)
    for hook in extras.output_guards if text.strip() else ():
        said = await _verdict(hook, state, guard, text)
        if isinstance(said, Stop):  # what it would have called is not called either
            whole.stopped = said.text
            ended = told[-1]
            usage = ended.usage if isinstance(ended, MessageFinished) else None
            return [*told[:1], TextDelta(said.text), MessageFinished("stop", usage)]
        text = text if said is None else said
    if text == before:
        return told
    if state.output is not None:
        state.output.rewritten(before, text)
    kept = [without_marks(one) for one in told if not isinstance(one, TextDelta)]
    return [*kept[:-1], TextDelta(text), *kept[-1:]]


def _asking(asked: list[Message], text: str) -> list[Message]:
    """The conversation with another text as its question."""
    at = next((n for n in range(len(asked) - 1, -1, -1) if asked[n].role == USER), None)
    if at is None:
        return asked
    items = [one for one in asked[at].items if one.type != "text"]
    content = text if not items else [*Message(USER, text).items, *items]
    return [*asked[:at], asked[at].model_copy(update={"content": content}), *asked[at + 1 :]]


def _sentence(text: str, speaker: str | None) -> list[Event]:
    return [MessageStarted(speaker), TextDelta(text), MessageFinished("stop")]
