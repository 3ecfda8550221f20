"""Models from a hub, which a small server of ours plays: what is fetched, how far it is, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.errors import ModelRefusedError, ModelServiceError
from core.llm.backends.transformers.load import cached_folder, fetched_folder
from core.llm.request import Progress

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors": b"w" * 5000,
    "pytorch_model.bin": b"o" * 5000,
    "model-q4.gguf": b"g" * 3000,
    "picture.png": b"p",
}


class Hub(BaseHTTPRequestHandler):
    """Has one model, `own/model`, and one that it gives to nobody, `own/gated`."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if "own/gated" in path:
            self._say(403, b"Access to model own/gated is restricted.", {"X-Error-Code": "GatedRepo"})
        elif "own/model" not in path:
            self._say(404, b"Repository Not Found", {"X-Error-Code": "RepoNotFound"})
        elif path.startswith("/api/models/own/model/tree/"):
            self._json(
                [{"type": "file", "path": name, "size": len(raw), "oid": _tag(raw)} for name, raw in FILES.items()]
            )
        elif path.startswith("/api/models/own/model"):
            files = [{"rfilename": name} for name in FILES]
            self._json({"id": "own/model", "sha": COMMIT, "siblings": files, "private": False, "tags": []})
        else:
            raw = FILES[path.rpartition("/")[2]]
            self._say(200, raw, {"ETag": f'"{_tag(raw)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"})

    def _json(self, value: object) -> None:
        self._say(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quietly."""


def _tag(raw: bytes) -> str:
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    for name, value in (
        ("ENDPOINT", address),
        ("HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"),
        ("HF_HUB_CACHE", str(tmp_path)),
        ("HF_HUB_DISABLE_XET", True),
    ):
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.usefixtures("hub")
def test_what_a_model_needs_is_fetched_in_one_form_of_weights() -> None:
    seen: list[Progress] = []
    folder = fetched_folder("own/model", None, "", seen.append)
    assert {path.name for path in folder.iterdir()} == {"config.json", "tokenizer.json", "model.safetensors"}
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert seen
    assert seen[-1].what == "own/model"
    assert seen[-1].done == seen[-1].total == sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.usefixtures("hub")
def test_of_gguf_files_the_one_that_is_asked_for_is_fetched() -> None:
    folder = fetched_folder("own/model", None, "model-q4.gguf", None)
    assert {path.name for path in folder.iterdir()} == {"config.json", "tokenizer.json", "model-q4.gguf"}


def test_what_was_fetched_is_found_again_without_a_network(hub: ThreadingHTTPServer) -> None:
    folder = fetched_folder("own/model", None, "", None)
    hub.shutdown()
    hub.server_close()
    assert cached_folder("own/model", None) == folder
    assert fetched_folder("own/model", None, "", None) == folder


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(("name", "code"), [("own/other", "404"), ("own/gated", "403")])
def test_what_the_hub_refuses_is_told(name: str, code: str) -> None:
    assert cached_folder(name, None) is None
    with pytest.raises(ModelRefusedError, match=name) as caught:
        fetched_folder(name, None, "", None)
    assert caught.value.code == code
    assert caught.value.hint


def test_a_hub_that_does_not_answer_is_told(hub: ThreadingHTTPServer) -> None:
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ModelServiceError, match="own/model") as caught:
        fetched_folder("own/model", None, "", None)
    assert caught.value.words_key == "weights_unreachable"
