"""What a server wants to know, docked above the composer as a form; the words in it are marked as the server's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from core.mcp.forms import form_of
from core.mcp.shown import one_line
from webui.render.html import escaped, exact

if TYPE_CHECKING:
    from core.mcp.forms import FormField
    from core.runs.log import InputAsked
    from webui.words import Words


def form_html(asked: InputAsked, of: str, words: Words) -> str:
    """Markup for `#ask`.

    Args:
        asked: What is asked.
        of: Markup that says how many wait.
        words: The reader's.
    """
    fields = form_of(asked.schema) or ()
    said = "".join(f"<p>{escaped(line)}</p>" for line in asked.question.split("\n") if line.strip())
    rows = "".join(_row(number, field, words) for number, field in enumerate(fields))
    until = f'<span class="p-until" data-until="{asked.until:.0f}"></span>'
    return (
        f'<section class="p-asks p-form" role="group" aria-labelledby="p-asks" data-call="{exact(asked.input_id)}">'
        f'<div class="p-head"><h2 id="p-asks"><span class="p-st p-ask"></span>{escaped(asking(asked, words))}</h2>{of}'
        f'</div><p class="p-why">{escaped(words("form.why"))} {until}</p>'
        f'<div class="p-args"><div class="p-said" dir="auto">{said}</div>{rows}</div>'
        f'<div class="p-row">{_button("decline", "p-refuse", words)}{_button("answer", "p-allow p-main", words)}</div>'
        "</section>"
    )


def asking(asked: InputAsked, words: Words) -> str:
    """Who asks, as a sentence without its stop."""
    return words("form.asks", server=one_line(asked.server))


def _row(number: int, field: FormField, words: Words) -> str:
    place = f"p-arg-{number}"
    needed = "" if field.needed else f'<span class="p-count-lines">{escaped(words("form.optional"))}</span>'
    hint = " ".join(part for part in (field.hint, _bounds(field, words)) if part)
    told = f'<p class="p-hint" id="{place}-hint" dir="auto">{escaped(hint)}</p>' if hint else ""
    described = f"{place}-wrong {place}-hint" if hint else f"{place}-wrong"
    about = (
        f'id="{place}" data-name="{exact(field.name)}" data-kind="{_kind(field)}" dir="auto" '
        f'autocomplete="off" aria-describedby="{described}"' + (' data-needed=""' if field.needed else "")
    )
    title = f'dir="auto">{escaped(field.title)}{needed}'
    if field.kind == "choices":
        label = f'<span class="p-label" id="{place}-label" {title}</span>'
        about += f' aria-labelledby="{place}-label"'
    else:
        label = f'<label for="{place}" {title}</label>'
    return (
        f'<div class="p-arg">{label}'
        f'{_control(field, about, words)}{told}<p class="p-wrong" id="{place}-wrong" role="alert"></p></div>'
    )


def _kind(field: FormField) -> str:
    return "number" if field.kind in {"number", "integer"} else "many" if field.kind == "choices" else "text"


def _control(field: FormField, about: str, words: Words) -> str:
    choices = field.choices
    if field.kind == "choices":
        return _boxes(field, about)
    if field.kind == "truth":
        choices = (("true", words("form.yes")), ("false", words("form.no")))
    if not choices:
        return f'<textarea {about} rows="1" spellcheck="false">&#10;{exact(field.text)}</textarea>'
    options = [("", words("form.choose")), *choices]
    listed = "".join(
        f'<option value="{exact(value)}"{" selected" if value == field.text else ""}>{escaped(shown)}</option>'
        for value, shown in options
    )
    return f"<select {about}>{listed}</select>"


def _boxes(field: FormField, about: str) -> str:
    """A box to tick for each choice."""
    picked: list[str] = json.loads(field.text)
    bounds = "".join(
        f' data-{name}="{bound:g}"'
        for name, bound in (("least", field.least), ("most", field.most))
        if bound is not None
    )
    boxes = "".join(
        f'<label class="p-pick"><input type="checkbox" value="{exact(value)}"{" checked" if value in picked else ""}>'
        f'<span dir="auto">{escaped(shown)}</span></label>'
        for value, shown in field.choices
    )
    return f'<fieldset class="p-many" {about}{bounds}>{boxes}</fieldset>'


def _bounds(field: FormField, words: Words) -> str:
    unit = {"text": "chars", "choices": "picks"}.get(field.kind, "number")
    said = [
        words(f"form.{which}_{unit}", n=f"{bound:g}")
        for which, bound in (("least", field.least), ("most", field.most))
        if bound is not None
    ]
    return " ".join(said)


def _button(act: str, kind: str, words: Words) -> str:
    return f'<button type="button" class="p-button {kind}" data-do="{act}">{escaped(words(f"form.{act}"))}</button>'
