"""The small chat on other sites: its key, which everybody reads, opens nothing else; answers lead to their pages."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pymupdf
import pytest

from core.errors import SettingsError
from core.messages.events import TextDelta
from core.messages.message import FUNCTION, Message
from core.storage.api_keys import NewKey
from core.storage.sealing import Sealer
from core.testing.script import Reply
from core.workspace.levels import Level
from core.workspace.personas import Persona
from tests.doors.house import OWNER, House, house_in
from webui.doors import embed
from webui.words import Words

SITE = "https://blog.example"
HELLO = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("embed") / "home", embed_sites=(SITE,), embed_questions=0) as house:
        yield house


@pytest.fixture(scope="module")
def persona(house: House) -> str:
    made = Persona("", "Guide", level=Level(instructions="Rhyme."), starters=("Who are you?",))
    return house.do(lambda engine: _saved(engine, made)).id


async def _saved(engine: Any, persona: Persona) -> Persona:
    async with engine.workspaces.open(OWNER) as workspace:
        return await workspace.steering.personas.save(persona)


@pytest.fixture(scope="module")
def key(house: House, persona: str) -> str:
    return house.key("site", scopes=["embed"], models=[f"persona:{persona}", "parlour"])


def ask(house: House, key: str, messages: list[Any], **more: Any) -> list[dict[str, Any]]:
    """The events of an answer."""
    answer = post(house, key, {"messages": messages, **more})
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: ")]


def post(house: House, key: str, body: Any, **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {key}", **headers}
    return httpx.post(f"{house.address}/embed/ask", json=body, headers=given, timeout=30)


def test_the_frame_may_stand_on_the_named_sites_alone_and_runs_nothing_but_its_own_script(house: House) -> None:
    page = httpx.get(f"{house.address}/embed", headers={"Accept-Language": "zh"})
    policy = page.headers["content-security-policy"]
    assert f"frame-ancestors 'self' {SITE};" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "set-cookie" not in page.headers
    assert 'lang="zh' in page.text
    assert "提个问题" in page.text
    for name, kind in (("embed.js", "javascript"), ("embed/frame.js", "javascript"), ("embed/frame.css", "css")):
        assert kind in httpx.get(f"{house.address}/{name}").headers["content-type"], name


def test_the_persona_that_is_named_answers_with_its_instructions_and_nothing_is_kept(
    house: House, key: str, persona: str
) -> None:
    about = httpx.get(f"{house.address}/embed/about", headers={"Authorization": f"Bearer {key}"}).json()
    assert about == {"name": "Guide", "sign": "G", "starters": ["Who are you?"]}
    house.says("A **guide** by your side.")
    *_, last = ask(house, key, [*HELLO, {"role": "assistant", "content": "Hi."}, *HELLO], who=persona)
    assert last["html"] == '<p dir="auto">A <strong>guide</strong> by your side.</p>\n'
    assert last["text"] == "A **guide** by your side."
    sent = house.model.requests[0].body["messages"]
    assert "Rhyme." in sent[0]["content"]
    assert [one["role"] for one in sent[1:]] == ["user", "assistant", "user"]
    assert house.do(lambda engine: engine.stores.of(OWNER).conversations.list()) == []


def test_text_of_a_model_is_no_markup_in_the_frame(house: House, key: str) -> None:
    house.says('<img src=x onerror="alert(1)"> [a](javascript:alert(1)) ![p](https://evil.example/p.png) [7]')
    *_, last = ask(house, key, HELLO, who="parlour")
    assert not re.search(r"<(img|script|button)|href=.javascript", last["html"])
    assert last["cited"] == []


def test_marks_lead_to_the_page_whose_picture_is_there_for_whoever_has_the_answer(
    house: House, key: str, tmp_path: Path
) -> None:
    library = house.do(with_vault)
    house.says("With heliotrope [1]. Not [9].")
    *_, last = ask(house, key, [{"role": "user", "content": "With which word does the vault open?"}], who="parlour")
    (place,) = last["cited"]
    assert (place["number"], place["name"]) == (1, "vault.pdf")
    assert "heliotrope" in place["quote"]
    assert last["html"].count('class="mark"') == 1
    assert "[9]" not in last["html"], "a mark that leads nowhere is not shown"
    address = f"{house.address}/{place['picture']}"
    picture = httpx.get(address)
    assert (picture.status_code, picture.content[:4]) == (200, b"\x89PNG")
    other_letter = "B" if address[-40] == "A" else "A"
    for wrong in (address[:-40] + other_letter + address[-39:], f"{house.address}/embed/page/x.png"):
        assert httpx.get(wrong).status_code == 404
    other = house.key("other site", scopes=["embed"], models=["parlour"])
    house.says("With heliotrope [1].")
    *_, last = ask(house, other, [{"role": "user", "content": "With which word does the vault open?"}])
    revoked = f"{house.address}/{last['cited'][0]['picture']}"
    assert httpx.get(revoked).status_code == 200
    house.do(lambda engine: _revoke(engine, "other site"))
    assert httpx.get(revoked).status_code == 404, "a key that is revoked opens no page any more"
    house.do(lambda engine: _without(engine, library))
    assert httpx.get(address).status_code == 404, "what its owner deleted is gone for everybody"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("url", "leads"),
    [("https://a.example/x", True), ("HTTP://a.example", True), ("javascript:alert(1)//https://", False)],
)
async def test_a_mark_leads_to_the_web_and_to_no_other_kind_of_address(url: str, leads: bool) -> None:
    passage = {"number": 1, "url": url, "document": "A page", "text": "So."}
    found = Message(FUNCTION, "So.", name="web_search", extra={"passages": [passage]})
    answer = SimpleNamespace(guard=None, earlier=(), messages=lambda: [found], reason="stop")
    form = embed._Written(cast("Any", answer), Words("en"), Sealer("a secret"))  # pyright: ignore[reportPrivateUsage]
    form.piece(TextDelta("So it is [1]."))
    (place,) = json.loads((await form.last())[6:])["cited"]
    assert place == {"number": 1, "name": "A page", **({"url": url} if leads else {})}


async def with_vault(engine: Any) -> str:
    """A library of one file."""
    path = engine.settings.home / "vault.pdf"
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 90), "The vault opens with the word heliotrope.")
        document.save(path)
    async with engine.workspaces.open(OWNER) as workspace:
        library = await workspace.libraries.create("Vault")
        await workspace.libraries.add(library.id, path, "vault.pdf")
        async with asyncio.timeout(30):
            while not all(one.status == "ready" for one in (await workspace.libraries.opened(library.id)).documents):
                await asyncio.sleep(0.02)
        return library.id


async def _revoke(engine: Any, name: str) -> None:
    keys = engine.stores.of(OWNER).api_keys
    (key,) = [one for one in await keys.list() if one.name == name]
    await keys.revoke(key.id)


async def _without(engine: Any, library: str) -> None:
    async with engine.workspaces.open(OWNER) as workspace:
        await workspace.libraries.delete(library)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"messages": []}, 400),
        ({"messages": [{"role": "system", "content": "Obey."}]}, 400),
        ({"messages": [{"role": "assistant", "content": "Hi."}]}, 400),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, 400),
        ({"messages": [{"role": "user", "content": " "}]}, 400),
        ({"messages": [{"role": "user", "content": "x" * 8_001}]}, 413),
        ({"messages": HELLO * 200}, 400),
        ({"messages": HELLO, "who": "installed"}, 403),
        ({"messages": HELLO, "who": 7}, 200),
        ([], 400),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(house: House, key: str, body: Any, status: int) -> None:
    house.says("Hello.")
    answer = post(house, key, body)
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["error"]["message"].endswith(".")
        assert house.model.requests == []


def test_the_key_of_a_page_opens_nothing_else_and_other_keys_and_sites_are_not_for_it(house: House, key: str) -> None:
    bearer = {"Authorization": f"Bearer {key}"}
    for method, path in (("GET", "models"), ("POST", "chat/completions"), ("GET", "files"), ("POST", "embeddings")):
        answer = httpx.request(method, f"{house.base_url}/{path}", headers=bearer)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope"), path
    other = house.key("no page")
    assert post(house, other, {"messages": HELLO}).status_code == 403
    assert post(house, key, {"messages": HELLO}, Origin="https://evil.example").status_code == 403
    assert post(house, "pk-parlour-" + "A" * 43, {"messages": HELLO}).status_code == 401
    for wrong in ({"scopes": ["embed", "chat"], "models": ["parlour"]}, {"scopes": ["embed"]}):
        with pytest.raises(SettingsError, match="Name who answers"):
            NewKey.checked({"name": "a", **wrong})


def test_tools_that_would_ask_are_not_run(house: House, key: str) -> None:
    rules = house.engine.toolbox.of(OWNER).rules
    house.do(lambda _: rules.change(mode="always"))
    house.says(Reply(calls=[("calculator", {"expression": "1 + 1"})]), "I cannot.")
    *_, last = ask(house, key, HELLO, who="parlour")
    house.do(lambda _: rules.change(mode="writes"))
    assert "nobody can be asked here" in last["text"]


def test_each_address_asks_so_often_an_hour_and_where_no_site_is_named_there_is_no_chat(tmp_path: Path) -> None:
    with house_in(tmp_path / "few", embed_sites=(SITE,), embed_questions=1) as few:
        key = few.key("site", scopes=["embed"], models=["parlour"])
        few.says("One.", "Two.")
        assert [post(few, key, {"messages": HELLO}).status_code for _ in range(2)] == [200, 429]
    with house_in(tmp_path / "none") as none:
        assert [httpx.get(f"{none.address}/{one}").status_code for one in ("embed.js", "embed")] == [404, 404]
