"""A page that somebody asks to be read is fetched and read like a file; an address within other text is only text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.engine import Engine
from core.errors import FetchError
from core.net.addresses import Reach
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from webui.handlers.desk import Desk
from webui.handlers.links import pages_to_read
from webui.handlers.send import start
from webui.uploads import Uploads
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio
OWNER = "b-alice"
PAGE = b"<html><head><title>Herons</title></head><body><p>The heron eats 17 fish a day.</p></body></html>"


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("https://a.example/x", ["https://a.example/x"]),
        ("  https://a.example/x\nhttp://b.example  ", ["https://a.example/x", "http://b.example"]),
        ("Read https://a.example/x.", ["https://a.example/x"]),
        ("Please summarise this page: https://a.example/x?y=1#z", ["https://a.example/x?y=1#z"]),
        ("Could you read the article (https://a.example/Heron_(bird))?", ["https://a.example/Heron_(bird)"]),
        ("请总结一下这个网页：https://a.example/页", ["https://a.example/页"]),
        ("看看https://a.example/x，说说它讲什么。", ["https://a.example/x"]),
        ("读 https://a.example/x 和 https://a.example/x", ["https://a.example/x"]),
        (" ".join(f"https://a.example/{n}" for n in range(9)), [f"https://a.example/{n}" for n in range(3)]),
        ("translate: https://a.example/x", ["https://a.example/x"]),
        ("read这个 https://a.example/x", ["https://a.example/x"]),
        ("Opening https://a.example/x gives me a 404. Why?", []),
        ("Readers of https://a.example/x complain.", []),
        ("Ready: https://a.example/x is up.", []),
        ("Loading https://a.example/x takes a minute.", []),
        ("Read-only access to https://a.example/x fails.", []),
        ("Why does curl https://a.example/x fail?", []),
        ("I put it on https://a.example/x yesterday.", []),
        ("What does httpx do? I read that it is fast; my server is https://a.example/x", []),
        ("ftp://a.example/x", []),
        ("file:///etc/passwd", []),
        ("Read the policy.", []),
        ("read " + "a " * 100_000, []),
        ("", []),
    ],
)
async def test_only_what_shall_plainly_be_read_is_fetched(text: str, links: list[str]) -> None:
    assert pages_to_read(text) == links


class Site:
    """A server on this machine, under a name that only a made resolver knows."""

    def __init__(self) -> None:
        self.asked = 0
        self.port = 0
        self.came = asyncio.Event()
        self.visitors = asyncio.Barrier(1)  # how many must be there before any of them is answered

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        self.came.set()
        await self.visitors.wait()
        start = b"HTTP/1.1 200 OK" if b" /heron " in asked else b"HTTP/1.1 403 Forbidden"
        writer.write(start + b"\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n" % len(PAGE) + PAGE)
        await writer.drain()
        writer.close()

    async def resolve(self, host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    @property
    def reach(self) -> Reach:
        return Reach(lambda address, port: port == self.port, self.resolve)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword")
    async with Engine(settings, model=ScriptedModel("The heron eats 17 fish a day.")) as opened:
        yield opened


def tab(engine: Engine, folder: Path, reach: Reach | None) -> tuple[Desk, View]:
    views = Views(Words.of)
    headers = {"referer": "http://127.0.0.1/", "accept-language": "en"}
    view = views.of(cast("Any", SimpleNamespace(session_hash="one", username=OWNER, headers=headers)))
    return Desk(engine, Uploads(folder / "tmp", 1_000_000), views, reach), view


async def test_a_page_that_shall_be_read_is_a_file_of_the_question(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    await start(desk, view, f"http://birds.example:{site.port}/heron", [])
    run = engine.runs.live(view.conversation_id)
    assert run is not None
    assert await run.wait() == "complete", run.error
    (document,) = await engine.documents.list(OWNER, view.conversation_id)
    assert (document.name, document.status) == ("Herons.html", "ready")
    assert [passage["text"] for passage in run.reply().passages] == ["The heron eats 17 fish a day."]
    assert site.asked == 1


async def test_a_page_that_is_not_given_out_refuses_the_message_and_keeps_nothing(
    engine: Engine, site: Site, tmp_path: Path
) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    with pytest.raises(FetchError) as caught:
        await start(desk, view, f"Read http://birds.example:{site.port}/secret", [])
    assert caught.value.words_key == "fetch_refused"
    assert await engine.conversations.list(OWNER) == []
    assert not view.sending


async def test_a_reader_reaches_nothing_of_this_machine(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path, None)
    with pytest.raises(FetchError) as caught:
        await start(desk, view, f"http://127.0.0.1:{site.port}/heron", [])
    assert caught.value.words_key == "fetch_private"
    assert site.asked == 0


async def test_a_question_goes_where_it_was_asked_wherever_the_reader_turned_meanwhile(
    engine: Engine, site: Site, tmp_path: Path
) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    await engine.conversations.ensure_owner(OWNER)
    asked, other = [(await engine.conversations.create(OWNER)).id for _ in range(2)]
    view.show(asked)
    site.visitors = asyncio.Barrier(2)
    asking = asyncio.create_task(start(desk, view, f"Read http://birds.example:{site.port}/heron", []))
    async with asyncio.timeout(30):
        await site.came.wait()
        view.show(other)
        await site.visitors.wait()
        await asking
    assert view.conversation_id == other
    assert await engine.conversations.thread(OWNER, other) == []
    run = engine.runs.live(asked)
    assert run is not None
    assert await run.wait() == "complete", run.error


async def test_a_first_question_uses_the_libraries_of_its_own_tab_wherever_the_reader_turned_meanwhile(
    engine: Engine, site: Site, tmp_path: Path
) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    await engine.conversations.ensure_owner(OWNER)
    other = (await engine.conversations.create(OWNER)).id
    library = (await engine.libraries.create(OWNER, "Birds")).id
    view.libraries = (library,)
    site.visitors = asyncio.Barrier(2)
    asking = asyncio.create_task(start(desk, view, f"Read http://birds.example:{site.port}/heron", []))
    async with asyncio.timeout(30):
        await site.came.wait()
        view.show(other)
        await site.visitors.wait()
        await asking
    (fresh,) = [one.id for one in await engine.conversations.list(OWNER) if one.id != other]
    assert [one.id for one in await engine.libraries.used_by(OWNER, fresh)] == [library]
    run = engine.runs.live(fresh)
    assert run is not None
    await run.wait()


async def test_pages_are_fetched_at_the_same_time(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    site.visitors = asyncio.Barrier(2)
    pages = " ".join(f"http://{name}.example:{site.port}/heron" for name in ("birds", "fish"))
    await start(desk, view, pages, [])
    assert site.asked == 2
    run = engine.runs.live(view.conversation_id)
    assert run is not None
    await run.wait()
