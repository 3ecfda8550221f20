"""Every sentence of the page, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webui.words.words import LANGUAGES, SCRIPT_WORDS, Lang, Words

if TYPE_CHECKING:
    from gradio.i18n import I18n

__all__ = ["LANGUAGES", "SCRIPT_WORDS", "Lang", "Words", "i18n"]


def i18n() -> I18n:
    """The words that stand on the page before the first frame, for `mount_gradio_app(i18n=…)`; imports Gradio."""
    from webui.words.fixed import I18N

    return I18N
