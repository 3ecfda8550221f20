"""Calling a service that an OpenAPI document describes: a real server on this machine, and keys that never leave."""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from core.errors import SettingsError
from core.llm.ledger import on_behalf_of
from core.messages.events import ToolFinished
from core.messages.message import Message
from core.messages.transcript import call_message
from core.net.addresses import Reach
from core.observing import within_run
from core.tools.openapi import request as calling
from core.tools.openapi.as_tools import ApiTool, tools_of
from core.tools.openapi.document import Document
from core.tools.runner import ToolRunner

pytestmark = pytest.mark.anyio

KEY = "sk-CANARY-1234567890"


class Service:
    """Notes each request whole; answers as it is told for a path, or a path and a token, else that all is well."""

    def __init__(self) -> None:
        self.port = 0
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.answers: dict[str, bytes] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            size = next(
                (int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-l")), 0
            )
            self.heads.append(head)
            self.bodies.append(await reader.readexactly(size))
            path = head.split()[1].partition("?")[0]
            who = head.lower().partition("\r\nauthorization: bearer ")[2].partition("\r\n")[0]
            told = self.answers.get(f"{path} {who}") or self.answers.get(path)
            writer.write(told or self.made(b'{"ok": true}'))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @staticmethod
    def made(body: bytes, kind: str = "application/json", status: str = "200 OK", more: str = "") -> bytes:
        return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body

    def sends_to(self, path: str, target: str, status: int = 302) -> None:
        self.answers[path] = self.made(b"", status=f"{status} Elsewhere", more=f"location: {target}\r\n")

    def url(self, host: str = "site.example") -> str:
        return f"http://{host}:{self.port}"

    @property
    def reach(self) -> Reach:
        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        return Reach(lambda address, port: (address, port) == ("127.0.0.1", self.port), resolve)

    @property
    def line(self) -> str:
        return self.heads[-1].splitlines()[0]

    def header(self, name: str) -> str:
        rows = (line.partition(": ") for line in self.heads[-1].splitlines())
        return next((value for key, _, value in rows if key.lower() == name), "")


@pytest.fixture
async def service(anyio_backend: str) -> AsyncIterator[Service]:
    made = Service()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


def tool_of(
    service: Service, operation: dict[str, Any], *, method: str = "get", path: str = "/x", **options: Any
) -> ApiTool:
    root = {
        "openapi": "3.0.0",
        "info": {"title": "Shop"},
        "servers": [{"url": service.url()}],
        "paths": {path: {method: operation}},
        **options.pop("root", {}),
    }
    options.setdefault("reach", service.reach)
    return tools_of(Document(root), **options)[0]


def given(*parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"parameters": [{"schema": {}, **one} for one in parameters], **more}


async def call(tool: ApiTool, **arguments: Any) -> Message:
    runner = ToolRunner({tool.name: tool})
    calls = [call_message("c1", tool.name, json.dumps(arguments))]
    events = [event async for event in runner.run(calls)]
    assert isinstance(events[-1], ToolFinished)
    return events[-1].message


async def test_each_argument_goes_where_the_document_says(service: Service):
    operation = given(
        {"name": "id", "in": "path"},
        {"name": "tags", "in": "query"},
        {"name": "ids", "in": "query", "explode": False},
        {"name": "filter", "in": "query", "style": "deepObject"},
        {"name": "is on", "in": "query"},
        {"name": "X-Trace", "in": "header"},
        {"name": "lang", "in": "cookie"},
    )
    message = await call(
        tool_of(service, operation, path="/pets/{id}"),
        id="a/b?c", tags=["x", "y&z"], ids=[1, 2], filter={"age": 3}, is_on=True, lang="中", **{"X-Trace": "t1"},
    )  # fmt: skip
    assert message.content == '{"ok": true}'
    assert service.line == ("GET /pets/a%2Fb%3Fc?tags=x&tags=y%26z&ids=1%2C2&filter%5Bage%5D=3&is%20on=true HTTP/1.1")
    assert (service.header("x-trace"), service.header("cookie")) == ("t1", "lang=%E4%B8%AD")


async def test_a_call_that_is_made_again_has_the_key_by_which_a_service_does_it_once(service: Service):
    key = {"name": "Idempotency-Key", "in": "header", "required": True}
    tool = tool_of(service, given(key, {"name": "to", "in": "query"}), method="post")
    assert (tool.takes_key, tool.idempotent) == (True, False)
    assert set(tool.function["parameters"]["properties"]) == {"to"}  # it is not a model's to fill in
    keys: list[str] = []
    for run_id, call_id, to in [("r1", "c1", "a"), ("r1", "c1", "a"), ("r1", "c2", "a"), ("r1", "c1", "b")]:
        within_run(run_id, "talk")
        await tool.call({"to": to}, call_id=call_id)
        keys.append(service.header("idempotency-key"))
    within_run("r2", "talk")
    await call(tool, to="a")  # another reply, in which the model's names for calls begin anew
    keys.append(service.header("idempotency-key"))
    for outer in ("c1", "c2"):  # an agent that is asked twice, whose model names its first call the same each time
        with on_behalf_of("helper", outer):
            await call(tool, to="a")
        keys.append(service.header("idempotency-key"))
    assert keys[0] == keys[1]
    assert len({*keys}) == 6
    assert all(str(UUID(one)) == one and UUID(one).version == 4 for one in keys), "as services want them"


async def test_outside_of_replies_each_call_has_a_key_of_its_own_and_who_takes_none_gets_none(service: Service):
    tool = tool_of(service, given({"name": "idempotency-key", "in": "header"}), method="post")
    for _ in range(2):
        await tool.call({})
    first, second = [head.lower().partition("idempotency-key: ")[2].splitlines()[0] for head in service.heads]
    assert (str(UUID(first)), str(UUID(second))) == (first, second)
    assert first != second
    plain = tool_of(service, given(), method="post")
    await plain.call({}, call_id="c1")
    assert not plain.takes_key
    assert service.header("idempotency-key") == ""


@pytest.mark.parametrize("value", ["..", ".", ""])
async def test_a_value_cannot_leave_its_step_of_the_path(service: Service, value: str):
    tool = tool_of(service, given({"name": "id", "in": "path"}), path="/pets/{id}/toys")
    message = await call(tool, id=value)
    assert (message.extra or {})["failed"] == "bad_arguments"
    assert not service.heads


async def test_a_value_cannot_add_a_header(service: Service):
    tool = tool_of(service, given({"name": "X-Trace", "in": "header"}))
    message = await call(tool, **{"X-Trace": "a\r\nAuthorization: Bearer stolen"})
    assert (message.extra or {})["failed"] == "bad_arguments"
    assert not service.heads


@pytest.mark.parametrize(
    ("media_type", "body", "sent"),
    [
        ("application/json", {"名": [1, None]}, '{"名": [1, null]}'),
        ("application/vnd.api+json", [1], "[1]"),
        ("application/x-www-form-urlencoded", {"a b": ["1", "2"], "c": "&"}, "a%20b=1&a%20b=2&c=%26"),
        ("text/plain", "hello", "hello"),
        ("application/x-yaml", "raw", "raw"),
    ],
)
async def test_the_body_is_written_as_its_type_wants(service: Service, media_type: str, body: Any, sent: str):
    operation = {"requestBody": {"content": {media_type: {"schema": {}}}}}
    await call(tool_of(service, operation, method="post"), body=body)
    assert service.bodies[-1].decode() == sent
    assert (service.line, service.header("content-type")) == ("POST /x HTTP/1.1", media_type)


async def test_a_form_in_parts_cannot_be_broken_open(service: Service):
    operation = {"requestBody": {"content": {"multipart/form-data": {"schema": {}}}}}
    await call(tool_of(service, operation, method="post"), body={'n"\r\nx: y': "v", "b": 2})
    boundary = service.header("content-type").partition("boundary=")[2]
    assert service.bodies[-1].decode().split(f"--{boundary}\r\n")[1:] == [
        'Content-Disposition: form-data; name="n%22%0D%0Ax: y"\r\n\r\nv\r\n',
        f'Content-Disposition: form-data; name="b"\r\n\r\n2\r\n--{boundary}--\r\n',
    ]


SCHEMES = {
    "components": {
        "securitySchemes": {
            "inHeader": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "inQuery": {"type": "apiKey", "in": "query", "name": "key"},
            "inCookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
            "token": {"type": "http", "scheme": "bearer"},
            "login": {"type": "http", "scheme": "basic"},
        }
    }
}
PAIR = {"username": "ann", "password": KEY}
BASIC = f"Basic {b64encode(f'ann:{KEY}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("credentials", "header", "value"),
    [
        ({"bearer": KEY}, "authorization", f"Bearer {KEY}"),
        ({"token": KEY}, "authorization", f"Bearer {KEY}"),
        ({"basic": PAIR}, "authorization", BASIC),
        ({"login": PAIR}, "authorization", BASIC),
        ({"header": {"X-Own": KEY}}, "x-own", KEY),
        ({"inHeader": KEY}, "x-key", KEY),
        ({"cookie": {"s": KEY}}, "cookie", f"s={KEY}"),
        ({"inCookie": KEY}, "cookie", f"sid={KEY}"),
    ],
)
async def test_keys_go_where_they_belong(service: Service, credentials: dict[str, Any], header: str, value: str):
    await call(tool_of(service, {}, credentials=credentials, root=SCHEMES))
    assert service.header(header) == value
    assert KEY not in service.line


