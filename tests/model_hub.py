"""A hub on 127.0.0.1: its list of files, its headers of a file in Git LFS, and the store that it sends on to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class ModelHub(ThreadingHTTPServer):
    """Serves one repository; may break off, change a file, or tell other hashes than it has."""

    def __init__(self, repository: str, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repository = repository
        self.files = files
        self.told: dict[str, str] = {}  # hashes that it tells in place of the real ones
        self.linked = True  # whether it tells a hash at all
        self.break_after: list[int] = []  # bytes to send before it breaks off, one entry a download
        self.pause = threading.Event()  # downloads wait in the middle until it is set
        self.pause.set()
        self.downloads: list[dict[str, str]] = []
        self.paths: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def sha256(self, name: str) -> str:
        return self.told.get(name) or hashlib.sha256(self.files[name]).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    server: ModelHub  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        hub, path = self.server, self.path
        hub.paths.append(path)
        if path == "/":
            return self._send(200, b"", {})
        if path == f"/api/models/{hub.repository}/tree/main":
            body = json.dumps([self._entry(name) for name in hub.files]).encode()
            return self._send(200, body if with_body else b"", {"Content-Type": "application/json"})
        for revision in ("main", COMMIT):
            before = f"/{hub.repository}/resolve/{revision}/"
            if path.startswith(before) and path.removeprefix(before) in hub.files:
                return self._send_on(path.removeprefix(before))
        if path.startswith("/store/") and path.removeprefix("/store/") in hub.files:
            return self._store(path.removeprefix("/store/"), with_body=with_body)
        return self._send(404, b"", {})

    def _entry(self, name: str) -> dict[str, Any]:
        body = self.server.files[name]
        entry: dict[str, Any] = {"type": "file", "path": name, "size": len(body), "oid": "f" * 40}
        if self.server.linked:
            entry["lfs"] = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 134}
        return entry

    def _send_on(self, name: str) -> None:
        told = {"Location": f"{self.server.address}/store/{name}", "X-Repo-Commit": COMMIT}
        if self.server.linked:
            size = str(len(self.server.files[name]))
            told |= {"X-Linked-Etag": f'"{self.server.sha256(name)}"', "X-Linked-Size": size}
        self._send(302, b"", told)

    def _store(self, name: str, *, with_body: bool) -> None:
        body, etag = self.server.files[name], f'"{hashlib.md5(self.server.files[name]).hexdigest()}"'
        asked = {key.lower(): value for key, value in self.headers.items()}
        self.server.downloads.append({key: asked[key] for key in ("range", "if-range") if key in asked})
        start = 0
        if "range" in asked and asked.get("if-range", etag) == etag:
            start = int(asked["range"].removeprefix("bytes=").partition("-")[0])
        told = {"ETag": etag, **({"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {})}
        self._send(206 if start else 200, body[start:] if with_body else b"", told, may_break=True)

    def _send(self, status: int, body: bytes, told: dict[str, str], *, may_break: bool = False) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **told}.items():
            self.send_header(name, value)
        self.end_headers()
        stop = self.server.break_after.pop(0) if may_break and self.server.break_after else len(body)
        half = stop // 2
        self.wfile.write(body[:half])
        if may_break:
            self.wfile.flush()
            self.server.pause.wait(30)
        self.wfile.write(body[half:stop])

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def model_hub(repository: str, files: dict[str, bytes]) -> Iterator[ModelHub]:
    """A hub that runs for the block."""
    with ModelHub(repository, files) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.pause.set()
            hub.shutdown()
            thread.join()
