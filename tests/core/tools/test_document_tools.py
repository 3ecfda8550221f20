"""Qwen-Agent's tools for documents under their names: what they return, and which files a model may name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import BadArgumentsError, DocumentError, FetchError
from core.messages.content import ContentItem
from core.messages.message import USER, FunctionCall, Message
from core.rag.search.terms import terms
from core.tools.builtin.doc_parser import DocParser, ExtractDocVocabulary, SimpleDocParser
from core.tools.builtin.document_search import FrontPageSearch, HybridSearch, KeywordSearch, Retrieval, VectorSearch
from core.tools.documents import tokens_of
from core.tools.runner import ToolRunner
from tests.golden.claimed import Record, name, recorded

SENTENCES = [
    "The Transformer is based solely on attention mechanisms.",
    "Recurrent networks process tokens sequentially.",
    "We trained the model for 3.5 days on eight GPUs.",
    "Bananas are yellow fruit and grow in warm places.",
]
READERS = [SimpleDocParser, DocParser]
SEARCHES = [KeywordSearch, HybridSearch, VectorSearch, FrontPageSearch]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text("# Cooling\n\nWater carries the heat.\n\n| a | b |\n|---|---|\n| 1 | x\\|y |\n", encoding="utf-8")
    return path


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    import pymupdf

    document: Any = pymupdf.open()
    for words in ("The first page is about sodium.", "The second page is about lead."):
        document.new_page().insert_text((72, 72), words)
    document.save(tmp_path / "metals.pdf")
    return tmp_path / "metals.pdf"


def texts_of(found: Any) -> list[str]:
    return [text for record in found for text in record["text"]]


# ---- reading


def test_a_document_is_its_whole_text(notes: Path) -> None:
    said = SimpleDocParser().call({"url": str(notes)})
    assert said == "# Cooling\n\nWater carries the heat.\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |"
    assert SimpleDocParser().call({"url": notes.as_uri()}) == said


def test_structured_it_is_pages_of_texts_and_tables(notes: Path, pdf: Path) -> None:
    (page,) = SimpleDocParser({"structured_doc": True}).call({"url": str(notes)})
    assert [next(iter(one)) for one in page["content"]] == ["text", "text", "table"]
    assert page["content"][1] == {"text": "Water carries the heat.", "token": tokens_of("Water carries the heat.")}
    pages = SimpleDocParser({"structured_doc": True}).call({"url": str(pdf)})
    assert [page["page_num"] for page in pages] == [1, 2]


def test_a_short_document_is_one_chunk_and_a_long_one_several(pdf: Path) -> None:
    whole = DocParser().call({"url": str(pdf)})
    assert (whole["url"], len(whole["raw"])) == (str(pdf), 1)
    parts = DocParser({"max_ref_token": 10, "parser_page_size": 32}).call({"url": str(pdf)})["raw"]
    assert [part["content"].split("\n")[0] for part in parts] == ["[page: 1]", "[page: 2]"]
    assert parts[1]["metadata"] == {"source": str(pdf), "title": "metals.pdf", "chunk_id": 1}
    assert parts[1]["token"] == tokens_of(parts[1]["content"])


def test_a_changed_file_is_read_again(notes: Path) -> None:
    tool = SimpleDocParser()
    tool.call({"url": str(notes)})
    notes.write_text("Lead carries the heat.", encoding="utf-8")
    assert tool.call({"url": str(notes)}) == "Lead carries the heat."


def test_vocabulary_is_the_telling_words(tmp_path: Path) -> None:
    for file, words in (
        ("a.txt", "Sodium boils. Sodium melts. The heat."),
        ("b.txt", "Lead melts. 反应堆冷却。反应堆。"),
    ):
        (tmp_path / file).write_text(words, encoding="utf-8")
    found = ExtractDocVocabulary().call({"files": [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]})
    words = found.split(", ")
    assert words.index("sodium") < words.index("melts")
    assert "反应" in words
    assert "却反" not in words
    assert "the" not in words


@pytest.mark.parametrize("tool", READERS)
def test_what_is_not_there_is_one_sentence(tool: Any, tmp_path: Path) -> None:
    with pytest.raises(BadArgumentsError, match=r"no file 'gone\.pdf'"):
        tool().call({"url": str(tmp_path / "gone.pdf")})
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DocumentError, match="empty"):
        tool().call({"url": str(tmp_path / "empty.txt")})


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a.pdf", "http://169.254.169.254/latest", "https://localhost/"])
@pytest.mark.parametrize("tool", READERS)
def test_s1_addresses_of_this_machine_are_not_read(tool: Any, url: str) -> None:
    with pytest.raises(FetchError, match="not a public address"):
        tool().call({"url": url})


# ---- which files a model may name


async def called(tool: Any, arguments: dict[str, Any], *messages: Message) -> Message:
    call = Message(
        "assistant", "", function_call=FunctionCall(tool.name, json.dumps(arguments)), extra={"function_id": "1"}
    )
    events = [event async for event in ToolRunner({tool.name: tool}).run([call], messages=list(messages), lang="en")]
    return events[-1].message  # type: ignore[union-attr]


def asked(*files: Path) -> Message:
    return Message(USER, [ContentItem(text="Read it."), *(ContentItem(file=str(file)) for file in files)])


@pytest.mark.anyio
@pytest.mark.parametrize("tool", READERS)
async def test_a_model_reads_the_files_of_the_conversation_and_no_other(tool: Any, notes: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    assert "Water carries" in (await called(tool(), {"url": str(notes)}, asked(notes))).get_text_content()
    for other in (str(secret), f"{tmp_path}/x/../secret.txt", secret.as_uri(), "/etc/passwd", "~/.bashrc", "\0"):
        refused = await called(tool(), {"url": other}, asked(notes))
        assert (refused.extra or {})["failed"] == "bad_arguments"
        assert "SECRET" not in refused.get_text_content()


@pytest.mark.anyio
async def test_a_link_beside_a_file_of_the_conversation_leads_nowhere(notes: Path, tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret.txt", tmp_path / "open"
    secret.write_text("SECRET")
    folder.mkdir()
    (folder / "link.txt").symlink_to(secret)
    (folder / "own.txt").write_text("Mine.")
    tool = SimpleDocParser({"folders": [str(folder)]})
    assert (await called(tool, {"url": str(folder / "own.txt")}, asked(notes))).get_text_content() == "Mine."
    assert (await called(tool, {"url": str(folder / "link.txt")}, asked(notes))).extra["failed"] == "bad_arguments"  # type: ignore[index]


@pytest.mark.anyio
async def test_a_model_is_given_text_and_no_objects(notes: Path) -> None:
    told = await called(SimpleDocParser({"structured_doc": True}), {"url": str(notes)}, asked(notes))
    assert json.loads(told.get_text_content())[0]["page_num"] == 1
    told = await called(KeywordSearch(), {"query": "heat"}, asked(notes))
    assert "Water carries" in json.loads(told.get_text_content())[0]["text"][0]
    told = await called(Retrieval(), {"query": "heat", "files": ["/etc/passwd"]}, asked(notes))
    assert "not part of this conversation" in told.get_text_content()


# ---- searching


@pytest.mark.parametrize("search", SEARCHES)
def test_what_fits_is_given_whole_and_nothing_gives_nothing(search: Any) -> None:
    assert texts_of(search().call({"query": "attention"}, docs=SENTENCES)) == SENTENCES
    assert search().call({"query": "attention"}, docs=[]) == []
    assert search().call({"query": "attention"}) == []


def replayed(record: Record) -> bool:
    """Those whose question has words, and whose documents do not fit."""
    return record["fn"] in {"keyword_search.call", "hybrid_search.call"} and "max_ref_token" in record["input"]


@pytest.fixture(scope="module")
def tools() -> dict[str, Any]:
    return {"keyword_search.call": KeywordSearch(), "hybrid_search.call": HybridSearch()}


@pytest.mark.parametrize("record", [one for one in recorded() if replayed(one)], ids=name)
def test_as_recorded_the_best_part_is_given_and_nothing_unrelated(record: Record, tools: dict[str, Any]) -> None:
    given = record["input"]
    room = given["max_ref_token"]
    found = texts_of(tools[record["fn"]].call({"query": given["query"]}, docs=given["docs"], max_ref_token=room))
    flat = [one for doc in given["docs"] for one in ([doc] if isinstance(doc, str) else doc)]
    if sum(map(tokens_of, flat)) <= room:
        assert found == [one for one in flat if one]
        return
    assert sum(map(tokens_of, found)) <= room + 1
    if record["id"].startswith("upstream"):  # the peer cuts away the one sentence that answers
        assert any("3.5 天" in one for one in found)
    elif record["fn"] == "keyword_search.call" and terms(given["query"]):
        assert all(set(terms(given["query"])) & set(terms(one)) for one in found)


def test_no_question_gives_the_beginnings() -> None:
    docs = [["First words of one. " * 8, "Later words. " * 30], ["First words of two. " * 8, "Later words. " * 30]]
    for query in ("", "what is the", "🙂"):
        found = KeywordSearch().call({"query": query}, docs=docs, max_ref_token=90)
        assert [record["url"] for record in found] == ["doc_0", "doc_1"]
        assert all(record["text"][0].startswith("First words") for record in found)
    assert len(FrontPageSearch({"max_ref_token": 90}).call({"query": "later"}, docs=docs)) == 2


def test_a_question_in_json_is_its_keywords_and_its_text() -> None:
    query = json.dumps({"keywords_en": ["banana"], "keywords_zh": ["香蕉"], "text": "What grows where it is warm?"})
    (found,) = KeywordSearch().call({"query": query}, docs=[SENTENCES], max_ref_token=14)
    assert found["text"] == [SENTENCES[3]]


def test_records_of_doc_parser_can_be_searched(pdf: Path) -> None:
    record = DocParser({"max_ref_token": 10, "parser_page_size": 32}).call({"url": str(pdf)})
    (found,) = KeywordSearch().call({"query": "lead"}, docs=[record], max_ref_token=12)
    assert (found["url"], "lead" in found["text"][0]) == (str(pdf), True)


def test_meaning_finds_what_words_do_not() -> None:
    docs = [["The cat sleeps on the sofa.", "Stock prices fell on Monday.", "The recipe needs two eggs."]]
    (found,) = VectorSearch().call({"query": "a kitten napping on a couch"}, docs=docs, max_ref_token=10)
    assert "cat" in found["text"][0]


def test_files_are_searched_and_read_again_when_they_change(notes: Path, pdf: Path) -> None:
    tool = Retrieval({"max_ref_token": 100_000})
    found = tool.call({"query": "lead", "files": [str(notes), str(pdf)]})
    assert [record["url"] for record in found] == [str(notes), str(pdf)]
    notes.write_text("Lead melts soon.", encoding="utf-8")
    found = tool.call({"query": "lead", "files": json.dumps([str(notes)])})
    assert found == [{"url": str(notes), "text": ["Lead melts soon."]}]


def test_its_folder_is_kept_where_one_is_given(tmp_path: Path, notes: Path) -> None:
    tool = KeywordSearch({"index_path": str(tmp_path / "index")})
    assert texts_of(tool.call({"query": "heat"}, docs=["Water carries the heat."])) == ["Water carries the heat."]
    assert (tmp_path / "index" / "library.sqlite").is_file()


def test_a_search_reaches_the_addresses_among_its_files_and_no_other() -> None:
    tool = Retrieval()
    files = ["https://a.example/x.pdf", "notes.md"]
    assert tool.addresses({"query": "see https://b.example", "files": files}) == ("https://a.example/x.pdf",)
    assert tool.addresses({"query": "x", "files": json.dumps(files)}) == ("https://a.example/x.pdf",)
    assert KeywordSearch().addresses({"query": "https://b.example"}) == ()
