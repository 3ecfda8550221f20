"""Sharing something with groups in its own dialog, and news of what others share: routes that answer with JSON."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from core.storage.lending import KINDS, WRITABLE
from webui.context import json_body, log_text, text_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.storage.lending import Kind, Lending
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)
_PRIVATE: Final = {"cache-control": "no-store"}
_LONGEST: Final = 8 * 1024
_WAITS: Final = 25.0  # seconds until who waits for news is answered without any
_MOST_WAIT: Final = 50  # pages of one person, each of which is one tab
_LOOKS: Final = 5.0  # seconds between two looks: another process may have changed it
_WAYS: Final = frozenset({"none", "read", "write"})
_KEYS: Final = frozenset({"model", "server", "service"})


class LendingRoutes:
    """`GET /lending/of`, `POST /lending/change` and `GET /standing`, each for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words
        self._waiting: dict[str, set[asyncio.Event]] = {}
        context.engine.stores.standing.add(self._changed)

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/lending/of", self.shown, methods=["GET"]),
            Route("/lending/change", self.change, methods=["POST"]),
            Route("/standing", self.standing, methods=["GET"]),
        ]

    async def shown(self, request: Request) -> Response:
        """With whom something of one's own is shared, and with whom it could be."""
        kind, thing = (request.query_params.get(name, "") for name in ("kind", "thing"))
        return await self._told(request, lambda lending, words: self._shown(lending, kind, thing, words))

    async def change(self, request: Request) -> Response:
        """Share it with a group to read or to write, or no more."""
        asked = await json_body(request, _LONGEST)
        if asked is None:
            return JSONResponse({}, 400, _PRIVATE)
        kind, thing, group, how = (text_of(asked.get(name)) for name in ("kind", "thing", "group", "how"))
        if how not in _WAYS:
            return JSONResponse({}, 400, _PRIVATE)

        async def changed(lending: Lending, words: Words) -> dict[str, Any]:
            known = checked_kind(kind)
            reached = set(await lending.borrowers(known, thing))
            if how != "none":
                await lending.lend(group, known, thing, writes=how == "write")
            else:
                await lending.take_back(group, known, thing)
            for one in {*reached, *await lending.borrowers(known, thing)}:
                self._engine.services.changed(one, None)
            return await self._shown(lending, kind, thing, words)

        return await self._told(request, changed)

    async def standing(self, request: Request) -> Response:
        """What names one's role and all that is shared with one, as soon as it is another than the one that was seen.

        It answers after a while in any case; a page asks again then.
        """
        owner, seen = request.scope["owner"], request.query_params.get("seen", "")
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        lent, until = self._engine.stores.of(owner).lent, time.monotonic() + _WAITS
        changed, database = asyncio.Event(), self._engine.stores.database
        mine = self._waiting.setdefault(owner, set())
        if len(mine) >= _MOST_WAIT:
            return JSONResponse({}, 429, {**_PRIVATE, "retry-after": str(max(1, round(_WAITS)))})
        mine.add(changed)
        try:
            looked, now = database.others(), await lent.standing()
            while now == seen and (rest := until - time.monotonic()) > 0 and not await request.is_disconnected():
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(rest, _LOOKS)):
                        await changed.wait()
                await database.look_for_others()
                before, looked = looked, database.others()
                if changed.is_set() or looked != before:
                    changed.clear()
                    now = await lent.standing()
        except ParlourError as error:
            _log.info("It is not known what is shared with somebody: %s", error)
            return JSONResponse({}, 503, _PRIVATE)
        finally:
            mine.discard(changed)
            if not mine:
                self._waiting.pop(owner, None)
        return JSONResponse({"standing": now}, headers=_PRIVATE)

    # ---- inside

    def _changed(self) -> None:
        for mine in self._waiting.values():
            for one in mine:
                one.set()

    async def _shown(self, lending: Lending, kind: str, thing: str, words: Words) -> dict[str, Any]:
        known = checked_kind(kind)
        await lending.check_mine(known, thing)
        loans = {one.group_id: one for one in await lending.loans(known, thing)}
        members = await lending.members()
        groups: list[dict[str, Any]] = []
        for one in await lending.groups():
            loan = loans.get(one.group_id)
            names = members.get(one.group_id, [])
            people = words("lang.comma").join(names) or words("groups.nobody")
            groups.append(
                {
                    "id": one.group_id,
                    "name": one.group,
                    "people": people,
                    "how": "none" if loan is None else "write" if loan.writes else "read",
                }
            )
        ways = ["none", "read", *(["write"] if known in WRITABLE else [])]
        labels = {
            way: words(f"lending.way_{'use' if way == 'read' and known not in WRITABLE else way}") for way in ways
        }
        said = (
            words("lending.has", groups=words("lang.comma").join(one.group for one in loans.values())) if loans else ""
        )
        note = (
            "lending.note_model"
            if known == "model"
            else "lending.note_keys"
            if known in _KEYS
            else "lending.note_yours"
        )
        return {
            "groups": groups,
            "ways": [{"value": way, "label": labels[way]} for way in ways],
            "said": said or words("lending.has_nobody"),
            "note": words(note),
        }

    async def _told(self, request: Request, work: Callable[[Lending, Words], Awaitable[dict[str, Any]]]) -> Response:
        words = self._words(request.headers.get("accept-language", ""))
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        try:
            return JSONResponse(await work(self._engine.stores.of(owner).lending, words), headers=_PRIVATE)
        except ParlourError as error:
            return JSONResponse({"failed": words.error(error)}, headers=_PRIVATE)
        except Exception as error:  # the door of the page: the dialog says so, and goes on
            _log.error("Sharing something failed.\n%s", log_text(error))
            return JSONResponse({"failed": words.error({"key": "unexpected"})}, headers=_PRIVATE)


def checked_kind(given: str) -> Kind:
    """A kind of what can be shared. Raises NotFoundError."""
    found: Kind | None = next((one for one in KINDS if one == given), None)
    if found is None:
        raise NotFoundError("Nothing of this kind can be shared.", hint=f"Known: {', '.join(KINDS)}.")
    return found
