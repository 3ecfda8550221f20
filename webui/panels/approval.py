"""The card above the composer: a tool call that waits for approval, or the form of an MCP server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from core.errors import BadArgumentsError, ParlourError
from core.mcp.forms import form_of
from core.mcp.journal import one_line
from core.messages.invisible import written_out
from core.tools.faults import FAULTS
from webui.render.markup import escaped, exact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.mcp.forms import FormField
    from core.runs.log import ApprovalAsked, InputAsked
    from core.runs.reply import CallBlock
    from webui.views import Unfit
    from webui.words import Words

_MOST_ROWS = 12
_LETTERS_A_ROW = 72
_ONE_LINE = " data-one-line"


def wanted_sentence(asked: ApprovalAsked, words: Words) -> str:
    """What the tool wants to do, as a sentence without its full stop."""
    return words("ask.wants", wants=asked.wants.get(words.spoken) or asked.wants.get("en") or asked.name)


def approval_mark(asked: ApprovalAsked) -> str:
    """Identifies a question: calls of other versions or conversations may have the same call id."""
    return f"{asked.until:.3f}"


def announced(asking: Sequence[CallBlock], words: Words) -> str:
    """What a screen reader announces; empty where nothing waits."""
    call = _first_waiting(asking)
    if call is None:
        return ""
    if call.input is not None:
        return words("ask.heard", what=asking_server(call.input, words))
    return words("ask.heard", what=wanted_sentence(call.asked, words)) if call.asked is not None else ""


def ask_html(asking: Sequence[CallBlock], words: Words, unfit: Unfit | None = None) -> str:
    """Markup for `#ask`: the first of the calls that wait for the reader, nothing where none does.

    Args:
        asking: The calls that wait, in order.
        unfit: What was typed into a card and does not fit; it is told where it is this one.
    """
    call = _first_waiting(asking)
    if call is None:
        return ""
    many = f'<span class="p-of">{escaped(words("ask.of", n=len(asking)))}</span>' if len(asking) > 1 else ""
    if call.input is not None:
        return form_html(call.input, many, words)
    asked = call.asked
    if asked is None:
        return ""
    title = escaped(wanted_sentence(asked, words))
    head = (
        f'<div class="p-head"><h2 id="p-asks"><span class="p-st p-ask"></span>{title}</h2>'
        f'<span class="p-tool">{escaped(asked.name)}</span>{many}</div>'
    )
    return (
        f'<section class="p-asks" role="group" aria-labelledby="p-asks" data-call="{exact(asked.call_id)}" '
        f'data-asked="{approval_mark(asked)}">'
        f"{head}{_approval_reason(asked, words)}{_arguments(asked, words, unfit)}{_buttons(asked, words)}</section>"
    )


def _first_waiting(asking: Sequence[CallBlock]) -> CallBlock | None:
    return next((call for call in asking if call.input is not None or call.asked is not None), None)


def _approval_reason(asked: ApprovalAsked, words: Words) -> str:
    key = f"ask.why.{asked.reason}"
    because = f"{escaped(words(key))} " if key in words else ""
    until = f'<span class="p-until" data-until="{asked.until:.0f}"></span>'
    written = set(map(str, asked.arguments.values()))  # these can be read below
    unseen = f'<p class="p-why p-unseen">{escaped(words("ask.unseen"))}</p>' if _hides(asked) else ""
    reached = "".join(f'<li dir="ltr">{escaped(one)}</li>' for one in asked.addresses if one not in written)
    return f'<p class="p-why">{because}{until}</p>{unseen}' + (
        f'<ul class="p-reached">{reached}</ul>' if reached else ""
    )


def _hides(asked: ApprovalAsked) -> bool:
    """Whether the arguments hold invisible characters, or some that reorder others."""
    return any(
        written_out(text) != text for field in argument_fields(asked.arguments) for text in (field.name, field.text)
    )


def _arguments(asked: ApprovalAsked, words: Words, unfit: Unfit | None) -> str:
    is_here = unfit is not None and (unfit.call_id, unfit.asked) == (asked.call_id, approval_mark(asked))
    rows = "".join(
        _argument_row(
            number, field, words, unfit if unfit is not None and is_here and unfit.field == field.name else None
        )
        for number, field in enumerate(argument_fields(asked.arguments))
    )
    if not rows:
        return f'<p class="p-why">{escaped(words("ask.nothing"))}</p>'
    return f'<div class="p-args" role="group" aria-label="{escaped(words("ask.arguments"))}">{rows}</div>'


def _argument_row(number: int, field: Field, words: Words, unfit: Unfit | None) -> str:
    rows, lines = _rows(field.text), field.text.count("\n") + 1
    place = f"p-arg-{number}"
    told = words("ask.lines", n=f"{lines:,}") if lines > _MOST_ROWS else words("ask.letters", n=f"{len(field.text):,}")
    many = f'<span class="p-count-lines">{escaped(told)}</span>' if rows > _MOST_ROWS else ""
    line = _ONE_LINE if _is_one_line(field) else ""
    wrong = f' data-refused="{exact(unfit.text)}" data-unfit="{exact(unfit.said)}"' if unfit is not None else ""
    # A break at the very beginning is left out by browsers: so there is one to be left out.
    return (
        f'<div class="p-arg{" p-counted" if many else ""}"><label for="{place}">{escaped(field.name)}{many}</label>'
        f'<textarea id="{place}" rows="{min(rows, _MOST_ROWS)}" data-name="{exact(field.name)}" '
        f'data-kind="{field.kind}"{line} dir="auto" spellcheck="false" autocomplete="off" '
        f'aria-describedby="{place}-wrong"{wrong}>&#10;{exact(field.text)}</textarea>'
        f'<p class="p-wrong" id="{place}-wrong" role="alert"></p></div>'
    )


def _is_one_line(field: Field) -> bool:
    """Whether a field expects one line: of a text that is what stands there."""
    return field.kind in {"number", "truth"} or (field.kind == "text" and "\n" not in field.text)


def _rows(text: str) -> int:
    """About how many rows a text takes, for browsers that do not fit a field to its text.

    Wide letters are counted as two.
    """
    return sum(
        max(1, -(-sum(2 if sign > "\u1100" else 1 for sign in line) // _LETTERS_A_ROW)) for line in text.split("\n")
    )


def _buttons(asked: ApprovalAsked, words: Words) -> str:
    always = _approval_button("always", "", words) if asked.may_be_always else ""
    allow = _approval_button("allow", " p-main", words)
    return f'<div class="p-row">{_approval_button("refuse", "", words)}{always}{allow}</div>'


def _approval_button(act: str, kind: str, words: Words) -> str:
    label = escaped(words(f"ask.{act}"))
    return f'<button type="button" class="p-button p-{act}{kind}" data-do="{act}">{label}</button>'


def form_html(asked: InputAsked, of: str, words: Words) -> str:
    """Markup for `#ask`.

    Args:
        of: Markup with the number of waiting questions.
    """
    fields = form_of(asked.schema) or ()
    said = "".join(f"<p>{escaped(line)}</p>" for line in asked.question.split("\n") if line.strip())
    rows = "".join(_form_row(number, field, words) for number, field in enumerate(fields))
    until = f'<span class="p-until" data-until="{asked.until:.0f}"></span>'
    title, decline = escaped(asking_server(asked, words)), _form_button("decline", "p-refuse", words)
    return (
        f'<section class="p-asks p-form" role="group" aria-labelledby="p-asks" data-call="{exact(asked.input_id)}">'
        f'<div class="p-head"><h2 id="p-asks"><span class="p-st p-ask"></span>{title}</h2>{of}'
        f'</div><p class="p-why">{escaped(words("form.why"))} {until}</p>'
        f'<div class="p-args"><div class="p-said" dir="auto">{said}</div>{rows}</div>'
        f'<div class="p-row">{decline}{_form_button("answer", "p-allow p-main", words)}</div>'
        "</section>"
    )


def asking_server(asked: InputAsked, words: Words) -> str:
    """Which server asks, as a sentence without its full stop."""
    return words("form.asks", server=one_line(asked.server))


def _form_row(number: int, field: FormField, words: Words) -> str:
    place = f"p-arg-{number}"
    needed = "" if field.needed else f'<span class="p-count-lines">{escaped(words("form.optional"))}</span>'
    hint = " ".join(part for part in (field.hint, _bounds(field, words)) if part)
    told = f'<p class="p-hint" id="{place}-hint" dir="auto">{escaped(hint)}</p>' if hint else ""
    described = f"{place}-wrong {place}-hint" if hint else f"{place}-wrong"
    about = (
        f'id="{place}" data-name="{exact(field.name)}" data-kind="{_form_kind(field)}" dir="auto" '
        f'autocomplete="off" aria-describedby="{described}"' + (' data-needed=""' if field.needed else "")
    )
    title = f'dir="auto">{escaped(field.title)}{needed}'
    if field.kind == "choices":
        label = f'<span class="p-label" id="{place}-label" {title}</span>'
        about += f' aria-labelledby="{place}-label"'
    else:
        label = f'<label for="{place}" {title}</label>'
    return (
        f'<div class="p-arg{" p-counted" if needed else ""}">{label}'
        f'{_control(field, about, words)}{told}<p class="p-wrong" id="{place}-wrong" role="alert"></p></div>'
    )


def _form_kind(field: FormField) -> str:
    return "number" if field.kind in {"number", "integer"} else "many" if field.kind == "choices" else "text"


def _control(field: FormField, about: str, words: Words) -> str:
    choices = field.choices
    if field.kind == "choices":
        return _boxes(field, about)
    if field.kind == "truth":
        choices = (("true", words("form.yes")), ("false", words("form.no")))
    if not choices:
        about += _ONE_LINE if "\n" not in field.text else ""
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


def _form_button(act: str, kind: str, words: Words) -> str:
    return f'<button type="button" class="p-button {kind}" data-do="{act}">{escaped(words(f"form.{act}"))}</button>'


Kind: TypeAlias = Literal["text", "number", "truth", "list", "object", "json"]


class Field(NamedTuple):
    """An argument as an editable field: text as it is, anything else as JSON."""

    name: str
    kind: Kind
    text: str


def argument_fields(arguments: Mapping[str, Any]) -> list[Field]:
    """The arguments as editable fields, in their order."""
    return [Field(name, _kind_of(value), _field_text(value)) for name, value in arguments.items()]


def edited_arguments(arguments: Mapping[str, Any], edits: object) -> dict[str, Any] | None:
    """The arguments with the reader's edits; None where nothing was changed.

    Args:
        arguments: As the model wrote them.
        edits: Texts of the edited fields by name; unknown names are ignored.

    Raises:
        ParlourError: key `wrong_arguments`: a text is not of the kind of its field.
    """
    if not isinstance(edits, dict):
        return None
    typed = cast("dict[str, object]", edits)
    made = {name: _edited_value(typed[name], value) if name in typed else value for name, value in arguments.items()}
    return None if made == dict(arguments) else made


def _edited_value(text: object, before: Any) -> Any:
    if not isinstance(text, str):
        raise _wrong_kind()
    whole = text.encode(errors="replace").decode()
    if isinstance(before, str):
        return whole
    try:
        value = json.loads(whole, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _wrong_kind() from error
    kind = _kind_of(before)
    if kind not in {"json", _kind_of(value)}:
        raise _wrong_kind()
    return value


def unfit_sentence(error: BadArgumentsError, words: Words) -> str:
    """What is wrong with arguments, for who typed them; in the tool's own words where it says so by itself."""
    fault, named, bound, kind = (str(error.details.get(one) or "") for one in ("fault", "named", "bound", "kind"))
    if kind:
        kinds = words("ask.unfit_or").join(words(f"ask.kind.{one}") for one in kind.split(","))
        return words("ask.unfit_kind", field=named, kind=kinds) if named else words("ask.unfit_all")
    if fault not in FAULTS:
        return words("ask.unfit", why=str(error))
    return words(f"ask.unfit_{fault}", field=named, bound=bound) if named else words("ask.unfit_all")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")


def _wrong_kind() -> ParlourError:
    return ParlourError("What was typed is not of the kind that stood there.", key="wrong_arguments")


def _kind_of(value: Any) -> Kind:
    match value:
        case str():
            return "text"
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case list():
            return "list"
        case dict():
            return "object"
        case _:
            return "json"


def _field_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, list | dict) and value else None)
