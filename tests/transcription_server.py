"""A service that turns recordings into text, as OpenAI's protocol has it: `/v1/audio/transcriptions`, on 127.0.0.1."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Sent:
    """What came: the form without its file, the file's bytes, name and type, and the key."""

    form: dict[str, str]
    sound: bytes
    name: str
    media_type: str
    key: str


@dataclass
class TranscriptionServer:
    """Answers each recording with `answer` and `status`, as long as the key is right; a context manager."""

    answer: Any = field(default_factory=lambda: {"text": "hello there"})
    status: int = 200
    content_type: str = "application/json"
    key: str = "sk-CANARY-of-the-service"
    sent: list[Sent] = field(default_factory=list[Sent])
    holding: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.holding.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                status, answer = outer.heard(self.path, dict(self.headers.items()), raw)
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", outer.content_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def heard(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, Any]:
        if path != "/v1/audio/transcriptions":
            return 404, {"error": {"message": f"There is no {path} here.", "code": "not_found"}}
        kind = next(value for name, value in headers.items() if name.lower() == "content-type")
        parts = BytesParser(policy=HTTP).parsebytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + raw)
        form: dict[str, str] = {}
        sound, name, media_type = b"", "", ""
        for part in parts.iter_parts():
            payload: Any = part.get_payload(decode=True)
            if part.get_filename():
                sound, name, media_type = payload, str(part.get_filename()), part.get_content_type()
            else:
                form[str(part.get_param("name", header="content-disposition"))] = payload.decode()
        key = headers.get("Authorization", headers.get("authorization", "")).removeprefix("Bearer ")
        self.sent.append(Sent(form, sound, name, media_type, key))
        assert self.holding.wait(30), "The answer was held and never let go."
        if key != self.key:
            return 401, {"error": {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}}
        return self.status, self.answer

    def __enter__(self) -> TranscriptionServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.holding.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
