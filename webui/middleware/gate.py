"""Ties Gradio's queue to owners.

Gradio's routes are per application: whoever knows a session's name reads its stream, and whoever knows a path
reads the file. So only the routes that the page needs are open, a session belongs to the owner who used it
first, and a file is served to its owner alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

from core.mcp.app_addresses import AUTHORIZE, OPEN_PATHS
from webui.middleware.answers import read_body, refuse, replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from webui.uploads import Uploads

_log = logging.getLogger(__name__)
_API = "/gradio_api/"
_BODY_LIMIT = 8 * 1024 * 1024  # two million characters, whatever their script
_OPEN = frozenset({"startup-events", "app_id", "theme.css", "upload", "upload_progress"})
_PUBLIC = frozenset({"info", "call/ask", "call/v2/ask", "mcp", "mcp/", "mcp/schema"})
_PUBLIC_QUEUE = {"queue/join": "POST", "queue/data": "GET"}  # Gradio's own for who has a page open
_BODIES = frozenset({"queue/join", "cancel", "reset"})
# Beside `/gradio_api/`: the page, what it is made of, and Parlour's own routes, which look at the owner themselves.
_PAGES = frozenset(
    {"/", "/config", "/theme.css", "/favicon.ico", "/manifest.json", "/robots.txt", "/mcp", "/mcp/signed-in"}
    | {"/search", "/search/passages", "/meter", "/meter/save", "/offline.js", "/embed", "/embed.js"}
    | {AUTHORIZE, *OPEN_PATHS}
)
_PAGES_OF_PEOPLE = frozenset({"/sign-in", "/sign-out", "/guest", "/account", "/people", "/lending", "/standing"})
_OURS = (
    *("models", "documents", "libraries", "tools", "calls", "conversations", "uploads", "inspect", "preferences"),
    *("shares", "shared", "dictation", "keys", "v1", "embed"),
    "pictures",
    "steering",
)
_FOLDERS_OF_PEOPLE = ("/link/", "/account/", "/people/", "/lending/", "/sign-in/", "/login/")
_FOLDERS = tuple(f"/{name}/" for name in ("assets", "static", "files", "pages", *_OURS))
_LONGEST_NAME = 255  # bytes, in every file system
_LONGEST_SESSION = 64  # letters; those of Gradio's client have some ten
_MOST_SESSIONS = 50  # of one owner: each has messages that wait to be read

_TOLD_EACH = 60.0  # seconds: whoever opens page after page does not fill the log

_NOT_SERVED = "refused.not_here"
_NOT_YOURS = "refused.not_yours"
_TOO_MUCH = "refused.too_much"


class Claims:
    """Which owner used a name first. The longest unused names are forgotten beyond a limit, and after `age` seconds.

    Beyond what one owner may have, names that are followed go last: a page that is open may ask for nothing for hours.

    Args:
        limit: Names of everybody.
        age: Seconds.
        each: Names of one owner; `None` for any number.
        forgotten: Told of each name that is forgotten.
    """

    def __init__(
        self,
        limit: int = 50_000,
        age: float = 24 * 3600.0,
        *,
        each: int | None = None,
        forgotten: Callable[[str], None] | None = None,
    ) -> None:
        self._limit = limit
        self._age = age
        self._each = each
        self._forgotten = forgotten
        self._held: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._of: dict[str, OrderedDict[str, None]] = {}  # the names of each owner, the longest unused first
        self._followed: Counter[str] = Counter()
        self._told = float("-inf")

    def claim(self, name: str, owner: str) -> bool:
        """Whether `name` belongs to `owner`; a name that nobody has used is theirs from now on."""
        if not name or len(name) > _LONGEST_SESSION:
            return False
        held = self._held.get(name)
        if held is not None and held[0] != owner:
            return False
        self._held[name] = (owner, time.monotonic())
        self._held.move_to_end(name)
        own = self._of.setdefault(owner, OrderedDict())
        own[name] = None
        own.move_to_end(name)
        if self._each is not None and len(own) > self._each:
            self._drop_one(own, self._each)
        self._forget()
        return True

    def holds(self, name: str, owner: str) -> bool:
        """Whether `name` was claimed by `owner`."""
        held = self._held.get(name)
        return held is not None and held[0] == owner

    @contextmanager
    def followed(self, name: str, owner: str) -> Generator[bool]:
        """Whether `name` belongs to `owner`, as `claim` says; until the end of this it is in use."""
        if not self.claim(name, owner):
            yield False
            return
        self._followed[name] += 1
        try:
            yield True
        finally:
            self._followed[name] -= 1
            if not self._followed[name]:
                del self._followed[name]

    def _drop_one(self, own: OrderedDict[str, None], most: int) -> None:
        *earlier, _ = own  # the last has just been claimed
        unused = next((name for name in earlier if name not in self._followed), None)
        if unused is None and time.monotonic() >= self._told + _TOLD_EACH:
            self._told = time.monotonic()
            _log.warning(
                "More than %d pages of one owner are open at once: the one unused for longest is cut off.", most
            )
        self._drop(unused or earlier[0])

    def _forget(self) -> None:
        oldest = time.monotonic() - self._age
        while self._held:
            name, (_, used) = next(iter(self._held.items()))
            if len(self._held) <= self._limit and used >= oldest:
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        owner, _ = self._held.pop(name)
        own = self._of[owner]
        del own[name]
        if not own:
            del self._of[owner]
        if self._forgotten is not None:
            self._forgotten(name)


class GateMiddleware:
    """Lets through what the page needs and what belongs to the owner in `scope["owner"]`.

    Args:
        uploads: Files on their way in.
        forgotten: Told of each session whose name is forgotten: what waits for it is not read any more.
        functions: How many functions the page has; `None` where that is not known.
        public: Whether agents without a key may ask.
        accounts: People sign in, and have pages for that.
    """

    def __init__(
        self,
        app: ASGIApp,
        uploads: Uploads,
        *,
        forgotten: Callable[[str], None] | None = None,
        functions: int | None = None,
        public: bool = False,
        accounts: bool = False,
    ) -> None:
        self.app = app
        self._public = public
        self._uploads = uploads
        self._functions = functions
        self._pages = _PAGES | _PAGES_OF_PEOPLE if accounts else _PAGES
        self._folders = (*_FOLDERS, *_FOLDERS_OF_PEOPLE) if accounts else _FOLDERS
        self._sessions = Claims(each=_MOST_SESSIONS, forgotten=forgotten)
        self._events = Claims()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        if not path.startswith(_API):
            known = path in self._pages or (path.startswith(self._folders) and _may_exist(path))
            await (self.app(scope, receive, send) if known else refuse(scope, send, 404, _NOT_SERVED))
            return
        owner: str | None = scope["owner"]
        route = path.removeprefix(_API)
        is_queue = owner is None and _PUBLIC_QUEUE.get(route) == scope["method"]
        if self._public and (is_queue or _is_public(route)):
            await self.app(scope, receive, send)
            return
        if owner is None:
            await refuse(scope, send, 403, _NOT_YOURS)
            return
        if route in _BODIES:
            await self._with_body(route, owner, scope, receive, send)
        elif (session := _listens_to(route, scope)) is not None:
            with self._sessions.followed(session, owner) as known:
                await (self._heard(scope, receive, send) if known else refuse(scope, send, 403, _NOT_YOURS))
        elif self._may(route, owner):
            await self.app(scope, receive, send)
        else:
            await refuse(scope, send, 403, _NOT_YOURS)

    def _may(self, route: str, owner: str) -> bool:
        if route.startswith("file="):
            return self._uploads.owns(owner, route.removeprefix("file="))
        return route in _OPEN

    async def _heard(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream of a session; of one in which nothing is pending any more, it ends.

        Gradio says so in the stream, and raises what is a refusal where nothing was sent yet.
        """
        try:
            await self.app(scope, receive, send)
        except RuntimeError as error:
            if not isinstance(error.__cause__, HTTPException) or error.__cause__.status_code != 404:
                raise
            with suppress(Exception):  # who listened has left
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _with_body(self, route: str, owner: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Routes that name a session in their body: it is read, checked, and played again."""
        body = await read_body(receive, _BODY_LIMIT)
        if body is None:
            await refuse(scope, send, 413, _TOO_MUCH)
            return
        asked = _json(body)
        event, session = str(asked.get("event_id") or ""), str(asked.get("session_hash") or "")
        # Gradio's client names no session when it resets, which does nothing; the event must be its own all the same.
        known = self._sessions.claim(session, owner) if session or route != "reset" else True
        if not known or (route != "queue/join" and event and not self._events.holds(event, owner)):
            await refuse(scope, send, 403, _NOT_YOURS)
            return
        if route == "queue/join":
            if not self._has_function(asked.get("fn_index")):
                await refuse(scope, send, 404, _NOT_SERVED)
                return
            send = self._noting_event(owner, send)
            if await self._uploads.bring(owner, asked.get("data")):
                body = json.dumps(asked).encode()
        await self.app(scope, replayed(body, receive), send)

    def _has_function(self, number: object) -> bool:
        """Whether the page has this function; Gradio raises where it has none."""
        if self._functions is None:
            return True
        return isinstance(number, int) and 0 <= number < self._functions

    def _noting_event(self, owner: str, send: Send) -> Send:
        """A `send` that remembers whose the event is that Gradio's reply names."""
        pieces: list[bytes] = []

        async def note(message: Message) -> None:
            if message["type"] == "http.response.body":
                pieces.append(message.get("body", b""))
                if not message.get("more_body", False):
                    self._events.claim(str(_json(b"".join(pieces)).get("event_id") or ""), owner)
            await send(message)

        return note


def _is_public(route: str) -> bool:
    """Whether it is part of what agents without a key may use: routes of ours, never Gradio's own."""
    return route in _PUBLIC or route.startswith(("call/ask/", "call/v2/ask/"))


def _listens_to(route: str, scope: Scope) -> str | None:
    """The session whose stream this is; "" where it names none, or several."""
    if route == "queue/data":
        names = parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [])
        return names[0] if len(names) == 1 else ""
    return route.removeprefix("heartbeat/") if route.startswith("heartbeat/") else None


def _may_exist(path: str) -> bool:
    """Whether a file could have this path; Gradio asks the file system, which raises where none can."""
    return "\0" not in path and all(len(name.encode(errors="replace")) <= _LONGEST_NAME for name in path.split("/"))


def _json(body: bytes) -> dict[str, Any]:
    """A JSON object, or an empty one where the body is something else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