@pytest.mark.parametrize("credentials", [{"query": {"key": KEY}}, {"inQuery": KEY}])
async def test_a_key_may_go_in_the_address(service: Service, credentials: dict[str, Any]):
    await call(tool_of(service, given({"name": "q", "in": "query"}), credentials=credentials, root=SCHEMES), q="a")
    assert service.line == f"GET /x?q=a&key={KEY} HTTP/1.1"


@pytest.mark.parametrize("status", ["200 OK", "401 Unauthorized", "500 Oops"])
async def test_l2_a_service_that_repeats_the_key_does_not_bring_it_to_the_model_or_the_log(
    service: Service, status: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    for credentials in ({"bearer": KEY}, {"basic": PAIR}, {"query": {"key": KEY}}):
        echo = f'{{"you sent": "{KEY}", "and": "{BASIC if "basic" in credentials else ""}"}}'
        service.answers["/x"] = service.made(echo.encode(), status=status)
        tool = tool_of(service, {}, credentials=credentials)
        message = await call(tool)
        said = message.model_dump_json() + repr(tool.__dict__) + caplog.text + json.dumps(tool.function)
        assert KEY not in said
        assert BASIC.partition(" ")[2] not in said


async def test_l3_a_service_that_cannot_be_reached_says_nothing_of_the_key(service: Service, caplog: Any):
    def refuse(address: str, port: int) -> bool:
        return False

    for reach in (Reach(refuse, service.reach.resolve), Reach(lambda a, p: True, service.reach.resolve)):
        tool = tool_of(service, {}, credentials={"query": {"key": KEY}}, reach=reach, server="http://site.example:9")
        message = await call(tool)
        assert (message.extra or {})["failed"] in {"fetch_private", "fetch_unreachable"}
        assert KEY not in message.model_dump_json() + caplog.text


@pytest.mark.parametrize("status", [302, 307])
async def test_s8_a_redirect_to_another_origin_drops_the_keys(
    service: Service, status: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calling, "_ELSEWHERE", service.reach)
    service.sends_to("/x", f"{service.url('other.example')}/y", status)
    operation = given({"name": "X-Trace", "in": "header"})
    credentials = {"bearer": KEY, "cookie": {"s": KEY}, "header": {"X-Own": KEY}, "query": {"key": KEY}}
    message = await call(tool_of(service, operation, credentials=credentials), **{"X-Trace": "t"})
    assert message.content == '{"ok": true}'
    assert service.header("host").startswith("other.example")
    assert KEY not in service.heads[-1]
    assert not service.header("x-trace")
    assert KEY in service.heads[0]


async def test_s8_at_home_a_redirect_keeps_them(service: Service):
    service.sends_to("/x", "/y")
    await call(tool_of(service, {}, credentials={"bearer": KEY}))
    assert (service.line, service.header("authorization")) == ("GET /y HTTP/1.1", f"Bearer {KEY}")


async def test_s4_a_redirect_leads_to_the_open_internet_alone(service: Service):
    service.sends_to("/x", f"http://127.0.0.1:{service.port}/secret")
    message = await call(tool_of(service, {}))
    assert (message.extra or {})["failed"] == "fetch_private"
    assert len(service.heads) == 1


async def test_what_changes_something_is_not_sent_on_to_somebody_else(service: Service):
    service.sends_to("/x", f"{service.url('other.example')}/y", 307)
    body = {"requestBody": {"content": {"application/json": {}}}}
    message = await call(tool_of(service, body, method="post", credentials={"bearer": KEY}), body={"secret": 1})
    assert "other.example" in message.get_text_content()
    assert len(service.heads) == 1
    service.sends_to("/x", "/y", 303)
    await call(tool_of(service, body, method="post"), body={"secret": 1})
    assert (service.line, service.bodies[-1]) == ("GET /y HTTP/1.1", b"")


async def test_keys_go_to_the_document_s_own_servers_alone(service: Service):
    operation = {"servers": [{"url": service.url("other.example")}]}
    await call(tool_of(service, operation, credentials={"bearer": KEY}))
    assert service.header("host").startswith("other.example")
    assert KEY not in service.heads[-1]


async def test_missing_keys_are_told_before_the_first_request(service: Service):
    message = await call(tool_of(service, {"security": [{"token": []}]}, root=SCHEMES))
    assert (message.extra or {})["failed"] == "openapi_credentials"
    assert "Shop needs credentials (token)" in message.get_text_content()
    message = await call(tool_of(service, {"security": [{"token": []}, {}]}, root=SCHEMES))
    assert message.content == '{"ok": true}'
    for wrong in ({"bearer": "a\r\nx: y"}, {"bearer": ""}, {"unheard": KEY}, {"basic": {}}, {"header": {"a b": KEY}}):
        tool = tool_of(service, {}, credentials=wrong)
        with pytest.raises(SettingsError) as caught:
            tool.validate_credentials(tool.credentials)
        assert KEY not in str(caught.value)
    assert len(service.heads) == 1


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (
            "404 Not Found",
            b'{"error": "no such pet"}',
            'site.example answered 404 (Not Found): {"error": "no such pet"}',
        ),
        ("503 Busy", b"", "site.example answered 503 (Service Unavailable)."),
        ("400 Bad", b"x" * 100_000, "site.example answered 400 (Bad Request): xxx"),
        ("799 Odd", b"", "site.example answered 799."),
    ],
)
async def test_a_refusal_is_one_clear_sentence(service: Service, status: str, body: bytes, says: str):
    service.answers["/x"] = service.made(body, status=status)
    message = await call(tool_of(service, {}))
    assert message.get_text_content().startswith(says)
    assert len(message.get_text_content()) < 500
    assert (message.extra or {})["failed"] == "service_refused"


