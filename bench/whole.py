"""Questions about all of a document: exact counts and lists, summaries, and whether what is said to be read was read.

    python -m bench.whole

Twelve documents of four kinds in both languages, with five questions each. The model is a server of ours that speaks
the real protocol and reads perfectly: it finds in each request what is asked for there, and nothing else. So what is
measured is what stands around a model: which question is read for, what of the documents reaches it, how it is put
together, and the coverage, which is compared with the bytes that arrived at the server.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from bench.figures import Figure, report
from core import Assistant, Message, get_chat_model
from core.messages.transcript import Transcript
from core.rag.coverage import coverage_in
from core.rag.library import Library
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request

PLACES = (("Bonn", "波恩"), ("Leeds", "利兹"), ("Turin", "都灵"), ("Graz", "格拉茨"), ("Porto", "波尔图"))
FILLER = (
    "Both sides talk to each other before they go to court, and write down what they agree on. ",
    "双方在诉讼之前应当先行协商，并以书面形式记录达成的一致意见。",
)


@dataclass(frozen=True, slots=True)
class Record:
    """A contract that a document speaks of."""

    name: str
    year: int
    place: tuple[str, str]

    def told(self, *, chinese: bool) -> str:
        """The sentence that says so."""
        if chinese:
            return f"合同 {self.name} 在{self.place[1]}签订，于 {self.year} 年 3 月 31 日到期。"
        return f"Contract {self.name} was signed in {self.place[0]} and ends on 31 March {self.year}."


@dataclass(frozen=True, slots=True)
class Task:
    """A question, and what is to be found; `None` for a summary, which has to rest on all."""

    question: str
    wanted: frozenset[str] | None


def records(number: int) -> list[Record]:
    """Those of one document: ninety, of which some stand in it twice."""
    one = [
        Record(f"D{number:02}-{at:03}", 2026 + (at * 7 + number) % 4, PLACES[(at * 3 + number) % 5]) for at in range(90)
    ]
    return [*one, *one[10:20]]


def tasks(there: Sequence[Record], *, chinese: bool) -> list[Task]:
    """Five questions about a document."""

    def those(year: int = 0, place: int = -1) -> frozenset[str]:
        return frozenset(
            one.name for one in there if year in {0, one.year} and (place < 0 or one.place == PLACES[place])
        )

    if chinese:
        return [
            Task("请总结这份文件。", None),
            Task("这份文件里一共提到了多少份合同在 2027 年到期？", those(2027)),
            Task("列出所有在都灵签订的合同。", those(place=2)),
            Task("列出文中所有在 2028 年到期的合同。", those(2028)),
            Task("统计一下所有在利兹签订的合同。", those(place=1)),
        ]
    return [
        Task("Summarise this document.", None),
        Task("How many contracts in this document end in 2027? Count all of them.", those(2027)),
        Task("List all contracts that were signed in Turin.", those(place=2)),
        Task("List every contract of this document that ends in 2028.", those(2028)),
        Task("Count all the contracts that were signed in Leeds.", those(place=1)),
    ]


def document(folder: Path, number: int, *, chinese: bool) -> Path:
    """One of the twelve: a PDF, a Word document, Markdown or HTML."""
    parts = [
        f"{FILLER[chinese] * 4}\n\n{one.told(chinese=chinese)}\n\n{FILLER[chinese] * 3}" for one in records(number)
    ]
    kind = ("pdf", "docx", "md", "html")[number % 4]
    path = folder / f"contracts-{number}.{kind}"
    if kind == "md":
        path.write_text("\n\n".join(f"## Part {at}\n\n{one}" for at, one in enumerate(parts)), "utf-8")
    elif kind == "html":
        body = "".join(f"<h2>Part {at}</h2><p>{one}</p>" for at, one in enumerate(parts))
        path.write_text(f"<html><head><title>Contracts</title></head><body>{body}</body></html>", "utf-8")
    elif kind == "docx":
        import docx

        made: Any = docx.Document()
        for at, one in enumerate(parts):
            made.add_heading(f"Part {at}", 2)
            made.add_paragraph(one)
        made.save(path)
    else:
        import pymupdf

        paper: Any = pymupdf.open()
        for at in range(0, len(parts), 2):
            html = "".join(f"<p>{one}</p>" for one in parts[at : at + 2])
            paper.new_page().insert_htmlbox((50, 60, 550, 800), html)
        paper.save(path)
    return path


_SAID = re.compile(r"(D\d\d-\d{3})(.*?)(\d{4})", re.DOTALL)


class Reader:
    """Finds in a request what its question asks for, and keeps what reached it."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.calls = 0

    def __call__(self, request: Request) -> Reply:
        """The reply to a request."""
        text = str(request["messages"][-1]["content"])
        if not text.startswith("<passages>"):
            self.seen.update(re.findall(r"D\d\d-\d{3}", text))
            return Reply(text="Done.")
        self.calls += 1
        self.seen.update(re.findall(r"D\d\d-\d{3}", text))
        given, _, question = text.rpartition("</passages>")
        year = re.search(r"20\d\d", question)
        place = next((one for one in PLACES if one[0] in question or one[1] in question), None)
        lines: list[str] = []
        for number, passage in re.findall(r"^\[(\d+)\] \((.*?)(?=^\[\d+\] \(|\Z)", given, re.MULTILINE | re.DOTALL):
            for name, between, ends in _SAID.findall(passage):
                if (year is None or year[0] == ends) and (place is None or place[0] in between or place[1] in between):
                    lines.append(f"- {name} [{number}]")
        return Reply(text="\n".join(dict.fromkeys(lines)) or "NOTHING")


