"""Owners who sign in to their servers on the page: from the button to the answer, and what is kept of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from core.errors import NotFoundError, SettingsError, SignInNeededError
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.toolbox.server_form import OwnServer
from core.toolbox.user_mcp_servers import AllMcpServers, OwnerMcpServers
from tests.core.mcp.protected_server import Protected, protected
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

BACK = "http://127.0.0.1:7860/mcp/signed-in"
ANN, BOB = LOCAL_OWNER, "b-reader"


class TwoAtHome(AllMcpServers):
    """Both owners may reach servers of this machine."""

    def of(self, owner: str) -> OwnerMcpServers:
        found = super().of(owner)
        found.may_start_programs = True
        return found


class Desk:
    """The servers of two owners, and what a page would do."""

    def __init__(self, database: Database, folder: Path, notes: Protected) -> None:
        self.notes = notes
        self.stores = stores_over(database)
        self.servers = TwoAtHome(Settings.load(home=folder), self.stores)

    async def added(self, owner: str = ANN, **more: object) -> str:
        return (await self.servers.of(owner).add("notes", {"url": self.notes.url, **more})).id

    async def begun(self, server: str, owner: str = ANN) -> str:
        return await self.servers.of(owner).sign_in(server, BACK)

    async def answer(self, address: str) -> str:
        """What the service sends the browser back with."""
        return urlsplit(await self.notes.user_agrees(address)).query

    async def signed_in(self, owner: str = ANN) -> str:
        server = await self.added(owner)
        await self.servers.of(owner).signed_in(await self.answer(await self.begun(server, owner)))
        assert (await self.settled(owner)).state == "ready"
        return server

    async def settled(self, owner: str = ANN) -> OwnServer:
        while (one := (await self.servers.of(owner).list())[0]).state == "connecting":
            await asyncio.sleep(0)
        return one


@pytest.fixture
def notes() -> Iterator[Protected]:
    with protected() as both:
        yield both


@pytest.fixture
async def desk(database: Database, tmp_path: Path, notes: Protected) -> AsyncIterator[Desk]:
    desk = Desk(database, tmp_path, notes)
    yield desk
    await desk.servers.aclose()


async def test_a_server_says_that_its_owner_must_sign_in_and_is_there_once_they_have(desk: Desk) -> None:
    server = await desk.added()
    one = await desk.settled()
    assert (one.state, one.error.words_key if one.error else "") == ("sign_in", "mcp_sign_in")
    assert desk.servers.of(ANN).trouble == "waits"
    assert await desk.servers.of(ANN).tools() == []
    address = await desk.begun(server)
    assert address.startswith(f"{desk.notes.issuer}/authorize?")
    one = await desk.settled()
    assert (one.state, one.page) == ("signing_in", address)
    assert await desk.servers.of(ANN).tools() == []  # a question does not wait for it
    one = await desk.servers.of(ANN).signed_in(await desk.answer(address))
    assert (one.state, one.page, one.kept.signed_in) == ("ready", "", True)
    assert [tool.name for tool in await desk.servers.of(ANN).tools()] == ["notes-whose"]
    assert await desk.begun(server) == ""  # it is there, nobody need sign in


async def test_an_answer_counts_once_and_for_its_owner_alone(desk: Desk) -> None:
    address = await desk.begun(await desk.added())
    answer = await desk.answer(address)
    for owner, query in (
        (BOB, answer),
        (ANN, "code=x&state=guessed"),
        (ANN, "code=x&state="),
        (ANN, "code=x"),
        (ANN, ""),
    ):
        with pytest.raises(NotFoundError) as caught:
            await desk.servers.of(owner).signed_in(query)
        assert caught.value.words_key == "sign_in_unknown"
    assert (await desk.servers.of(ANN).signed_in(answer)).state == "ready"
    with pytest.raises(NotFoundError):
        await desk.servers.of(ANN).signed_in(answer)


async def test_an_owner_may_say_no_and_try_again(desk: Desk) -> None:
    server = await desk.added()
    desk.notes.accounts.refuses = "access_denied"
    one = await desk.servers.of(ANN).signed_in(await desk.answer(await desk.begun(server)))
    assert (one.state, one.error.words_key if one.error else "") == ("sign_in", "mcp_sign_in_refused")
    desk.notes.accounts.refuses = ""
    assert (await desk.servers.of(ANN).signed_in(await desk.answer(await desk.begun(server)))).state == "ready"


async def test_a_second_press_of_the_button_is_another_question(desk: Desk) -> None:
    server = await desk.added()
    first, second = await desk.begun(server), await desk.begun(server)
    with pytest.raises(NotFoundError):
        await desk.servers.of(ANN).signed_in(await desk.answer(first))
    assert (await desk.servers.of(ANN).signed_in(await desk.answer(second))).state == "ready"


async def test_a_question_ends_after_its_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mcp.authorization.PATIENCE", 0.3)
    address = await desk.begun(await desk.added())
    while (one := (await desk.servers.of(ANN).list())[0]).state != "sign_in":
        await asyncio.sleep(0.02)
    assert one.error is not None
    assert one.error.words_key == "mcp_sign_in_late"
    with pytest.raises(NotFoundError):
        await desk.servers.of(ANN).signed_in(await desk.answer(address))


async def test_a_restart_keeps_the_sign_in_and_renews_what_has_ended(
    desk: Desk, database: Database, tmp_path: Path
) -> None:
    await desk.signed_in()
    await desk.servers.aclose()
    desk.notes.accounts.forget(access_alone=True)
    again = Desk(database, tmp_path, desk.notes)
    one = await again.settled()
    assert (one.state, desk.notes.accounts.renewed) == ("ready", 1)
    await again.servers.aclose()


async def test_signed_out_is_signed_out(desk: Desk) -> None:
    server = await desk.signed_in()
    await desk.servers.of(ANN).sign_out(server)
    one = await desk.settled()
    assert (one.state, one.kept.signed_in) == ("sign_in", False)
    assert await desk.servers.of(ANN).tools() == []
    assert await desk.stores.of(ANN).mcp_servers.sign_in(server) == {}


async def test_two_owners_share_no_tokens(desk: Desk) -> None:
    await desk.signed_in(ANN)
    server = await desk.added(BOB)
    assert (await desk.settled(BOB)).state == "sign_in"
    with pytest.raises(NotFoundError):
        await desk.servers.of(BOB).sign_in((await desk.settled(ANN)).kept.id, BACK)
    with pytest.raises(NotFoundError):
        await desk.servers.of(BOB).sign_out((await desk.settled(ANN)).kept.id)
    await desk.servers.of(BOB).signed_in(await desk.answer(await desk.begun(server, BOB)))
    ann, bob = [set(await desk.servers.of(owner).secrets()) for owner in (ANN, BOB)]
    assert len(ann) == len(bob) == 3  # two tokens, and the secret of the registered program
    assert not ann & bob
    await desk.servers.of(BOB).sign_out(server)
    assert (await desk.settled(ANN)).state == "ready"


async def test_tokens_lie_sealed_and_go_with_the_server(desk: Desk, tmp_path: Path) -> None:
    server = await desk.signed_in()
    secrets = await desk.servers.of(ANN).secrets()
    assert sum("CANARY" in one for one in secrets) == 2
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("parlour.db*"))
    assert not [one for one in secrets if one.encode() in kept]
    await desk.servers.of(ANN).remove(server)
    assert await desk.servers.of(ANN).secrets() == []


async def test_tokens_of_one_address_go_to_no_other(desk: Desk) -> None:
    server = await desk.signed_in()
    tokens = await desk.stores.of(ANN).mcp_servers.sign_in(server)
    with protected() as other:
        await desk.servers.of(ANN).change(server, "notes", {"url": other.url})
        assert await desk.stores.of(ANN).mcp_servers.sign_in(server) == {}
        # A token of the old server that is renewed at this very moment changes nothing.
        await desk.stores.of(ANN).mcp_servers.keep_sign_in(server, desk.notes.url, tokens)
        assert (await desk.settled()).state == "sign_in"


async def test_the_answer_never_travels_in_the_clear(desk: Desk) -> None:
    server = await desk.added()
    with pytest.raises(SettingsError) as caught:
        await desk.servers.of(ANN).sign_in(server, "http://parlour.example/mcp/signed-in")
    assert caught.value.words_key == "sign_in_plain"


async def test_a_description_that_lies_is_told_where_the_button_was_pressed(desk: Desk) -> None:
    server = await desk.added()
    desk.notes.accounts.lies["server"] = {"authorization_endpoint": "http://auth.example/"}
    with pytest.raises(SignInNeededError) as caught:
        await desk.begun(server)
    assert caught.value.words_key == "mcp_sign_in_unsafe"
    assert (await desk.settled()).page == ""


async def test_the_client_of_the_json_is_kept_with_its_secret_when_the_form_is_saved(desk: Desk) -> None:
    server = await desk.added(oauth={"clientId": "parlour", "clientSecret": "CANARY-client-secret", "scopes": "a b"})
    one = await desk.settled()
    assert one.settings is not None
    assert one.settings.oauth is not None
    assert one.settings.oauth.scopes == ("a", "b")
    assert await desk.servers.of(ANN).secrets() == ["CANARY-client-secret"]
    await desk.servers.of(ANN).change(server, "renamed", {"url": desk.notes.url})
    assert await desk.servers.of(ANN).secrets() == ["CANARY-client-secret"]
    await desk.servers.of(ANN).change(server, "renamed", {"url": "https://elsewhere.example/mcp"})
    assert await desk.servers.of(ANN).secrets() == []
