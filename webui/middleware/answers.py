"""Small answers, and bodies that are read once and played again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Message, Receive, Scope, Send

    HeaderList = Sequence[tuple[str, str]]

_GRADIO = "/gradio_api/"


async def answer(
    send: Send, status: int, text: str, kind: str = "text/plain; charset=utf-8", headers: HeaderList = ()
) -> None:
    """Answer with a text, one sentence as a rule.

    Args:
        send: Takes the answer.
        headers: Besides type and length.
    """
    body = text.encode()
    said = [("content-type", kind), ("content-length", str(len(body))), *headers]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def refuse(scope: Scope, send: Send, status: int, key: str, headers: HeaderList = ()) -> None:
    """Refuse a request in the reader's language; in JSON where Gradio's script asks, which reads nothing else.

    Args:
        send: Takes the answer.
        headers: Besides type and length.
    """
    sentence = words_of(scope)(key)
    headers = (("cache-control", "no-store"), *headers)
    if str(scope["path"]).startswith(_GRADIO):
        told = json.dumps({"detail": sentence, "error": sentence}, ensure_ascii=False)
        await answer(send, status, told, "application/json", headers)
    else:
        await answer(send, status, sentence, headers=headers)


def words_of(scope: Scope) -> Words:
    """The words of the language that a request asks for."""
    return Words.of(Headers(scope=scope).get("accept-language", ""))


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """The whole body of a request, or `None` where it is longer than `limit` bytes or the client left."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            return None
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives `body` first, and then what comes from the network."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
