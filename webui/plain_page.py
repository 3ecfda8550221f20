"""Pages that stand by themselves, before Parlour's own is there: no script, no file besides."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webui.words import Words

_STYLE = """
:root { color-scheme: light dark; background: light-dark(#f8f7f3, #191b19); color: light-dark(#1d201c, #e4e1d6); }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 18px/1.5 Georgia, "Noto Serif", serif; }
main { max-width: 34rem; padding: 24px; }
h1 { font-size: 30px; font-weight: normal; margin: 0 0 12px; }
form { display: flex; flex-wrap: wrap; gap: 8px; align-items: end; margin-top: 24px; }
label { flex: 1 1 14rem; display: grid; gap: 4px; font-size: 15px; }
input, button { font: inherit; padding: 8px 12px; border-radius: 6px; min-height: 44px; box-sizing: border-box; }
input { width: 100%; border: 1px solid #7f8076; background: light-dark(#fffefb, #232622); color: inherit; }
button { border: 0; background: light-dark(#1d5a49, #8fc9b2); color: light-dark(#fff, #12211b); cursor: pointer; }
[role=alert] { color: light-dark(#96281f, #f0a49b); }
"""


def plain_page(title: str, body: str, words: Words, head: str = "") -> str:
    """A whole document.

    Args:
        title: Text.
        body: Markup.
        words: The reader's language.
        head: Markup for the head.
    """
    lang = "zh-CN" if words.lang == "zh" else "en"
    return (
        f'<!doctype html>\n<html lang="{lang}"><head><meta charset="utf-8">{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )
