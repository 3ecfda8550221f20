"""Which sentences of a reply tell figures of several rows of a table that no program counted or computed."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from core.messages.computed import COMPUTED
from core.rag.attribution import is_figure, placed_sentences, words_of
from core.rag.several_rows import SeveralRows, rows_of
from core.runs.log import Uncounted
from core.runs.reply import CallBlock, TextBlock
from core.runs.untold import without_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from core.runs.log import Checked
    from core.runs.reply import Reply

_MARK: Final = re.compile(r"\[(\d{1,3})\]")
_RULE: Final = re.compile(r"[\s|:-]+")  # the line below the head of a table in Markdown
_ALONE: Final = re.compile(r"\s*+\d{1,3}[.)、]\s*+")
_MOST_LINES: Final = 500
# They find and read, and compute nothing of what they read. Any other tool may have counted.
_READERS: Final = frozenset({
    "amap_weather", "ask_documents", "current_time", "doc_parser", "extract_doc_vocabulary", "front_page_search",
    "hybrid_search", "image_gen", "image_search", "image_zoom_in_tool", "keyword_search", "retrieval",
    "simple_doc_parser", "storage", "use_skill", "vector_search", "web_extractor", "web_search",
})  # fmt: skip


def uncounted(reply: Reply, asked: str, claims: Iterable[Checked], earlier: Sequence[str] = ()) -> list[Uncounted]:
    """The sentences that rest on rows and tell what several of them give, where no program counted it.

    Args:
        asked: The question.
        claims: What the check found of the reply's sentences.
        earlier: The questions before it, oldest first.
    """
    given = _Given(reply, asked, earlier)
    borne_out = {(one.block, one.end): one.numbers for one in claims}
    is_told = cache(given.is_told_uncounted)  # a model that loops writes the same again and again
    return [
        Uncounted(at, end)
        for at, block in enumerate(reply.blocks if given.tables else ())
        if isinstance(block, TextBlock)
        for said, above, end, marks in _parts(block.text)
        if is_told(said, above, marks, borne_out.get((at, end), ()))
    ]


class _Given:
    """What a reply was given: rows of tables, texts, and what programs counted."""

    def __init__(self, reply: Reply, asked: str, earlier: Sequence[str]) -> None:
        self.tables: dict[int, list[str]] = {}
        self._prose: dict[int, str] = {}
        self._names = {name for one in reply.passages if is_figure(name := str(one.get("document") or ""))}
        for one in reply.passages:
            text, number = str(one.get("text") or ""), int(one["number"])
            if rows := rows_of(text, str(one.get("document") or "")):
                self.tables[number] = rows
            elif not _is_of_program(one):
                self._prose[number] = text
        self._rows = SeveralRows(self.tables.values(), _counted(reply), asked, earlier)

    def is_told_uncounted(self, said: str, above: str, marks: Sequence[int], like: Sequence[int]) -> bool:
        """Whether a sentence is such a one.

        Args:
            above: As of `SeveralRows.are_told`.
            marks: The numbers of the passages that it cites.
            like: The numbers of those that it is like.
        """
        sources = set(marks or like)
        prose = {number: text for number, text in self._prose.items() if not sources or number in sources}
        if sources and len(prose) == len(sources):
            return False
        if not sources and prose:
            words = words_of(said)
            tables = ("\n".join(rows) for rows in self.tables.values())
            if max(_shared(words, prose.values())) > max(_shared(words, tables)):
                return False
        plain = without_names(said, self._names)
        return self._rows.are_told(plain, [*prose.values()], above=above, of_rows=bool(marks))


def _shared(words: set[str], texts: Iterable[str]) -> Iterator[int]:
    return (len(words & words_of(text)) for text in texts)


def _parts(text: str) -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """The sentences of a text and the rows of its tables: what it says, the head above it, its end, and its marks.

    The end of a row is 0, for no sign can stand there.
    """
    if _ALONE.fullmatch(text):  # "14." is the number of an item, and no sentence
        yield text, "", 0, ()
    for said, start, end in placed_sentences(text):
        yield said, "", end, _marks(text[start:end])
    head = ""
    for line in text.split("\n")[:_MOST_LINES]:
        if not line.lstrip().startswith("|"):
            head = ""
        elif not head:
            head = line
        elif not _RULE.fullmatch(line):
            yield _MARK.sub(" ", line.replace("|", " ")), head, 0, _marks(line)


def _marks(text: str) -> tuple[int, ...]:
    return tuple(map(int, _MARK.findall(text)))


def _is_of_program(passage: Mapping[str, Any]) -> bool:
    return bool(passage.get(COMPUTED) or passage.get("rows"))


def _counted(reply: Reply) -> list[str]:
    """What programs gave: passages, and the results of calls, also of those that an agent made which was called."""
    found = [str(one.get("text") or "") for one in reply.passages if _is_of_program(one)]
    for block in reply.blocks:
        if not isinstance(block, CallBlock):
            continue
        if block.inner is not None:
            found += _counted(block.inner)
        elif block.state == "done" and block.name not in _READERS and block.result is not None:
            found.append(block.result.get_text_content())
    return found
