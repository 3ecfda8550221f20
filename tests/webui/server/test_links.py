"""A page that somebody asks to be read is fetched and read like a file; an address within other text is only text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.engine import Engine
from core.errors import FetchError
from core.net.addresses import Reach
from core.reading.attachments import fetched
from core.runs.run import Run
from core.settings import Settings
from core.storage.base import DocumentRecord, FileRecord
from core.storage.files import FileStore
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import libraries_of, world_of
from tests.stored_files import stored
from webui.handlers.desk import Desk
from webui.handlers.documents import cancel, read_again
from webui.handlers.send import pages_to_read, start
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
        self.refuses = False
        self.visitors = asyncio.Barrier(1)  # how many must be there before any of them is answered

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        self.came.set()
        await self.visitors.wait()
        start = b"HTTP/1.1 403 Forbidden" if self.refuses else b"HTTP/1.1 200 OK"
        writer.write(start + b"\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n" % len(PAGE) + PAGE)
        with suppress(ConnectionError):  # whoever asked may have left
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


def tab(engine: Engine, folder: Path, reach: Reach | None = None) -> tuple[Desk, View]:
    engine.intake.reach = reach
    views = Views(Words.of)
    headers = {"referer": "http://127.0.0.1/", "accept-language": "en"}
    view = views.of(cast("Any", SimpleNamespace(session_hash="one", username=OWNER, headers=headers)))
    return Desk(engine, Uploads(folder / "tmp", 1_000_000), views), view


async def asked(desk: Desk, view: View, text: str) -> Run:
    await start(desk, view, text, [])
    run = desk.engine.runs.live(view.conversation_id)
    assert run is not None
    return run


async def only_document(engine: Engine, view: View) -> DocumentRecord:
    (document,) = await engine.stores.of(OWNER).documents.list(view.conversation_id)
    return document


async def test_a_page_that_shall_be_read_is_a_file_of_the_question(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    run = await asked(desk, view, f"http://birds.example:{site.port}/heron")
    assert await run.wait() == "complete", run.error
    document = await only_document(engine, view)
    assert (document.name, document.status) == ("Herons.html", "ready")
    assert [passage["text"] for passage in run.reply().passages] == ["The heron eats 17 fish a day."]
    assert site.asked == 1
    file, path = await stored(engine.stores.of(OWNER).files, document.file_id)
    assert (file.name, file.media_type, file.size) == ("Herons.html", "text/html", len(PAGE))
    assert [path] == list(path.parent.iterdir())
    assert path.read_bytes() == PAGE


async def test_a_page_has_a_card_while_it_is_fetched(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    site.visitors = asyncio.Barrier(2)
    run = await asked(desk, view, f"Read http://birds.example:{site.port}/heron")
    async with asyncio.timeout(30):
        await site.came.wait()
        document = await only_document(engine, view)
        assert (document.name, document.status) == ("birds.example · heron", "reading")
        progress = world_of(engine, OWNER).intake.progress(document.id)
        assert progress is not None
        assert progress.fetching
        await site.visitors.wait()
        assert await run.wait() == "complete", run.error


async def test_a_page_that_is_not_given_out_leaves_a_card_and_is_fetched_when_it_is_tried_again(
    engine: Engine, site: Site, tmp_path: Path
) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    site.refuses = True
    run = await asked(desk, view, f"Read http://birds.example:{site.port}/heron")
    assert await run.wait() == "error"
    document = await only_document(engine, view)
    assert (document.status, (document.error or {})["key"]) == ("failed", "fetch_refused")
    assert (run.error or {})["key"] == "fetch_refused"
    site.refuses = False
    await read_again(desk, view, document.id)
    again = engine.runs.live(view.conversation_id)
    assert again is not None
    assert await again.wait() == "complete", again.error
    document = await only_document(engine, view)
    assert (document.name, document.status, document.error) == ("Herons.html", "ready", None)


async def test_a_page_that_is_called_off_while_it_is_fetched_can_be_tried_again(
    engine: Engine, site: Site, tmp_path: Path
) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    site.visitors = asyncio.Barrier(2)
    run = await asked(desk, view, f"http://birds.example:{site.port}/heron")
    async with asyncio.timeout(30):
        await site.came.wait()
        document = await only_document(engine, view)
        await cancel(desk, view, document.id)
        assert await run.wait() == "error"
        await site.visitors.wait()
    assert (await only_document(engine, view)).status == "cancelled"
    site.visitors = asyncio.Barrier(1)
    await read_again(desk, view, document.id)
    again = engine.runs.live(view.conversation_id)
    assert again is not None
    assert await again.wait() == "complete", again.error


async def test_a_reader_reaches_nothing_of_this_machine(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path)
    run = await asked(desk, view, f"http://127.0.0.1:{site.port}/heron")
    assert await run.wait() == "error"
    assert ((await only_document(engine, view)).error or {})["key"] == "fetch_private"
    assert site.asked == 0


async def test_a_file_that_calls_itself_a_link_is_only_text(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    link = tmp_path / "heron.uri"
    link.write_text(f"http://birds.example:{site.port}/heron")
    await start(desk, view, "What is this?", [(link, "heron.uri")])
    run = engine.runs.live(view.conversation_id)
    assert run is not None
    await run.wait()
    assert site.asked == 0


async def test_a_first_question_uses_the_libraries_of_its_own_tab_wherever_the_reader_turned_meanwhile(
    engine: Engine, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    await engine.stores.of(OWNER).conversations.ensure_owner()
    other = (await engine.stores.of(OWNER).conversations.create()).id
    library = (await libraries_of(engine, OWNER).create("Birds")).id
    view.libraries = (library,)
    put = FileStore.put

    async def slow(*given: Any, **named: Any) -> FileRecord:
        view.show(other)
        return await put(*given, **named)

    monkeypatch.setattr(FileStore, "put", slow)
    await start(desk, view, f"Read http://birds.example:{site.port}/heron", [])
    assert view.conversation_id == other
    assert await engine.stores.of(OWNER).conversations.thread(other) == []
    (fresh,) = [one.id for one in await engine.stores.of(OWNER).conversations.list() if one.id != other]
    assert [one.id for one in await libraries_of(engine, OWNER).used_by(fresh)] == [library]
    run = engine.runs.live(fresh)
    assert run is not None
    assert await run.wait() == "complete", run.error


async def test_pages_are_fetched_at_the_same_time(engine: Engine, site: Site, tmp_path: Path) -> None:
    desk, view = tab(engine, tmp_path, site.reach)
    site.visitors = asyncio.Barrier(2)
    run = await asked(desk, view, " ".join(f"http://{name}.example:{site.port}/heron" for name in ("birds", "fish")))
    assert await run.wait() == "complete", run.error
    assert site.asked == 2


async def test_what_is_not_public_is_said_with_the_way_out_to_the_reader_as_to_the_model() -> None:
    private = Reach(resolve=_home)
    with pytest.raises(FetchError) as caught:
        await fetched("http://127.0.0.1:8000/notes", private)
    told = Words("en").error_parts(caught.value)[1]
    assert told == caught.value.hint
    assert "saved and added as a file" in told
    assert "保存后作为文件添加" in Words("zh").error_parts(caught.value)[1]


async def _home(host: str, port: int) -> list[str]:
    del host, port
    return ["127.0.0.1"]
