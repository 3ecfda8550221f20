"""Searches the user's documents and hands passages to the model, each with a number to cite."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from core.languages import spoken
from core.rag.attached import UNREAD, unfinished
from core.rag.citations import harmless, numbered
from core.rag.coverage import EXTRA
from core.tools.base import BaseTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from core.languages import Lang
    from core.rag.attached import Attached
    from core.rag.coverage import Coverage
    from core.rag.document import Passage

_NOTHING = {
    "en": "No passage of the documents matches. Say that the documents do not contain it, or search again with other "
    "words.",
    "zh": "文档中没有匹配的段落。请说明文档中没有相关内容，或换个说法再查。",
}
_ONLY = {
    "en": "The question is about {names}, so nothing else was searched. If the answer is not there, say that it is not "
    "in {names}.",
    "zh": "问题问的是 {names}，因此没有搜索其他文件。如果其中没有答案，请说明 {names} 中没有相关内容。",
}
_NOTHING_IN = {
    "en": "No passage of {names} matches. The question is about {names}, so nothing else was searched. Say that it is "
    "not in {names}, or search again with other words.",
    "zh": "{names} 中没有匹配的段落。问题问的是 {names}，因此没有搜索其他文件。请说明 {names} 中没有相关内容，"
    "或换个说法再查。",
}
_AND = {"en": (", ", " and "), "zh": ("、", "和")}
_READ = {
    "en": ("Only the beginning was read: {parts}. Say so.", "{name}, {of}s {first}–{last} of {total}", "; "),
    "zh": ("只读了开头部分：{parts}。请在回答中说明。", "{name} 第 {first}–{last}{of}，共 {total}{of}", "；"),
}
_NOT_READ = {
    "en": ("Nothing was read of {names}. Say so.", " "),
    "zh": ("没有读取 {names}。请在回答中说明。", ""),
}
_BEST: Mapping[Lang, tuple[str, str]] = {
    "en": (
        "This is the one passage that fits best, and not all there is.",
        "These are the {n} passages that fit best, and not all there is.",
    ),
    "zh": ("以上是最相符的 1 段，并非全部内容。", "以上是最相符的 {n} 段，并非全部内容。"),
}
_THEN: Mapping[Lang, tuple[str, str]] = {
    "en": (
        " If the answer rests on more than these, as a count or a list does, say that it may not be complete.",
        " If the answer rests on more than these, as a count or a list does, call {reader}, which reads all of it.",
    ),
    "zh": (
        "如果答案取决于更多内容（如计数或列举），请说明可能不完整。",
        "如果答案取决于更多内容（如计数或列举），请调用 {reader} 通读全部。",
    ),
}
_OF = {
    "en": {"page": "page", "slide": "slide", "sheet": "sheet", "passage": "passage"},
    "zh": {"page": " 页", "slide": " 张", "sheet": " 个工作表", "passage": " 段"},
}

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to look for, in the documents' language."}
    },
    "required": ["query"],
}


@dataclass(frozen=True, slots=True)
class ReadPart:
    """What was read of a long document where only its beginning was.

    Args:
        of: What its parts are called.
        first, last: The parts that were read; 0 where nothing was.
    """

    name: str
    of: Literal["page", "slide", "sheet", "passage"]
    first: int
    last: int
    total: int


class AskDocuments(BaseTool):
    """Finds passages by question.

    Args:
        find: Takes a question and how many passages are wanted at most.
        cfg: Options; `k` is the number of passages, 5 by default; `notice=False` leaves out the words around them, and
            `brief=True` pages, and headings that were said before.
        unsearched: The files that cannot be searched whole, asked for where nothing was found.
        read: What the passages found last are the beginning of, where nothing else was read of a long document.
        coverage: How much the passages found last are of all that was asked about, where they are that, or where the
            question counts or lists: then the model is told that they are not all.
        reader: The name of the tool that reads all of the documents, where the model has it and may need it.
        whole: Whether the passages found last are all of the documents.
        unread: A sentence for each document that holds no text, for `extra`.
        only: The names of the documents, where the question is about them alone and nothing else is searched.
        pictures: Chooses pictures that go with passages, for a model that sees: takes the passages, the query, the
            first number, the language and whether the passages are all of the documents; gives what is told of them,
            and the pictures for `extra`.
    """

    name = "ask_documents"
    description = (
        "Searches the user's documents and returns passages with numbers like [1]. "
        "Use it for every question that the documents may answer, and cite the numbers."
    )
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Search the documents", "zh": "查阅文档"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "look something up in your documents", "zh": "在文档中查找"}
    deduplicate = True
    longest = 512 * 1024  # what is found is measured in tokens already

    def __init__(  # noqa: PLR0913 - what a search may tell besides, each by name
        self,
        find: Callable[[str, int], Awaitable[list[Passage]]],
        cfg: Mapping[str, Any] | None = None,
        *,
        unsearched: Callable[[], Awaitable[Sequence[Attached]]] | None = None,
        read: Callable[[], Sequence[ReadPart]] | None = None,
        coverage: Callable[[], Coverage | None] | None = None,
        reader: str = "",
        whole: Callable[[], bool] = bool,
        unread: Sequence[str] = (),
        only: Sequence[str] = (),
        pictures: Callable[..., Awaitable[tuple[str, list[dict[str, Any]]]]] | None = None,
    ) -> None:
        super().__init__(cfg)
        self._find = find
        self._unsearched = unsearched
        self._read = read
        self._coverage = coverage
        self._reader = reader
        self._whole = whole
        self._only = only
        self._unread: dict[str, Any] = {UNREAD: list(unread)} if unread else {}
        self._always: dict[str, Any] = {**self._unread, **({"only": list(only)} if only else {})}
        self._pictures = pictures
        self._k = int(self.cfg.get("k", 5))
        self._notice = bool(self.cfg.get("notice", True))
        self._brief = bool(self.cfg.get("brief", False))

    async def call(
        self, params: str | dict[str, Any], *, evidence: list[Passage] | None = None, lang: str = "en", **kwargs: Any
    ) -> ToolResult:
        """Search. Where nothing is found the result says so, and its `extra` has `nothing_found`.

        What could not be searched then is in `unsearched` of it, and what was read where only beginnings were in
        `read`. `only` has the names of the documents, where it is about them alone. `all_documents` is in it where the
        passages are all that there is. `pictures` of it names those that go with the passages, and a passage whose
        figure or page the model is shown has `seen`.

        Args:
            params: `{"query": ...}`.
            evidence: What was found earlier in the same reply: the numbers go on from there, and what is found now
                is added to it.
            lang: The language of what stands around the passages.
            kwargs: Not used.
        """
        del kwargs
        query = str(self._verify_json_format_args(params)["query"])
        found = await self._find(query, self._k)
        language = spoken(lang)
        if not found:
            return await self._nothing(language)
        earlier = evidence if evidence is not None else []
        first = len(earlier) + 1
        earlier.extend(found)
        whole = self._whole()
        told, shown = "", list[dict[str, Any]]()
        if self._pictures is not None:
            told, shown = await self._pictures(found, query, first, language, whole=whole)
        seen = {number for one in shown for number in one["passages"]}
        rows = tuple(
            {**passage.as_dict(), "number": number, **({"seen": True} if number in seen else {})}
            for number, passage in enumerate(found, first)
        )
        text = numbered(found, language, first=first, notice=self._notice, brief=self._brief)
        parts = self._read() if self._read is not None else ()
        if parts and self._notice:
            text = f"{text}\n{_told(parts, language)}"
        coverage = self._coverage() if self._coverage is not None else None
        if coverage is not None and coverage.why == "searched" and self._notice:
            text = f"{text}\n{_not_all(len(found), self._reader, language)}"
        if self._only:
            text = f"{text}\n{_ONLY[language].format(names=_together(self._only, language))}"
        extra = {**self._always, **({"read": [asdict(part) for part in parts]} if parts else {})}
        if shown:
            text, extra["pictures"] = f"{text}\n{told}", shown
        if coverage is not None:
            extra[EXTRA] = coverage.as_dict()
        if whole and not self._only:
            extra["all_documents"] = True  # the same for each question: `documents_first` looks for it
        return ToolResult(text, passages=rows, extra=extra)

    async def _nothing(self, lang: Lang) -> ToolResult:
        """That nothing was found; that there is nothing only where everything was searched."""
        files = [one for one in await self._unsearched() if not one.is_whole] if self._unsearched is not None else []
        extra = {**self._always, **({"unsearched": [one.as_dict() for one in files]} if files else {})}
        nothing = _NOTHING_IN[lang].format(names=_together(self._only, lang)) if self._only else _NOTHING[lang]
        return ToolResult(unfinished(files, lang) or nothing, extra={"nothing_found": True, **extra})


def _not_all(passages: int, reader: str, lang: Lang) -> str:
    one, several = _BEST[lang]
    return (one if passages == 1 else several.format(n=passages)) + _THEN[lang][bool(reader)].format(reader=reader)


def _together(names: Sequence[str], lang: Lang) -> str:
    between, last = _AND[lang]
    *others, final = map(harmless, names)
    return f"{between.join(others)}{last}{final}" if others else final


def _told(parts: Sequence[ReadPart], lang: Lang) -> str:
    sentence, one, between = _READ[lang]
    each = [
        one.format(name=harmless(part.name), of=_OF[lang][part.of], first=part.first, last=part.last, total=part.total)
        for part in parts
        if part.last
    ]
    bare, apart = _NOT_READ[lang]
    names = [part.name for part in parts if not part.last]
    said = [sentence.format(parts=between.join(each))] if each else []
    return apart.join([*said, *([bare.format(names=_together(names, lang))] if names else [])])
