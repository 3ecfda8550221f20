"""People in front of pages: each a browser with a cookie of its own, as far as the page's queue sees it."""

from __future__ import annotations

import json
import time
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from bench.pages import Functions, RawPage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

GONE = (httpx.HTTPError, OSError, RuntimeError, ValueError, KeyError)
"""What a page meets whose Parlour is gone."""


class Person(RawPage):
    """One tab of one browser."""

    _reply: AsyncGenerator[dict[str, Any]] | None = None
    _answer: dict[str, Any] | None = None

    @property
    def functions(self) -> Functions:
        """What the page's script calls."""
        return self._functions

    async def open_only(self) -> None:
        """Load the page of a conversation, and follow it no longer than until it is painted."""
        await self._client.get("/")
        await self._answered(self._functions.opened, [])

    async def rejoin(self) -> None:
        """Load the page of a conversation, and follow the reply that is being written in it. Raises one of `GONE`."""
        await self._client.get("/")
        self._reply = self._call(self._functions.opened, [])
        self._answer = await anext(self._reply)

    async def say(self, text: str) -> None:
        """Send a message; it is stored when this returns. Raises one of `GONE`."""
        await self._leave()
        self._reply = self._call(self._functions.send, [{"text": text, "files": []}])
        self._answer = await anext(self._reply)

    async def do(self, go: int, **asked: Any) -> None:
        """Have the page's bus do something; it is done when this returns. Raises one of `GONE`."""
        await self._answered(go, [json.dumps(asked)])

    async def _answered(self, number: int, data: list[Any]) -> None:
        async with aclosing(self._call(number, data)) as messages:
            await anext(messages)  # one comes at least, else `GONE`

    async def _leave(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.aclose()

    async def stop(self, number: int) -> None:
        """Press Stop. Raises one of `GONE`."""
        async with aclosing(self._call(number, [])) as messages:
            async for _ in messages:
                pass

    async def watch(self, *, first: str, last: str) -> tuple[float, bool]:
        """Follow the reply to its end.

        Args:
            first: A word with which it begins.
            last: A word with which it ends.

        Returns:
            When the first word was shown, by the clock of `time.perf_counter`, and whether the last one was.
        """
        seen, whole = 0.0, False
        message, reply = self._answer, self._reply
        while reply is not None and message is not None:
            if not seen or not whole:
                said = json.dumps(message)
                seen = seen or (time.perf_counter() if first in said else 0.0)
                whole = whole or last in said
            message = await anext(reply, None)
        await self._leave()
        return seen, whole


def listener(config: dict[str, Any], element: str, event: str) -> int:
    """The number of a listener, by its component and event."""
    components = {part["props"].get("elem_id"): part["id"] for part in config["components"]}
    target = [components[element], event]
    return next(int(one["id"]) for one in config["dependencies"] if target in one["targets"])


def browser(url: str, cookies: httpx.Cookies | None = None, conversation: str = "") -> httpx.AsyncClient:
    """What a browser sends with every request.

    Args:
        cookies: Those of another tab of it.
        conversation: What the page's address names.
    """
    referer = f"{url}/" + (f"?c={conversation}" if conversation else "")
    return httpx.AsyncClient(base_url=url, headers={"Referer": referer}, timeout=120, cookies=cookies)


async def config_of(url: str) -> dict[str, Any]:
    """The page's configuration."""
    async with browser(url) as client:
        await client.get("/")
        return (await client.get("/config")).json()


@asynccontextmanager
async def opened(urls: Sequence[str], count: int) -> AsyncGenerator[list[tuple[Person, httpx.AsyncClient]]]:
    """So many people with the page open, one after the other at each address."""
    functions = Functions.read(await config_of(urls[0]))
    clients = [browser(urls[number % len(urls)]) for number in range(count)]
    people = [(Person(client, functions), client) for client in clients]
    try:
        for person, _ in people:
            await person.open()
        yield people
    finally:
        for person, client in people:
            await person.close()
            await client.aclose()
