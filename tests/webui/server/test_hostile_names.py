"""Names that people choose are text on every page about people: theirs, groups', libraries', personas' and keys'."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from core.workspace.levels import Level
from core.workspace.personas import Persona
from tests.webui.server.people_app import House, house, signed_in

pytestmark = pytest.mark.anyio

TAG = "<img id=pwned src=x onerror=alert(1)>"
QUOTE = '"><b id=pwned autofocus onfocus=alert(1)>'
CLOSING = "</title></textarea></select><b id=pwned>"
AGENT = f"Mozilla/5.0 {TAG} Firefox/153.0"


class Read(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.made: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id") == "pwned" or any(name.startswith("on") for name in given):
            self.made.append(tag)
        self.text += [value for name, value in attrs if name in {"value", "aria-label", "title"} and value]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def assert_text(answer: httpx.Response, *names: str) -> None:
    """Nothing of a name is markup, and each of them is told."""
    page = Read(answer.text)
    assert page.made == [], answer.url
    together = "\n".join(page.text)
    for name in names:
        assert name in together, (str(answer.url), name)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, guests=True, retrieval="keyword") as made:
        yield made


async def test_names_of_people_groups_and_what_they_share_are_text_on_the_pages_about_people(here: House) -> None:
    owner = here.browser()
    owner.headers["user-agent"] = AGENT
    good = {"name": TAG, "password": "a sentence that nobody guesses"}
    assert (await owner.post(f"/link/{here.first}", data=good)).status_code == 303
    other = await here.person(QUOTE, "member")
    await owner.post("/people/group-make", data={"name": CLOSING})
    (group,) = await here.engine.stores.groups.list()
    for one in (owner, other):
        data = {"group": group.id, "person": await here.id_of(one)}
        assert (await owner.post("/people/group-add", data=data)).status_code == 303
    async with here.engine.workspaces.open(await here.id_of(other)) as workspace:
        library = await workspace.libraries.create(f"Library {TAG}")
        persona = await workspace.steering.personas.save(Persona("", f"P {QUOTE}", "P", Level()))
    for kind, thing in (("library", library.id), ("persona", persona.id)):
        form = {"kind": kind, "thing": thing, "group": group.id, "how": "read"}
        assert (await other.post("/lending/set", data=form)).status_code == 303
    assert_text(await owner.get("/people"), TAG, QUOTE, CLOSING)  # the audit says them, too
    assert_text(await owner.get("/account"), TAG)
    assert_text(await other.get("/account"), QUOTE)
    assert_text(await other.get("/lending"), CLOSING, TAG, QUOTE)
    wrong = await owner.post("/people/delete", data={"person": await here.id_of(other), "name": "somebody else"})
    assert_text(wrong, QUOTE)


async def test_what_was_typed_at_the_door_comes_back_as_text(here: House) -> None:
    owner = await here.owner("Ada")
    link = await here.engine.people.invite(None, "member")
    stranger = here.browser()
    for typed in (TAG, QUOTE, CLOSING):
        assert_text(await signed_in(stranger, typed), typed)
        answer = await stranger.post(f"/link/{link}", data={"name": typed, "password": "short"})
        assert answer.status_code == 400
        assert_text(answer, typed)
        assert_text(await stranger.get(f"/link/{typed.replace('/', '')}"))
        for path in ("/people/role", "/people/invite", "/people/group-make", "/people/limits"):
            form = {"person": typed, "role": typed, "days": typed, "group": typed, "name": typed * 9, "limit": typed}
            assert_text(await owner.post(path, data=form))


async def test_a_dialog_is_told_names_as_values_and_never_as_markup(here: House) -> None:
    owner = await here.owner("Ada")
    made = await owner.post("/keys/make", json={"name": TAG, "scopes": ["chat"]}, headers={"x-parlour": "1"})
    assert (made.status_code, made.headers["content-type"]) == (200, "application/json")
    told = json.loads(made.text)
    assert told["name"] == TAG
    assert made.headers["x-content-type-options"] == "nosniff"
