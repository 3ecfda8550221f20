"""A server that stands before another one and fails as networks and stores do: 500s, silence, answers that are cut."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

Fault: TypeAlias = Literal["500", "silent", "cut", ""]


class FaultyProxy:
    """Hands requests on to a port of 127.0.0.1; the next ones meet the faults that were planned, one each.

    Args:
        to: The port.
    """

    def __init__(self, to: int) -> None:
        self.to = to
        self.faults: deque[Fault] = deque()
        self.seen: list[tuple[str, Fault]] = []
        self._over = threading.Event()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionError, TimeoutError):
                    self.close_connection = True

            def do_GET(self) -> None:
                proxy.answer(self)

            do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the names that the base class asks for

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        fault: Fault = self.faults.popleft() if self.faults else ""
        self.seen.append((asked.command, fault))
        body = asked.rfile.read(int(asked.headers.get("content-length") or 0))
        if fault == "silent":
            self._over.wait(30)  # the client gives up before that
            asked.close_connection = True
            return
        if fault == "500":
            asked.send_response(500)
            asked.send_header("content-length", "0")
            asked.end_headers()
            return
        with closing(HTTPConnection("127.0.0.1", self.to, timeout=30)) as behind:
            behind.request(asked.command, asked.path, body, dict(asked.headers.items()))
            answer = behind.getresponse()
            data = answer.read()
        asked.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "content-length", "date", "server", "transfer-encoding"}:
                asked.send_header(name, value)
        length = answer.getheader("content-length") if asked.command == "HEAD" else str(len(data))
        asked.send_header("content-length", length or "0")
        asked.end_headers()
        if asked.command != "HEAD":
            asked.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
            asked.wfile.flush()
        if fault == "cut":
            asked.close_connection = True
