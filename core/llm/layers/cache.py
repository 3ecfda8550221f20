"""Answers a repeated request from a cache on disk, if `cache_dir` is set."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import SettingsError
from core.llm.local_files import user_path
from core.messages.events import MessageFinished

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.reply_store import ReplyStore
    from core.llm.request import ChatRequest, Layer, Source, Stream
    from core.llm.service import Served
    from core.messages.events import Event

_TIMEOUT = 5.0  # seconds; a slower cache is no help


def cache(model: Served) -> Layer:
    """The layer for one model; inactive without `cache_dir` in `generate_cfg` or beside it.

    `cache_size` is the limit in bytes (256 MiB), `cache_age` the one in seconds (30 days). Only complete replies are
    stored; a hit streams again, is marked as such, and costs nothing. A damaged entry is a miss.

    Raises:
        SettingsError: One of the three has a wrong value.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        place = request.generate.get("cache_dir") or model.cfg.get("cache_dir")
        return (
            _cached(_Store.at(place, request.generate, model.cfg), model, request, below) if place else below(request)
        )

    return layer


async def _cached(cache_store: _Store, model: Served, request: ChatRequest, below: Source) -> Stream:
    key, known = await cache_store.look(model, request)
    if known:
        if request.notes is not None:
            request.notes.cache_hit = True
        for event in known:
            yield event
        return
    seen: list[Event] = []
    async with aclosing(below(request)) as events:
        async for event in events:
            seen.append(event)
            if key and isinstance(event, MessageFinished):
                await cache_store.keep(key, seen)
            yield event


@dataclass(frozen=True, slots=True)
class _Store:
    """The store of replies, and their longest age in seconds."""

    store: ReplyStore
    age: float

    @classmethod
    def at(cls, place: Any, *settings: Mapping[str, Any]) -> _Store:
        from core.llm.reply_store import DEFAULT_BYTES, DEFAULT_SECONDS, reply_store

        if not isinstance(place, str | Path):
            raise SettingsError("'cache_dir' must be the path of a folder.", hint="Correct it in generate_cfg.")
        size = _number("cache_size", DEFAULT_BYTES, *settings)
        age = _number("cache_age", DEFAULT_SECONDS, *settings)
        return cls(reply_store(user_path(place), int(size)), age)

    async def look(self, model: Served, request: ChatRequest) -> tuple[str | None, list[Event]]:
        """The request's key, and the reply stored under it, empty for a miss."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await asyncio.to_thread(self._look, model, request, await model.account())
        except TimeoutError:
            return None, []

    async def keep(self, key: str, seen: list[Event]) -> None:
        """Store a finished reply."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                await asyncio.to_thread(self._keep, key, seen)
        except TimeoutError:  # the thread finishes by itself
            return

    def _look(self, model: Served, request: ChatRequest, account: str) -> tuple[str | None, list[Event]]:
        from core.llm.reply_store import cache_key, unpacked

        key = cache_key(model, request, account)
        kept = self.store.find(key, self.age) if key else None
        try:
            return key, unpacked(kept) if kept is not None else []
        except ValueError:
            return key, []

    def _keep(self, key: str, seen: list[Event]) -> None:
        from core.llm.reply_store import packed

        reply = packed(seen)
        if reply is not None:
            self.store.keep(key, reply, self.age)


def _number(name: str, default: float, *settings: Mapping[str, Any]) -> float:
    given = next((cfg[name] for cfg in settings if cfg.get(name) is not None), default)
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = 0.0
    if not (number > 0 and isfinite(number)):
        raise SettingsError(f"{name!r} must be a number above zero.", hint="Correct it in generate_cfg.")
    return number
