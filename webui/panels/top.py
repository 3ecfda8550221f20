"""The line above the conversation (title, model, readiness) and the hidden state that the style and the script read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.agents.protocol import nested_agents
from core.models.model_name import INSTALLED, ModelName
from webui.panels.demo import demo_ready_html
from webui.panels.libraries import uses_html
from webui.render.entries import face
from webui.render.markup import escaped, exact
from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.base import Agent
    from core.readiness import Part, Readiness
    from core.storage.base import NamedLibrary, StoredMessage
    from core.workspace.conversation import Conversation
    from core.workspace.program import Program

_MB = 1_000_000
_LONGEST = 120  # characters of an agent's description
_SHAPES = {"ready": "p-ok", "loading": "p-open", "failed": "p-bad"}


@dataclass(frozen=True, slots=True)
class Speakers:
    """The agents of a program whose page this is.

    Args:
        chosen: The index of the one that answers.
        brings_model: Whether they have a model of their own, so that the reader has none to choose.
        model: The label of the chosen agent's own model, if any.
        about: Their descriptions, in the same order; "" where there is none.
        turns: Whether `@name` in a question addresses one of them.
        cast: The names of all who may speak: these, and the agents that they lead or can call.
        mentions: Whom a question can address with `@`: names and descriptions.
    """

    names: tuple[str, ...]
    chosen: int = 0
    brings_model: bool = False
    model: str = ""
    about: tuple[str, ...] = ()
    turns: bool = False
    cast: tuple[str, ...] = ()
    mentions: tuple[tuple[str, str], ...] = ()


async def speakers(
    program: Program | None, conversation: Conversation, thread: Sequence[StoredMessage] = ()
) -> Speakers | None:
    """The agents of the page and which of them answers next; `None` on Parlour's own page. Raises StorageError.

    Args:
        thread: The turns of the conversation.
    """
    if program is None:
        return None
    chosen = await program.answering(conversation, thread) if conversation.id else 0
    model = program.agents[chosen].llm
    return Speakers(
        program.names,
        chosen,
        brings_model=program.brings_model or model is not None,  # what is chosen would answer nothing here
        model=model.label if model else "",
        about=tuple(agent.description or "" for agent in program.agents),
        turns=program.mention and len(program.agents) > 1,
        cast=_cast(program),
        mentions=_mentions(program, program.agents[chosen]),
    )


def _cast(program: Program) -> tuple[str, ...]:
    """The names of all who may speak: the agents, and those that they lead or can call."""
    inner = (getattr(one, "name", None) for agent in program.agents for one in nested_agents(agent))
    return tuple(dict.fromkeys([*program.names, *(str(name) for name in inner if name)]))


def _mentions(program: Program, chosen: Agent) -> tuple[tuple[str, str], ...]:
    """Whom a question can turn to: the page's agents, where the program lets it, and the members of a group."""
    own = program.agents if program.mention and len(program.agents) > 1 else ()
    named = [*zip(program.names, own, strict=False), *((one.name or "", one) for one in chosen.mentionable)]
    return tuple({name: (name, one.description or "") for name, one in named}.values())


def top_html(  # noqa: PLR0913 - each is a part of the line, by name
    title: str,
    readiness: Readiness,
    words: Words,
    libraries: Sequence[NamedLibrary] = (),
    speakers: Speakers | None = None,
    *,
    steered: bool = False,
    temporary: bool | None = None,
    second: str = "",
    demo: bool = False,
    may_add: bool = True,
    called: Mapping[str, str] | None = None,
) -> str:
    """Markup for `#top`.

    Args:
        title: The conversation's; empty for a new one.
        readiness: Of the model that answers the reader.
        speakers: The agents of a program's page.
        steered: Whether there is a button that opens the steering.
        temporary: Whether a new conversation will go by itself; `None` where that cannot be chosen any more.
        second: The label of the model that answers beside the first, if one does.
        demo: Whether a demonstration is played: no model answers.
        may_add: Whether the reader may add services.
        called: What libraries are called, by id, as of `uses_html`.
    """
    menu, evidence = escaped(words("top.menu")), escaped(words("top.evidence"))
    settings = escaped(words("models.settings"))
    choosing = (
        ""
        if demo or not may_add or (speakers is not None and speakers.brings_model)
        else (
            f'<button type="button" class="p-icon p-open-models" data-do="models" aria-haspopup="dialog" '
            f'aria-label="{settings}" title="{settings}"></button>'
        )
    )
    form = "p-top"
    form += " p-with-uses" if libraries else ""
    form += " p-with-passing" if temporary is not None else ""
    return (
        f'<div class="{form}"><button type="button" class="p-icon p-open-menu" data-do="drawer" aria-label="{menu}" '
        f'aria-controls="side"></button>'
        f'<h1 class="p-title" dir="auto">{escaped(title or words("top.untitled"))}</h1>'
        f"{uses_html(libraries, words, called)}"
        f"{demo_ready_html(words) if demo else _ready_html(readiness, words, speakers, second)}"
        f"{_temporary_html(words, on=temporary) if temporary is not None else ''}"
        f"{choosing}{_steer_html(words) if steered else ''}"
        f'<button type="button" class="p-icon p-open-evidence" data-do="evidence" aria-label="{evidence}" '
        f'aria-controls="evidence"></button>{_mentions_html(speakers)}</div>'
    )


