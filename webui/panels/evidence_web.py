"""Where a passage from the web stands: a link that shows its host, and that nothing follows by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webui.render.evidence import host_of
from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webui.words import Words


def web_place(passage: Mapping[str, Any], words: Words) -> str:
    """Markup that stands where the page picture of a document would; "" for a passage that is of no web page."""
    host = host_of(passage)
    if not host:
        return ""
    address = escaped(str(passage["url"]))
    return (
        f'<p class="p-none p-web">{escaped(words("evidence.web"))} '
        f'<a href="{address}" target="_blank" rel="noopener noreferrer nofollow" title="{address}">'
        f"{escaped(words('evidence.web_open', host=host))}</a></p>"
    )
