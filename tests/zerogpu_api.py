"""The service behind ZeroGPU as the package `spaces` asks it: who may have a GPU, and who has given it back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

GPU = {"idle": False, "nvidiaIndex": 0, "nvidiaUUID": "GPU-of-nobody", "allowToken": "allowed"}


@dataclass
class ZeroGpuApi:
    """What it was asked, and how it answers the next request for a GPU.

    Attributes:
        asked: Paths with what they were asked with.
        answers: Of the next requests for a GPU: `gpu`, `queue`, `full`, or how much time is left and when there is
            more, `{"left": 12, "wait": 12000}`; `gpu` where none are left.
        lets_go: While it is not set, the queue does not move.
    """

    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])
    answers: list[str | dict[str, int]] = field(default_factory=list[str | dict[str, int]])
    lets_go: threading.Event = field(default_factory=threading.Event)
    waits: threading.Event = field(default_factory=threading.Event)
    address: str = ""

    def paths(self) -> list[str]:
        """What was asked, in order."""
        return [path for path, _ in self.asked]

    def of(self, path: str) -> list[dict[str, str]]:
        """With what a path was asked, each time."""
        return [given for one, given in self.asked if one == path]


class _Handler(BaseHTTPRequestHandler):
    api: ZeroGpuApi

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        self.api.asked.append((parts.path, {key: values[0] for key, values in parse_qs(parts.query).items()}))
        if parts.path != "/schedule":
            self._say(200, {})
            return
        answer = self.api.answers.pop(0) if self.api.answers else "gpu"
        if isinstance(answer, dict):
            self._say(429, answer, {"X-Approve-Result": "quota-exceeded", "X-Authenticated": "regular"})
        elif answer == "full":
            self._say(503, {})
        elif answer == "queue":
            self._queue()
        else:
            self._say(200, GPU)

    def _queue(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.api.waits.set()
        while not self.api.lets_go.wait(0.05):
            if not self._event("event: ping\n\n"):
                return
        self._event(f"event: succeeded\ndata: {json.dumps(GPU)}\n\n")

    def _event(self, text: str) -> bool:
        try:
            self.wfile.write(text.encode())
            self.wfile.flush()
        except OSError:
            return False
        return True

    def _say(self, status: int, body: dict[str, object] | dict[str, int], headers: dict[str, str] = {}) -> None:  # noqa: B006
        told = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@contextmanager
def zero_gpu_api() -> Iterator[ZeroGpuApi]:
    """The service on a free port of this machine."""
    api = ZeroGpuApi()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    server.daemon_threads = True
    api.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.lets_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