@dataclass(slots=True)
class Score:
    """What was right."""

    exact: int = 0
    asked: int = 0
    true: int = 0
    places: int = 0
    cited: int = 0
    calls: int = 0
    seconds: float = 0.0


async def ask(
    library: Library, server: ModelServer, reader: Reader, task: Task, all_of: set[str], score: Score
) -> None:
    """One question, compared with what is so."""
    model = get_chat_model({"model": "scripted", "model_server": server.base_url, "api_key": "none"})
    agent = Assistant(llm=model, library=library, rag_cfg={"retrieval_type": "keyword"})
    reader.seen.clear()
    reader.calls = 0
    events = [event async for event in agent.stream([Message("user", task.question)])]
    result = next(one for one in Transcript(events).messages() if one.role == "function")
    extra, coverage = result.extra or {}, coverage_in([result])
    score.calls += reader.calls
    score.true += coverage is not None and coverage.complete == (reader.seen >= all_of)
    if task.wanted is None:
        return
    score.asked += 1
    lines = re.findall(r"^- (D\d\d-\d{3})((?: ?\[\d+\])+)", result.get_text_content(), re.MULTILINE)
    score.exact += extra.get("items") == len(task.wanted) and {name for name, _ in lines} == task.wanted
    texts = {one["number"]: one["text"] for one in extra.get("passages", ())}
    for name, marks in lines:
        for number in re.findall(r"\d+", marks):
            score.cited += 1
            score.places += name in texts.get(int(number), "")


async def asked(folder: Path) -> Score:
    """All sixty questions."""
    score, reader = Score(), Reader()
    with ModelServer(reader) as server:
        for number in range(12):
            chinese = number % 2 == 1 if number < 8 else number % 2 == 0
            with Library.open(folder / f"library-{number}", {"retrieval_type": "keyword"}) as library:
                await asyncio.to_thread(library.add, document(folder, number, chinese=chinese))
                names = {one.name for one in records(number)}
                for task in tasks(records(number), chinese=chinese):
                    began = process_time()
                    await ask(library, server, reader, task, names, score)
                    score.seconds += process_time() - began
    return score


def measured() -> Iterable[Figure]:
    """The shares, and what a question takes."""
    with tempfile.TemporaryDirectory() as folder:
        score = asyncio.run(asked(Path(folder)))
    total = 60
    about = f"{score.exact} of {score.asked}; {score.calls} calls of the model for {total} questions"
    yield Figure(
        "questions about all of a document: counts and lists exact",
        score.exact / score.asked,
        0.9,
        "",
        about,
        at_least=True,
    )
    yield Figure(
        "the same: coverage true",
        score.true / total,
        1.0,
        "",
        f"{score.true} of {total}, against what arrived",
        at_least=True,
    )
    told = f"{score.places} of {score.cited} marks of items"
    yield Figure("the same: places of items right", score.places / max(1, score.cited), 1.0, "", told, at_least=True)
    yield Figure("the same: CPU of a question with its server", score.seconds / total * 1000, 1_000, "ms", "mean")


if __name__ == "__main__":
    report(measured())
