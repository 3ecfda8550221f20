"""What accounts cost: signing in, and looking up who asks at each request, beside the token's cookie of one owner."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from bench.figures import Figure, report
from core.errors import ParlourError
from core.people.people import People, new_person
from core.storage.database import Database
from core.storage.people import PeopleStore
from webui.auth import Cookies, Owners, PageToken
from webui.middleware.accounts import SESSION, AccountsMiddleware
from webui.panels.sign_in import not_allowed_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Message, Receive, Scope, Send

TIMES: Final = 20
REQUESTS: Final = 2000
PASSWORD: Final = "a sentence that nobody guesses"


async def cpu(work: Callable[[], Awaitable[object]], times: int) -> float:
    """Milliseconds of the processor, all threads together, of one of `times`."""
    begun = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - begun) / times * 1000


async def _inside(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unread(message: Message) -> None:
    del message


def _scope(cookie: str) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "path": "/search",
        "owner": None,
        "headers": [(b"cookie", cookie.encode())],
    }


async def measured(folder: Path) -> list[Figure]:
    """The figures, with a database of 100 people in a folder."""
    database = await Database.open(folder / "parlour.db")
    people = People(PeopleStore(database))
    hashed = await people.passwords.hashed(PASSWORD)
    for number in range(100):
        await people.store.add(new_person(f"Person {number}", "member", hashed), "terminal")

    async def signs_in(name: str, password: str) -> object:
        try:
            return await people.sign_in(name, password, address="", browser="")
        except ParlourError as error:
            if error.words_key != "sign_in_wrong":  # refused before anything was hashed
                raise
            return error

    right = await cpu(lambda: signs_in("person 7", PASSWORD), TIMES)
    unknown = await cpu(lambda: signs_in("nobody", PASSWORD), 5)
    token = (await people.open_session(await people.store.get((await people.store.list())[0].id), browser="")).token
    cookies = Cookies("key")
    app = AccountsMiddleware(_inside, people, cookies, guests=False, refusal=not_allowed_page)
    scope = _scope(f"{cookies.name}{SESSION}={token}")
    asked = await cpu(lambda: app(scope, _nothing, _unread), REQUESTS)
    owners = Owners("key", local=True)
    shown = PageToken("key", "the token of one owner", cookies=owners.cookies)
    proof = shown.proof(https=False).partition(";")[0]

    async def by_token() -> None:
        if shown.shown_by(proof):
            await _inside(scope, _nothing, _unread)

    alone = await cpu(by_token, REQUESTS)
    await database.aclose()
    beside = f"by the token's cookie {alone * 1000:.0f} µs, by a session {asked * 1000:.0f} µs"
    return [
        Figure("signing in: CPU, all threads", right, 300, "ms"),
        Figure("a name that nobody has: CPU, all threads", unknown, 300, "ms"),
        Figure("who asks, by a session: CPU of each request", asked, 1, "ms", beside),
        Figure("a name that nobody has ÷ a right password", unknown / right, 1.25, "×"),
    ]


def main() -> None:
    """Measure and print."""
    with TemporaryDirectory() as folder:
        report(asyncio.run(measured(Path(folder))))


if __name__ == "__main__":
    main()
