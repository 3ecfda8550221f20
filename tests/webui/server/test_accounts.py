"""People come by a link, sign in by name and password, and nobody gets in by trying, planting or replaying."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from core.errors import StorageError
from core.people.people import FRESH, hash_of
from core.people.tries import OF_ADDRESS, OF_BOTH
from core.storage.base import folder_name
from core.workspace.personas import Persona
from tests.stored_files import stored
from tests.webui.server.people_app import AT, GOOD, House, house, signed_in

pytestmark = pytest.mark.anyio
OTHER = f"{GOOD}, another one"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, guests=True) as made:
        yield made


async def may_open_account(client: httpx.AsyncClient) -> bool:
    return (await client.get("/account")).status_code == 200


async def test_the_printed_link_makes_the_owner_once_and_whoever_has_no_account_is_led_to_sign_in(here: House) -> None:
    stranger = here.browser(accept="text/html")
    answer = await stranger.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "./sign-in")
    assert (await stranger.get("/files/x", headers={"accept": "*/*"})).status_code == 401
    led = [(await stranger.get(path)).headers["location"] for path in ("/settings/you", "/files/x", "/account")]
    assert led == ["../sign-in", "../sign-in", "./sign-in"]
    assert "Who keeps this room?" in (await stranger.get(f"/link/{here.first}")).text
    owner = await here.owner("Jan")
    assert (await here.id_of(owner)).startswith("p-")
    again = await stranger.post(f"/link/{here.first}", data={"name": "Eve", "password": GOOD})
    assert again.status_code == 404
    assert await here.engine.people.first_link() is None
    assert [(one.name, one.role) for one in await here.engine.people.store.list()] == [("Jan", "owner")]


async def test_who_is_led_to_sign_in_from_a_conversation_comes_back_to_it_once_and_never_anywhere_else(
    here: House,
) -> None:
    await here.owner("Jan")
    browser = here.browser(accept="text/html")
    assert (await browser.get("/", params={"c": "Tower_1-x", "demo": "no"})).headers["location"] == "./sign-in"
    assert (await signed_in(browser, "Jan")).headers["location"] == "./?c=Tower_1-x"
    assert (await signed_in(browser, "Jan")).headers["location"] == "./"
    for wrong in ("a b", "ä", "a/../..", "//evil.example", "x" * 65, "a&d=b"):
        stranger = here.browser(accept="text/html")
        await stranger.get("/", params={"c": wrong})
        assert (await signed_in(stranger, "Jan")).headers["location"] == "./", wrong


async def test_signing_in_always_gives_a_new_session_and_signing_out_ends_it(here: House) -> None:
    await here.owner()
    client, planted, kept = here.browser(), here.browser(), here.browser()
    assert (await signed_in(client, "jan")).status_code == 303
    (first,) = client.cookies.items()
    assert (await signed_in(client, "ＪＡＮ")).status_code == 303
    (second,) = client.cookies.items()
    planted.cookies.set(*first)
    kept.cookies.set(*second)
    assert not await may_open_account(planted), "what was planted before signing in is worth nothing after it"
    assert await may_open_account(kept)
    assert (await client.get("/sign-out")).status_code == 405, "a picture of another page signs nobody out"
    await client.post("/sign-out")
    assert not await may_open_account(kept)
    invented = here.browser()
    invented.cookies.set(first[0], "fixed-by-an-attacker")
    given = (await signed_in(invented, "jan")).headers["set-cookie"]
    assert "fixed-by-an-attacker" not in given
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(given.split("; "))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_what_would_change_something_is_refused_to_a_browser_that_nobody_signed_in_with(
    here: House, method: str
) -> None:
    await here.owner()
    stranger = here.browser(accept="text/html,application/xhtml+xml,*/*;q=0.8")
    for path, root in (("/people/role", "../"), ("/account/password", "../"), ("/files/x", "../"), ("/", "./")):
        answer = await stranger.request(method, path, data={"role": "owner"})
        assert (answer.status_code, answer.headers["cache-control"]) == (401, "no-store"), path
        assert answer.headers["content-type"].startswith("text/html")
        assert f'href="{root}sign-in"' in answer.text
    script = await stranger.request(method, "/people/role", headers={"accept": "*/*"})
    assert (script.status_code, script.json()) == (401, {"failed": "Sign in first: load the page again."})


async def test_no_other_site_signs_anybody_in_or_does_anything_for_who_is(here: House) -> None:
    owner = await here.owner()
    person = (await here.engine.people.store.list())[0]
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"origin": ""}):
        for path in ("/sign-in", "/people/role", "/account/password", "/sign-out", "/guest", f"/link/{here.first}"):
            data = {"name": "Jan", "password": GOOD, "person": person.id, "role": "guest"}
            assert (await owner.post(path, data=data, headers=headers)).status_code == 403
    bare = here.browser()
    del bare.headers["origin"]
    assert (await signed_in(bare, "jan")).status_code == 403, "a browser names its origin with every form"
    bare.headers["sec-fetch-site"] = "same-origin"
    assert (await signed_in(bare, "jan")).status_code == 303


async def test_a_wrong_password_and_an_unknown_name_are_answered_alike_until_there_were_too_many(here: House) -> None:
    await here.owner()
    client = here.browser()

    async def told(name: str, password: str) -> tuple[int, str]:
        answer = await signed_in(client, name, password)
        return answer.status_code, re.sub(rf' nonce="[^"]*"|value="{name}"', "", answer.text)

    assert await told("jan", "wrong") == await told("nobody", "wrong") == await told("nobody", GOOD)
    assert (await told("jan", "wrong"))[0] == 401
    for _ in range(OF_BOTH):
        await signed_in(client, "jan", "wrong")
    last = await signed_in(client, "jan", "wrong")
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) > 0
    assert (await signed_in(client, "jan")).status_code == 429, "the right one, too: else trying goes on unseen"
    assert (await signed_in(here.browser("10.0.0.77"), "jan")).status_code == 303, "from elsewhere its owner comes in"


async def test_malformed_and_giant_forms_are_answered_with_a_page_and_change_nothing(here: House) -> None:
    owner, huge = await here.owner(), "x" * 1_000_000
    link = f"/link/{await here.engine.people.invite(None, 'member')}"
    before = await here.engine.people.store.list()
    form = "application/x-www-form-urlencoded"
    bodies = [(form, b""), (form, b"\xff\xfe%zz&&=="), (form, f"name={huge}&password={huge}".encode())]
    bodies += [(form, b"a=" + b"&a=" * 2000), ("application/json", b'{"name": []}'), ("multipart/form-data", b"--x")]
    bodies += [(form, f"name=Eve&password={'ab' * 3000}&role=owner&person=%00".encode()), ("", b"name=Eve")]
    for path in ("/sign-in", link, "/account/password", "/people/invite", "/people/role", "/people/delete"):
        for kind, body in bodies:
            answer = await owner.post(path, content=body, headers={"content-type": kind})
            assert answer.status_code in {200, 303, 400, 401, 404, 429}, (path, kind, body[:40])
    now = await here.engine.people.store.list()
    assert [(one.id, one.role, one.password) for one in now] == [(one.id, one.role, one.password) for one in before]


async def test_a_guest_who_signs_in_takes_her_conversations_and_files_along(here: House, tmp_path: Path) -> None:
    await here.owner()
    guest = here.browser()
    assert (await guest.post("/guest")).status_code == 303
    owner_id = await here.id_of(guest)
    async with here.engine.workspaces.open(owner_id) as workspace:
        talk = await workspace.conversations.create("Lighthouses")
        file = await workspace.files.put("notes.md", b"950 stamps")
        await (await workspace.conversation(talk.id).ask("Where?", [file.id])).wait()
        await workspace.steering.personas.save(Persona("", "Poet"))
        await workspace.settings.change("about_me", lambda _: "I collect stamps.")
        await workspace.settings.change("approval", lambda _: {"mode": "never"})
        await workspace.tools.notes.store.put("trips/plan", "By boat.")
    changed: list[tuple[str | None, str | None]] = []
    here.engine.on_change(lambda *what: changed.append(what))
    assert (await signed_in(guest, "jan")).status_code == 303
    person_id = await here.id_of(guest)
    assert {(owner_id, None), (person_id, None)} <= {*changed}, "lists that pages keep are read again"
    async with here.engine.workspaces.open(person_id) as workspace:
        assert [one.title for one in await workspace.conversations.list()] == ["Lighthouses"]
        assert [one.role for one in await workspace.conversations.thread(talk.id)] == ["user", "assistant"]
        assert (await stored(workspace.files, file.id))[1].read_bytes() == b"950 stamps"
        assert [one.conversation.id for one in (await workspace.search.find("where")).conversations] == [talk.id]
        assert [one.name for one in await workspace.steering.personas.list()] == ["Poet"]
        assert await workspace.settings.get("about_me") == "I collect stamps."
        assert await workspace.settings.get("approval") is None, "what a guest's tools did unasked was less"
        assert [(one.key, one.text) for one in await workspace.tools.notes.list()] == [("trips/plan", "By boat.")]
    assert await here.engine.toolbox.of(owner_id).notes.list() == []
    assert not [kind for kind in ("files", "libraries") if (tmp_path / kind / folder_name(owner_id)).exists()]
    async with here.engine.workspaces.open(owner_id) as workspace:
        assert await workspace.conversations.list() == []


async def test_who_was_a_guest_and_is_signed_out_is_nobody_until_she_goes_on_as_a_guest(here: House) -> None:
    """What she had as a guest is her account's now: as that guest she would see an empty room, and not why."""
    await here.owner()
    browser, other = here.browser(), here.browser()
    await browser.post("/guest")
    guest = await here.id_of(browser)
    assert (await signed_in(browser, "jan")).status_code == 303
    assert (await signed_in(other, "jan")).status_code == 303
    await browser.post("/sign-out")
    assert (await browser.get("/standing")).status_code == 401, "a page that is still open says so"
    assert (await browser.get("/")).headers["location"] == "./sign-in"
    await browser.post("/guest")
    assert await here.id_of(browser) not in {guest, await here.id_of(other)}
    assert (await browser.get("/standing")).status_code == 200


