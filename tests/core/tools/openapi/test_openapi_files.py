"""Files for and from a service: named by the model, sent whole, and never any other file of this machine."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from email import message_from_bytes
from email.policy import HTTP
from pathlib import Path
from typing import Any

import pytest

from core.messages.content import ContentItem
from core.messages.events import ToolFinished
from core.messages.message import FUNCTION, USER, Message
from core.messages.transcript import call_message
from core.tools.approval import ApprovalRequest, Guard, Policy
from core.tools.given_files import GivenFile
from core.tools.openapi import request
from core.tools.openapi.as_tools import ApiTool
from core.tools.runner import ToolRunner
from tests.core.tools.openapi.test_openapi_calls import Service, tool_of

pytestmark = pytest.mark.anyio

PDF = b"%PDF-1.7\n\x00\xff rest"
PNG = b"\x89PNG\r\n\x1a\n\x00"
BINARY = {"type": "string", "format": "binary"}


@pytest.fixture
async def service(anyio_backend: str) -> AsyncIterator[Service]:
    made = Service()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


def takes(schema: Any, media_type: str = "multipart/form-data", **more: Any) -> dict[str, Any]:
    return {"summary": "Upload", "requestBody": {"required": True, "content": {media_type: {"schema": schema, **more}}}}


def form(**properties: Any) -> dict[str, Any]:
    return takes({"type": "object", "properties": properties})


def upload(service: Service, operation: dict[str, Any], *files: GivenFile) -> ApiTool:
    return tool_of(service, operation, method="post").with_files({one.name: one for one in files})


def pdf(name: str = "bill.pdf") -> GivenFile:
    return GivenFile(name, "application/pdf", len(PDF), PDF)


async def call(tool: ApiTool, messages: list[Message] | None = None, **arguments: Any) -> Message:
    runner = ToolRunner({tool.name: tool})
    calls = [call_message("c1", tool.name, json.dumps(arguments))]
    events = [event async for event in runner.run(calls, messages=messages or [])]
    assert isinstance(events[-1], ToolFinished)
    return events[-1].message


def parts(service: Service) -> list[tuple[str, str | None, str, bytes]]:
    """Name, file name, kind and bytes of each part, as a reader of mail finds them."""
    head = f"content-type: {service.header('content-type')}\r\n\r\n".encode()
    message = message_from_bytes(head + service.bodies[-1], policy=HTTP)
    return [
        (
            str(part.get_param("name", header="content-disposition")),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),  # type: ignore[misc]
        )
        for part in message.iter_parts()  # type: ignore[attr-defined]
    ]


async def test_a_file_of_the_conversation_is_sent_whole_beside_the_other_fields(service: Service) -> None:
    tool = upload(service, form(file=BINARY, note={"type": "string"}, about={"type": "object"}), pdf("账单 1.pdf"))
    assert tool.schema["properties"]["body"]["properties"]["file"] == {
        "type": "string",
        "description": "The name of a file of this conversation.",
    }
    message = await call(tool, body={"file": "账单 1.pdf", "note": "March", "about": {"a": 1}})
    assert message.content == '{"ok": true}'
    file, note, about = parts(service)
    assert (file[0], file[2], file[3]) == ("file", "application/pdf", PDF)
    assert "账单 1.pdf" in service.bodies[-1].decode("utf-8", "replace")
    assert note == ("note", None, "text/plain", b"March")
    assert about == ("about", None, "application/json", b'{"a": 1}')


@pytest.mark.parametrize(
    "schema",
    [
        BINARY,
        {"type": "string", "contentMediaType": "application/pdf"},
        {"contentMediaType": "application/octet-stream"},
        {"type": ["string", "null"], "contentMediaType": "application/pdf"},
        {"anyOf": [BINARY, {"type": "null"}]},
    ],
)
async def test_both_versions_of_openapi_say_which_part_is_a_file(service: Service, schema: Any) -> None:
    await call(upload(service, form(file=schema), pdf()), body={"file": "bill.pdf"})
    assert parts(service)[0][1:] == ("bill.pdf", "application/pdf", PDF)


async def test_several_files_go_in_one_form(service: Service) -> None:
    tool = upload(service, form(files={"type": "array", "items": BINARY}), pdf("a.pdf"), pdf("b.pdf"))
    assert tool.schema["properties"]["body"]["properties"]["files"]["items"]["type"] == "string"
    await call(tool, body={"files": ["a.pdf", "b.pdf"]})
    assert [(one[0], one[1]) for one in parts(service)] == [("files", "a.pdf"), ("files", "b.pdf")]


async def test_the_kind_is_the_one_that_the_service_takes(service: Service) -> None:
    schema = {"type": "object", "properties": {"file": {}}}
    tool = upload(service, takes(schema, encoding={"file": {"contentType": "image/x-bill"}}), pdf())
    await call(tool, body={"file": "bill.pdf"})
    assert parts(service)[0][2] == "image/x-bill"


@pytest.mark.parametrize(
    ("media_type", "sent"),
    [
        ("application/octet-stream", "application/octet-stream"),
        ("application/pdf", "application/pdf"),
        ("*/*", "application/pdf"),
    ],
)
async def test_a_body_can_be_a_file(service: Service, media_type: str, sent: str) -> None:
    message = await call(upload(service, takes(BINARY, media_type), pdf()), body="bill.pdf")
    assert message.content == '{"ok": true}'
    assert (service.header("content-type"), service.bodies[-1]) == (sent, PDF)


async def test_text_as_a_body_stays_text_and_bytes_as_text_too(service: Service) -> None:
    for operation in (takes({"type": "string"}, "application/xml"), takes({"type": "string"}, "text/csv")):
        tool = upload(service, operation, pdf())
        assert tool.operation.files == {}
    tool = upload(service, form(data={"type": "string", "contentEncoding": "base64", "contentMediaType": "a/b"}))
    assert tool.operation.files == {}


@pytest.mark.parametrize("name", ["/etc/passwd", "../bill.pdf", "file:///etc/passwd", "./bill.pdf", "BILL.PDF", ""])
async def test_no_other_file_can_be_named(service: Service, name: str) -> None:
    message = await call(upload(service, form(file=BINARY), pdf()), body={"file": name})
    assert "There is no file" in message.get_text_content()
    assert "bill.pdf" in message.get_text_content()
    assert service.heads == []


async def test_a_link_that_took_a_files_place_is_not_followed(service: Service, tmp_path: Path) -> None:
    secret, path = tmp_path / "secret", tmp_path / "bill.pdf"
    secret.write_bytes(PDF)
    path.symlink_to(secret)
    tool = upload(service, form(file=BINARY), GivenFile("bill.pdf", "application/pdf", len(PDF), path))
    assert "cannot be read" in (await call(tool, body={"file": "bill.pdf"})).get_text_content()
    path.unlink()
    path.write_bytes(PDF + b"more than was shown")
    assert "has changed" in (await call(tool, body={"file": "bill.pdf"})).get_text_content()
    assert service.heads == []


async def test_in_a_program_the_files_are_those_that_the_user_named(service: Service, tmp_path: Path) -> None:
    own, other, link = tmp_path / "own.pdf", tmp_path / "other.pdf", tmp_path / "link.pdf"
    own.write_bytes(PDF)
    other.write_bytes(b"private")
    link.symlink_to(other)
    said = [
        Message(USER, [ContentItem(text="Send it"), ContentItem(file=str(own)), ContentItem(file=str(link))]),
        Message(FUNCTION, [ContentItem(file=other.as_uri())], name="lying"),
        Message(FUNCTION, [ContentItem(image="data:image/png;name=plot.png;base64,iVBORw0KGgoA")], name="plot"),
        Message(USER, [ContentItem(file="https://files.example/far.pdf")]),
    ]
    tool = tool_of(service, form(file=BINARY), method="post")
    assert (await call(tool, said, body={"file": "own.pdf"})).content == '{"ok": true}'
    assert (await call(tool, said, body={"file": "plot.png"})).content == '{"ok": true}'
    assert parts(service)[0][2:] == ("image/png", b64decode("iVBORw0KGgoA"))
    for name in ("other.pdf", "link.pdf", "far.pdf"):
        told = (await call(tool, said, body={"file": name})).get_text_content()
        assert "There are: own.pdf, plot.png." in told
    assert "no file in this conversation" in (await call(tool, [], body={"file": "own.pdf"})).get_text_content()
    assert len(service.heads) == 2


async def test_files_have_bounds_together(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "LARGEST", len(PDF) + 1)
    tool = upload(service, form(a=BINARY, b=BINARY), pdf())
    assert (await call(tool, body={"a": "bill.pdf"})).content == '{"ok": true}'
    assert "32 MB together" in (await call(tool, body={"a": "bill.pdf", "b": "bill.pdf"})).get_text_content()
    assert len(service.heads) == 1


async def test_whoever_is_asked_sees_the_name_and_the_size(service: Service) -> None:
    heard: list[ApprovalRequest] = []
    tool = upload(service, form(file=BINARY), GivenFile("bill.pdf", "application/pdf", 1_234_567, PDF))
    guard = Guard(Policy(), lambda asking: bool(heard.append(asking)))
    for name in ("bill.pdf", "gone.pdf"):
        await guard.decide(tool, "c1", {"body": {"file": name}}, [])
    assert heard[0].wants["en"] == "send to Shop: Upload, with bill.pdf (1.2 MB)"
    assert heard[0].wants["zh"] == "向 Shop 提交：Upload，附上bill.pdf（1.2 MB）"
    assert heard[1].wants["en"] == "send to Shop: Upload, with gone.pdf (not here)"


async def test_a_file_never_leaves_unasked_whatever_the_service_calls_it(service: Service) -> None:
    heard: list[ApprovalRequest] = []
    tool = tool_of(service, form(file=BINARY), method="get").with_files({"bill.pdf": pdf()})
    guard = Guard(Policy(), lambda asking: bool(heard.append(asking)))
    decision = await guard.decide(tool, "c1", {"body": {"file": "bill.pdf"}}, [])
    assert (decision.allowed, len(heard)) == (False, 1)
    assert heard[0].wants["en"].startswith("send to Shop")


async def test_a_form_without_anything_in_it_is_told(service: Service) -> None:
    assert "empty" in (await call(upload(service, form(file=BINARY), pdf()), body={})).get_text_content()


@pytest.mark.parametrize(
    ("kind", "data", "item"),
    [
        ("application/pdf", PDF, "file"),
        ("image/png", PNG, "image"),
        ("application/octet-stream", PNG, "image"),
        ("application/octet-stream", PDF, "file"),
        ("image/png", PDF, "file"),
    ],
)
async def test_a_file_that_comes_back_is_an_item_of_the_result(
    service: Service, kind: str, data: bytes, item: str
) -> None:
    service.answers["/x"] = service.made(data, kind, more='content-disposition: attachment; filename="a b.bin"\r\n')
    found = (await call(tool_of(service, {}))).items[-1]
    assert (found.type, b64decode(str(found.value).partition("base64,")[2])) == (item, data)
    assert "a%20b" in str(found.value)
