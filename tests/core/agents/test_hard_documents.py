"""Documents that are hard to read whole: very long, very many, of many tongues, with pages that have no words."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from core import Assistant, Message, get_chat_model
from core.agents.read_documents import ReadDocuments
from core.agents.whole_reading import WholeReader
from core.llm.request import ChatRequest
from core.messages.transcript import Transcript
from core.rag.coverage import Coverage, coverage_in, places_told
from core.rag.library import Library
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

PAGES = 3_000
COUNT = "How many contracts in these files end in 2027? List all of them."
BY_WORDS = {"retrieval_type": "keyword"}


def many_pages(path: Path, pages: int) -> Path:
    """A PDF whose pages are small; every 300th holds a contract that ends in 2027. Written by hand, which is fast."""
    clause = "What both owe each other stands here, clause by clause, as it was agreed upon. "
    parts = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for number in range(1, pages + 1):
        year = 2027 if number % 300 == 0 else 2026
        lines = [clause] * 2 + [f"Contract C-{number:04} of page {number} ends on 31 March {year}."] + [clause] * 2
        drawn = "BT /F 8 Tf 12 TL 10 90 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        parts.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 120]/Contents {len(parts) + 2} 0 R"
                     "/Resources<</Font<</F 3 0 R>>>>>>")  # fmt: skip
        parts.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    kids = " ".join(f"{at} 0 R" for at in range(4, 4 + 2 * pages, 2))
    parts[1] = f"<</Type/Pages/Count {pages}/Kids[{kids}]>>"
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places: list[int] = []
    for at, part in enumerate(parts, 1):
        places.append(out.tell())
        out.write(f"{at} 0 obj{part}endobj\n".encode())
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(parts) + 1}/Root 1 0 R>>\n"
    begins = out.tell()
    out.write(f"{end}startxref\n{begins}\n%%EOF".encode())
    path.write_bytes(out.getvalue())
    return path


class Reader:
    """A model that reads perfectly: it names each contract of 2027 that stands in the passages that it was sent."""

    def __init__(self) -> None:
        self.saw: list[str] = []

    def __call__(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].get_text_content()
        if request.purpose != "reading":
            return Reply(text=text)
        self.saw.append(text)
        found = re.findall(r"^\[(\d+)\][^\n]*\n(.*?)(?=^\[\d+\] |\Z)", text, re.MULTILINE | re.DOTALL)
        lines = [
            f"- {one} [{number}]" for number, said in found for one in re.findall(r"(C-\d+)[^.]*?March 2027", said)
        ]
        return Reply(text="\n".join(lines) or "NOTHING", usage=(100, 10))


def reading(reader: Any, room: int) -> ScriptedModel:
    return ScriptedModel({"script": [reader], "generate_cfg": {"max_input_tokens": room, "max_retries": 0}})


async def answered(library: Library, question: str, reader: Any, room: int) -> tuple[list[Message], Coverage]:
    agent = Assistant(llm=reading(reader, room), library=library, rag_cfg=BY_WORDS)
    messages = Transcript([event async for event in agent.stream([Message("user", question)])]).messages()
    coverage = coverage_in(messages)
    assert coverage is not None
    return messages, coverage


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", BY_WORDS) as opened:
        yield opened


def pages_seen(reader: Reader) -> set[int]:
    return {int(one) for text in reader.saw for one in re.findall(r"of page (\d+) ends", text)}


async def test_of_three_thousand_pages_the_price_is_told_before_and_what_is_read_in_parts_is_told_truly(
    library: Library, tmp_path: Path
) -> None:
    library.add(many_pages(tmp_path / "contracts.pdf", PAGES))
    ids = [one.id for one in library.documents()]
    paid: dict[str, Any] = {"model": "gpt-4o-mini", "model_server": "https://api.openai.com/v1", "api_key": "none"}
    paid["generate_cfg"] = {"max_input_tokens": 3_000}
    tool = ReadDocuments(WholeReader(library, ids, get_chat_model(paid), 500))
    await tool.prepare_call({"question": COUNT})
    assert tool.costs_much({"question": COUNT})
    told = tool.wants({"question": COUNT})
    assert re.search(r"3000 pages\): 150 calls of the model, about [\d,]+ tokens, about \$0\.\d+; the first part", told)

    reader = Reader()
    messages, coverage = await answered(library, COUNT, reader, 3_000)
    (document,) = coverage.documents
    first = pages_seen(reader)
    assert coverage.why == "too_long"
    assert len(first) == document.read < document.total == PAGES
    assert sum(last - begin + 1 for begin, last in document.missed) == PAGES - len(first)
    said = messages[1].get_text_content()
    assert f"({len(first)} / {PAGES} pages read)" in said
    assert "asked once more, the reading goes on" in said
    assert (messages[1].extra or {})["items"] == sum(page % 300 == 0 for page in first)

    calls = len(reader.saw)
    messages, coverage = await answered(library, COUNT, reader, 3_000)
    assert coverage.complete
    assert pages_seen(reader) == set(range(1, PAGES + 1))
    assert len(reader.saw) - calls < calls, "what was read is not read again"
    assert (messages[1].extra or {})["items"] == PAGES // 300
    assert [one["page"] for one in (messages[1].extra or {})["passages"]] == list(range(300, PAGES + 1, 300))


@pytest.mark.parametrize("files", [20, 200])
async def test_many_files_at_once_are_all_read_and_the_broken_one_is_named_and_not_said_to_be_read(
    tmp_path: Path, files: int
) -> None:
    folder = tmp_path / "contracts"
    folder.mkdir()
    for number in range(1, files + 1):
        year = 2027 if number % 20 == 0 else 2026
        text = f"Contract C-{number:04} of page {number} ends on 31 March {year}.\n" + "And so on. " * 40
        (folder / f"contract {number:03}.txt").write_text(text, encoding="utf-8")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing of it")
    reader = Reader()
    agent = Assistant(llm=reading(reader, 2_500), files=[str(folder)], rag_cfg=BY_WORDS)
    messages = Transcript([event async for event in agent.stream([Message("user", COUNT)])]).messages()
    coverage = coverage_in(messages)
    assert coverage is not None
    assert pages_seen(reader) == set(range(1, files + 1))
    assert len(coverage.documents) == files
    assert all(one.read == one.total > 0 for one in coverage.documents)
    assert not coverage.complete
    assert [one["name"] for one in coverage.unread] == ["broken.pdf"]
    (result,) = [one for one in messages if one.extra and "items" in one.extra]
    assert "Not all could be read: broken.pdf. Say so in the answer." in result.get_text_content()
    assert (result.extra or {})["items"] == files // 20
    cited = [one["document"] for one in (result.extra or {})["passages"]]
    assert cited == [f"contract {number:03}.txt" for number in range(20, files + 1, 20)]


MIXED = "合同 Vertrag No. 7 endet am 31. März 2027, подписан Ивановым в Москве, 押金 deposit 4.500 € قابل للرد."


@pytest.mark.parametrize(
    "question",
    [
        "Wann endet der Vertrag?",
        "押金是多少？",
        "Кем подписан договор?",
        "How large is the deposit?",
        "هل المبلغ قابل للرد؟",
    ],
)
async def test_a_line_of_several_languages_is_found_by_each_and_read_as_it_stands(
    library: Library, question: str
) -> None:
    others = "\n\n".join(f"Clause {n} speaks of rain, 第{n}条谈到雨水。" for n in range(60))
    library.add_text(f"{others}\n\n{MIXED}\n\n{others}", name="mixed.md")
    found = await library.afind(question, 3)
    assert any(MIXED in one.text for one in found)


async def test_a_sentence_on_a_line_of_several_languages_is_cited_to_it_and_borne_out(library: Library) -> None:
    library.add_text(f"It rained.\n\n{MIXED}", name="mixed.md")
    for said in ("The deposit is 4.500 €.", "押金为 4.500 €。", "Der Vertrag endet am 31. März 2027."):
        agent = Assistant(llm=ScriptedModel(said), library=library, rag_cfg=BY_WORDS)
        events = [event async for event in agent.stream([Message("user", "Vertrag deposit 押金?")])]
        assert Transcript(events).messages()[-1].get_text_content() == f"{said} [1]"


async def test_a_page_that_is_only_a_picture_is_counted_as_one_without_text_and_hides_no_other(
    library: Library, tmp_path: Path
) -> None:
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (600, 800), (180, 200, 220)).save(picture, "PNG")
    document: Any = pymupdf.open()
    for number in (1, 2, 3):
        page = document.new_page()
        if number == 2:
            page.insert_image(page.rect, stream=picture.getvalue())
        else:
            page.insert_text((60, 300), f"Contract C-000{number} of page {number} ends on 31 March 2027.")
    document.save(tmp_path / "album.pdf")
    library.add(tmp_path / "album.pdf")
    reader = Reader()
    messages, coverage = await answered(library, COUNT, reader, 6_000)
    assert coverage.counts() == {"page": (2, 3, 1)}
    assert coverage.complete
    assert places_told(coverage, "en") == ""
    assert {one["page"] for one in (messages[1].extra or {})["passages"]} == {1, 3}
