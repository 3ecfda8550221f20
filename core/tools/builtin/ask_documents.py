"""Searches the user's documents and hands passages to the model, each with a number to cite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from core.rag.evidence import numbered
from core.tools.base import BaseTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from core.rag.document import Passage

_NOTHING = {
    "en": "No passage of the documents matches. Say that the documents do not contain it, or search again with other "
    "words.",
    "zh": "文档中没有匹配的段落。请说明文档中没有相关内容，或换个说法再查。",
}

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to look for, in the documents' language."}
    },
    "required": ["query"],
}


class AskDocuments(BaseTool):
    """Finds passages by question.

    Args:
        find: Takes a question and how many passages are wanted at most.
        cfg: Options; `k` is the number of passages, 5 by default; `notice=False` leaves out the words around them.
    """

    name = "ask_documents"
    description = (
        "Searches the user's documents and returns passages with numbers like [1]. "
        "Use it for every question that the documents may answer, and cite the numbers."
    )
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Search the documents", "zh": "查阅文档"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "look something up in your documents", "zh": "在文档中查找"}
    steady = True

    def __init__(
        self, find: Callable[[str, int], Awaitable[list[Passage]]], cfg: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(cfg)
        self._find = find
        self._k = int(self.cfg.get("k", 5))
        self._notice = bool(self.cfg.get("notice", True))

    async def call(
        self, params: str | dict[str, Any], *, evidence: list[Passage] | None = None, lang: str = "en", **kwargs: Any
    ) -> ToolResult:
        """Search. Where nothing is found the result says so, and its `extra` has `nothing_found`.

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
        if not found:
            return ToolResult(_NOTHING.get(lang, _NOTHING["en"]), extra={"nothing_found": True})
        earlier = evidence if evidence is not None else []
        first = len(earlier) + 1
        earlier.extend(found)
        rows = tuple({**passage.as_dict(), "number": number} for number, passage in enumerate(found, first))
        text = numbered(found, "zh" if lang == "zh" else "en", first=first, notice=self._notice)
        return ToolResult(text, passages=rows)
