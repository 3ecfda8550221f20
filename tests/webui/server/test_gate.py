"""What the page needs is let through, and only to whom it belongs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from webui.auth import Hosts, Owners
from webui.gradio_patches import PendingMessages, keep_recent
from webui.middleware.gate import Claims, GateMiddleware
from webui.middleware.headers import HeadersMiddleware
from webui.middleware.owner import OwnerMiddleware
from webui.uploads import Uploads

pytestmark = pytest.mark.anyio
BASE = "http://127.0.0.1:7860"
_OTHERS = """
    info info/ openapi.json run/x api/x call/x call/v2/x proxy=http://127.0.0.1/ file/x runs stream/x dev/reload token
    user login_check deep_link component_server process_recording vibe-edit vibe-code queue/status
    QUEUE/DATA?session_hash=s queue//data?session_hash=s profiling/traces run-history/records
    custom_component/1/client/c/f queue/data heartbeat/ queue/data?session_hash=
    queue/data?session_hash=s&session_hash=t
"""


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers as Gradio would: an event for a join, a page for `/`, what it was asked for the rest."""
    request = Request(scope, receive)
    if scope["path"] == "/":
        response = Response("<html><script>1</script><script src=x></script></html>", media_type="text/html")
    elif scope["path"].endswith("/queue/join"):
        body = json.loads(await request.body())
        response = JSONResponse({"event_id": f"event-{body['session_hash']}"})
    else:
        response = JSONResponse(
            {"path": scope["path"], "owner": scope["owner"], "body": (await request.body()).decode()}
        )
    await response(scope, receive, send)


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "tmp", 1000)


@pytest.fixture
def owners() -> Owners:
    return Owners("key", local=False)


