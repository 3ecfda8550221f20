"""The dialog about libraries over HTTP: each owner's own, asked only by the page itself."""

from __future__ import annotations

import html
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from core.errors import NotFoundError
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage
from webui.handlers.documents import LibraryRoutes
from webui.uploads import Uploads
from webui.words import Words

TOWER = b"# The tower\n\nThe tower of Brenn is 321 metres tall. It was built in 1889 of iron."
OURS = {"x-parlour": "1"}


def ask(tab: RawPage, what: str, **asked: Any) -> dict[str, Any]:
    answer = tab.client.post(f"{tab.url}/libraries/{what}", json=asked)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    return dict(answer.json())


def send(tab: RawPage, library: str, *files: tuple[str, bytes], **headers: str) -> httpx.Response:
    parts = [("files", file) for file in files]
    return tab.client.post(f"{tab.url}/libraries/{library}/files", files=parts, headers={**OURS, **headers})


def state(tab: RawPage, library: str = "") -> dict[str, Any]:
    return dict(tab.client.get(f"{tab.url}/libraries/state", params={"library": library}).json())


def is_read(tab: RawPage, library: str) -> list[dict[str, Any]]:
    """The documents of a library, once none is being read, nor made ready for search by meaning."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        opened = state(tab, library)["opened"]
        if not any(one["state"] == "reading" or one["moves"] for one in opened["documents"]):
            return list(opened["documents"])
        time.sleep(0.1)  # between two questions, as the page asks them
    raise AssertionError("A document is still being read.")


def made(tab: RawPage, name: str = "Towers") -> str:
    return str(ask(tab, "create", name=name)["opened"]["id"])


def test_a_library_is_made_filled_tried_renamed_and_deleted(alice: RawPage) -> None:
    assert state(alice) == {"libraries": [], "opened": None, "limit": 1}
    library = made(alice)
    told = send(alice, library, ("tower.md", TOWER), ("same.md", TOWER)).json()
    assert (told["fresh"], told["known"], len(told["opened"]["documents"])) == (1, 1, 1)
    (tower,) = is_read(alice, library)
    assert (tower["name"], tower["state"], tower["locked"], tower["noted"]) == ("tower.md", "ready", False, "")
    assert tower["said"].startswith("1 passage")
    found = ask(alice, "try", library=library, question="How tall is the tower?")
    assert found["said"] == "1 passage; the higher its score, the nearer it is to the question:"
    assert (found["found"][0]["where"], found["found"][0]["share"]) == ("tower.md", 1.0)
    assert "321 metres" in found["found"][0]["text"]
    assert ask(alice, "try", library=library, question="")["said"] == "Nothing in this library matches."
    assert ask(alice, "rename", library=library, name="Iron")["opened"]["name"] == "Iron"
    assert ask(alice, "again", library=library, document=tower["id"])["opened"]["documents"][0]["id"] == tower["id"]
    assert is_read(alice, library)[0]["state"] == "ready"
    assert ask(alice, "cancel", library=library, document=tower["id"])["opened"]["documents"][0]["state"] == "ready"
    assert ask(alice, "remove", library=library, document=tower["id"])["opened"]["documents"] == []
    assert state(alice)["libraries"] == [{"id": library, "name": "Iron", "said": "empty", "reading": False}]
    assert ask(alice, "delete", library=library)["libraries"] == []
    assert state(alice, library)["opened"] is None


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.pdf", b"", "empty.pdf is empty."),
        ("broken.png", b"\x89PNG\r\n\x1a\nbroken", "broken.png is damaged and cannot be read."),
        ("fake.pdf", b"Only text.\n" * 9, "The content of fake.pdf does not match its file name."),
    ],
)
def test_what_a_question_would_be_refused_with_a_library_does_not_take_either(
    alice: RawPage, name: str, content: bytes, said: str
) -> None:
    library = made(alice, f"Library with {name}")
    assert send(alice, library, (name, content)).json()["failed"].startswith(said)
    assert send(alice, library, ("tower.md", TOWER), (name, content)).json()["failed"].startswith(said)
    assert state(alice, library)["opened"]["documents"] == []
    ask(alice, "delete", library=library)


def test_a_library_of_somebody_else_does_not_exist(alice: RawPage, bob: RawPage) -> None:
    library = made(alice)
    send(alice, library, ("tower.md", TOWER))
    (tower,) = is_read(alice, library)
    asked = {"library": library, "document": tower["id"], "name": "mine", "question": "tall"}
    for what in ("rename", "delete", "remove", "cancel", "again", "try"):
        assert ask(bob, what, **asked) == {"failed": "This no longer exists."}
    assert send(bob, library, ("mine.md", b"mine")).json() == {"failed": "This no longer exists."}
    assert state(bob, library)["opened"] is None
    assert state(bob)["libraries"] == []
    assert is_read(alice, library) == [tower]
    ask(alice, "delete", library=library)


@pytest.mark.anyio
async def test_a_browser_that_is_still_sending_hears_that_the_library_is_gone(tmp_path: Path) -> None:
    class Gone:
        async def opened(self, library: str) -> None:
            raise NotFoundError("gone")

    rest: list[Message] = [{"type": "http.request", "body": b"x", "more_body": number > 0} for number in range(9)]
    left: list[int] = []  # how much was still to come when the answer went out
    told: list[Message] = []

    async def receive() -> Message:
        return rest.pop()

    async def answered(message: Message) -> None:
        left.append(len(rest))
        told.append(message)

    async def gone(library: str) -> Gone:
        del library
        return Gone()

    @asynccontextmanager
    async def opened(owner: str) -> AsyncGenerator[Any]:
        yield SimpleNamespace(owner=owner, shelf=gone)

    workspaces = SimpleNamespace(open=opened)
    context = cast("Any", SimpleNamespace(engine=SimpleNamespace(workspaces=workspaces), words=Words.of))
    app = Starlette(routes=LibraryRoutes(context, Uploads(tmp_path / "uploads", 1_000_000)).table())
    headers = [(name.encode(), value.encode()) for name, value in OURS.items()]
    scope = {"type": "http", "method": "POST", "path": "/libraries/gone/files", "headers": headers, "owner": "b-alice"}
    await app({**scope, "query_string": b""}, receive, answered)
    assert b"no longer exists" in told[1]["body"]
    assert left == [0, 0]


def test_what_is_wrong_is_said_in_a_sentence(alice: RawPage) -> None:
    library = made(alice)
    assert ask(alice, "create", name=" ")["failed"] == "The library needs a name. Type one."
    taken = ask(alice, "create", name="Towers")["failed"]
    assert taken == "There is a library “Towers” already. Choose another name."
    refused = send(alice, library, ("a.exe", b"MZ\x90\x00" + b"\0" * 99)).json()["failed"]
    assert refused.startswith("Parlour cannot read a.exe")
    large = send(alice, library, ("large.txt", b"a" * (1024 * 1024 + 1))).json()["failed"]
    assert large == "large.txt is 2 MB; the limit is 1 MB. Send the part you need."
    assert state(alice, library)["opened"]["documents"] == []
    ask(alice, "delete", library=library)


def test_only_the_page_itself_may_ask(alice: RawPage, shared: AppProcess) -> None:
    library = made(alice)
    form = alice.client.post(f"{alice.url}/libraries/create", data={"name": "theirs"})
    plain = alice.client.post(f"{alice.url}/libraries/delete", content=f'{{"library": "{library}"}}')
    bare = alice.client.post(f"{alice.url}/libraries/{library}/files", files={"files": ("a.md", TOWER)})
    elsewhere = send(alice, library, ("a.md", TOWER), origin="https://elsewhere.example")
    assert [form.status_code, plain.status_code, bare.status_code, elsewhere.status_code] == [400, 400, 400, 403]
    with httpx.Client(base_url=shared.url) as nobody:
        assert nobody.get("/libraries/state").status_code == 401
        assert nobody.post("/libraries/create", json={"name": "x"}).status_code == 401
        files = {"files": ("a.md", TOWER)}
        assert nobody.post(f"/libraries/{library}/files", files=files, headers=OURS).status_code == 401
    shown = state(alice, library)
    assert [one["name"] for one in shown["libraries"]] == ["Towers"]
    assert shown["opened"]["documents"] == []
    ask(alice, "delete", library=library)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 30_000, b'{"name": "' + b"x" * 40_000 + b'"}'])
def test_nonsense_is_refused(alice: RawPage, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = alice.client.post(f"{alice.url}/libraries/create", content=body, headers=headers)
    assert answer.status_code == 400
    assert state(alice)["libraries"] == []


def act(tab: RawPage, message: str) -> None:
    tab.run(tab.number("bus-go", "click"), message)


def top_of(tab: RawPage) -> str:
    return html.unescape("".join(map(str, tab.frame(tab.run(tab.loading())))))


def test_a_new_conversation_uses_what_was_chosen_before_its_first_question(alice: RawPage) -> None:
    library = made(alice)
    send(alice, library, ("tower.md", TOWER))
    is_read(alice, library)
    assert "p-uses" not in top_of(alice)
    act(alice, f'{{"do": "use", "id": "{library}", "on": true}}')
    assert f'data-uses="{library}"' in top_of(alice)
    chat, _ = alice.paint(alice.send("How tall is the tower of Brenn?"))
    assert "ask&#95;documents" in chat
    assert "321 metres tall" in chat
    assert "Answers also from: Towers" in top_of(alice)
    act(alice, f'{{"do": "use", "id": "{library}", "on": false}}')
    assert "p-uses" not in top_of(alice)
    ask(alice, "delete", library=library)
