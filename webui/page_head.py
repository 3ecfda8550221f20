"""What our page's document has in its head beside Gradio's: the icon, the script's words, and what to load at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webui.bundles import script, stylesheet
from webui.words import script_words

if TYPE_CHECKING:
    from webui.words import Lang

_END, _ROOM = b"</head>", b"<gradio-app"


def with_head(page: bytes, lang: Lang) -> bytes:
    """The page with its head; any other document as it is.

    Args:
        page: Gradio's document.
        lang: The reader's language: the script gets the words of this one.
    """
    if _ROOM not in page:
        return page
    # Gradio's script asks for ours when it has drawn the page; by then they are there.
    head = (
        '<link rel="icon" type="image/svg+xml" href="./assets/icons/favicon.svg">'
        '<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">'
        f'<link rel="preload" as="style" href="./assets/{stylesheet().name}">'
        f'<link rel="modulepreload" href="./assets/{script().name}">'
        f'<script type="application/json" id="p-words">{script_words(lang)}</script>'
    )
    return page.replace(_END, head.encode() + _END, 1)
