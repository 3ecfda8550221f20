"""Searches the web, and hands over what is found with numbers to cite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from core.tools.base import ToolResult
from core.tools.builtin.asking_a_search_service import AsksSearchService
from core.tools.web.base import Wanted
from core.tools.web.passages import given, passage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.rag.document import Passage
    from core.tools.web.base import Found

_NOTHING = {
    "en": "The search found nothing. Try other words, or fewer.",
    "zh": "没有搜索到结果。请换一些词，或减少关键词。",
}
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to search for, in a few words."},
    },
    "required": ["query"],
}


class WebSearch(AsksSearchService):
    """Asks a search service.

    A sensible default for whoever uses the page: it needs no key, and only reads.

    Args:
        cfg: Options. `provider` is a name of `core.tools.web.catalog.SEARCH_SERVICES`, `ddgs` by default; `api_key` and
            `base_url` are for it; `own_network=True` allows a `base_url` on this machine or its network, and is only
            for an address that the owner of the machine wrote. `count` is the number of results, 8 by default.
    """

    name = "web_search"
    description = (
        "Searches the web and returns pages with title, address and extract, each with a number like [1] to cite. "
        "Use it for what is recent, or not known for certain."
    )
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Web search", "zh": "网络搜索"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "search the web", "zh": "搜索网络"}
    timeout = 40.0

    async def call(
        self, params: str | dict[str, Any], *, evidence: list[Passage] | None = None, lang: str = "en", **kwargs: Any
    ) -> ToolResult:
        """Search. `extra["addresses"]` of the result are the addresses found.

        Args:
            params: `{"query": ...}`.
            evidence: What was found earlier in the same reply; the numbers go on from there.
            lang: The language of what stands around the results.
            kwargs: Not used.

        Raises:
            SettingsError: A key or an address is missing.
            ToolError: The service refuses, or answers with something else.
            FetchError: It cannot be reached.
        """
        del kwargs
        query = str(self._verify_json_format_args(params)["query"]).strip()
        service = self._service
        found = await service.pages(Wanted(query, self._count, "zh" if lang == "zh" else "en"))
        passages = _passages(found)[: self._count]
        if not passages:
            return ToolResult(_NOTHING.get(lang, _NOTHING["en"]), extra={"nothing_found": True})
        text, rows = given(passages, evidence, lang, kind="search")
        return ToolResult(text, passages=rows, extra={"addresses": [one.url for one in passages]})


def _passages(found: list[Found]) -> list[Passage]:
    """Each page once."""
    by_address: dict[str, Found] = {}
    for one in found:
        by_address.setdefault(one.url, one)
    return [
        passage(f"{one.date} — {one.snippet}" if one.date and one.snippet else one.snippet, one.url, one.title)
        for one in by_address.values()
    ]
