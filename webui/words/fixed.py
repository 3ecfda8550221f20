"""What stands on the page before its first frame: the browser's language chooses, without a round trip.

Apart from the words themselves, because it needs Gradio, and the server speaks before Gradio is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gradio as gr

from webui.page_look import Look
from webui.panels.history import house_html
from webui.panels.room import room_html
from webui.words import LANGUAGES, Words

if TYPE_CHECKING:
    from gradio.i18n import I18nData

    from webui.words import Lang

_KEYS = ("composer.label", "composer.placeholder", "chat.label", "foot.truth")


def _fixed_words(lang: Lang, look: Look) -> dict[str, str]:
    words = Words(lang)
    own = {"composer.placeholder": look.placeholder} if look.placeholder else {}
    questions = None if look.suggestions is None else [one.text for one in look.suggestions]
    return {
        **{key: words(key) for key in _KEYS},
        **own,
        "house": house_html(words),
        "hello": room_html(words, questions),
    }


def translations(look: Look) -> gr.I18n:
    """What the browser chooses from, on a page of this look."""
    return gr.I18n(**{lang: _fixed_words(lang, look) for lang in LANGUAGES})


I18N = translations(Look())


def fixed(key: str) -> I18nData:
    """A value that the browser puts into its own language."""
    return I18N(key)
