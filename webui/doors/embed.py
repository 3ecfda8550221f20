"""The small chat that other sites show: `/embed.js`, the frame that it opens, and what the frame asks.

Whoever has the address of such a site reads its key, so the key is for this alone: it names who answers, has a budget,
and can be revoked. No cookie counts here, nothing is kept of what is said, and tools that would ask first are refused.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from core.doors.asked import BadRequestError, chat_asked, listed
from core.doors.chat import ReplyText
from core.doors.citations import MARK, cited_places
from core.doors.door import Answer
from core.errors import DocumentError, NotFoundError, StorageError
from core.export.prose_html import Prose
from core.messages.events import CallStarted
from core.storage.sealing import Sealer
from webui.bundles import assets_folder
from webui.doors.entry import Entry, json_of
from webui.doors.refusals import JsonAnswer
from webui.doors.stream import ReplyStream
from webui.doors.stream import event as told_event
from webui.middleware.owner import EMBED_PAGE, EMBED_SCRIPT
from webui.middleware.proxy import client_address, counted_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.doors.door import Door
    from core.messages.events import Event
    from webui.context import WebContext
    from webui.words import Words

_MOST_TURNS: Final = 40
_LONGEST: Final = 8_000  # characters of a question
_LONGEST_TURN: Final = 100_000  # of a reply that is told again
_HOUR: Final = 3600.0
_SHOWN_FOR: Final = 24 * _HOUR
"""Seconds for which the pictures of an answer's pages can be fetched."""
_ZOOM: Final = 2.0
_DRAWN_EACH: Final = 0.12  # seconds: the text is made anew as HTML no more often
_MOST_QUOTED: Final = 600
_PLACE: Final = "embed"
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors {sites}; "
    "sandbox allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox"
)
_TEXTS: Final = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
_SOON: Final = {"cache-control": "public, max-age=300"}
_SAID: Final = ("send", "stop", "again", "thinking", "tool", "failed", "often", "sources", "close", "truth")


def embed_routes(context: WebContext) -> list[BaseRoute]:
    """All of them; none where no site may show the chat."""
    return _Embedded(context).table() if context.settings.embed_sites else []


