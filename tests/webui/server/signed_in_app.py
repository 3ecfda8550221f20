"""An app in a process of its own that people sign in to, and browsers of theirs that are signed in already."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.kills.forked_page import ForkedApp, Origin
from core.people.people import People, checked_role, new_person
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage
from webui.auth import Cookies
from webui.middleware.accounts import SESSION

SECRET = "the secret that signs cookies of this house"


@dataclass
class SignedIn:
    """The app, and who may come in.

    Args:
        tokens: Of a session of each person, by their names.
    """

    app: AppProcess
    tokens: dict[str, str]

    def browser(self, name: str) -> RawPage:
        """A tab of a person's browser, or of a guest without an account where the name is `browser`."""
        client = httpx.Client(timeout=60, headers={"origin": self.app.url})
        if name == "browser":
            assert client.post(f"{self.app.url}/guest").status_code == 303
        else:
            client.cookies.set(f"{Cookies(SECRET).name}{SESSION}", self.tokens[name])
        return RawPage(self.app.url, client=client).open()


@contextmanager
def house_of(folder: Path, origin: Origin, people: Sequence[tuple[str, str]]) -> Iterator[SignedIn]:
    """Such an app, to the end of a `with` block.

    Args:
        people: Names, and roles.
    """
    tokens = asyncio.run(_registered(folder / "home", people))
    settings = {"ACCOUNTS": "accounts", "GUESTS": "1", "SECRET": SECRET, "MAX_UPLOAD_MB": "1", "RETRIEVAL": "keyword"}
    with ModelServer(behave) as model:
        app = ForkedApp(folder / "home", model, settings, origin=origin).start()
        try:
            yield SignedIn(app, tokens)
        finally:
            app.stop()


async def _registered(home: Path, people: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Give each an account and a session, before the app is there; nothing is hashed for that."""
    home.mkdir(mode=0o700)
    database = await Database.open(home / "parlour.db")
    known = People(Stores(database, home / "files", Sealer(SECRET)).people)
    tokens: dict[str, str] = {}
    for name, role in people:
        person = await known.store.add(new_person(name, checked_role(role)), "terminal")
        tokens[name] = (await known.open_session(person, browser="")).token
    await database.aclose()
    return tokens
