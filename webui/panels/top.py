"""The line above the conversation: its title, which model answers, and whether it is ready."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from webui.panels.libraries import uses_html
from webui.render.faces import face
from webui.render.html import escaped, exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.readiness import Part, Readiness
    from core.storage.base import NamedLibrary
    from webui.words import Words

_MB = 1_000_000
_LONGEST = 120  # letters of what an agent is good at
_SHAPES = {"ready": "p-ok", "loading": "p-open", "failed": "p-bad"}


@dataclass(frozen=True, slots=True)
class Speakers:
    """The agents of a program, where the page is theirs.

    Args:
        names: What they are called.
        chosen: The place of the one that answers, from 0.
        brings_model: Whether they have a model of their own, so that there is none to choose.
        model: What the chosen one's is called, where it has one.
        about: What each is good at, in the same order; "" where nobody said.
        turns: Whether an @ and a name turn a question to one of them.
        cast: The names of all who may speak: they, and those that they lead or can call.
        mentions: Those that a question can turn to with an @: names, and what each is good at.
    """

    names: tuple[str, ...]
    chosen: int = 0
    brings_model: bool = False
    model: str = ""
    about: tuple[str, ...] = ()
    turns: bool = False
    cast: tuple[str, ...] = ()
    mentions: tuple[tuple[str, str], ...] = ()


def top_html(
    title: str,
    readiness: Readiness,
    words: Words,
    libraries: Sequence[NamedLibrary] = (),
    speakers: Speakers | None = None,
) -> str:
    """Markup for `#top`.

    Args:
        title: The conversation's; empty for a new one.
        readiness: How far the model is that answers the reader.
        words: The reader's.
        libraries: Those that the conversation uses.
        speakers: The agents to choose from, where they are a program's own.
    """
    menu, evidence = escaped(words("top.menu")), escaped(words("top.evidence"))
    settings = escaped(words("models.settings"))
    choosing = (
        ""
        if speakers is not None and speakers.brings_model
        else (
            f'<button type="button" class="p-icon p-open-models" data-do="models" aria-haspopup="dialog" '
            f'aria-label="{settings}" title="{settings}"></button>'
        )
    )
    return (
        f'<div class="p-top"><button type="button" class="p-icon p-open-menu" data-do="drawer" aria-label="{menu}" '
        f'aria-controls="side"></button>'
        f'<h1 class="p-title" dir="auto">{escaped(title or words("top.untitled"))}</h1>'
        f"{uses_html(libraries, words)}"
        f"{_ready_html(readiness, words, speakers)}{choosing}"
        f'<button type="button" class="p-icon p-open-evidence" data-do="evidence" aria-label="{evidence}" '
        f'aria-controls="evidence"></button>{_mentions_html(speakers)}</div>'
    )


def _mentions_html(speakers: Speakers | None) -> str:
    """Whom a question can turn to, for the script: it offers them where an @ is typed."""
    if speakers is None or not speakers.mentions:
        return ""
    lines = (
        f'<li data-name="{exact(name)}">{face(name)}<span class="p-name">{escaped(name)}</span>{_about(about)}</li>'
        for name, about in speakers.mentions
    )
    return f'<ul id="p-mentions" hidden>{"".join(lines)}</ul>'


def _about(about: str) -> str:
    """What an agent is good at, where somebody said."""
    shown = about if len(about) <= _LONGEST else f"{about[: _LONGEST - 1]}…"
    return f'<span class="p-about">{escaped(shown)}</span>' if about else ""


def _ready_html(readiness: Readiness, words: Words, speakers: Speakers | None) -> str:
    model = readiness["model"]
    if speakers is not None and speakers.model:
        model = replace(model, label=speakers.model)
    inside, here = model.built_in, model.in_process
    name = model.label.removesuffix(", built in") if inside else model.label
    said = _said(model, words, here=here)
    label = words("ready.inside", model=name) if inside and name else name
    agents = speakers is not None and len(speakers.names) > 1
    label = f"{speakers.names[speakers.chosen]} · {label}" if speakers is not None and agents else label
    return (
        f'<details class="p-ready" data-ready="{model.state}"><summary>'
        f'<span class="p-st {_SHAPES[model.state]}"></span>'
        f'<span class="p-said">{escaped(said)}</span> <span class="p-model">{escaped(label)}</span></summary>'
        f'<div class="p-card">{_agents_html(speakers, words) if speakers is not None and agents else ""}'
        f"{_card(model, name, words, inside=inside, here=here, fixed=speakers is not None and speakers.brings_model)}"
        "</div></details>"
    )


def _agents_html(speakers: Speakers, words: Words) -> str:
    """Who answers, and the others: a click turns to one."""
    lines = [
        f'<li><a class="p-do p-agent" role="button" href="#do-agent-{place + 1}"'
        f"{' aria-current=' + chr(34) + 'true' + chr(34) if place == speakers.chosen else ''}>"
        f'{face(name)}<span><span class="p-name">{escaped(name)}</span>{_about(about)}</span></a></li>'
        for place, (name, about) in enumerate(zip_longest(speakers.names, speakers.about, fillvalue=""))
    ]
    turns = f"<p>{escaped(words('agents.at'))}</p>" if speakers.turns else ""
    heading = f'<p class="p-choose">{escaped(words("agents.choose"))}</p>'
    return f'<div class="p-chooser">{heading}<ul class="p-agents">{"".join(lines)}</ul>{turns}</div>'


def _said(model: Part, words: Words, *, here: bool) -> str:
    if model.state == "ready" and not here and not model.answered and model.label:
        return words("ready.set_up")  # a service that nobody asked yet: it may not be there
    if model.state == "failed" and model.remedy_key.startswith("model_"):
        answered = model.remedy_key == "model_unavailable" and (model.details or {}).get("code")
        return words("ready.answers_errors") if answered else words("ready.not_answering")
    if model.state != "loading":
        return words(f"ready.{model.state}")
    if not model.total:
        return words("ready.loading")
    return words("ready.fetching", done=model.done // _MB, total=model.total // _MB)


def _card(model: Part, name: str, words: Words, *, inside: bool, here: bool, fixed: bool) -> str:
    """What answers, what that means, and the way to something better."""
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