class _Embedded:
    """Answers the frame."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words
        sites = " ".join(("'self'", *context.settings.embed_sites))
        self._policy = _POLICY.format(sites=sites)
        self._sealer = Sealer(context.settings.signing_secret())
        self._rate = context.engine.limits.rate(
            "embed",
            context.settings.embed_questions or None,
            _HOUR,
            error="too_many_questions",
            message="Too many questions in one hour.",
        )

    def table(self) -> list[BaseRoute]:
        """All of them."""
        may = Entry(self._engine.doors).guarded
        return [
            Route(EMBED_SCRIPT, _file("embed.js"), methods=["GET"]),
            Route(EMBED_PAGE, self.page, methods=["GET"]),
            Route("/embed/frame.js", _file("frame.js"), methods=["GET"]),
            Route("/embed/frame.css", _file("frame.css"), methods=["GET"]),
            Route("/embed/about", may(self.about, "embed"), methods=["GET"]),
            Route("/embed/ask", may(self.ask, "embed"), methods=["POST"]),
            Route("/embed/page/{ticket}.png", self.picture, methods=["GET"]),
        ]

    async def page(self, request: Request) -> Response:
        """The frame; its script finds the key behind the `#` of its address, which no server is sent."""
        words = self._words(request.query_params.get("lang") or request.headers.get("accept-language", ""))
        headers = {"content-security-policy": self._policy, "cache-control": "no-cache", "vary": "Accept-Language"}
        return Response(_frame(words), headers=headers, media_type="text/html; charset=utf-8")

    async def about(self, request: Request, door: Door) -> Response:
        """Who answers, and questions to begin with."""
        offered = await door.find(_who(request.query_params.get("who", ""), door))
        persona = offered.persona
        sign = persona.sign or persona.name[:1] if persona is not None else offered.name[:1]
        starters = list(persona.starters) if persona is not None else []
        return JsonAnswer({"name": offered.name, "sign": sign, "starters": starters})

    async def ask(self, request: Request, door: Door) -> Response:
        """An answer, as a stream of events: the text so far as HTML, then where its marks lead."""
        given = await json_of(request)
        messages = _turns(given)
        await self._rate.take(counted_as(client_address(request)))
        await door.check_use()
        model = _who(given.get("who"), door)
        asked = chat_asked({"model": model, "stream": True}, messages)
        await door.find(asked.model)
        answer = Answer(door, asked)
        words = self._words(request.headers.get("accept-language", ""))
        return ReplyStream(answer, _Written(answer, words, self._sealer))

    async def picture(self, request: Request) -> Response:
        """The picture of a page that an answer cited, for whoever was given its ticket with that answer."""
        gone = PlainTextResponse("", 404, {"cache-control": "no-store"})
        try:
            owner, key_id, document, page, until = json.loads(self._sealer.open(request.path_params["ticket"], _PLACE))
        except (StorageError, ValueError):
            return gone
        if time.time() > until or not await self._counts(owner, key_id):
            return gone
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                if not await workspace.documents.owns_library_document(document):
                    return gone
                drawn = await (await workspace.index()).apage_image(document, page, _ZOOM)
        except (NotFoundError, DocumentError):
            return gone
        return Response(drawn, media_type="image/png", headers={"cache-control": "private, max-age=86400"})

    async def _counts(self, person_id: str, key_id: str) -> bool:
        """Whether a key of somebody is neither revoked nor over, and they may have programs. Raises StorageError."""
        keys = await self._engine.stores.of(person_id).api_keys.list()
        mine = next((one for one in keys if one.id == key_id), None)
        counts = mine is not None and mine.revoked_at is None and not mine.is_over(time.time())
        return counts and self._engine.people.lets_programs_in(person_id)


class _Written:
    """An answer as the frame is told it: `{"html"}` of all its text so far, `{"tool"}`, `{"cited"}`, `{"failed"}`."""

    def __init__(self, answer: Answer, words: Words, sealer: Sealer) -> None:
        self._answer = answer
        self._words = words
        self._sealer = sealer
        self._text = ReplyText()
        self._prose = Prose(lambda said, host: said or host)
        self._drawn = float("-inf")

    def first(self) -> bytes:
        """A sign that it begins."""
        return told_event({"begun": True})

    def piece(self, event: Event) -> bytes:
        """What an event adds."""
        if isinstance(event, CallStarted):
            return told_event({"tool": event.name})
        if not self._text.piece(event) or (now := time.monotonic()) < self._drawn + _DRAWN_EACH:
            return b""
        self._drawn = now
        return told_event({"html": self._prose.html(self._text.whole)})

    async def last(self) -> bytes:
        """The whole of it, with what was not run, and where its marks lead."""
        guard = self._answer.guard
        if guard is not None and (told := guard.told(self._answer.lang)):
            self._text.add(told)
        text = self._text.whole
        reply = (*self._answer.earlier, *self._answer.messages())
        cited = {place["number"]: place for place in map(self._place, cited_places(reply, text, {}))}
        shown = self._prose.html(text, lambda said: MARK.sub(lambda mark: _button(mark[0], mark[1], cited), said))
        return told_event({"html": shown, "text": text, "cited": list(cited.values()), "reason": self._answer.reason})

    def failed(self, told: dict[str, object]) -> bytes:
        """Why it broke off."""
        error = cast("Mapping[str, Any]", told.get("error") or {})
        return told_event({"failed": error.get("message") or self._words("embed.failed")})

    def _place(self, annotation: Mapping[str, Any]) -> dict[str, Any]:
        if annotation["type"] == "url_citation":
            about = annotation["url_citation"]
            told = {"number": about["number"], "name": about["title"] or about["url"]}
            return {**told, "url": about["url"]} if _WEB.match(about["url"]) else told
        about = annotation["file_citation"]
        page, name = about["page"], about["filename"]
        told = {"number": about["number"], "name": name, "quote": about["quote"][:_MOST_QUOTED]}
        if not isinstance(page, int) or not about["document_id"]:
            return told
        door = self._answer.door
        ticket = [door.owner, door.key.id, about["document_id"], page, int(time.time() + _SHOWN_FOR)]
        sealed = self._sealer.seal(json.dumps(ticket), _PLACE)
        where = self._words("embed.page", page=page)
        return {**told, "where": where, "picture": f"./embed/page/{sealed}.png", "boxes": about["boxes"], "zoom": _ZOOM}


def _button(shown: str, number: str, cited: Mapping[int, Any]) -> str:
    if int(number) not in cited:
        return shown
    return f'<button type="button" class="mark" data-number="{int(number)}">{int(number)}</button>'


def _who(given: object, door: Door) -> str:
    """Who is asked: what the site names, else the first that its key names."""
    named = given.strip() if isinstance(given, str) else ""
    models = door.key.models or ()
    if not named and models:
        return models[0]
    return next((one for one in models if one in {named, f"persona:{named}"}), named)


def _turns(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation so far, its last turn the question. Raises BadRequestError."""
    turns = listed(given, "messages", _MOST_TURNS * 2)
    for at, turn in enumerate(turns):
        role, content = turn.get("role"), turn.get("content")
        most = _LONGEST if role == "user" else _LONGEST_TURN
        if role not in {"user", "assistant"} or not isinstance(content, str) or not content.strip():
            raise BadRequestError("Each message has a role, user or assistant, and a text.", param=f"messages[{at}]")
        if len(content) > most:
            said = f"A message has at most {most:,} characters."
            raise BadRequestError(said, param=f"messages[{at}]", code="too_large")
    if turns[-1]["role"] != "user":
        raise BadRequestError("The last message must be the user's.", param="messages")
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns[-_MOST_TURNS:]]


def _frame(words: Words) -> str:
    """The page in the frame."""
    said = {name: words(f"embed.{name}") for name in _SAID}
    ask, title = escape(words("embed.ask")), escape(words("embed.title"))
    return (
        f'<!doctype html><html lang="{words("lang.tag")}"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="./embed/frame.css"><script src="./embed/frame.js" defer></script>'
        f'<body data-words="{escape(json.dumps(said, ensure_ascii=False))}">'
        '<header><span id="sign" aria-hidden="true"></span><h1 id="name"></h1>'
        f'<button type="button" id="again" hidden title="{escape(said["again"])}" aria-label="{escape(said["again"])}">'
        "↺</button></header>"
        f'<main id="talk" role="log" aria-live="polite" aria-label="{title}" tabindex="0"></main>'
        f'<form id="ask"><textarea id="text" rows="1" maxlength="{_LONGEST}" placeholder="{ask}" aria-label="{ask}">'
        f'</textarea><button type="submit" id="send" aria-label="{escape(said["send"])}">↑</button></form>'
        f'<p id="truth">{escape(said["truth"])}</p><aside id="source" hidden role="dialog" aria-modal="true"'
        f' aria-label="{escape(said["sources"])}"></aside></body></html>'
    )


def _file(name: str) -> Any:
    async def served(request: Request) -> Response:
        del request
        body = await asyncio.to_thread(_read, name)
        return Response(body, headers=_SOON, media_type=_TEXTS[name.rpartition(".")[2]])

    return served


@cache
def _read(name: str) -> str:
    return (assets_folder() / "embed" / name).read_text("utf-8")
