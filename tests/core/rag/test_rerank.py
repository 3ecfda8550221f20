"""What was found is put into a better order by a service; without it, the order of the search stays."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError, SettingsError
from core.rag.library import Library
from core.rag.rerank import ServiceReranker, reranker

KEY = "sk-a-key-that-nobody-may-read"
TEXTS = ["A lamp hangs over the door.", "The lamp is broken and the lamp is old.", "The lamp was mended by Ada."]


class Service:
    """A service that likes texts the better the more often they name Ada; both shapes."""

    def __init__(self) -> None:
        service = self
        self.asked: list[dict[str, Any]] = []
        self.status = 200
        self.answer: bytes | None = None
        self.waits = threading.Event()
        self.waits.set()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.asked.append({**body, "authorization": self.headers["authorization"], "path": self.path})
                service.waits.wait(10)
                raw = service.answer or json.dumps(service.said(body)).encode()
                self.send_response(service.status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @staticmethod
    def said(body: dict[str, Any]) -> dict[str, Any]:
        texts = body.get("input", body)["documents"]
        rows = [{"index": at, "relevance_score": 0.1 + 0.5 * text.count("Ada")} for at, text in enumerate(texts)]
        rows.sort(key=lambda row: -row["relevance_score"])
        return {"output": {"results": rows}, "usage": {}} if "input" in body else {"results": rows}

    def cfg(self, path: str = "/v1/", **more: object) -> dict[str, object]:
        return {
            "model": "a-reranker",
            "base_url": f"http://127.0.0.1:{self.server.server_port}{path}",
            "api_key": KEY,
            **more,
        }


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.waits.set()
    running.server.shutdown()
    running.server.server_close()
    running.thread.join()


def library(folder: Path, cfg: dict[str, object] | None, **more: object) -> Library:
    opened = Library.open(folder, {"reranker": cfg, **more})
    for number, text in enumerate(TEXTS):
        opened.add_text(text, name=f"{number}.txt")
    return opened


def order(opened: Library, k: int = 3) -> list[str]:
    return [passage.document for passage in opened.find("Which lamp?", k)]


def test_the_best_of_a_search_come_in_the_order_of_the_service(service: Service, tmp_path: Path) -> None:
    with library(tmp_path / "with", service.cfg()) as reranked, library(tmp_path / "without", None) as plain:
        assert order(plain, 1) == ["1.txt"]
        assert order(reranked, 1) == ["2.txt"]
        assert [round(one.score, 3) for one in reranked.find("Which lamp?", 3)] == [0.6, 0.1, 0.1]
    asked = service.asked[0]
    assert (asked["path"], asked["authorization"]) == ("/v1/rerank", f"Bearer {KEY}")
    assert (asked["model"], asked["query"], asked["top_n"]) == ("a-reranker", "Which lamp?", 3)


def test_a_threshold_counts_the_scores_of_the_service(service: Service, tmp_path: Path) -> None:
    with library(tmp_path / "with", service.cfg(), score_threshold=0.5) as reranked:
        assert order(reranked) == ["2.txt"]


@pytest.mark.parametrize(
    ("path", "style", "asked_at"),
    [
        ("/api/v1", "dashscope", "/api/v1/services/rerank/text-rerank/text-rerank"),
        ("/api/v1/services/rerank/text-rerank/text-rerank", None, "/api/v1/services/rerank/text-rerank/text-rerank"),
    ],
)
def test_dashscopes_own_shape_is_spoken_too(service: Service, path: str, style: str | None, asked_at: str) -> None:
    ours = ServiceReranker(service.cfg(path, style=style))
    assert ours.scores("Who?", TEXTS) == [0.1, 0.1, 0.6]
    ours.close()
    asked = service.asked[0]
    assert asked["path"] == asked_at
    assert asked["input"] == {"query": "Who?", "documents": TEXTS}
    assert asked["parameters"] == {"top_n": 3, "return_documents": False}


def test_a_whole_address_is_taken_as_it_is(service: Service) -> None:
    ours = ServiceReranker(service.cfg("/compatible-api/v1/reranks"))
    ours.scores("Who?", TEXTS)
    ours.close()
    assert service.asked[0]["path"] == "/compatible-api/v1/reranks"
    assert ours.scores("Who?", []) == []


def test_half_a_letter_in_a_question_is_asked_without_it(service: Service) -> None:
    ours = ServiceReranker(service.cfg())
    assert ours.scores("Who\ud83d, 谁?", TEXTS) == [0.1, 0.1, 0.6]
    ours.close()
    assert service.asked[0]["query"] == "Who?, 谁?"


@pytest.mark.parametrize("key", ["sk-schlüssel", "sk-key\n", "sk-\ud83d"])
def test_a_key_that_no_request_can_carry_is_said_without_showing_it(key: str) -> None:
    with pytest.raises(SettingsError, match="key of the reranking service") as caught:
        ServiceReranker({"model": "a-reranker", "base_url": "http://127.0.0.1:9/v1", "api_key": key})
    assert key not in str(caught.value)


def test_what_the_service_leaves_out_comes_last(service: Service) -> None:
    service.answer = b'{"results": [{"index": 2, "relevance_score": 0.9}, {"index": 1, "relevance_score": -3.5}]}'
    ours = ServiceReranker(service.cfg())
    first, second, third = ours.scores("Who?", TEXTS)
    ours.close()
    assert third > second > first


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (401, None, ModelRefusedError),
        (429, None, ModelUnavailableError),
        (503, b"<html>busy</html>", ModelUnavailableError),
        (200, b"<html>login</html>", ModelMisbehavedError),
        (200, b"[]", ModelMisbehavedError),
        (200, b'{"results": []}', ModelMisbehavedError),
        (200, b'{"results": [{"index": 9, "relevance_score": 1}]}', ModelMisbehavedError),
        (200, b'{"results": [{"index": 0, "relevance_score": NaN}]}', ModelMisbehavedError),
        (200, b'{"results": [{"index": 0}]}', ModelMisbehavedError),
        (200, b'{"results": [{"index": Infinity, "relevance_score": 1}]}', ModelMisbehavedError),
        (200, b'{"results": [{"index": 0, "relevance_score": 1%s}]}' % (b"0" * 400), ModelMisbehavedError),
    ],
)
def test_what_a_service_does_wrong_is_one_error_and_the_search_keeps_its_order(
    service: Service,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    status: int,
    answer: bytes | None,
    error: type[Exception],
) -> None:
    service.status, service.answer = status, answer
    ours = ServiceReranker(service.cfg())
    with pytest.raises(error) as caught:
        ours.scores("Who?", TEXTS)
    ours.close()
    assert KEY not in str(caught.value) + repr(caught.value)
    with library(tmp_path / "with", service.cfg()) as reranked:
        assert order(reranked, 1) == ["1.txt"]
    assert "order of the search" in caplog.text
    assert KEY not in caplog.text


def test_a_service_that_does_not_answer_is_left_in_time(service: Service, tmp_path: Path) -> None:
    service.waits.clear()
    with library(tmp_path / "with", service.cfg(timeout=0.2)) as reranked:
        assert order(reranked, 1) == ["1.txt"]


@pytest.mark.parametrize(
    "cfg", [{}, {"model": "m"}, {"model": "m", "base_url": "http://a/", "nonsense": 1}, {"model": "", "base_url": "x"}]
)
def test_settings_that_are_wrong_are_an_error_when_the_library_opens(tmp_path: Path, cfg: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="reranking service"):
        Library.open(tmp_path / "wrong", {"reranker": cfg})
    assert reranker(None) is None
