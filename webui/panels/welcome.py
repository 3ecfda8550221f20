"""The page before its first frame, in the browser's language: name, search, greeting, questions to begin with."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import gradio as gr

from webui.page_look import Look
from webui.panels.demo import offered_html
from webui.render.markup import escaped
from webui.words import LANGUAGES, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradio.i18n import I18nData

    from core.importing.recording import About

Offered: TypeAlias = "Callable[[str], Mapping[str, About]]"

_KEYS = ("composer.label", "composer.placeholder", "chat.label", "foot.truth")
STARTERS = (1, 2, 3, 4)
_HOURS = ("morning", "day", "evening")
_WITH_FILE = (1, 4)
"""The starters that come with a file of `assets/samples`; the others name a tool."""


def starter(number: int, words: Words) -> tuple[str, str | None]:
    """The question of a starter, and its file in `assets/samples`, if any.

    Raises:
        KeyError: There is no starter of that number.
    """
    return words(f"starter.{number}.text"), words(f"starter.{number}.with") if number in _WITH_FILE else None


def greeting_html(
    words: Words,
    suggestions: Sequence[str] | None = None,
    offered: Mapping[str, About] = MappingProxyType({}),
    keeps: str = "",
) -> str:
    """Markup for `#hello`. It has all greetings; the script knows the hour and the style shows the right one.

    Args:
        suggestions: Questions in place of Parlour's own; may be empty.
        offered: The demonstrations that can be watched, by name.
        keeps: The key of a sentence on how long things are kept; "" where that goes without saying.
    """
    ask = f"<span>{escaped(words('hello.ask'))}</span>"
    greetings = "".join(
        words("lang.sentences", first=f'<span class="p-{hour}">{escaped(words(f"hello.{hour}"))}', second="</span>")
        for hour in _HOURS
    )
    if suggestions is None:
        starters = "".join(_starter_html(number, words) for number in STARTERS)
    else:
        starters = "".join(_suggestion_html(number, text) for number, text in enumerate(suggestions, 1))
    how = f'<p class="p-how">{escaped(words("hello.how"))}</p><div class="p-starters">{starters}</div>'
    kept = f'<p class="p-keeps">{escaped(words(keeps))}</p>' if keeps else ""
    greeting = f"<h2>{greetings}{ask}</h2>"
    return f'<div class="p-hello">{greeting}{how if starters else ""}{offered_html(offered, words)}{kept}</div>'


def _suggestion_html(number: int, text: str) -> str:
    return (
        f'<a class="p-do p-starter" role="button" href="#do-starter-{number}">'
        f'<span class="p-text">{escaped(text)}</span></a>'
    )


def _starter_html(number: int, words: Words) -> str:
    verb, text, tool = (escaped(words(f"starter.{number}.{part}")) for part in ("verb", "text", "with"))
    return (
        f'<a class="p-do p-starter" role="button" href="#do-starter-{number}"><span class="p-verb">{verb}</span>'
        f'<span class="p-text">{text}</span><span class="p-with">{tool}</span></a>'
    )


def brand_html(words: Words) -> str:
    """Markup for `#house`, above the list of conversations; never rendered again: the keyboard may be on it."""
    find = escaped(words("history.find"))
    return (
        f'<div class="p-mark" aria-hidden="true"></div><p class="p-house">{escaped(words("page.name"))}</p>'
        f'<a class="p-new" role="button" href="./" data-do="new">{escaped(words("history.new"))}</a>'
        f'<button type="button" id="p-find" data-do="find" aria-haspopup="dialog"><span>{find}</span>'
        f'<kbd aria-hidden="true"></kbd></button>'
    )


def _first_texts(lang: str, look: Look, offered: Offered, keeps: str) -> dict[str, str]:
    words = Words(lang)
    own = {"composer.placeholder": look.placeholder} if look.placeholder else {}
    questions = None if look.suggestions is None else [one.text for one in look.suggestions]
    return {
        **{key: words(key) for key in _KEYS},
        **own,
        "house": brand_html(words),
        "hello": greeting_html(words, questions, offered(lang), keeps),
    }


def translations(look: Look, offered: Offered = lambda _: {}, keeps: str = "") -> gr.I18n:
    """The texts of the page before its first frame, by language; the browser chooses without a round trip.

    Args:
        offered: Gives the demonstrations that can be watched in a language.
        keeps: As for `greeting_html`.
    """
    return gr.I18n(**{lang: _first_texts(lang, look, offered, keeps) for lang in LANGUAGES})


I18N = translations(Look())


def fixed(key: str) -> I18nData:
    """A value that the browser replaces by the text of its language."""
    return I18N(key)
