"""How much of documents an answer rests on: counted from what was sent to a model, never from anybody's words."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

from core.rag.document import numbered_as

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.languages import Lang
    from core.messages.message import Message
    from core.rag.attached import Attached
    from core.rag.document import Document, Passage

Kind: TypeAlias = Literal["page", "slide", "sheet", "passage"]
Why: TypeAlias = Literal["", "failed", "cost_limit", "too_long", "enough", "searched"]
"""Why not all was read: the model failed, the cost limit was reached, there is too much for once, the user wanted the
answer at once, or only passages were looked for, by a question that counts or lists."""

EXTRA = "coverage"
"""Where the record stands in the extra data of a result."""

_UNFINISHED = frozenset({"reading", "stopped"})
_RANGES = 12  # a list of more says nothing to anybody


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """How much of one document was sent to a model, or of several of which nothing was.

    Args:
        name: The document's; "" for several.
        of: What is counted: its pages, slides or sheets, or its passages where it has none of these.
        read: Those of which all text was sent.
        total: All of them.
        empty: Those that hold no text that could be sent.
        spans: From which to which they were read; more than a dozen are left out. After a search, the numbers of the
            passages that it gave, however many.
        missed: The same of those that were meant, hold text, and were not read.
    """

    name: str
    of: Kind
    read: int
    total: int
    empty: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    missed: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the documents an answer rests on.

    Args:
        documents: Each of them.
        part: Whether a part was asked about, and not the whole.
        why: Why not all of what was meant was read.
        unread: Files of which nothing could be read, as `Attached.as_dict()` has them, and documents that are not
            read into the library to their end.
        calls: Model calls that read and put together; 0 where the text went to the model itself.
        shortened: Why what was noted of all that was read was cut to what fits, and not put together by the model; ""
            where it was not cut.
    """

    documents: tuple[DocumentCoverage, ...] = ()
    part: bool = False
    why: Why = ""
    unread: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)
    calls: int = 0
    shortened: Why = ""

    @property
    def complete(self) -> bool:
        """Whether all text of what was meant was read, and there is no file that was not."""
        if self.unread or any(one.missed for one in self.documents):
            return False
        return self.part or all(one.read + one.empty >= one.total for one in self.documents)

    def counts(self) -> dict[Kind, tuple[int, int, int]]:
        """Of each kind, how many were read, how many there are, and how many hold no text."""
        sums: dict[Kind, tuple[int, int, int]] = {}
        for one in self.documents:
            read, total, empty = sums.get(one.of, (0, 0, 0))
            sums[one.of] = read + one.read, total + one.total, empty + one.empty
        return sums

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `as_dict` wrote.

        Raises:
            KeyError, TypeError, ValueError: The mapping is no such record.
        """
        read: list[dict[str, Any]] = list(values["documents"])
        rows = [DocumentCoverage(**_with_spans(one)) for one in read]
        unread, calls, shortened = tuple(values["unread"]), int(values["calls"]), values.get("shortened", "")
        return cls(tuple(rows), bool(values["part"]), values["why"], unread, calls, shortened)


def coverage_in(messages: Iterable[Message]) -> Coverage | None:
    """The last record among the results of a reply; `None` where documents were only searched for a passage.

    Of several searches it is one record, in which a passage that was given twice counts once. A search beside a reading
    takes nothing away from what was read, and one beside a query over whole tables says nothing of it.

    Args:
        messages: All of the reply.
    """
    found: Coverage | None = None
    searches: list[Coverage] = []
    is_computed = False
    for message in messages:
        is_computed = is_computed or bool((message.extra or {}).get("computed"))
        record = coverage_of_result(message)
        if record is not None and record.why == "searched":
            searches.append(record)
        elif record is not None:
            found = record
    return found if found is not None or is_computed or not searches else _joined(searches)


def _joined(searches: Sequence[Coverage]) -> Coverage:
    """What several searches gave together. A document is known by its name and length, for records have no more."""
    given: dict[tuple[str, int], set[int]] = defaultdict(set)
    most: Counter[tuple[str, int]] = Counter()  # of records that were written without numbers
    for row in (row for one in searches for row in one.documents if row.name):
        key = row.name, row.total
        given[key].update(at for first, last in row.spans for at in range(first, last + 1))
        most[key] = max(most[key], row.read)
    return _of_search(
        (
            DocumentCoverage(
                name, "passage", min(max(len(numbers), most[name, total]), total), total, 0, _runs(numbers)
            )
            for (name, total), numbers in given.items()
        ),
        max(sum(row.total for row in one.documents) for one in searches),
    )


def _of_search(found: Iterable[DocumentCoverage], total: int) -> Coverage:
    """The record of a search by its documents of which something was given, and the number of all passages."""
    rows = list(found)
    if (others := total - sum(one.total for one in rows)) > 0:
        rows.append(DocumentCoverage("", "passage", 0, others))
    return Coverage(tuple(rows), why="searched" if any(one.read < one.total for one in rows) else "")


def coverage_of_result(message: Message) -> Coverage | None:
    """The record that a result brings along, if it does; `None` of one that was cut before it was sent."""
    extra = message.extra or {}
    written: object = extra.get(EXTRA)
    if not isinstance(written, dict) or extra.get("cut_from"):
        return None
    try:
        return Coverage.from_dict(cast("dict[str, Any]", written))
    except (KeyError, TypeError, ValueError):
        return None


def covered(  # noqa: PLR0913 - what was sent, what there is, and by name what else is known
    sent: Collection[Passage],
    there: Sequence[Passage],
    documents: Sequence[Document],
    *,
    wanted: Collection[Passage] | None = None,
    files: Sequence[Attached] = (),
    why: Why = "",
    calls: int = 0,
    shortened: Why = "",
) -> Coverage:
    """The record of what was sent.

    Args:
        sent: The passages that stood in requests.
        there: All passages of the documents.
        documents: What the passages are of.
        wanted: Those that were meant, where that was a part.
        files: Of the conversation: they know how long a document is that was read in part, and which were not read.
        why: Why not all was read; left aside where it was.
        calls: Model calls that were made.
        shortened: Why notes were cut.
    """
    totals = {one.library_id: one.total for one in files if one.library_id is not None}
    keys = {_key(one) for one in sent}
    meant = None if wanted is None else {_key(one) for one in wanted}
    by_document: dict[str, list[Passage]] = defaultdict(list)
    for one in there:
        by_document[one.document_id].append(one)
    rows = tuple(
        _of_document(document, by_document[document.id], keys, meant, totals.get(document.id)) for document in documents
    )
    unread = tuple(one.as_dict() for one in files if one.library_id is None)
    # Of what is not read to its end nobody knows how much there is.
    unread += tuple(
        {"name": one.name, "status": one.status, "begun": True} for one in documents if one.status in _UNFINISHED
    )
    record = Coverage(rows, wanted is not None, "", unread, calls)
    missed = any(one.missed or (not record.part and one.read + one.empty < one.total) for one in rows)
    return Coverage(rows, record.part, why if missed else "", unread, calls, shortened)


def searched(given: Collection[Passage], documents: Sequence[Document]) -> Coverage:
    """The record of a search by a question that counts or lists: so many passages of so many.

    Documents of which nothing was given are one row, for a library may have thousands.

    Args:
        given: Those that the model gets whole, before neighbours are joined.
        documents: All that were searched.
    """
    read: dict[str, set[int]] = defaultdict(set)
    for one in given:
        read[one.document_id].add(one.chunk_id)
    return _of_search(
        (
            DocumentCoverage(
                one.name, "passage", min(len(read[one.id]), one.chunks), one.chunks, 0, _runs(read[one.id])
            )
            for one in documents
            if one.id in read
        ),
        sum(one.chunks for one in documents),
    )


def _of_document(
    document: Document,
    passages: Sequence[Passage],
    sent: Collection[tuple[str, int]],
    meant: Collection[tuple[str, int]] | None,
    total: int | None,
) -> DocumentCoverage:
    places: dict[int, list[Passage]] = defaultdict(list)
    paged = bool(passages) and all(one.page is not None for one in passages)
    for at, one in enumerate(passages, 1):
        places[(one.page or 0) if paged else at].append(one)
    read = {at for at, on in places.items() if all(_key(one) in sent for one in on)}
    wished = {at for at, on in places.items() if meant is None or any(_key(one) in meant for one in on)}
    spans, missed = _ranges(read), _ranges(wished - read)
    if not paged and not document.pages:
        return DocumentCoverage(document.name, "passage", len(read), len(places), 0, spans, missed)
    all_of_it = max(total or 0, document.pages or 0, max(places, default=0))
    # What was never read in may hold text: only of a document that was read to its end is a page known to be empty.
    empty = all_of_it - len(places) if document.status in {"ready", "no_text"} else 0
    return DocumentCoverage(document.name, numbered_as(document.name), len(read), all_of_it, empty, spans, missed)


def _key(passage: Passage) -> tuple[str, int]:
    return passage.document_id, passage.chunk_id


def _ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    found = _runs(numbers)
    return found if len(found) <= _RANGES else ()


def _runs(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for at in sorted(numbers):
        if found and found[-1][1] == at - 1:
            found[-1] = found[-1][0], at
        else:
            found.append((at, at))
    return tuple(found)


def _with_spans(written: Mapping[str, Any]) -> dict[str, Any]:
    return {**written, "spans": _spans(written["spans"]), "missed": _spans(written["missed"])}


def _spans(written: Iterable[Any]) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(last)) for first, last in written)


_UNITS: Mapping[Lang, Mapping[str, str]] = {
    "en": {"page": "pages", "slide": "slides", "sheet": "sheets", "passage": "passages"},
    "zh": {"page": "页", "slide": "张幻灯片", "sheet": "个工作表", "passage": "段"},
}


_UNTAKEN: Mapping[Lang, str] = {
    "en": "{n} files that were not added ({names})",
    "zh": "{n} 个未添加的文件（{names}）",
}
_REST: Mapping[Lang, str] = {"en": "the rest of {name}", "zh": "{name} 的其余部分"}


def is_begun(unread: Mapping[str, Any]) -> bool:
    """Whether an entry of `Coverage.unread` is a document of which a part is in the library."""
    return bool(unread.get("begun"))


def untaken_of(unread: Mapping[str, Any]) -> int:
    """How many files an entry of `Coverage.unread` stands for that were too many to be added at once; 0 for others."""
    total = unread.get("total")
    return total if unread.get("status") == "untaken" and isinstance(total, int) else 0


def _name(unread: Mapping[str, Any]) -> str:
    return str(unread.get("name", ""))


def _unread_told(unread: Mapping[str, Any], lang: Lang) -> str:
    if n := untaken_of(unread):
        return _UNTAKEN[lang].format(n=n, names=_name(unread))
    return _REST[lang].format(name=_name(unread)) if is_begun(unread) else _name(unread)


def told(coverage: Coverage, lang: Lang) -> str:
    """The counts in words: "115 / 117 pages, 12 / 12 slides"."""
    between = ", " if lang == "en" else "，"
    counts = coverage.counts().items()
    return between.join(f"{read} / {total} {_UNITS[lang][of]}" for of, (read, total, _) in counts)


def places_told(coverage: Coverage, lang: Lang) -> str:
    """What was meant and not read, in words; "" where all was."""
    lost = [(one, span) for one in coverage.documents for span in one.missed]
    each = [f"{one.name} ({_UNITS[lang][one.of]} {first}–{last})" for one, (first, last) in lost]
    each += [_unread_told(one, lang) for one in coverage.unread if _name(one)]
    return (", " if lang == "en" else "，").join(each)