async def test_a_session_that_ended_makes_nobody_a_guest_until_she_says_so(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await here.owner()
    browser = here.browser()
    await browser.post("/guest")
    guest = await here.id_of(browser)

    async def cannot(*_: object) -> None:
        raise StorageError("Not now.")

    with monkeypatch.context() as now:
        now.setattr(type(here.engine.belongings), "take_along", cannot)
        assert (await signed_in(browser, "jan")).status_code == 303
    known = await here.engine.people.store.list()
    for session in await here.engine.people.store.sessions_of(known[0].id):
        await here.engine.people.end_session(known[0], session.id)
    assert (await browser.get("/standing")).status_code == 401
    assert "Continue as a guest" in (await browser.get("/sign-in")).text
    await browser.post("/guest")
    assert await here.id_of(browser) == guest, "what was not taken along yet is still there"


async def test_nothing_of_a_guest_stays_behind_that_an_index_writes_while_it_is_closed(
    here: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, tried = shutil.rmtree, list[Path]()

    def removing(folder: Path, *, ignore_errors: bool) -> None:
        tried.append(folder)
        remove(folder, ignore_errors=ignore_errors)
        if len(tried) == 1:
            folder.mkdir(parents=True)
            (folder / "index.db-wal").write_bytes(b"late")

    await here.owner()
    guest = here.browser()
    assert (await guest.post("/guest")).status_code == 303
    owner_id = await here.id_of(guest)
    async with here.engine.workspaces.open(owner_id) as workspace:
        await workspace.conversations.create("Lighthouses")
    monkeypatch.setattr("core.workspace.joining.shutil.rmtree", removing)
    assert (await signed_in(guest, "jan")).status_code == 303
    assert len(tried) == 3
    assert not (tmp_path / "files" / folder_name(owner_id)).exists()


async def test_a_role_that_is_changed_in_mid_reply_counts_for_the_next_question_and_the_reply_goes_on(
    here: House,
) -> None:
    owner, mara = await here.owner(), await here.person("Mara", "administrator")
    mara_id = await here.id_of(mara)
    async with here.engine.workspaces.open(mara_id) as workspace:
        assert workspace.models.is_local
        talk = await workspace.conversations.create("A question")
        run = await workspace.conversation(talk.id).ask("Where?")
        changed = await owner.post("/people/role", data={"person": mara_id, "role": "guest"})
        assert changed.status_code == 303
        await run.wait()
        assert (await mara.get("/people")).status_code == 403
        refused = await mara.post("/models/fetch", json={})
        assert (refused.status_code, "role" in refused.json()["failed"]) == (403, True)
    async with here.engine.workspaces.open(mara_id) as workspace:
        assert not workspace.models.is_local
        assert not workspace.tools.servers.may_start_programs
        assert (await workspace.conversations.thread(talk.id))[-1].status == "complete"


async def test_somebody_who_is_deleted_in_mid_reply_is_out_at_once_and_nothing_of_theirs_is_left(
    here: House, tmp_path: Path
) -> None:
    owner, tom = await here.owner(), await here.person("Tom")
    tom_id = await here.id_of(tom)
    async with here.engine.workspaces.open(tom_id) as workspace:
        talk = await workspace.conversations.create("The secret word is xylophone")
        file = await workspace.files.put("xylophone.md", b"xylophone")
        await workspace.conversation(talk.id).ask("Say xylophone.", [file.id])
    refused = await owner.post("/people/delete", data={"person": tom_id, "name": "Tim"})
    assert refused.status_code == 400
    assert (await owner.post("/people/delete", data={"person": tom_id, "name": "Tom"})).status_code == 200
    assert not await may_open_account(tom)
    assert (await signed_in(here.browser(), "tom")).status_code == 401
    for kind in ("files", "libraries", "notes", "shares"):
        assert not (tmp_path / kind / folder_name(tom_id)).exists()
    database = here.engine.stores.database
    left = await database.read(
        lambda c: c.exec_driver_sql("SELECT count(*) FROM owners WHERE id = ?", (tom_id,)).scalar()
    )
    assert left == 0
    shown = (await owner.get("/people")).text
    assert "Jan deleted the account of Tom." in shown
    assert "xylophone" not in shown


async def test_a_stream_ends_with_the_session_that_opened_it(here: House) -> None:
    owner, mara = await here.owner(), await here.person("Mara")
    begun, left = asyncio.Event(), asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    accounts = here.accounts
    inside, accounts.app = accounts.app, endless
    reading = asyncio.create_task(mara.get("/search"))
    await asyncio.wait_for(begun.wait(), 10)
    accounts.app = inside
    mara_id = next(one.id for one in await here.engine.people.store.list() if one.name == "Mara")
    await owner.post("/people/end", data={"person": mara_id})
    await asyncio.wait_for(left.wait(), 10)
    reading.cancel()
    assert not await may_open_account(mara)


async def test_ones_own_account_lists_browsers_changes_the_password_and_ends_the_others(here: House) -> None:
    jan, second = await here.owner(), here.browser(**{"user-agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"})
    await signed_in(second, "jan")
    page = (await jan.get("/account")).text
    assert "Firefox, Linux" in page
    assert "as=bundle" in page, "who leaves may take along what Parlour takes in again"
    wrong = await jan.post("/account/password", data={"old": "wrong", "new": OTHER})
    assert (wrong.status_code, await may_open_account(second)) == (400, True)
    assert (await jan.post("/account/password", data={"old": GOOD, "new": OTHER})).status_code == 200
    assert (await may_open_account(jan), await may_open_account(second)) == (True, False)
    assert (await signed_in(second, "jan", GOOD)).status_code == 401
    assert (await signed_in(second, "jan", OTHER)).status_code == 303
    ids = re.findall(r'name="session" value="(\w+)"', (await jan.get("/account")).text)
    mine = hash_of(next(iter(jan.cookies.values())))
    await jan.post("/account/end", data={"session": next(one for one in ids if one != mine)})
    assert (await may_open_account(jan), await may_open_account(second)) == (True, False)
    mara = await here.person("Mara")
    await mara.post("/account/end", data={"session": mine})
    assert await may_open_account(jan), "nobody ends another's session by its name"


async def test_a_program_of_a_person_asks_with_a_key_alone_until_it_is_revoked_or_the_person_is_gone(
    here: House,
) -> None:
    owner, ada = await here.owner(), await here.person("Ada")
    told = {"name": "Editor", "scopes": ["chat", "embeddings"]}
    key = (await ada.post("/keys/make", json=told)).json()["key"]
    guest = await here.person("Gus", "guest")
    assert (await guest.post("/keys/make", json=told)).status_code == 403
    program = here.browser()
    del program.headers["origin"]
    program.headers["authorization"] = f"Bearer {key}"
    asked = {"model": "parlour", "messages": [{"role": "user", "content": "Well?"}]}
    answer = await program.post("/v1/chat/completions", json=asked)
    assert answer.json()["choices"][0]["message"]["content"] == "Yes."
    person = await here.id_of(ada)
    await owner.post("/people/limits", data={"person": person, "messages": "1"})
    spent = await program.post("/v1/chat/completions", json=asked)
    assert (spent.status_code, "retry-after" in spent.headers) == (429, True), "what programs ask counts as well"
    texts = await program.post("/v1/embeddings", json={"model": "any", "input": "Well?"})
    assert (texts.status_code, "retry-after" in texts.headers) == (429, True)
    token = await here.engine.outward.of(person).renew_token()
    for role, may in (("guest", False), ("member", True)):
        await owner.post("/people/role", data={"person": person, "role": role})
        assert (await program.get("/v1/models")).status_code == (200 if may else 401), (
            "a key is worth what its owner is"
        )
        assert (await here.engine.outward.authenticate(token, True) is not None) is may
    without = {"authorization": ""}
    assert (await ada.get("/v1/models", headers=without)).status_code == 401, "a session is no key"
    await owner.post("/people/delete", data={"person": person, "name": "Ada"})
    assert (await program.get("/v1/models")).status_code == 401
    assert await here.engine.outward.authenticate(token, True) is None
    assert not here.engine.people.lets_programs_in(person)


async def test_who_signs_in_comes_in_though_what_they_had_as_a_guest_stays_behind_for_now(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(guest: str, person_id: str) -> int:
        raise StorageError("The disk is full.", key="disk_full")

    monkeypatch.setattr(here.engine.belongings, "take_along", fails)
    guest = here.browser()
    await guest.post("/guest")
    assert (await guest.post(f"/link/{here.first}", data={"name": "Jan", "password": GOOD})).status_code == 303
    assert (await here.id_of(guest)).startswith("p-")


async def test_below_a_path_sessions_and_links_are_below_it(tmp_path: Path) -> None:
    async with house(tmp_path, root_path="/chat", guests=True) as here:
        client = here.browser()
        client.base_url = httpx.URL(f"{AT}/chat")
        answer = await client.post(f"/link/{here.first}", data={"name": "Jan", "password": GOOD})
        assert answer.status_code == 303
        assert "Path=/chat/" in answer.headers["set-cookie"].split("; ")
        assert await may_open_account(client)
        assert f"{AT}/chat/link/" in (await client.post("/people/invite", data={"role": "member"})).text
        secure = here.browser(origin="https://10.0.0.5:7860")
        secure.base_url = httpx.URL("https://10.0.0.5:7860/chat")
        await secure.post("/guest")
        assert (await here.id_of(secure)).startswith("b-"), "the cookie that was written is the one that is read"


def forged(number: int) -> dict[str, str]:
    """What somebody writes who wants to look like another each time."""
    return {"x-forwarded-for": f"1.2.3.{number}", "x-real-ip": f"1.2.3.{number}", "forwarded": f"for=1.2.3.{number}"}


@pytest.mark.parametrize("forges", [False, True])
async def test_a_header_of_a_client_that_is_no_trusted_proxy_changes_nothing_about_its_limit(
    here: House, forges: bool
) -> None:
    client = here.browser()
    for number in range(OF_ADDRESS):
        client.headers.update(forged(number) if forges else {})
        assert (await signed_in(client, f"name {number}", "wrong")).status_code == 401
    client.headers.update(forged(200) if forges else {})
    assert (await signed_in(client, "another", "wrong")).status_code == 429
    assert (await signed_in(here.browser("10.0.0.10"), "another", "wrong")).status_code == 401


async def test_behind_a_trusted_proxy_the_address_that_it_saw_is_counted_and_none_that_its_client_wrote(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, trusted_proxies=("10.0.0.9",)) as here:

        def through(seen: str, number: int) -> dict[str, str]:
            return {"x-forwarded-for": f"1.2.3.{number}, {seen}"}

        proxy = here.browser("10.0.0.9")
        for number in range(OF_ADDRESS):
            proxy.headers.update(through("203.0.113.7", number))
            assert (await signed_in(proxy, f"name {number}", "wrong")).status_code == 401
        proxy.headers.update(through("203.0.113.7", 200))
        assert (await signed_in(proxy, "another", "wrong")).status_code == 429
        proxy.headers.update(through("203.0.113.8", 200))
        assert (await signed_in(proxy, "another", "wrong")).status_code == 401


async def test_a_passkey_is_removed_by_who_signed_in_a_moment_ago_or_knows_the_password(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, store = await here.owner(), here.engine.people.store
    me = await here.id_of(owner)

    async def left() -> list[str]:
        return list(await store.sign_ins_of(me, "passkey"))

    for name in ("one", "two", "three"):
        await store.add_sign_in("passkey", name, me, {})
    removing = "/account/passkey/remove"
    assert (await owner.post(removing, json={"id": "one"})).status_code == 200
    now = time.time
    monkeypatch.setattr("core.people.people.time.time", lambda: now() + FRESH)
    for typed in ({}, {"password": "wrong"}, {"password": ["x"]}):
        answer = await owner.post(removing, json={"id": "two", **typed})
        assert (answer.status_code, answer.json()["failed"]) == (
            400,
            "The present password is wrong. Nothing was changed.",
        )
    assert await left() == ["two", "three"]
    assert (await owner.post(removing, json={"id": "two", "password": GOOD})).status_code == 200
    assert (await owner.post(removing, json={"id": "three"})).status_code == 200, "it was typed a moment ago"
    assert await left() == []


async def test_who_has_no_password_signs_in_again_before_a_way_in_is_changed(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mara = await here.person("Mara")
    me = await here.id_of(mara)
    await here.engine.people.store.add_sign_in("passkey", "one", me, {})
    assert (await mara.post("/account/passkey/begin", json={})).status_code == 200
    now = time.time
    monkeypatch.setattr("core.people.people.time.time", lambda: now() + FRESH)
    for path in ("remove", "begin"):
        answer = await mara.post(f"/account/passkey/{path}", json={"id": "one"})
        assert (answer.status_code, "more than ten minutes ago" in answer.json()["failed"]) == (400, True)
    gone = await mara.post("/account/delete", data={"password": ""})
    assert (gone.status_code, "more than ten minutes ago" in gone.text) == (400, True)
    assert list(await here.engine.people.store.sign_ins_of(me, "passkey")) == ["one"]


async def test_who_has_no_password_may_choose_one_and_types_the_name_to_leave(here: House) -> None:
    mara = await here.person("Mara")
    page = (await mara.get("/account")).text
    assert ("Choose a password" in page, "Present password" in page, "Type “Mara”" in page) == (True, False, True)
    for typed in ({"password": "anything"}, {"name": "Nora"}, {}):
        kept = await mara.post("/account/delete", data=typed)
        assert (kept.status_code, "The name was not typed" in kept.text) == (400, True)
    chosen = (await mara.post("/account/password", data={"new": GOOD})).text
    assert ("The password is changed" in chosen, "Present password" in chosen) == (True, True)
    assert (await mara.post("/account/delete", data={"name": "Mara"})).status_code == 400
    nora = await here.person("Nora")
    assert (await nora.post("/account/delete", data={"name": " Nora "})).status_code == 303
    assert [one.name for one in await here.engine.people.store.list()] == ["Mara"]


async def test_a_name_that_is_too_long_is_said_to_be_and_none_is_cut_in_silence(here: House) -> None:
    browser, long = here.browser(), "Mara " * 13 + "Meier"
    assert "maxlength" not in (await browser.get(f"/link/{here.first}")).text
    refused = await browser.post(f"/link/{here.first}", data={"name": long, "password": GOOD})
    assert (refused.status_code, "Use at most 64 letters" in refused.text) == (400, True)
    assert f'value="{long}"' in refused.text
    owner = await here.owner()
    assert "maxlength" not in (await owner.get("/people")).text
    made = await owner.post("/people/group-make", data={"name": long})
    assert (made.status_code, "Use at most 64 letters" in made.text) == (400, True)


async def test_the_settings_of_a_guest_have_no_services_whose_models_the_page_would_ask_for(here: House) -> None:
    owner, guest = await here.owner(), here.browser()
    await guest.post("/guest")
    assert (await owner.get("/preferences/page")).json()["services"]["services"]
    assert (await guest.get("/preferences/page")).json()["services"] is None


async def test_the_address_of_a_form_leads_to_its_page_when_it_is_opened(here: House) -> None:
    owner = await here.owner()
    for form, page in (
        ("/people/role", "/people"),
        ("/people/group-make", "/people"),
        ("/account/password", "/account"),
        ("/lending/set", "/lending"),
    ):
        led = await owner.get(form)
        assert (led.status_code, led.url.join(led.headers["location"]).path) == (303, page)


async def test_a_passkey_is_added_by_who_knows_the_password(here: House) -> None:
    owner = await here.owner()
    begun = "/account/passkey/begin"
    assert (await owner.post(begun, json={})).status_code == 400
    assert (await owner.post(begun, json={"password": GOOD})).status_code == 200


async def test_a_guest_comes_by_an_address_of_ipv6(here: House) -> None:
    assert (await here.browser("2001:db8::7").post("/guest")).status_code == 303


@pytest.mark.parametrize("role", ["owner", "administrator", "nonsense"])
async def test_a10_a_role_that_a_form_brings_along_is_nobodys(here: House, role: str) -> None:
    owner = await here.owner()
    invited = re.search(r"/link/([\w-]+)", (await owner.post("/people/invite", data={"role": "guest"})).text)
    assert invited is not None
    fresh = here.browser()
    crafted = {"name": "Mallory", "password": GOOD, "role": role, "person": "x", "id": "p-1"}
    await fresh.post(f"/link/{invited[1]}?role={role}", data=crafted)
    member = await here.person("Mara")
    own = {"name": "Mara", "password": GOOD, "again": GOOD, "role": role, "person": await here.id_of(member)}
    for path in ("/account/password", "/account/name", "/people/role", "/people/invite", "/guest", "/sign-in"):
        await member.post(path, data=own, headers={"x-role": role})
    roles = {one.name: one.role for one in await here.engine.people.store.list()}
    assert roles == {"Jan": "owner", "Mallory": "guest", "Mara": "member"}


@pytest.mark.parametrize("rounds", [8, pytest.param(25, marks=pytest.mark.slow)])
async def test_a14_what_two_people_ask_at_the_same_moment_never_meets(rounds: int, here: House) -> None:
    await here.owner()
    words = {"Mara": "heliotrope", "Nora": "cobalt"}
    found: dict[str, list[str]] = {name: [] for name in words}
    browsers = {name: await here.person(name) for name in words}
    for name, word in words.items():
        async with here.engine.workspaces.open(await here.id_of(browsers[name])) as workspace:
            await workspace.conversation((await workspace.conversations.create(word)).id).ask(f"A {word} lamp?")

    async def look(name: str) -> None:
        for path in ("/search?q=lamp", "/libraries/state", "/tools/state", "/") * rounds:
            found[name].append((await browsers[name].get(path)).text)

    await asyncio.gather(*(look(name) for name in words for _ in range(5)))
    for name, word in words.items():
        other = next(one for one in words.values() if one != word)
        assert any(word in text for text in found[name])
        assert not any(other in text for text in found[name])
        assert len(found[name]) == 20 * rounds
