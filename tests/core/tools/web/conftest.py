"""A server on this machine that says what it is told to, as services of the web would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Service:
    """Answers by path; what it was asked is in `requests`."""

    answers: dict[str, list[bytes]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def says(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        """The next answer at a path; the last one stays."""
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        headers = {"content_type": "application/json", **headers}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} Status\r\n{lines}content-length: {len(data)}\r\n\r\n"
        self.answers.setdefault(path, []).append(head.encode() + data)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            raw = await reader.readexactly(int(headers.get("content-length", 0)))
            method, target, _ = first.split()
            url = urlsplit(target)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            self.requests.append(Request(method, url.path, query, headers, json.loads(raw) if raw else None))
            waiting = self.answers.get(url.path, [b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"])
            writer.write(waiting.pop(0) if len(waiting) > 1 else waiting[0])
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()
