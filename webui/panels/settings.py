"""The settings: one page in the middle column, drawn when it is opened. What is changed there is kept at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.export.inspecting import total
from core.readiness import Readiness
from core.storage.preferences import JUDGES, LONGEST_ABOUT, Preferences
from core.storage.space import UsedSpace
from core.workspace.dictation import usual_model
from webui.middleware.places import SECTIONS
from webui.panels.dictation import choice_html
from webui.panels.top import ready_line
from webui.render.markup import escaped
from webui.render.price import money
from webui.words import LANGUAGES, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.runs.log import ModelCalled
    from core.storage.people import Person
    from core.toolbox.server_form import Trouble
    from core.tools.owner_notes import Note
    from webui.words import Words

_SIZES: Final = (("1", 14), ("2", 15), ("", 16), ("4", 17), ("5", 19))
"""How large a reply is written: the value that the browser keeps, and pixels."""
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_TROUBLES: Final = {"failed": "p-bad", "waits": "p-ask"}


@dataclass(frozen=True, slots=True)
class ShownSettings:
    """What the page shows.

    Args:
        language: The code that was chosen in this browser; "" for the browser's own.
        readiness: Of the model that answers.
        brings_model: The model is a program's own, and none can be chosen.
        may_title: The installation lets models name conversations.
        title_cost: What naming one costs, in US dollars; `None` where no price is known.
        may_propose: Questions can be proposed after a reply.
        follow_up_cost: What proposing them costs, likewise.
        here: Whether the model runs on this machine, and costs nothing.
        dictation_services: The services that can turn speech into text, with their addresses.
        dictation_here: Whether this machine can.
        dictated: The calls for dictation whose text is in no message yet.
        judge_cost: What having a model judge the sentences of a reply costs usually, likewise.
        may_judge: Whether models may.
        may_check: The installation checks the sentences of answers.
        tools: How many of the built-in tools are on.
        servers: How many servers bring more.
        trouble: Whether one of those failed, or waits for the reader.
        documents: How many documents the named libraries hold.
        backed_up: When the last backup was made, in seconds since 1970; `None` where there was none.
        may_back_up: Whether that is the reader's concern: the installation is theirs.
        version: Of Parlour; "" where it is not known.
        may_share: The installation lets conversations be shared by links.
        person: Whose account it is; `None` without one.
        keeps_house: They look after people and their roles.
        is_guest: The browser is an owner of its own, without an account.
        has_accounts: Whether others have one here.
        may_own: Whether the reader may have services and keys of their own.
    """

    preferences: Preferences = field(default_factory=Preferences)
    language: str = ""
    readiness: Readiness = field(default_factory=Readiness)
    brings_model: bool = False
    may_title: bool = True
    title_cost: float | None = None
    may_propose: bool = True
    follow_up_cost: float | None = None
    here: bool = False
    dictation_services: Sequence[tuple[str, str]] = ()
    dictation_here: bool = False
    dictated: Sequence[ModelCalled] = ()
    judge_cost: float | None = None
    may_judge: bool = True
    may_check: bool = True
    tools: int = 0
    servers: int = 0
    trouble: Trouble = ""
    libraries: int = 0
    documents: int = 0
    space: UsedSpace = field(default_factory=UsedSpace)
    notes: Sequence[Note] = ()
    backed_up: float | None = None
    may_back_up: bool = False
    version: str = ""
    may_share: bool = True
    person: Person | None = None
    keeps_house: bool = False
    is_guest: bool = False
    has_accounts: bool = False
    may_own: bool = True


def settings_html(shown: ShownSettings, words: Words) -> str:
    """Markup of the whole page: a head, the list of its parts, and the parts in one scroll."""
    title, find, back = (escaped(words(f"settings.{key}")) for key in ("title", "find", "back"))
    links = "".join(_link(name, shown, words) for name in SECTIONS)
    parts = "".join(_part(name, _PARTS[name](shown, words), words) for name in SECTIONS)
    return (
        f'<header><button type="button" class="p-icon p-back" data-leave aria-label="{back}" title="{back}"></button>'
        f'<h1 id="p-settings-title" tabindex="-1">{title}</h1><p class="p-told" role="status"></p>'
        f'<label class="p-seek"><span class="p-sr">{find}</span>'
        f'<input type="search" placeholder="{find}" autocomplete="off" spellcheck="false"></label>'
        f'<button type="button" class="p-icon p-close" data-leave aria-label="{back}" title="{back}"></button></header>'
        f'<div class="p-scroll"><nav aria-label="{title}">{links}</nav><div class="p-sections">{parts}'
        f'<p class="p-nothing" role="status" hidden>{escaped(words("settings.nothing"))}</p></div></div>'
    )


def size_said(count: int) -> str:
    """Bytes as people say them: "512 B", "2.4 GB"."""
    number, unit = float(count), 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit and number < 10 else f"{round(number)} {_UNITS[unit]}"


def _link(name: str, shown: ShownSettings, words: Words) -> str:
    mark = _mark(shown.trouble, words) if name == "tools" else ""
    said = escaped(words(f"settings.{name}"))
    return f'<a href="./settings/{name}" data-section="{name}"><span>{said}</span>{mark}</a>'


def _mark(trouble: Trouble, words: Words) -> str:
    if not trouble:
        return ""
    said = escaped(words(f"tools.server_{trouble}"))
    return f'<span class="p-st {_TROUBLES[trouble]}" role="img" aria-label="{said}" title="{said}"></span>'


def _part(name: str, body: str, words: Words) -> str:
    heading = escaped(words(f"settings.{name}"))
    return (
        f'<section id="p-s-{name}" aria-labelledby="p-s-{name}-h"><h2 id="p-s-{name}-h">{heading}</h2>{body}</section>'
    )


# ---- rows


def _row(name: str, control: str, words: Words, *, note: str | None = None, labels: str = "", form: str = "") -> str:
    """A name with a note below it, and what can be done at the right.

    Args:
        note: Below the name; the sentence `settings.<name>_note` if left out.
        labels: The id of the control that the name is the label of.
        form: A class of the row, with a space before it.
    """
    said = words(f"settings.{name}_note") if note is None else note
    label = escaped(words(f"settings.{name}"))
    shown = f'<label for="{labels}">{label}</label>' if labels else f'<span class="p-label">{label}</span>'
    below = f'<span class="p-note" id="p-n-{name}">{escaped(said)}</span>' if said else ""
    what = f'<div class="p-what">{shown}{below}</div>'
    return f'<div class="p-set{form}">{what}<div class="p-how">{control}</div></div>'


def _switch(name: str, words: Words, *, on: bool, kept: str = "set", note: str | None = None) -> str:
    checked = " checked" if on else ""
    box = (
        f'<input type="checkbox" role="switch" id="p-v-{name}" data-{kept}="{name}" '
        f'aria-describedby="p-n-{name}"{checked}>'
    )
    return _row(name, box, words, note=note, labels=f"p-v-{name}", form=" p-switched")


def _choice(
    name: str, values: Sequence[tuple[str, str]], words: Words, kind: str = "p-segment", note: str | None = None
) -> str:
    """One of a few short words; the script knows which, for the browser keeps it."""
    boxes = "".join(
        f'<label><input type="radio" name="p-v-{name}" data-keep="{name}" value="{value}">'
        f"<span>{escaped(said)}</span></label>"
        for value, said in values
    )
    label = escaped(words(f"settings.{name}"))
    return _row(name, f'<div class="{kind}" role="radiogroup" aria-label="{label}">{boxes}</div>', words, note=note)


def _button(act: str, said: str, kind: str = "") -> str:
    return (
        f'<button type="button" class="p-button {kind}" data-do="{act}" aria-haspopup="dialog">{escaped(said)}</button>'
    )


# ---- parts


def _general(shown: ShownSettings, words: Words) -> str:
    choices = [("", words("settings.system")), *((code, sentences(code)["lang.name"]) for code in LANGUAGES)]
    options = "".join(
        f'<option value="{code}"{" selected" if code == shown.language else ""}>{escaped(said)}</option>'
        for code, said in choices
    )
    themes = [(value, words(f"settings.theme_{value or 'system'}")) for value in ("light", "dark", "")]
    sizes = [(value, words("settings.pixels", n=pixels)) for value, pixels in _SIZES]
    enters = [(value, words(f"settings.enter_{value or 'send'}")) for value in ("", "line")]
    rows = [
        _row(
            "language",
            f'<select id="p-v-language" data-set="language">{options}</select>',
            words,
            labels="p-v-language",
        ),
        _choice("theme", themes, words, note=""),
        _choice("size", sizes, words, "p-steps"),
        _choice("enter", enters, words),
        _switch("formatted", words, on=shown.preferences.formatted),
        _switch("notices", words, on=False, kept="keep"),
    ]
    rows += _dictation(shown, words)
    if shown.may_title:
        note = words("settings.titles_note", cost=money(shown.title_cost, words, free=shown.here))
        rows.append(_switch("titles", words, on=shown.preferences.titles, note=note))
    if shown.may_propose:
        cost = money(shown.follow_up_cost, words, free=shown.here)
        note = words("settings.follow_ups_note", cost=cost)
        rows.append(_switch("follow_ups", words, on=shown.preferences.follow_ups, note=note))
    return "".join(rows)


def _dictation(shown: ShownSettings, words: Words) -> list[str]:
    """What turns speech into text, and where that is a service, which of its models."""
    chosen, services = shown.preferences.dictation, shown.dictation_services
    note = words("settings.dictation_note")
    if shown.dictated:
        cost, free = total(shown.dictated).cost, all(one.here for one in shown.dictated)
        key = "settings.dictation_waits_one" if len(shown.dictated) == 1 else "settings.dictation_waits"
        waits = words(key, n=len(shown.dictated), cost=money(cost, words, free=free))
        note = words("settings.and", first=note, second=waits)
    listed = choice_html(chosen, services, words, here=shown.dictation_here, labelled="p-v-dictation")
    rows = [_row("dictation", listed, words, labels="p-v-dictation", note=note)]
    if chosen in dict(services):
        usual = usual_model(chosen)
        box = (
            f'<input type="text" id="p-v-dictation_model" data-set="dictation_model" placeholder="{escaped(usual)}" '
            f'value="{escaped(shown.preferences.dictation_model)}" maxlength="200" autocomplete="off" '
            f'spellcheck="false" aria-describedby="p-n-dictation_model">'
        )
        rows.append(_row("dictation_model", box, words, labels="p-v-dictation_model"))
    return rows


def _you(shown: ShownSettings, words: Words) -> str:
    return (
        f'<p class="p-about" id="p-n-about_me">{escaped(words("settings.about_note"))}</p>'
        f'<textarea id="p-v-about_me" data-set="about_me" rows="4" maxlength="{LONGEST_ABOUT}" dir="auto" '
        f'aria-label="{escaped(words("settings.you"))}" aria-describedby="p-n-about_me" '
        f'placeholder="{escaped(words("settings.about_hint"))}">{escaped(shown.preferences.about_me)}</textarea>'
        f'<p class="p-beneath"><span class="p-letters" data-most="{LONGEST_ABOUT}"></span>'
        f"<span>{escaped(words('settings.kept_as_you_type'))}</span></p>"
        f"{_who(shown, words)}"
    )


def _who(shown: ShownSettings, words: Words) -> str:
    """The account, and the way to it; of a guest, what that means."""
    if shown.is_guest:
        said = escaped(words("account.sign_in"))
        way = f'<a class="p-button" href="./sign-in">{said}</a>' if shown.has_accounts else ""
        return _row("guest", way, words)
    if shown.person is None:
        return ""
    note = words("settings.account_note", name=shown.person.name, role=words(f"role.{shown.person.role}"))
    open_ = escaped(words("settings.account_open"))
    rows = [_row("account", f'<a class="p-button" href="./account">{open_}</a>', words, note=note)]
    if shown.person.role != "guest":
        rows.append(_row("lending_row", f'<a class="p-button" href="./lending">{open_}</a>', words))
    if shown.keeps_house:
        rows.append(_row("people_row", f'<a class="p-button" href="./people">{open_}</a>', words))
    return "".join(rows)


def _models(shown: ShownSettings, words: Words) -> str:
    state, label = ready_line(shown.readiness, words)
    rows: list[str] = []
    change = ""
    if not shown.brings_model and shown.may_own:
        note = escaped(words("settings.models_note"))
        rows.append(f'<p class="p-about">{note}</p><div class="p-services-here"></div>')
        said = escaped(words("settings.change"))
        change = f'<button type="button" class="p-button" data-models aria-haspopup="dialog">{said}</button>'
    rows.append(_row("answers", f'<span class="p-state">{state}</span>{change}', words, note=label))
    if shown.may_check:
        rows.append(_switch("check_claims", words, on=shown.preferences.check_claims))
    if shown.may_check and shown.may_judge:
        rows.append(_judge(shown, words))
    return "".join(rows)


def _judge(shown: ShownSettings, words: Words) -> str:
    """When the model judges the sentences of an answer, with the price of it."""
    said = {value: escaped(words(f"settings.judge_{value or 'click'}")) for value in JUDGES}
    options = "".join(
        f'<option value="{value}"{" selected" if value == shown.preferences.judge else ""}>{label}</option>'
        for value, label in said.items()
    )
    cost = money(shown.judge_cost, words, free=shown.here)
    control = f'<select id="p-v-judge" data-set="judge" aria-describedby="p-n-judge">{options}</select>'
    return _row("judge", control, words, labels="p-v-judge", note=words("settings.judge_note", cost=cost))


def _tools(shown: ShownSettings, words: Words) -> str:
    counted = words("settings.tools_on", n=shown.tools, servers=shown.servers)
    open_ = _button("tools", words("settings.open"))
    return _row("tools_row", f"{_mark(shown.trouble, words)}{open_}", words, note=counted)


def _libraries(shown: ShownSettings, words: Words) -> str:
    counted = words("settings.libraries_there", n=shown.libraries, documents=shown.documents)
    return _row("libraries_row", _button("libraries", words("settings.open")), words, note=counted)


def _programs(_shown: ShownSettings, words: Words) -> str:
    """Where the script lists the keys that let programs in."""
    said = escaped(words("settings.programs_note"))
    return f'<p class="p-about">{said}</p><div class="p-api-keys-here"></div>'


def _data(shown: ShownSettings, words: Words) -> str:
    space = shown.space
    sizes = {"documents": space.documents, "files": space.files, "conversations": space.conversations}
    if space.shares:
        sizes["shares"] = space.shares
    whole = sum(sizes.values()) or 1
    bar = "".join(
        f'<i class="p-of-{name}" style="flex-grow:{size / whole:.4f}"></i>' for name, size in sizes.items() if size
    )
    said = "".join(
        f'<li class="p-of-{name}">{escaped(words(f"settings.{name}_size", size=size_said(size)))}</li>'
        for name, size in sizes.items()
    )
    talks = words("settings.talks_one" if space.talks == 1 else "settings.talks", n=space.talks)
    word = escaped(words("settings.delete_word"))
    bring = escaped(words("settings.import_do"))
    danger = f'<button type="button" class="p-button p-danger" data-delete data-word="{word}" aria-haspopup="dialog">'
    return (
        f'<p class="p-about">{escaped(words("settings.data_note"))}</p>'
        f'<div class="p-space" aria-hidden="true">{bar}</div><ul class="p-sizes" role="list">{said}</ul>'
        + _row("export", _exports(words), words, form=" p-ways-out")
        + _row("import", f'<button type="button" class="p-button" data-import>{bring}</button>', words)
        + (_links(words) if shown.may_share else "")
        + _row("delete", f"{danger}{escaped(words('settings.delete_do'))}</button>", words, note=talks)
    )


def _links(words: Words) -> str:
    """Where the script lists the links that lead to shared snapshots."""
    said, note = escaped(words("settings.links")), escaped(words("settings.links_note"))
    return (
        f'<div class="p-shared"><h3 id="p-s-links" tabindex="-1">{said}</h3><p class="p-about">{note}</p>'
        '<div class="p-links-here" role="group" aria-labelledby="p-s-links"></div></div>'
    )


def _exports(words: Words) -> str:
    """All conversations as one archive, in each form that they can be taken along in."""
    forms = {"bundle": words("settings.export_bundle"), "html": "HTML", "pdf": "PDF", "md": "Markdown", "json": "JSON"}
    return "".join(
        f'<a class="p-button" href="./conversations/export?as={form}" download>{escaped(said)}</a>'
        for form, said in forms.items()
    )


def _notes(shown: ShownSettings, words: Words) -> str:
    none = f'<p class="p-about">{escaped(words("settings.notes_none"))}</p>' if not shown.notes else ""
    return f'<p class="p-about">{escaped(words("settings.notes_note"))}</p>{none}<div class="p-notes-here"></div>'


def _keyboard(_shown: ShownSettings, _words: Words) -> str:
    return '<div class="p-keys p-keys-here"></div>'


def _about(shown: ShownSettings, words: Words) -> str:
    said = escaped(shown.version or words("settings.version_unknown"))
    rows = [_row("version", f'<span class="p-state">{said}</span>', words, note="")]
    if shown.may_back_up:
        at = None if shown.backed_up is None else datetime.fromtimestamp(shown.backed_up).astimezone()
        when = words("settings.never") if at is None else f"{at:%Y-%m-%d %H:%M}"
        rows.append(_row("backup", f'<span class="p-state">{escaped(when)}</span>', words))
    return "".join(rows)


_PARTS: Final[dict[str, Callable[[ShownSettings, Words], str]]] = {
    "general": _general,
    "you": _you,
    "models": _models,
    "tools": _tools,
    "libraries": _libraries,
    "programs": _programs,
    "data": _data,
    "notes": _notes,
    "keyboard": _keyboard,
    "about": _about,
}