def _temporary_html(words: Words, *, on: bool) -> str:
    label = escaped(words("temporary.title"))
    act, pressed = ("off", "true") if on else ("on", "false")
    return (
        f'<button type="button" class="p-icon p-passing" data-do="temporary-{act}" aria-pressed="{pressed}" '
        f'aria-label="{label}" title="{label}"></button>'
    )


def _steer_html(words: Words) -> str:
    steering = escaped(words("steer.title"))
    return (
        f'<button type="button" class="p-icon p-open-steer" data-do="steering" aria-controls="evidence" '
        f'aria-label="{steering}" title="{steering}"></button>'
    )


def _mentions_html(speakers: Speakers | None) -> str:
    """Whom a question can address: the script offers them when an @ is typed."""
    if speakers is None or not speakers.mentions:
        return ""
    lines = (
        f'<li data-name="{exact(name)}">{face(name)}<span class="p-name">{escaped(name)}</span>{_about(about)}</li>'
        for name, about in speakers.mentions
    )
    return f'<ul id="p-mentions" hidden>{"".join(lines)}</ul>'


def _about(about: str) -> str:
    """An agent's description, if any."""
    shown = about if len(about) <= _LONGEST else f"{about[: _LONGEST - 1]}…"
    return f'<span class="p-about">{escaped(shown)}</span>' if about else ""


def _ready_html(readiness: Readiness, words: Words, speakers: Speakers | None, second: str = "") -> str:
    model = readiness["model"]
    if speakers is not None and speakers.model:
        model = replace(model, label=speakers.model)
    inside, here = model.built_in, model.in_process
    name = model.label.removesuffix(", built in") if inside else model.label
    said = _said(model, words)
    label = words("ready.inside", model=name) if inside and name else name
    agents = speakers is not None and len(speakers.names) > 1
    label = f"{speakers.names[speakers.chosen]} · {label}" if speakers is not None and agents else label
    fixed = speakers is not None and speakers.brings_model
    if second:
        label = words("compare.two", first=label, second=words.model(second))
    if not agents and not fixed:
        return _choosing_html(
            model, said, label, _card(model, name, words, inside=inside, here=here, fixed=True), words
        )
    return (
        f'<details class="p-ready" data-ready="{model.state}"><summary>'
        f'<span class="p-st {_shape(model)}"></span>'
        f'<span class="p-said">{escaped(said)}</span> <span class="p-model">{escaped(label)}</span></summary>'
        f'<div class="p-card">{_agents_html(speakers, words) if speakers is not None and agents else ""}'
        f"{_card(model, name, words, inside=inside, here=here, fixed=fixed)}"
        "</div></details>"
    )


def _choosing_html(model: Part, said: str, label: str, card: str, words: Words) -> str:
    """The line as the button of the menu of models; the script shows the card above them."""
    title = escaped(words("models.open"))
    return (
        f'<div class="p-ready" data-ready="{model.state}"><button type="button" data-do="choose" aria-haspopup="menu" '
        f'aria-expanded="false" title="{title}"><span class="p-st {_shape(model)}"></span>'
        f'<span class="p-said">{escaped(said)}</span> <span class="p-model">{escaped(label)}</span></button>'
        f'<div class="p-card" hidden>{card}</div></div>'
    )


def ready_line(readiness: Readiness, words: Words) -> tuple[str, str]:
    """Whether the model can answer, as markup of a shape and a word; and what the page calls it, as text."""
    model = readiness["model"]
    said = escaped(_said(model, words))
    label = words.model(model.label) if model.label else ""
    return f'<span class="p-st {_shape(model)}"></span>{said}', label


def _agents_html(speakers: Speakers, words: Words) -> str:
    """The choice of the agent that answers."""
    lines = [
        f'<li><a class="p-do p-agent" role="button" href="#do-agent-{place + 1}"'
        f"{' aria-current=' + chr(34) + 'true' + chr(34) if place == speakers.chosen else ''}>"
        f'{face(name)}<span><span class="p-name">{escaped(name)}</span>{_about(about)}</span></a></li>'
        for place, (name, about) in enumerate(zip_longest(speakers.names, speakers.about, fillvalue=""))
    ]
    turns = f"<p>{escaped(words('agents.at'))}</p>" if speakers.turns else ""
    heading = f"<p>{escaped(words('agents.choose'))}</p>"
    return f'<div class="p-chooser">{heading}<ul class="p-agents">{"".join(lines)}</ul>{turns}</div>'


