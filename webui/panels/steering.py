"""The panel of steering: which persona, how it answers, what it may use; and what holds for all of a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from core.reading.libraries import checked_name
from core.toolbox.toolbox import CODE, SKILL
from core.workspace.levels import DOCUMENTS, LONGEST
from core.workspace.personas import LONGEST_NAME, LONGEST_SIGN
from core.workspace.prompts import LONGEST_NAME as PROMPT_NAME
from core.workspace.prompts import LONGEST_TEXT
from webui.render.markup import escaped, exact
from webui.render.tool_words import label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.models.model_name import ModelName
    from core.storage.base import Folder, NamedLibrary
    from core.workspace.levels import Level
    from core.workspace.personas import Persona
    from core.workspace.prompts import Prompt
    from core.workspace.steering import Steering
    from core.workspace.usable import Usable
    from webui.words import Words

# Name, least, most, step, and where the handle stands while nothing is chosen. The longest reply goes in powers of two.
_SLIDERS = (("temperature", 0.0, 2.0, 0.1, 1.0), ("max_tokens", 8, 15, 1, 12))
_MORE = (("top_p", 0.05, 1.0, 0.05, 1.0),)
_LONGEST_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Shown:
    """What the panel shows of a conversation.

    Args:
        personas: The owner's.
        rows: What it may use.
        libraries: The owner's.
        used: The ids of those that it uses.
        efforts: How long the model may think, by name; empty for one that does not.
        left_out: Parameters that the service refused.
        told: The tokens of the instructions.
        documents: How many documents are within its reach.
        prompts: The owner's, which `/` offers in the composer.
        model: The one that was chosen for the conversation, if any.
        shares: There are groups that the owner may share with.
    """

    steering: Steering
    personas: Sequence[Persona]
    rows: Sequence[Usable]
    libraries: Sequence[NamedLibrary] = ()
    used: Sequence[str] = ()
    efforts: Sequence[str] = ()
    left_out: Sequence[str] = ()
    told: int = 0
    documents: int = 0
    prompts: Sequence[Prompt] = ()
    model: ModelName | None = None
    shares: bool = False


def steering_html(shown: Shown, words: Words, *, turn: int = 0) -> str:
    """Markup for `#page`, in the evidence's place.

    Args:
        turn: Counts drawings, so that two are never alike.
    """
    total = shown.told + sum(one.tokens_now for one in shown.rows)
    name, chosen = escaped(words("steer.name")), shown.steering.persona
    called = escaped(chosen.name) if chosen is not None else ""
    foot = (
        f'<div class="p-foot"><p class="p-sum" aria-live="polite"><span>{escaped(words("steer.sent"))}</span>'
        f'<output data-told="{shown.told}">{escaped(words("steer.tokens", n=f"{total:,}"))}</output></p>'
        f'<div class="p-row"><button type="button" class="p-quiet" data-do="steer-reset">'
        f"{escaped(words('steer.reset'))}</button>"
        f'<form class="p-name-form" hidden><input maxlength="{LONGEST_NAME}" aria-label="{name}" placeholder="{name}" '
        f'value="{called}" autocomplete="off"><button class="p-button p-main">{escaped(words("steer.keep"))}</button>'
        "</form>"
        f'<button type="button" class="p-button" data-do="persona-name">{escaped(words("steer.save"))}</button></div>'
        "</div>"
    )
    body = f"{_persona(shown, words)}{_answers(shown, words)}{_uses(shown, words)}{_prompts(shown.prompts, words)}"
    return _sheet(words("steer.title"), words("steer.here"), body, foot, words, turn=turn)


def folder_html(folder: Folder, level: Level, libraries: Sequence[NamedLibrary], words: Words, *, turn: int = 0) -> str:
    """Markup for `#page` about a folder: the instructions, documents and libraries of its conversations.

    Its documents are those of a library that has its name, which the script makes where it is not there yet. `turn` is
    as above.
    """
    named = checked_name(folder.name)
    own = next((one.id for one in libraries if one.name == named and one.owner_id == folder.owner_id), "")
    add = (
        f'<button type="button" class="p-button" data-do="folder-documents" data-folder="{escaped(folder.id)}" '
        f'data-name="{escaped(named)}" data-library="{escaped(own)}" aria-haspopup="dialog">'
        f"{escaped(words('steer.folder_add'))}</button>"
    )
    shelves = "".join(
        _row(one.name, "", None, on=one.id in level.libraries, act=f'data-shelve="{escaped(one.id)}"')
        for one in libraries
    )
    none = f'<p class="p-note">{escaped(words("steer.no_libraries"))}</p>'
    body = (
        f"<section><h3>{escaped(words('steer.instructions'))}</h3>"
        f"{_area(level.instructions or '', words('steer.folder_hint'), words, folder=folder.id)}</section>"
        f'<section><h3>{escaped(words("steer.documents"))}</h3><p class="p-note">'
        f"{escaped(words('steer.folder_documents', name=named))}</p>{add}</section>"
        f'<section><h3>{escaped(words("bar.libraries"))}</h3><ul data-folder="{escaped(folder.id)}">{shelves}</ul>'
        f"{'' if shelves else none}</section>"
    )
    return _sheet(folder.name, words("steer.folder"), body, "", words, turn=turn)


def _sheet(title: str, note: str, body: str, foot: str, words: Words, *, turn: int) -> str:
    return (
        f'<div class="p-evidence p-steer" data-turn="{turn}"><header><h2 dir="auto">{escaped(title)}</h2>'
        f'<span class="p-file">{escaped(note)}</span><button type="button" class="p-icon p-close" data-do="close" '
        f'aria-label="{escaped(words("steer.close"))}"></button></header>'
        f'<div class="p-steer-body">{body}</div>{foot}</div>'
    )


# ---- the persona, and how it answers


def _option(persona: Persona) -> str:
    """A symbol stands before the name; a letter that the name begins with says nothing there."""
    is_initial = persona.name.casefold().startswith(persona.sign.casefold())
    name = persona.name if is_initial else f"{persona.sign} {persona.name}"
    return f"{name} · {persona.lender}" if persona.lender else name


def _persona(shown: Shown, words: Words) -> str:
    steering, chosen = shown.steering, shown.steering.persona
    is_kept = chosen is None or any(one.id == chosen.id for one in shown.personas)
    options = [("", words("steer.no_persona")), *((one.id, _option(one)) for one in shown.personas)]
    if chosen is not None and not is_kept:  # the conversation goes on as it was
        options.append((chosen.id, words("steer.deleted", name=_option(chosen))))
    current = chosen.id if chosen is not None else ""
    listed = "".join(
        f'<option value="{escaped(value)}"{" selected" if value == current else ""}>{escaped(name)}</option>'
        for value, name in options
    )
    title = escaped(words("steer.persona"))
    remove = (
        f'<a class="p-quiet" href="./steering/personas/{quote(current, safe="")}" download>'
        f"{escaped(words('steer.export'))}</a>"
        f"{_lend(shown, chosen, words)}"
        f'<button type="button" class="p-quiet p-forget" data-do="persona-forget" data-id="{escaped(current)}" '
        f'title="{escaped(words("steer.delete", name=chosen.name))}">{escaped(words("steer.forget"))}</button>'
        if chosen is not None and not chosen.lent and is_kept
        else ""
    )
    take = (
        f'<label class="p-quiet">{escaped(words("steer.import"))}<input class="p-import" type="file" '
        'accept=".yaml,.yml,.toml,.json"></label>'
    )
    return (
        f"<section><h3>{title}<small>{escaped(words('steer.tokens', n=f'{shown.told:,}'))}</small></h3>"
        f'<select class="p-persona" aria-label="{title}">{listed}</select>{_gone(steering.gone, words)}'
        f"{_area(steering.instructions, words('steer.hint'), words, persona=chosen.name if chosen else '')}"
        f'<div class="p-files">{take}{remove}</div>{_details(chosen, shown.model, words) if remove else ""}</section>'
    )


def _gone(name: str, words: Words) -> str:
    return f'<p class="p-refused">{escaped(words("steer.gone", name=name))}</p>' if name else ""


def _lend(shown: Shown, persona: Persona, words: Words) -> str:
    """The way to share a persona with a group, where there is one."""
    if not shown.shares:
        return ""
    return (
        f'<button type="button" class="p-quiet" data-do="lend" data-kind="persona" data-thing="{escaped(persona.id)}" '
        f'data-name="{escaped(persona.name)}" aria-haspopup="dialog">{escaped(words("js.lend"))}</button>'
    )


def _details(persona: Persona | None, here: ModelName | None, words: Words) -> str:
    """What a persona has besides how it steers, to be changed: its sign, starters and model.

    Args:
        here: The model that was chosen for the conversation, which the persona may take on.
    """
    if persona is None:
        return ""
    models = "".join(
        f'<option value="{escaped(json.dumps(one.as_json()) if one is not None else "")}"'
        f"{' selected' if one == persona.model else ''}>{escaped(_model(one, words))}</option>"
        for one in dict.fromkeys([None, persona.model, here])
    )
    model = escaped(words("steer.model"))
    sign, starters = escaped(words("steer.sign")), escaped(words("steer.starters"))
    return (
        f'<details><summary>{escaped(words("steer.details"))}</summary><form class="p-prompt p-about-persona" '
        f'data-id="{escaped(persona.id)}"><input maxlength="{2 * LONGEST_SIGN}" value="{escaped(persona.sign)}" '
        f'aria-label="{sign}" placeholder="{sign}" autocomplete="off">'
        f'<textarea rows="3" aria-label="{starters}" placeholder="{starters}" '
        f'dir="auto">{exact(chr(10).join(persona.starters))}</textarea>'
        f'<label class="p-of-persona"><span>{model}</span><select>{models}</select></label><div class="p-row">'
        f'<button class="p-button">{escaped(words("steer.keep"))}</button></div></form></details>'
    )


def _model(name: ModelName | None, words: Words) -> str:
    if name is None:
        return words("steer.any_model")
    return " · ".join(part for part in (name.model, name.service) if part) or words("steer.installed_model")


def _area(text: str, hint: str, words: Words, *, folder: str = "", persona: str = "") -> str:
    """The instructions. Those of a persona are changed for the conversation alone."""
    kept = words("steer.kept_here", name=persona) if persona else words("steer.kept")
    place = f' data-folder="{escaped(folder)}"' if folder else ""
    return (
        f'<textarea class="p-told" rows="4" maxlength="{LONGEST}" dir="auto" placeholder="{escaped(hint)}" '
        f'aria-label="{escaped(words("steer.instructions"))}"{place}>{exact(text)}</textarea>'
        f'<p class="p-note">{escaped(kept)}</p>'
    )


def _answers(shown: Shown, words: Words) -> str:
    chosen = shown.steering.parameters
    rows = "".join(_slider(name, scale, chosen.get(name), shown, words) for name, *scale in _SLIDERS)
    more = "".join(_slider(name, scale, chosen.get(name), shown, words) for name, *scale in _MORE)
    opened = " open" if {"top_p", "seed"} & set(chosen) else ""
    return (
        f"<section><h3>{escaped(words('steer.answers'))}<small>{escaped(words('steer.own'))}</small></h3>"
        f"{rows}{_efforts(shown, words)}"
        f'<details class="p-more-of"{opened}><summary>{escaped(words("steer.more"))}</summary>{more}'
        f"{_seed(chosen.get('seed'), shown, words)}</details></section>"
    )


def _slider(name: str, scale: Sequence[float], value: Any, shown: Shown, words: Words) -> str:
    least, most, step, rest = scale
    place = rest if value is None else max(value, 1).bit_length() - 1 if name == "max_tokens" else value
    said = words("steer.services_own") if value is None else f"{value:,}"
    label = escaped(words(f"steer.{name}"))
    return (
        f'<div class="p-param" data-name="{name}" data-moved="{_said(value is not None)}"><span>{label}</span>'
        f'<input type="range" min="{least}" max="{most}" step="{step}" value="{place}" aria-label="{label}" '
        f'aria-valuetext="{escaped(said)}"><output>{escaped(said)}</output>{_own(label, words)}</div>'
        f"{_refused(name, shown, words)}"
    )


def _seed(value: Any, shown: Shown, words: Words) -> str:
    label, hint = escaped(words("steer.seed")), escaped(words("steer.services_own"))
    given = "" if value is None else value
    return (
        f'<div class="p-param" data-name="seed" data-moved="{_said(value is not None)}"><span>{label}</span>'
        f'<input type="number" min="0" max="{_LONGEST_SEED}" step="1" value="{given}" placeholder="{hint}" '
        f'aria-label="{label}">{_own(label, words)}</div>{_refused("seed", shown, words)}'
    )


def _efforts(shown: Shown, words: Words) -> str:
    if not shown.efforts:
        return ""
    chosen = shown.steering.parameters.get("effort")
    buttons = "".join(
        f'<button type="button" data-effort="{name}" aria-pressed="{_said(chosen == name)}">'
        f"{escaped(words(f'steer.effort_{name}'))}</button>"
        for name in shown.efforts
    )
    label = escaped(words("steer.effort"))
    sent = {"reasoning_effort", "enable_thinking", "chat_template_kwargs"}
    refused = _refused(next(iter(sent & set(shown.left_out)), ""), shown, words)
    return (
        f'<div class="p-param" data-name="effort" data-moved="{_said(chosen is not None)}"><span>{label}</span>'
        f'<div class="p-segments" role="group" aria-label="{label}">{buttons}</div>{_own(label, words)}</div>{refused}'
    )


def _own(label: str, words: Words) -> str:
    """The button that gives a parameter back to the service."""
    said = f"{label}: {escaped(words('steer.services_own'))}"
    return (
        f'<button type="button" class="p-icon p-own" data-do="steer-own" aria-label="{said}" title="{said}"></button>'
    )


def _refused(name: str, shown: Shown, words: Words) -> str:
    return f'<p class="p-refused">{escaped(words("steer.refused"))}</p>' if name in shown.left_out else ""


# ---- what it may use


def _uses(shown: Shown, words: Words) -> str:
    rows = "".join(_usable(one, shown, words) for one in shown.rows)
    shelves = "".join(
        _row(one.name, "", None, on=one.id in shown.used, act=f'data-library="{escaped(one.id)}"')
        for one in shown.libraries
    )
    books = f"<h3>{escaped(words('bar.libraries'))}</h3><ul>{shelves}</ul>" if shelves else ""
    return (
        f"<section><h3>{escaped(words('steer.uses'))}<small>{escaped(words('steer.each'))}</small></h3>"
        f"<ul>{rows}</ul>{books}</section>"
    )


def _usable(one: Usable, shown: Shown, words: Words) -> str:
    label, note = _called(one, shown, words)
    if one.kind == "server" and not one.inner:
        return _silent(one, label, words)
    act = f'data-tools="{escaped(" ".join(one.names))}"'
    if not one.inner:
        return _row(label, note, one.tokens, on=one.on, act=act)
    inner = "".join(
        _row(within, "", tool.tokens, on=tool.on, act=f'data-tools="{escaped(tool.names[0])}"')
        for tool in one.inner
        if (within := _label_within(tool, words))
    )
    inside = f"<details><summary>{escaped(words('steer.one_by_one'))}</summary><ul>{inner}</ul></details>"
    return _row(label, note, None, on=one.on, act=f"{act} data-whole", inside=inside)


def _label_within(one: Usable, words: Words) -> str:
    """What a tool of a server, or a skill, is called."""
    if one.kind == "skill":
        return one.names[0].removeprefix(SKILL)
    return one.tool.label(words.spoken) if one.tool is not None else ""


def _silent(one: Usable, label: str, words: Words) -> str:
    """A server that has no tools now: it cannot be switched, and its state stands where its cost would."""
    shape, key = ("p-bad", "steer.no_answer") if one.state == "failed" else ("p-open", "steer.not_yet")
    shown = f'<span class="p-st {shape}"></span> {escaped(words(key))}'
    return f'<li class="p-silent"><span class="p-what" dir="auto">{escaped(label)}</span><span>{shown}</span></li>'


def _called(one: Usable, shown: Shown, words: Words) -> tuple[str, str]:
    """What a row is called, and what is noted beside it."""
    if one.names == (DOCUMENTS,):
        return words("steer.documents"), words("steer.documents_here", n=shown.documents) if shown.documents else ""
    if one.kind == "web":
        return words("bar.web"), words("steer.web_note")
    if one.names == (CODE,):
        return words("bar.code"), words("steer.code_note")
    if one.kind == "skills":
        used = sum(skill.on for skill in one.inner)
        return words("steer.skills"), words("steer.of_skills", n=used, total=len(one.inner))
    if one.kind == "server":
        used = sum(tool.on for tool in one.inner)
        return one.label or one.names[0].partition(":")[2], words("steer.of_tools", n=used, total=len(one.inner))
    return label_of(one.names[0], words) or one.names[0], ""


def _prompts(prompts: Sequence[Prompt], words: Words) -> str:
    """The prompts, each to be changed, and an empty one to be added."""
    rows = "".join(_prompt(one, words) for one in prompts)
    note = escaped(words("steer.prompts_note"))
    return (
        f'<section class="p-prompts"><h3>{escaped(words("steer.prompts"))}<small>{note}</small></h3>'
        f"{rows}{_prompt(None, words)}</section>"
    )


def _prompt(one: Prompt | None, words: Words) -> str:
    name, text, known = (one.name, one.text, one.id) if one is not None else ("", "", "")
    called, told = escaped(words("steer.prompt_name")), escaped(words("steer.prompt_text"))
    away = (
        f'<button type="button" class="p-quiet p-forget" data-do="prompt-forget" data-id="{escaped(known)}">'
        f"{escaped(words('steer.forget'))}</button>"
        if known
        else ""
    )
    head = escaped(f"/{name}" if name else words("steer.prompt_new"))
    return (
        f'<details><summary dir="auto">{head}</summary><form class="p-prompt" data-id="{escaped(known)}">'
        f'<input maxlength="{PROMPT_NAME}" value="{escaped(name)}" placeholder="{called}" aria-label="{called}" '
        f'autocomplete="off"><textarea rows="3" maxlength="{LONGEST_TEXT}" placeholder="{told}" aria-label="{told}" '
        f'dir="auto">{exact(text)}</textarea><div class="p-row">{away}'
        f'<button class="p-button">{escaped(words("steer.keep"))}</button></div></form></details>'
    )


def _row(label: str, note: str, tokens: int | None, *, on: bool, act: str, inside: str = "") -> str:
    """A switch with its cost in tokens."""
    cost = "" if tokens is None else f'<span class="p-cost" data-tokens="{tokens}">{tokens:,}</span>'
    about = f" <small>{escaped(note)}</small>" if note else ""
    return (
        f'<li><label class="p-flip"><input type="checkbox" role="switch" {act}{" checked" if on else ""}>'
        f'<span class="p-what" dir="auto">{escaped(label)}{about}</span>{cost}</label>{inside}</li>'
    )


def _said(on: bool) -> str:  # noqa: FBT001 - an attribute's value
    return "true" if on else "false"
