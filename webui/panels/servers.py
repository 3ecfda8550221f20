"""What is shown of signing in to a server: in the dialog about tools, and in the tab that the service sends back."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from core.toolbox.standing import OwnServer
    from webui.words import Words

_STYLE = (
    "html{color-scheme:light dark}body{max-width:34rem;margin:18vh auto 0;padding:0 1.5rem;"
    "font:1.05rem/1.6 system-ui,sans-serif}h1{font-size:1.4rem;line-height:1.3}p{opacity:.8}"
)


def sign_in_data(server: OwnServer, words: Words) -> dict[str, Any]:
    """The button, the link to the page of the service, and the way out."""
    host = urlsplit(server.page).netloc
    return {
        "needed": server.state == "sign_in",
        "address": server.page,
        "at": words("servers.sign_in_at", host=host) if host else "",
        "out": server.kept.signed_in,
    }


def answered_page(title: str, said: str, words: Words) -> str:
    """A tab that has done its work."""
    lang = "zh-CN" if words.lang == "zh" else "en"
    return (
        f'<!doctype html><html lang="{lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body><main><h1 dir="auto">{escape(title)}</h1><p>{escape(said)}</p></main></body></html>'
    )
