"""The question before a tool acts, docked above the composer: what it wants, with what, and why it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.messages.invisible import written_out
from webui.arguments import fields
from webui.panels import form
from webui.render.html import escaped, exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.runs.log import ApprovalAsked
    from core.runs.reply import CallBlock
    from webui.arguments import Field
    from webui.words import Words

_MOST_ROWS = 12
_LETTERS_A_ROW = 72


def wanted(asked: ApprovalAsked, words: Words) -> str:
    """What is asked, as a sentence without its stop."""
    return words("ask.wants", wants=asked.wants.get(words.lang) or asked.wants.get("en") or asked.name)


def which(asked: ApprovalAsked) -> str:
    """Tells a question from every other: a call of another version, or of another chat, may have the same id."""
    return f"{asked.until:.3f}"


def heard(asking: Sequence[CallBlock], words: Words) -> str:
    """What a screen reader says of it, once; nothing where nobody waits."""
    call = _first(asking)
    if call is None:
        return ""
    if call.input is not None:
        return words("ask.heard", what=form.asking(call.input, words))
    return words("ask.heard", what=wanted(call.asked, words)) if call.asked is not None else ""


def ask_html(asking: Sequence[CallBlock], words: Words) -> str:
    """Markup for `#ask`: the first of the calls that wait for the reader, nothing where none does.

    Args:
        asking: The calls that wait, in order.
        words: The reader's.
    """
    call = _first(asking)
    if call is None:
        return ""
    many = f'<span class="p-of">{escaped(words("ask.of", n=len(asking)))}</span>' if len(asking) > 1 else ""
    if call.input is not None:
        return form.form_html(call.input, many, words)
    asked = call.asked
    if asked is None:
        return ""
    head = (
        f'<div class="p-head"><h2 id="p-asks"><span class="p-st p-ask"></span>{escaped(wanted(asked, words))}</h2>'
        f'<span class="p-tool">{escaped(asked.name)}</span>{many}</div>'
    )
    return (
        f'<section class="p-asks" role="group" aria-labelledby="p-asks" data-call="{exact(asked.call_id)}" '
        f'data-asked="{which(asked)}">'
        f"{head}{_why(asked, words)}{_arguments(asked, words)}{_buttons(asked, words)}</section>"
    )


def _first(asking: Sequence[CallBlock]) -> CallBlock | None:
    return next((call for call in asking if call.input is not None or call.asked is not None), None)


def _why(asked: ApprovalAsked, words: Words) -> str:
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
    """Whether something is in the arguments that a reader cannot see, or that makes others stand where they are not."""
    return any(written_out(text) != text for field in fields(asked.arguments) for text in (field.name, field.text))


def _arguments(asked: ApprovalAsked, words: Words) -> str:
    rows = "".join(_row(number, field, words) for number, field in enumerate(fields(asked.arguments)))
    if not rows:
        return f'<p class="p-why">{escaped(words("ask.nothing"))}</p>'
    return f'<div class="p-args" role="group" aria-label="{escaped(words("ask.arguments"))}">{rows}</div>'


def _row(number: int, field: Field, words: Words) -> str:
    rows, lines = _rows(field.text), field.text.count("\n") + 1
    place = f"p-arg-{number}"
    told = words("ask.lines", n=lines) if lines > _MOST_ROWS else words("ask.letters", n=f"{len(field.text):,}")
    many = f'<span class="p-count-lines">{escaped(told)}</span>' if rows > _MOST_ROWS else ""
    # A break at the very beginning is left out by browsers: so there is one to be left out.
    return (
        f'<div class="p-arg"><label for="{place}">{escaped(field.name)}{many}</label>'
        f'<textarea id="{place}" rows="{min(rows, _MOST_ROWS)}" data-name="{exact(field.name)}" '
        f'data-kind="{field.kind}" dir="auto" spellcheck="false" autocomplete="off" '
        f'aria-describedby="{place}-wrong">&#10;{exact(field.text)}</textarea>'
        f'<p class="p-wrong" id="{place}-wrong" role="alert"></p></div>'
    )


def _rows(text: str) -> int:
    """About how many rows a text takes: browsers that do not fit a field to its text show no more than they are told.

    Wide letters are counted as two.
    """
    return sum(
        max(1, -(-sum(2 if sign > "\u1100" else 1 for sign in line) // _LETTERS_A_ROW)) for line in text.split("\n")
    )


def _buttons(asked: ApprovalAsked, words: Words) -> str:
    always = _button("always", "", words) if asked.may_be_always else ""
    allow = _button("allow", " p-main", words)
    return f'<div class="p-row">{_button("refuse", "", words)}{always}{allow}</div>'


def _button(act: str, kind: str, words: Words) -> str:
    label = escaped(words(f"ask.{act}"))
    return f'<button type="button" class="p-button p-{act}{kind}" data-do="{act}">{label}</button>'