@pytest.fixture
async def people(uploads: Uploads, owners: Owners) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Alice and Bob with their cookies, and somebody without one."""
    hosts = Hosts("127.0.0.1", any_address=False)
    app = HeadersMiddleware(OwnerMiddleware(GateMiddleware(inside, uploads), owners, hosts))
    found: dict[str, httpx.AsyncClient] = {}
    for name in ("alice", "bob", "nobody"):
        headers = {} if name == "nobody" else {"cookie": owners.cookie(f"b-{name}", https=False).partition(";")[0]}
        found[name] = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=headers)
    yield found
    for client in found.values():
        await client.aclose()


async def join(client: httpx.AsyncClient, session: str) -> httpx.Response:
    return await client.post("/gradio_api/queue/join", json={"session_hash": session, "data": []})


@pytest.mark.parametrize(
    "path",
    [
        "startup-events",
        "app_id",
        "theme.css",
        "heartbeat/s",
        "queue/data?session_hash=s",
        "upload_progress?upload_id=1",
    ],
)
async def test_what_the_page_needs_is_open_to_a_browser_and_to_nobody_else(
    people: dict[str, httpx.AsyncClient], path: str
) -> None:
    assert (await people["alice"].get(f"/gradio_api/{path}")).status_code == 200
    assert (await people["nobody"].get(f"/gradio_api/{path}")).status_code == 403


@pytest.mark.parametrize(
    "path",
    _OTHERS.split(),
)
async def test_every_other_route_of_gradio_is_shut(people: dict[str, httpx.AsyncClient], path: str) -> None:
    assert (await people["alice"].get(f"/gradio_api/{path}")).status_code == 403
    assert (await people["alice"].post(f"/gradio_api/{path}", json={})).status_code == 403


@pytest.mark.parametrize("path", ["/monitoring", "/login", "/logout", "/docs", "/openapi.json", "/x", "//", "/.env"])
async def test_there_are_no_other_pages(people: dict[str, httpx.AsyncClient], path: str) -> None:
    assert (await people["alice"].get(f"{BASE}{path}")).status_code == 404


async def test_a_session_belongs_to_who_used_it_first(people: dict[str, httpx.AsyncClient]) -> None:
    assert (await join(people["alice"], "hers")).json() == {"event_id": "event-hers"}
    cancel = {"session_hash": "hers", "fn_index": 0, "event_id": "event-hers"}
    for client, status in ((people["bob"], 403), (people["nobody"], 403), (people["alice"], 200)):
        assert (await join(client, "hers")).status_code == status
        assert (await client.get("/gradio_api/queue/data?session_hash=hers")).status_code == status
        assert (await client.get("/gradio_api/heartbeat/hers")).status_code == status
        assert (await client.post("/gradio_api/cancel", json=cancel)).status_code == status


async def test_somebody_elses_event_cannot_be_ended_from_a_session_of_ones_own(
    people: dict[str, httpx.AsyncClient],
) -> None:
    await join(people["alice"], "hers")
    await join(people["bob"], "his")
    asked = {"session_hash": "his", "fn_index": 0, "event_id": "event-hers"}
    assert (await people["bob"].post("/gradio_api/cancel", json=asked)).status_code == 403
    assert (await people["bob"].post("/gradio_api/reset", json={"event_id": "event-hers"})).status_code == 403
    assert (await people["bob"].post("/gradio_api/reset", json={"event_id": "event-his"})).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{", b'{"session_hash": null}', b'{"session_hash": ""}', b"\xff", b"[" * 100_000]
)
async def test_a_request_that_names_no_session_is_refused(people: dict[str, httpx.AsyncClient], body: bytes) -> None:
    for route in ("queue/join", "cancel"):
        assert (await people["alice"].post(f"/gradio_api/{route}", content=body)).status_code == 403


async def test_the_body_goes_on_unchanged(people: dict[str, httpx.AsyncClient]) -> None:
    await join(people["alice"], "hers")
    body = b'{"session_hash":  "hers", "event_id": "event-hers", "text": "\xe4\xbd\xa0"}'
    assert (await people["alice"].post("/gradio_api/cancel", content=body)).json()["body"] == body.decode()


async def test_a_body_that_is_too_long_is_refused(people: dict[str, httpx.AsyncClient]) -> None:
    body = {"session_hash": "hers", "data": ["x" * 9_000_000]}
    assert (await people["alice"].post("/gradio_api/queue/join", json=body)).status_code == 413

    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield b" " * 1_000_000

    assert (await people["alice"].post("/gradio_api/queue/join", content=in_pieces())).status_code == 413


async def test_an_upload_is_shown_to_who_sent_it_alone(people: dict[str, httpx.AsyncClient], uploads: Uploads) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'--e\r\nContent-Disposition: form-data; name="files"; filename="a b.txt"\r\n\r\nsecret\r\n--e--\r\n'

    (upload,) = await uploads.receive("b-alice", "multipart/form-data; boundary=e", body())
    for path in (str(upload.path), str(upload.path).replace("/", "%2F")):
        assert (await people["alice"].get(f"/gradio_api/file={path}")).status_code == 200
        assert (await people["bob"].get(f"/gradio_api/file={path}")).status_code == 403
        assert (await people["nobody"].get(f"/gradio_api/file={path}")).status_code == 403


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../etc/passwd", "%2e%2e/x", "/proc/self/environ", "file:///etc/passwd", "http://x/"]
)
async def test_no_other_file_is_served(people: dict[str, httpx.AsyncClient], path: str) -> None:
    assert (await people["alice"].get(f"/gradio_api/file={path}")).status_code == 403


async def test_the_page_introduces_a_browser_and_nothing_else_does(
    people: dict[str, httpx.AsyncClient], owners: Owners
) -> None:
    for path in ("/config", "/gradio_api/app_id", "/files/x"):
        assert "set-cookie" not in (await people["nobody"].get(path)).headers
    given = (await people["nobody"].get("/")).headers["set-cookie"]
    assert owners.of(given.partition(";")[0])
    renewed = (await people["alice"].get("/")).headers["set-cookie"]
    assert owners.of(renewed.partition(";")[0]) == "b-alice"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": ""},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},
    ],
)
async def test_foreign_hosts_and_pages_are_refused(
    people: dict[str, httpx.AsyncClient], headers: dict[str, str]
) -> None:
    for path in ("/", "/gradio_api/app_id", "/files/x"):
        refused = await people["alice"].get(path, headers=headers)
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers


async def test_every_script_of_the_page_carries_the_nonce_of_its_policy(people: dict[str, httpx.AsyncClient]) -> None:
    one, two = await people["alice"].get("/"), await people["alice"].get("/")
    policy = one.headers["content-security-policy"]
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert one.text.count(f'<script nonce="{nonce}"') == 2
    assert int(one.headers["content-length"]) == len(one.content)
    assert nonce not in two.text
    assert "unsafe-eval" not in policy
    assert "default-src 'none'" in policy
    assert "base-uri 'self'; form-action 'self'; frame-ancestors 'self'" in policy


async def test_every_answer_has_the_safe_headers(people: dict[str, httpx.AsyncClient]) -> None:
    for answer in (await people["alice"].get("/"), await people["alice"].get("/config"), await people["bob"].get("/x")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-dns-prefetch-control"] == "off"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "camera=()" in answer.headers["permissions-policy"]
        assert "content-security-policy" in answer.headers
        assert answer.headers["content-security-policy"].endswith("; sandbox") is (answer.url.path != "/")


async def test_no_refusal_is_kept_anywhere_or_is_a_document_of_this_site(people: dict[str, httpx.AsyncClient]) -> None:
    alice, nobody = people["alice"], people["nobody"]
    refusals = (
        await alice.get("/gradio_api/info"),
        await alice.post("/gradio_api/queue/join", content=b"x" * 9_000_000),
        await alice.get("/", headers={"host": "evil.example"}),
        await alice.get("/", headers={"origin": "https://evil.example"}),
        await alice.get("/x"),
        await nobody.get("/gradio_api/heartbeat/s"),
    )
    assert [answer.status_code for answer in refusals] == [403, 413, 403, 403, 404, 403]
    for answer in refusals:
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "frame-ancestors 'none'", "sandbox"} <= set(policy)


async def test_of_a_request_whose_client_left_before_its_end_nothing_goes_on(uploads: Uploads, owners: Owners) -> None:
    went_on: list[Scope] = []
    coming = [{"type": "http.request", "body": b'{"session_hash": "hers"}', "more_body": True}]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        went_on.append(scope)

    async def receive() -> dict[str, object]:
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    async def send(message: object) -> None:
        return

    path = "/gradio_api/queue/join"
    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b"", "owner": "b-alice"}
    await GateMiddleware(app, uploads)(scope, receive, send)  # type: ignore[arg-type]
    assert went_on == []
    coming += [{"type": "http.request", "body": b'{"session_hash": "hers"}', "more_body": False}]
    await GateMiddleware(app, uploads)(scope, receive, send)  # type: ignore[arg-type]
    assert len(went_on) == 1


async def test_a_stream_of_events_asks_every_proxy_to_pass_it_on_as_it_comes() -> None:
    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        given = {"cache-control": "no-store"} if scope["path"] == "/kept" else {}
        await Response("data: 1\n\n", media_type="text/event-stream", headers=given)(scope, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(HeadersMiddleware(stream)), base_url=BASE) as client:
        for path, cache in (("/new", "no-cache, no-transform"), ("/kept", "no-store, no-transform")):
            headers = (await client.get(path)).headers
            assert headers["x-accel-buffering"] == "no"
            assert headers["cache-control"] == cache


async def test_websockets_are_refused(owners: Owners) -> None:
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        sent.append(dict(message))  # type: ignore[call-overload]

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    middleware = OwnerMiddleware(inside, owners, Hosts("127.0.0.1", any_address=False))
    await middleware({"type": "websocket", "path": "/", "headers": []}, receive, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_the_longest_unused_names_are_forgotten_first() -> None:
    claims = Claims(limit=2)
    assert claims.claim("a", "alice")
    assert claims.claim("b", "alice")
    assert claims.claim("a", "alice")
    assert claims.claim("c", "alice")
    assert not claims.claim("a", "bob")
    assert claims.claim("b", "bob")


def test_old_names_are_forgotten() -> None:
    claims = Claims(age=-1.0)
    assert claims.claim("a", "alice")
    assert claims.claim("a", "bob")


async def test_a_session_has_a_short_name(people):
    assert (await join(people["alice"], "s" * 64)).status_code == 200
    assert (await join(people["alice"], "s" * 65)).status_code == 403
    assert (await people["alice"].get(f"/gradio_api/heartbeat/{'s' * 65}")).status_code == 403


def test_of_one_owner_only_so_many_names_are_kept_and_those_of_others_stay():
    gone: list[str] = []
    claims = Claims(each=3, forgotten=gone.append)
    assert claims.claim("hers", "alice")
    for name in ("1", "2", "3"):
        assert claims.claim(name, "bob")
    assert claims.claim("1", "bob")  # used again
    assert claims.claim("4", "bob")
    assert gone == ["2"]
    assert claims.holds("hers", "alice")
    assert [claims.holds(name, "bob") for name in ("1", "2", "3", "4")] == [True, False, True, True]


def test_a_page_that_is_open_outlives_those_that_are_closed_however_long_ago_it_asked_for_anything(caplog):
    gone: list[str] = []
    claims = Claims(each=2, forgotten=gone.append)
    with claims.followed("open", "bob") as first:
        assert first
        with claims.followed("open", "bob"):  # its two streams
            pass
        for name in ("closed", "newer"):
            assert claims.claim(name, "bob")
        assert gone == ["closed"]
        with claims.followed("newer", "bob"):
            assert not caplog.messages
            assert claims.claim("one too many", "bob")
        assert gone == ["closed", "open"]
        assert "More than 2 pages of one owner are open at once" in caplog.text
        with claims.followed("one too many", "alice") as hers:
            assert not hers


async def test_a_page_that_only_listens_counts_as_open(owners, uploads):
    gone: list[str] = []
    opened, may = asyncio.Event(), asyncio.Event()

    async def listening(scope: Scope, receive: Receive, send: Send) -> None:
        if "heartbeat" in scope["path"]:
            opened.set()
            await may.wait()
        await inside(scope, receive, send)

    gate = GateMiddleware(listening, uploads, forgotten=gone.append)
    app = OwnerMiddleware(gate, owners, Hosts("127.0.0.1", any_address=False))
    cookie = owners.cookie("b-alice", https=False).partition(";")[0]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=BASE, headers={"cookie": cookie}
    ) as alice:
        listens = asyncio.ensure_future(alice.get("/gradio_api/heartbeat/first"))
        await opened.wait()
        for number in range(51):
            assert (await join(alice, f"s{number}")).status_code == 200
        assert gone == ["s0", "s1"]
        may.set()
        assert (await listens).status_code == 200


@pytest.mark.parametrize("status", [404, 500])
async def test_a_stream_of_a_session_in_which_nothing_is_pending_any_more_ends_and_other_faults_are_told(
    status: int, owners: Owners, uploads: Uploads
) -> None:
    async def said() -> AsyncIterator[str]:
        yield "data: gone\n\n"
        raise HTTPException(status)  # as Gradio does

    gradio = Starlette(
        routes=[
            Route("/gradio_api/queue/join", lambda _: JSONResponse({"event_id": "e"}), methods=["POST"]),
            Route("/gradio_api/queue/data", lambda _: StreamingResponse(said())),
        ]
    )
    app = OwnerMiddleware(GateMiddleware(gradio, uploads), owners, Hosts("127.0.0.1", any_address=False))
    cookie = owners.cookie("b-alice", https=False).partition(";")[0]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=BASE, headers={"cookie": cookie}
    ) as alice:
        await join(alice, "s")
        listening = alice.get("/gradio_api/queue/data?session_hash=s")
        if status == 404:
            assert (await listening).text == "data: gone\n\n"
        else:
            with pytest.raises(RuntimeError, match="response already started"):
                await listening


async def test_a_function_that_the_page_does_not_have_is_not_asked_of_gradio(uploads, owners):
    hosts = Hosts("127.0.0.1", any_address=False)
    app = OwnerMiddleware(GateMiddleware(inside, uploads, functions=3), owners, hosts)
    cookie = owners.cookie("b-alice", https=False).partition(";")[0]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=BASE, headers={"cookie": cookie}
    ) as alice:
        for number, status in ((0, 200), (2, 200), (3, 404), (-1, 404), (None, 404), ("1", 404)):
            body = {"session_hash": "s", "data": [], "fn_index": number}
            assert (await alice.post("/gradio_api/queue/join", json=body)).status_code == status


def test_what_nobody_reads_goes_before_what_is_read():
    waiting = PendingMessages(3)
    for session in ("a", "b", "c"):
        waiting[session] = []
    waiting["a"].append("read")
    waiting["d"] = []
    assert list(waiting) == ["c", "a", "d"]


def test_the_stream_of_a_tab_may_break_off_after_its_session_was_forgotten() -> None:
    waiting = PendingMessages(3)
    waiting["one"] = object()
    del waiting["one"]
    del waiting["one"]  # as Gradio does where the stream is cancelled
    assert not waiting


def test_a_session_that_is_forgotten_has_nothing_waiting_any_more():
    queue = SimpleNamespace(pending_event_ids_session={"s": {"e"}})
    forget = keep_recent(queue)
    queue.pending_messages_per_session["s"] = ["a message"]
    forget("s")
    forget("t")
    assert not queue.pending_messages_per_session
    assert not queue.pending_event_ids_session
