"""What one browser may send: so many files an hour, so many bytes in all, told in a sentence that says what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from core.engine import Engine
from core.limits import TokenBuckets
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import libraries_of
from webui.context import WebContext
from webui.routes import Routes
from webui.uploads import Uploads
from webui.views import Views
from webui.words import Words

pytestmark = pytest.mark.anyio


def owned(app: ASGIApp) -> ASGIApp:
    """Who asks is who the request says it is."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        await app({**scope, "owner": headers[b"x-owner"].decode()}, receive, send)

    return serve


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    settings = Settings.load(home=tmp_path / "home", files_mb=1, retrieval="keyword", code="off")
    async with Engine(settings, model=ScriptedModel()) as engine:
        yield engine


@pytest.fixture
async def client(engine: Engine, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    rate = TokenBuckets(3, 3600.0, error="too_many_uploads", message="Too many.")
    uploads = Uploads(tmp_path / "tmp", 2 * 2**20, rate=rate)
    app = Starlette(routes=Routes(WebContext(engine, engine.settings, Words.of), uploads, Views(Words.of)).table())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(owned(app)), base_url="http://127.0.0.1") as client:
        yield client


async def send(client: httpx.AsyncClient, *sizes: int, owner: str = "b-alice", lang: str = "en") -> httpx.Response:
    files = [("files", (f"{at}.txt", b"a" * size)) for at, size in enumerate(sizes)]
    headers = {"x-owner": owner, "accept-language": lang}
    return await client.post("/gradio_api/upload", files=files, headers=headers)


@pytest.mark.parametrize(("lang", "said"), [("en", "Add more in"), ("zh", "分钟后再添加")])
async def test_after_so_many_files_in_an_hour_it_says_when_to_come_again(
    client: httpx.AsyncClient, lang: str, said: str
) -> None:
    assert (await send(client, 10, 10)).status_code == 200
    assert (await send(client, 10)).status_code == 200
    refused = await send(client, 10, lang=lang)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 1200
    assert said in refused.text
    assert (await send(client, 10, owner="b-bob")).status_code == 200


async def test_the_one_local_owner_may_send_any_number_of_any_size(client: httpx.AsyncClient) -> None:
    for _ in range(6):
        assert (await send(client, 2**20, owner=LOCAL_OWNER)).status_code == 200


@pytest.mark.parametrize(("lang", "said"), [("en", "Delete conversations or libraries"), ("zh", "请先删除")])
async def test_files_that_have_no_room_are_refused_and_it_is_said_what_to_do(
    engine: Engine, client: httpx.AsyncClient, lang: str, said: str
) -> None:
    await engine.stores.of("b-alice").files.put("large.txt", b"a" * (900 * 1024))
    assert (await send(client, 50 * 1024)).status_code == 200
    refused = await send(client, 100 * 1024, lang=lang)  # what was sent and not used yet counts as well
    assert refused.status_code == 507
    assert said in refused.text
    assert (await send(client, 100 * 1024, owner="b-bob")).status_code == 200


BOUNDARY = "multipart/form-data; boundary=b"
PART = b'--b\r\ncontent-disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'


async def post(client: httpx.AsyncClient, body: AsyncIterator[bytes], path: str = "/gradio_api/upload") -> int:
    """The status of a request that does not tell its length."""
    headers = {"x-owner": "b-alice", "x-parlour": "1", "content-type": BOUNDARY}
    return (await client.post(path, content=body, headers=headers)).status_code


def left(tmp_path: Path) -> list[Path]:
    """What lies in the folder of uploads."""
    return [path for path in (tmp_path / "tmp").rglob("*") if path.is_file() and path.suffix == ".txt"]


@pytest.mark.parametrize("where", ["conversation", "library"])
async def test_what_comes_is_counted_where_a_request_does_not_tell_its_length(
    engine: Engine, client: httpx.AsyncClient, tmp_path: Path, where: str
) -> None:
    library = (await libraries_of(engine, "b-alice").create("Papers")).id
    path = "/gradio_api/upload" if where == "conversation" else f"/libraries/{library}/files"

    async def body() -> AsyncIterator[bytes]:
        yield PART
        for _ in range(20):
            yield b"a" * 64 * 1024
        yield b"\r\n--b--\r\n"

    assert await post(client, body(), path) == 507
    assert left(tmp_path) == []
    assert (await send(client, 600 * 1024)).status_code == 200  # what was refused takes no room


async def test_requests_at_the_same_time_have_no_more_room_than_one_after_another(client: httpx.AsyncClient) -> None:
    half, go_on = 0, asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        nonlocal half
        yield PART + b"a" * 400 * 1024
        half += 1
        if half == 3:
            go_on.set()
        await go_on.wait()
        yield b"a" * 200 * 1024 + b"\r\n--b--\r\n"

    async def tried() -> int:
        try:
            return await post(client, body())
        finally:
            go_on.set()

    statuses = await asyncio.gather(tried(), tried(), tried())
    assert statuses.count(200) <= 1
    assert set(statuses) <= {200, 507}


async def test_files_that_are_too_many_are_refused_before_they_are_taken_in(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    seen: list[int] = []

    async def body() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield PART + b"a\r\n" + b" " * 300 * 1024 + b"\r\n"
            seen.append(len(left(tmp_path)))
        yield b"--b--\r\n"

    assert await post(client, body()) in {429, 507}
    assert max(seen) <= 3
    assert left(tmp_path) == []


async def test_before_a_file_is_sent_it_is_said_that_there_is_no_room_for_it(
    engine: Engine, client: httpx.AsyncClient
) -> None:
    await engine.stores.of("b-alice").files.put("large.txt", b"a" * (900 * 1024))
    files = [{"name": f"{at}.txt", "size": 80 * 1024, "head": "YQ=="} for at in range(2)]
    headers = {"x-owner": "b-alice", "x-parlour": "1"}
    answer = (await client.post("/uploads/check", json={"files": files}, headers=headers)).json()
    assert answer["refused"] == [1]
    assert "1.txt" in answer["said"]
    assert "Delete conversations" in answer["said"]


async def add(client: httpx.AsyncClient, library: str, size: int) -> httpx.Response:
    """Send a file to a library, as its dialog does."""
    files = [("files", ("a.txt", b"a" * size))]
    return await client.post(
        f"/libraries/{library}/files", files=files, headers={"x-owner": "b-alice", "x-parlour": "1"}
    )


async def test_a_library_takes_no_more_files_an_hour_than_a_conversation(
    engine: Engine, client: httpx.AsyncClient
) -> None:
    library = (await libraries_of(engine, "b-alice").create("Papers")).id
    assert (await send(client, 10, 10, 10)).status_code == 200
    refused = await add(client, library, 10)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 1200
    assert "Add more in" in refused.json()["failed"]


async def test_a_library_has_no_more_room_than_a_conversation(engine: Engine, client: httpx.AsyncClient) -> None:
    library = (await libraries_of(engine, "b-alice").create("Papers")).id
    await engine.stores.of("b-alice").files.put("large.txt", b"a" * (900 * 1024))
    refused = await add(client, library, 200 * 1024)
    assert refused.status_code == 507
    assert "Delete conversations or libraries" in refused.json()["failed"]
    refused = await add(client, library, 3 * 2**20)
    assert refused.status_code in {413, 507}
    assert refused.json()["failed"]
