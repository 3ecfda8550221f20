"""Parlour's page for times when it cannot be reached, and the service worker that holds it in the browser.

The worker steps in where the page itself is asked for and nothing answers. It caches nothing: the page is in its text.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from webui.bundles import assets_folder
from webui.middleware.entrance import plain_page
from webui.words import Words

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

PATH: Final = "/offline.js"
"""At the top, since a worker serves what lies below its own address."""
_PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_WORKER: Final = {
    "content-security-policy": "default-src 'none'; connect-src 'self'",  # it hands on what asks for the page
    "cache-control": "no-cache",
}
# The mark in the colours of both themes.
_COLOURS: Final = {
    "#1d201c": "currentColor",
    "#1d5a49": "light-dark(#1d5a49, #93ccb2)",
    "#d9ae17": "light-dark(#d9ae17, #f2cf3f)",
}


def offline_routes() -> list[BaseRoute]:
    """`GET /offline.js?lang=…`, for every browser that is let in: there is nothing of anybody's in it."""
    return [Route(PATH, _served, methods=["GET"])]


async def _served(request: Request) -> Response:
    text = worker(Words.named(request.query_params.get("lang", "")).lang)
    headers = {**_WORKER, "etag": f'"{sha256(text.encode()).hexdigest()[:16]}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(text, headers=headers, media_type="text/javascript")


@cache
def worker(lang: str) -> str:
    """The worker's whole text, the page in it.

    Args:
        lang: The code of a language of the page.
    """
    script = _read("offline/page.js")
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": _PAGE_POLICY.format(script=b64encode(sha256(script.encode()).digest()).decode()),
        "cache-control": "no-store",
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }
    page = json.dumps(offline_page(Words.named(lang), script), ensure_ascii=False)
    return f"const PAGE = {page};\nconst HEADERS = {json.dumps(headers)};\n{_read('offline/worker.js')}"


def offline_page(words: Words, script: str) -> str:
    """The page: what happened and what to do in one sentence, and a button.

    Args:
        script: Tries again, and loads what was asked for.
    """
    title = words("offline.title")
    mark = _read("icons/mark.svg").strip()
    for colour, both in _COLOURS.items():
        mark = mark.replace(colour, both)
    none = words("offline.none", time="{time}")
    body = (
        f"<main>{mark}<h1>{escape(title)}</h1><p>{escape(words('offline.say'))}</p>"
        f'<button type="button" id="now">{escape(words("offline.now"))}</button>'
        f'<p role="status" id="told" data-trying="{escape(words("offline.trying"))}" data-none="{escape(none)}"></p>'
        f"</main><script>{script}</script>"
    )
    icon = f"data:image/svg+xml,{quote(_read('icons/favicon.svg').strip())}"
    return plain_page(title, body, words, f'<link rel="icon" href="{icon}"><style>{_read("offline/page.css")}</style>')


def _read(name: str) -> str:
    return (assets_folder() / name).read_text("utf-8")
