"""Reads pages and documents of the web, and hands their text over with numbers to cite."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import urlsplit

from core.errors import BadArgumentsError, ParlourError, ToolError
from core.languages import spoken
from core.messages.content import ContentItem
from core.net.addresses import Reach, open_internet_and_own_network
from core.tools.base import BaseTool, ToolResult, int_option
from core.tools.web.passages import best_parts, given, passage
from core.tools.web.reading import Page, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang
    from core.rag.document import Chunk, Passage
    from core.tools.threads import Progress

_MOST_PAGES = 5
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "description": "The address of the page, with https://."},
        "question": {
            "type": "string",
            "description": "What is wanted from it: of a long page, only the parts about that are returned.",
        },
    },
    "required": ["url"],
}
_PARTS = {
    "en": (
        "Of {page}, {given} of {all} parts are shown: those about the question.",
        "Of {page}, {given} of {all} parts are shown: its beginning and end. Ask again with `question` for others.",
    ),
    "zh": (
        "{page} 共 {all} 部分，这里只列出与问题有关的 {given} 部分。",
        "{page} 共 {all} 部分，这里只列出开头和结尾的 {given} 部分；如需其他内容，请带上 question 再次调用。",
    ),
}
_READING = {"en": "Reading {host}", "zh": "正在阅读 {host}"}
_READ = {"en": "{done} of {all} pages read", "zh": "已读 {done} / {all} 个网页"}
# A page is named by its address: its title is words of its own, and these lines are Parlour's.
_DATED = {"en": "{page} is of {date}.", "zh": "{page} 的日期：{date}。"}


class WebExtractor(BaseTool):
    """Fetches a page, guarded, and gives its main text; PDF and office files too.

    A sensible default for whoever uses the page: it only reads, and asks before it goes to an address that neither the
    user nor a search has given while something private is in the conversation.

    Args:
        cfg: Options. `max_tokens` of text are given of all pages together, 4000 by default. `own_network=True` allows
            addresses of this machine and its network.
    """

    name = "web_extractor"
    description = (
        "Reads the main text of a web page, PDF or office file at an address, in parts with numbers like [1] to cite."
    )
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Read a web page", "zh": "阅读网页"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "read a page on the web", "zh": "阅读网页"}
    deduplicate = True
    reaches_out = True
    timeout = 75.0

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._room = int_option(self.cfg, "max_tokens", 4000, 200, 100_000)
        self._reach = Reach(open_internet_and_own_network) if self.cfg.get("own_network") else Reach()

    def addresses(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the pages."""
        return tuple(_listed(arguments.get("url")))

    def verify(self, arguments: dict[str, Any]) -> None:
        """Check arguments; `url` may be a list, too.

        Raises:
            BadArgumentsError: One sentence that names the field.
        """
        named: Any = arguments.get("url")
        if not isinstance(named, list):
            super().verify(arguments)
            return
        urls = cast("list[Any]", named)
        if not 0 < len(urls) <= _MOST_PAGES:
            raise BadArgumentsError(f"The field 'url' may list 1 to {_MOST_PAGES} addresses.", field="url")
        for url in urls:
            super().verify({**arguments, "url": url})

    async def call(
        self,
        params: str | dict[str, Any],
        *,
        evidence: list[Passage] | None = None,
        lang: str = "en",
        progress: Progress | None = None,
        **kwargs: Any,
    ) -> ToolResult:
        """Read the pages at the same time; of several, those that cannot be read are told in the text.

        Where parts are left out, all of it is the last item, a file that `extra["whole"]` names.

        Args:
            params: `{"url": ..., "question": ...}`; `url` is one address or a list.
            evidence: What was found earlier in the same reply; the numbers go on from there.
            lang: The language of what stands around the text.
            progress: Told how many pages are read.
            kwargs: Not used.

        Raises:
            FetchError: The only page cannot be fetched, or may not be.
            DocumentError: It cannot be read.
            ToolError: There is no text on it.
        """
        del kwargs
        arguments = self._verify_json_format_args(params)
        urls, question = _listed(arguments["url"]), str(arguments.get("question") or "")
        language = spoken(lang)
        outcomes = await self._all(urls, progress, language)
        pages = [one for one in outcomes if isinstance(one, Page)]
        failed = [one for one in outcomes if isinstance(one, ParlourError)]
        if not pages:
            raise failed[0]
        notes: list[str] = []
        passages: list[Passage] = []
        for page in pages:
            chosen = best_parts([part.text for part in page.parts], question, self._room / len(pages))
            passages += [_passage(page, at) for at in chosen.numbers]
            if page.date:
                notes.append(_DATED[language].format(page=page.url, date=page.date))
            if len(chosen.numbers) < len(page.parts):
                note = _PARTS[language][0 if chosen.by_question else 1]
                notes.append(note.format(page=page.url, given=len(chosen.numbers), all=len(page.parts)))
        notes += [str(error) for error in failed]
        text, rows = given(passages, evidence, lang, kind="page")
        extra: dict[str, Any] = {"addresses": sorted({page.url for page in pages})}
        items: tuple[ContentItem, ...] = ()
        if len(passages) < sum(len(page.parts) for page in pages):
            extra["whole"], items = f"{_file_name(pages[0])}.md", (_whole(pages),)
        return ToolResult("\n".join([text, *notes]), items, rows, extra)

    async def _all(self, urls: list[str], progress: Progress | None, lang: Lang) -> list[Page | ParlourError]:
        """All of them at once, told one by one."""
        done = 0

        async def one(url: str) -> Page | ParlourError:
            nonlocal done
            outcome = await self._read(url)
            done += 1
            if progress is not None and len(urls) > 1:
                progress(_READ[lang].format(done=done, all=len(urls)), done, len(urls))
            return outcome

        if progress is not None:
            progress(_READING[lang].format(host=_host(urls[0])), 0, len(urls))
        return list(await asyncio.gather(*map(one, urls)))

    async def _read(self, url: str) -> Page | ParlourError:
        try:
            page = await read(url, self._reach)
        except ParlourError as error:
            return error
        return page if page.parts else ToolError(f"There is no text at {url[:200]}.", hint="It may need a browser.")


def _whole(pages: Sequence[Page]) -> ContentItem:
    """All that was read, as a file beside the parts that are shown."""
    texts = [
        "\n\n".join([f"# {page.title or page.url}", page.url, *(_part_text(part) for part in page.parts)])
        for page in pages
    ]
    packed = b64encode("\n\n".join(texts).encode("utf-8", "replace")).decode("ascii")
    return ContentItem(file=f"data:text/markdown;charset=utf-8;base64,{packed}")


def _part_text(part: Chunk) -> str:
    return f"{part.heading}\n{part.text}" if part.heading else part.text


def _file_name(page: Page) -> str:
    return re.sub(r"[^\w.-]+", "_", page.title or "page").strip("._")[:60] or "page"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url[:80]
    except ValueError:  # an address that is none, as the fetch will say
        return url[:80]


def _listed(url: object) -> list[str]:
    """The addresses, each once; what a model forgot to begin with https:// gets it."""
    urls = cast("list[Any]", url) if isinstance(url, list) else [url]
    whole = (str(one).strip() for one in urls if isinstance(one, str) and one.strip())
    return list(dict.fromkeys(one if "://" in one else f"https://{one.lstrip('/')}" for one in whole))


def _passage(page: Page, at: int) -> Passage:
    part = page.parts[at]
    return passage(part.text, page.url, page.title, chunk_id=at, page=part.page, heading=part.heading)
