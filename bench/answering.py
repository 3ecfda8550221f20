"""Questions over typeset PDFs, answered by a built-in model: is the answer right, and does its mark lead to it?

    python -m bench.answering [name of weights …] [--count N] [--others] [--show]

The questions, the articles and the PDFs are those of `bench/page_hits.py`, half English, half Chinese; an `Assistant`
with the tools that small models get answers each in a conversation of its own, from a library of all the PDFs of its
language, at temperature 0. An answer is right where it holds one of the answers that people gave, word for word; a
mark is right where its passage does. `--others` asks questions that are in no figure: whoever mends something looks at
these. `--show` prints each answer.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure, report
from bench.kept_vectors import kept
from bench.page_hits import CHINESE_FILES, CHINESE_PASSAGES, DATA, FILES, PASSAGES, Asked, typeset
from bench.typeset import Script
from core import Assistant, Library
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.weights_catalog import DEFAULT
from core.messages.message import FUNCTION, USER, Message
from core.messages.transcript import Transcript
from core.rag.attribution import DENIAL
from core.rag.citations import cited_numbers

COUNT = 150  # questions of each language
LARGER = "qwen2.5-coder-1.5b"
GOALS = {DEFAULT: 0.5, LARGER: 0.6}
MARKED = 0.90
TOOLS = ("calculator", "current_time")  # of those that small models get, the ones that need no conversation
SETS: tuple[tuple[str, str, int, int, Script], ...] = (
    ("English", "squad_dev", FILES, PASSAGES, "tiro"),
    ("Chinese", "cmrc2018", CHINESE_FILES, CHINESE_PASSAGES, "cjk"),
)
_ARTICLES = frozenset({"a", "an", "the"})
_WORD = re.compile(r"\w+")
_MARK = re.compile(r"\[\d{1,3}\]")
_SHORT = 6  # letters: fewer are looked for as whole words


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a question.

    Args:
        marked: The passages that marks of the answer lead to.
        given: All passages that the model was given.
    """

    asked: Asked
    text: str
    marked: tuple[str, ...]
    given: tuple[str, ...]
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether the answer holds an answer that people gave."""
        return _holds(_MARK.sub("", self.text), self.asked)

    @property
    def is_refused(self) -> bool:
        """Whether it says that there is no answer, or nothing at all."""
        return not self.is_right and (not self.text.strip() or bool(DENIAL.search(self.text)))

    @property
    def leads_there(self) -> bool:
        """Whether a marked passage holds an answer that people gave."""
        return any(_holds(text, self.asked) for text in self.marked)

    @property
    def was_found(self) -> bool:
        """Whether a passage that the model was given holds an answer that people gave."""
        return any(_holds(text, self.asked) for text in self.given)


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [word for word in _WORD.findall(plain) if word not in _ARTICLES]


def _holds(text: str, asked: Asked) -> bool:
    """Whether a text holds one of the answers; line breaks, hyphens and signs do not count."""
    spaced, squeezed = f" {' '.join(_words(text))} ", "".join(_words(text))
    for answer in asked.answers:
        words = _words(answer)
        letters = "".join(words)
        if words and (f" {' '.join(words)} " in spaced or (_is_long(letters) and letters in squeezed)):
            return True
    return False


def _is_long(letters: str) -> bool:
    return len(letters) >= _SHORT or not letters.isascii()


async def answered(agent: Assistant, asked: Asked) -> Answered:
    """Ask one question."""
    began, transcript = time.process_time(), Transcript()
    async with aclosing(agent.stream([Message(USER, asked.question)])) as events:
        async for event in events:
            transcript.apply(event)
    reply = transcript.messages()
    said = [one for one in reply if one.role != FUNCTION and not one.function_call]
    text = "\n".join(one.get_text_content() for one in said)
    rows: list[dict[str, Any]] = [row for one in reply for row in (one.extra or {}).get("passages", [])]
    passages = {row["number"]: f"{row.get('heading', '')}\n{row['text']}" for row in rows}
    marked = tuple(passages[one] for one in dict.fromkeys(cited_numbers(text)) if one in passages)
    return Answered(asked, text, marked, tuple(passages.values()), time.process_time() - began)


def _show(one: Answered) -> None:
    known = f"{'found' if one.was_found else 'MISSED'} {len(one.marked)} marks {'ok' if one.leads_there else 'NO'}"
    print(
        f"{'   ' if one.is_right else 'NO '}{known} | {one.asked.question} | {one.asked.answers[0]} → {one.text!r}",
        file=sys.stderr,
        flush=True,
    )


@contextmanager
def asked_about(which: int, count: int, *, others: bool) -> Iterator[tuple[Library, list[Asked]]]:
    """The library of a language, and questions about it: those that are published, or others."""
    _, name, files, length, script = SETS[which]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        every = typeset(folder, name, files, length, script)
        random.Random(11).shuffle(every)
        every = every[COUNT:] if others else every[:COUNT]
        with kept(), Library.open(folder / "library", {"retrieval_type": "hybrid"}) as library:
            for path in sorted(folder.glob("*.pdf")):
                library.add(path)
            library.find("anything", 1)
            if not library.wait_for_vectors(3600):
                raise RuntimeError("The vectors were not made.")
            yield library, every[:count]


async def measured(model: LlamaCppModel, which: int, count: int, *, others: bool, show: bool) -> list[Answered]:
    """Questions of one language."""
    with asked_about(which, count, others=others) as (library, every):
        found: list[Answered] = []
        for asked in every:
            found.append(await answered(Assistant(TOOLS, model, library=library), asked))
            if show:
                _show(found[-1])
        return found


def figures(label: str, language: str, found: Sequence[Answered], goal: float) -> list[Figure]:
    """What is published of one language, or of both."""
    count = len(found)
    right = sum(one.is_right for one in found) / count
    marked = [one for one in found if one.marked and not one.is_refused]
    leads = sum(one.leads_there for one in marked) / max(1, len(marked))
    refused = sum(one.is_refused for one in found)
    seen = sum(one.was_found for one in found)
    cost = statistics.mean(one.seconds for one in found)
    told = f"{count} questions; its passages hold the answer for {seen}; {refused} refused; {cost:.1f} s of CPU each"
    both = sum(one.leads_there and one.is_right for one in marked)
    beside = f"{len(marked)} answers with a mark, of {count - refused} that were given; {both} of them right themselves"
    return [
        Figure(f"{label}, {language}: the answer holds the right one", right, goal, "", told, at_least=True),
        Figure(f"{label}, {language}: a marked passage holds it", leads, MARKED, "", beside, at_least=True),
    ]


async def main() -> None:
    """Each of the models that are named; of none, both that are built in."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if not DATA.is_dir():
        print(f"There are no questions in {DATA}.", file=sys.stderr)
        return
    for name in given.names or [DEFAULT, LARGER]:
        model = LlamaCppModel({"model": name, "threads": 1, "generate_cfg": {"temperature": 0}})
        await model.prepare()
        try:
            every: list[Answered] = []
            for which, (language, *_) in enumerate(SETS):
                found = await measured(model, which, given.count, others=given.others, show=given.show)
                report(figures(model.label, language, found, GOALS.get(name, 0.5)))
                every += found
            report(figures(model.label, "both", every, GOALS.get(name, 0.5)))
        finally:
            await model.aclose()


if __name__ == "__main__":
    asyncio.run(main())