def _untried(model: Part) -> bool:
    """A service that nobody asked yet. While it is set up it is that, too: nothing of it is loaded here."""
    known = model.state == "ready" or (model.state == "loading" and not model.total)
    return known and not model.in_process and not model.answered and bool(model.label)


def _shape(model: Part) -> str:
    return "p-off" if _untried(model) else _SHAPES[model.state]


def _said(model: Part, words: Words) -> str:
    if _untried(model):
        return words("ready.set_up")  # a service that was not asked yet may be unreachable
    if model.state == "failed" and model.remedy_key.startswith("model_") and model.remedy_key != "model_gone":
        answered = model.remedy_key == "model_unavailable" and (model.details or {}).get("code")
        return words("ready.answers_errors") if answered else words("ready.not_answering")
    if model.state != "loading":
        return words(f"ready.{model.state}")
    if not model.total:
        return words("ready.loading")
    return words("ready.fetching", done=model.done // _MB, total=model.total // _MB)


def _card(model: Part, name: str, words: Words, *, inside: bool, here: bool, fixed: bool) -> str:
    """Which model answers, what that means for the reader, and how to choose another."""
    lines: list[str] = []
    if model.state == "failed":
        happened, remedy = words.error_parts({"key": model.remedy_key, "details": model.details or {}})
        lines += [f'<p class="p-what">{escaped(happened)}</p>', f"<p>{escaped(remedy)}</p>" if remedy else ""]
        lines += [f"<p>{escaped(words('ready.none'))}</p>", _retry(words)]
    elif name:
        lines.append(f"<p>{escaped(words(_answers(inside=inside, here=here), model=name))}</p>")
    if fixed:
        return "".join(lines)
    choose = escaped(words("models.open"))
    lines.append(f'<p><button type="button" class="p-button" data-do="models">{choose}</button></p>')
    return "".join(lines)


def _answers(*, inside: bool, here: bool) -> str:
    return "ready.built_in" if inside else "ready.here" if here else "ready.remote"


def _retry(words: Words) -> str:
    return f'<p><button type="button" class="p-button" data-do="retry">{escaped(words("ready.retry"))}</button></p>'


_ENDED = {status: f"reply.ended_{status}" for status in ("error", "stopped", "interrupted", "paused")}

State: TypeAlias = Literal["idle", "running", "stopping", "error"]


def status_html(  # noqa: PLR0913 - each is an attribute of its own
    state: State,
    conversation_id: str = "",
    *,
    lang: str = "",
    empty: bool = False,
    ended: str = "complete",
    asks: str = "",
    hears: bool = False,
    model: ModelName = INSTALLED,
    second: str = "",
    demo: str = "",
    role: str = "",
    chosen: str = "",
) -> str:
    """Markup for `#status`.

    Args:
        conversation_id: Empty for a new conversation.
        lang: Code of the page's language.
        empty: Nothing was said yet: the greeting is shown.
        ended: How the last reply ended, by its status.
        asks: The approval or input that the reply waits for, as a sentence.
        hears: The model takes recordings: the composer shows the button that makes one.
        model: Which one the next question will be answered by.
        second: The label of the one that answers beside it, if one does.
        demo: The name of the demonstration that is played.
        role: Of the reader; "" without an account.
        chosen: What is chosen for a new conversation, which the page keeps; "" where that is not known.
    """
    room = "empty" if empty else "full"
    said = (asks or _heard(state, ended, lang)) if conversation_id and not empty else ""
    attributes = f'data-state="{state}" data-conversation="{escaped(conversation_id)}" data-lang="{escaped(lang)}"'
    attributes += f' data-room="{room}" data-hears="{int(hears)}"'
    attributes += f' data-service="{exact(model.service)}" data-model="{exact(model.model)}"'
    attributes += f' data-second="{exact(second)}" data-demo="{exact(demo)}"'
    attributes += f' data-role="{exact(role)}"' if role else ""
    attributes += f' data-chosen="{exact(chosen)}"' if chosen else ""
    return f'<div class="p-status" role="status" {attributes}>{escaped(said)}</div>'


def _heard(state: State, ended: str, lang: str) -> str:
    """What a screen reader announces on a change; the reply itself is not read out word by word."""
    words = Words.named(lang)
    now = {"running": "reply.writing", "stopping": "reply.stopping"}.get(state)
    return words(now or _ENDED.get(ended, "reply.done"))