async def test_text_pictures_and_files_come_as_what_they_are(service: Service):
    service.answers["/x"] = service.made("日本".encode("shift_jis"), "text/plain; charset=shift_jis")
    assert (await call(tool_of(service, {}))).content == "日本"
    service.answers["/x"] = service.made(b"\x89PNG\r\n\x1a\n", "image/png")
    assert (await call(tool_of(service, {}))).items[-1].image == "data:image/png;name=x;base64,iVBORw0KGgo="
    disposition = 'content-disposition: attachment; filename="r,e;p.csv.zip"\r\n'
    service.answers["/x"] = service.made(b"PK", "application/zip", more=disposition)
    message = await call(tool_of(service, {}))
    assert message.items[-1].file == "data:application/zip;name=r%2Ce%3Bp.csv.zip;base64,UEs="
    assert message.get_text_content() == "The service answered with a file (application/zip, 2 bytes)."
    service.answers["/x"] = service.made(b"", status="204 No Content")
    assert "204 (No Content)" in (await call(tool_of(service, {}))).get_text_content()


async def test_without_leave_a_service_on_this_machine_is_not_called(service: Service):
    tool = tool_of(service, {}, reach=Reach(), server=f"http://127.0.0.1:{service.port}")
    message = await call(tool)
    assert (message.extra or {})["failed"] == "fetch_private"
    assert not service.heads
