"""Vectors of many passages from a service: in batches, several at once, asked again, and never of two sizes at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError
from core.rag.embedding.service import ServiceEmbedder
from core.rag.library import Library
from core.rag.prose import count_tokens
from core.reading.indexing import index_config, maker_in
from core.settings import Settings

TEXTS = [f"Lamp {number} stands beside door {number}." for number in range(40)]


class Service:
    """A service that speaks OpenAI's protocol: the vector of a text says which letters it has, and how many.

    Attributes:
        asked: The bodies of requests, in the order in which they came.
        sizes: How long the vectors of each model are.
        failing: Statuses of the next answers, in place of vectors.
        meeting: Held by each request until so many are there.
    """

    def __init__(self) -> None:
        service = self
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.sizes: dict[str, int] = {}
        self.failing: list[int] = []
        self.meeting: threading.Barrier | None = None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.asked.append(body)
                service.keys.add(str(self.headers["authorization"]))
                if service.meeting is not None:
                    service.meeting.wait(30)
                status = service.failing.pop(0) if service.failing else 200
                rows = [service.vector(body["model"], text) for text in body["input"]]
                raw = json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}).encode()
                self.send_response(status)
                self.send_header("retry-after", "0")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/v1"

    def vector(self, model: str, text: str) -> list[float]:
        size = self.sizes.get(model, 8)
        return [1.0 + sum(ord(letter) % size == place for letter in text) for place in range(size)]

    def cfg(self, **more: Any) -> dict[str, Any]:
        return {"model": "small", "base_url": self.address, "api_key": "sk-of-the-test", **more}


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.server.shutdown()
    running.server.server_close()
    running.thread.join()


@pytest.fixture
def embedder(service: Service) -> Iterator[Callable[..., ServiceEmbedder]]:
    made: list[ServiceEmbedder] = []

    def make(**more: Any) -> ServiceEmbedder:
        made.append(ServiceEmbedder(service.cfg(**more)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_request_has_no_more_texts_and_tokens_than_it_may(service: Service, embedder: Any) -> None:
    most = count_tokens(TEXTS[10]) * 3.5
    rows = embedder(batch_size=16, batch_tokens=int(most)).passages([*TEXTS[:20], "A long one. " * 50])
    assert {len(one["input"]) for one in service.asked} <= {1, 2, 3, 4}
    assert all(sum(map(count_tokens, one["input"])) <= most for one in service.asked if len(one["input"]) > 1)
    assert sum(len(one["input"]) for one in service.asked) == 21
    wanted = np.array([service.vector("small", text) for text in TEXTS[:20]])
    assert np.allclose(rows[:20], wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-5)


def test_several_requests_are_made_at_the_same_time(service: Service, embedder: Any) -> None:
    service.meeting = threading.Barrier(4)  # none is answered before four are there
    assert len(embedder(at_once=4).passages(TEXTS)) == 40
    assert len(service.asked) == 4


def test_what_is_busy_is_asked_again_and_what_refuses_is_not(service: Service, embedder: Any) -> None:
    service.failing = [503, 429, 500]
    assert len(embedder().passages(TEXTS[:5])) == 5
    assert len(service.asked) == 4
    service.failing = [503] * 4
    with pytest.raises(ModelUnavailableError):
        embedder().passages(TEXTS[:5])
    assert len(service.asked) == 8
    service.failing = [401]
    with pytest.raises(ModelRefusedError):
        embedder().passages(TEXTS[:5])
    service.failing = [503]
    with pytest.raises(ModelUnavailableError):  # words find without it meanwhile
        embedder().questions(["Which lamp?"])
    assert len(service.asked) == 10


def test_vectors_that_are_longer_than_those_before_are_refused_in_a_sentence(service: Service, embedder: Any) -> None:
    one = embedder()
    one.passages(TEXTS[:3])
    service.sizes["small"] = 5
    with pytest.raises(ModelMisbehavedError, match="vectors of 5 numbers in place of 8"):
        one.passages(TEXTS[:3])
    with pytest.raises(ModelMisbehavedError, match="vectors of 5 numbers in place of 7"):
        embedder(dimensions=7).passages(TEXTS[:3])


def test_a_library_asks_for_whole_batches_and_keeps_them_in_half_precision(service: Service, tmp_path: Path) -> None:
    config = {"retrieval_type": "vector", "embedding_model": service.cfg(), "chunk_size": 32, "chunk_overlap": 0}
    with Library.open(tmp_path / "far", config) as library:
        library.add_text("\n\n".join(f"{text} " * 6 for text in TEXTS), name="lamps.md")
        assert library.wait_for_vectors(300)
        chunks = library.documents()[0].chunks
        asked = sorted(len(one["input"]) for one in service.asked)
        assert sum(asked) == chunks
        assert len(asked) <= chunks // 10 + 4
        assert library.find("Which lamp stands beside door 7?", 1)
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "far" / "library.sqlite")) as db:
        kept = db.execute("SELECT model, vector FROM vectors").fetchall()
    assert {model for model, _ in kept} == {f"small {service.address}"}
    lengths = [np.linalg.norm(np.frombuffer(row, np.float16).astype(np.float32)) for _, row in kept]
    assert np.allclose(lengths, 1, atol=2e-3)


def test_another_model_reads_all_again_and_another_size_under_the_same_name_is_told(
    service: Service, tmp_path: Path
) -> None:
    def opened(**more: Any) -> Library:
        return Library.open(tmp_path / "far", {"retrieval_type": "vector", "embedding_model": service.cfg(**more)})

    with opened() as library:
        library.add_text(TEXTS[0], name="lamp")
        assert library.wait_for_vectors(300)
    with opened(model="other") as library:
        assert library.wait_for_vectors(300)
        assert [one["model"] for one in service.asked] == ["small", "other"]
    service.sizes["small"] = 5
    with opened() as library:
        with pytest.raises(ModelMisbehavedError, match="vectors of 5 numbers, and those of this library have 8"):
            library.find("Which lamp?")
        library.add_text(TEXTS[1], name="second")
        assert not library.wait_for_vectors(300)
        assert library.find("door", retrieval_type="keyword")
    with opened(dimensions=5) as library:
        assert library.wait_for_vectors(300)
        assert library.find("Which lamp?")


@pytest.mark.parametrize(
    ("given", "address", "key"),
    [
        ({}, "https://api.openai.com/v1", ""),
        ({"openai_api_key": "sk-openai"}, "https://api.openai.com/v1", "sk-openai"),
        ({"dashscope_api_key": "sk-dash"}, "https://dashscope.aliyuncs.com/compatible-mode/v1", "sk-dash"),
        ({"base_url": "http://a.example/v1", "api_key": "sk-a"}, "http://a.example/v1", "sk-a"),
        (
            {"base_url": "http://a.example/v1", "api_key": "sk-a", "embedding_base_url": "http://b.example/v1"},
            "http://b.example/v1",
            "",
        ),
        ({"embedding_base_url": "http://b.example/v1", "embedding_api_key": "sk-b"}, "http://b.example/v1", "sk-b"),
    ],
)
def test_a_service_is_where_the_answering_model_is_unless_it_is_said_and_no_key_goes_elsewhere(
    given: dict[str, Any], address: str, key: str, tmp_path: Path
) -> None:
    settings = Settings.load(home=tmp_path, embedding_model="bge-m3", embedding_batch=32, **given)
    chosen = index_config(settings).embedding_model
    assert chosen == {"model": "bge-m3", "base_url": address, "api_key": key, "batch_size": 32}
    assert index_config(Settings.load(home=tmp_path, **given)).embedding_model == "auto"
    assert index_config(Settings.load(home=tmp_path, embedding_model="use", **given)).embedding_model == "use"


def test_what_is_told_of_a_service_to_other_parlours_holds_nothing_secret(tmp_path: Path) -> None:
    address = "https://ann:canary@vectors.example.com/v1/?key=canary"
    settings = Settings.load(home=tmp_path, retrieval="hybrid", embedding_model="m", embedding_base_url=address)
    maker = maker_in(settings, "one", makes=True)
    assert maker is not None
    assert maker.models == "m at https://vectors.example.com/v1"
