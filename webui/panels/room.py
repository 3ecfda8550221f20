"""The empty room: a greeting, and four questions to begin with, each showing one ability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webui.words.words import Lang, Words

STARTERS = (1, 2, 3, 4)
_HOURS = ("morning", "day", "evening")
# Which starter brings which sample file along, by language.
_SAMPLES: dict[Lang, dict[int, str]] = {
    "en": {1: "policy.pdf", 4: "notes.md"},
    "zh": {1: "保险单.pdf", 4: "笔记.md"},
}


def starter(number: int, words: Words) -> tuple[str, str | None]:
    """The question of a starter, and the file in `assets/samples` that comes with it.

    Raises:
        KeyError: There is no starter of that number.
    """
    return words(f"starter.{number}.text"), _SAMPLES[words.lang].get(number)


def room_html(words: Words, suggestions: Sequence[str] | None = None) -> str:
    """Markup for `#hello`. The script knows the hour; the style shows the greeting that fits.

    Args:
        words: The reader's.
        suggestions: Questions to begin with, perhaps none, in place of Parlour's own.
    """
    apart = "" if words.lang == "zh" else " "
    greetings = "".join(f'<span class="p-{hour}">{escaped(words(f"hello.{hour}"))}{apart}</span>' for hour in _HOURS)
    if suggestions is None:
        starters = "".join(_starter_html(number, words) for number in STARTERS)
    else:
        starters = "".join(_suggestion_html(number, text) for number, text in enumerate(suggestions, 1))
    how = f'<p class="p-how">{escaped(words("hello.how"))}</p><div class="p-starters">{starters}</div>'
    greeting = f"<h2>{greetings}<span>{escaped(words('hello.ask'))}</span></h2>"
    return f'<div class="p-hello">{greeting}{how if starters else ""}</div>'


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
