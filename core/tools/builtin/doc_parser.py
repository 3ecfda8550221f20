"""Reads a file or an address: its text, its chunks, or the words that matter in it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from core.rag.search.terms import EMPTY_CHARACTERS, STOP_WORDS
from core.tools.base import BaseTool
from core.tools.documents import chunks_as_records, pages_of, plain, read, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from core.messages.message import Message


_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "description": "A file of this conversation, or an address."}
    },
    "required": ["url"],
}


class SimpleDocParser(BaseTool):
    """The whole text of a document. For programs, and agents that work on files; on the page `ask_documents` is better.

    Args:
        cfg: Options. With `structured_doc=True` the result is a list of pages instead of a text. `folders` are those
            that a model may read files from, besides the files of the conversation; `own_network=True` allows addresses
            of this machine and its network.
    """

    name = "simple_doc_parser"
    description = "Reads a document (PDF, Word, slides, sheets, web page, text) and returns all of its text."
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Read a document", "zh": "读取文档"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "read a document", "zh": "读取文档"}
    deduplicate = True
    of_documents = True
    reaches_out = True
    timeout = 300.0

    def call(self, params: str | dict[str, Any], *, messages: Sequence[Message] | None = None, **kwargs: Any) -> Any:
        """The text; with `structured_doc` a list of pages: `page_num`, and `content` of `text` or `table`.

        Args:
            params: `{"url": ...}`.
            messages: The conversation, where a model calls: it may read the files in it.
            kwargs: Not used.

        Raises:
            BadArgumentsError: There is no such file, or it may not be read.
            DocumentError: It cannot be read, or not be fetched.
        """
        del kwargs
        address = str(self._verify_json_format_args(params)["url"])
        text = read(source_of(address, self.cfg, messages))
        if not self.cfg.get("structured_doc"):
            return plain(text)
        pages = pages_of(text)
        return pages if messages is None else json.dumps(pages, ensure_ascii=False)


class DocParser(BaseTool):
    """A document as a record of chunks, as the search tools take it. For programs.

    Args:
        cfg: Options. A document of up to `max_ref_token` tokens (20000 by default) is one chunk; others are cut into
            chunks of `parser_page_size` (500 by default). `folders` and `own_network` as for `simple_doc_parser`.
    """

    name = "doc_parser"
    description = "Reads a document (PDF, Word, slides, sheets, web page, text) and returns its text in chunks."
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Read a document in chunks", "zh": "分段读取文档"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "read a document", "zh": "读取文档"}
    deduplicate = True
    of_documents = True
    reaches_out = True
    timeout = 300.0

    def call(
        self, params: str | dict[str, Any], *, messages: Sequence[Message] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """The record: `url`, `title`, and `raw`, a list of `content`, `metadata` and `token`.

        Args:
            params: `{"url": ...}`.
            messages: The conversation, where a model calls: it may read the files in it.
            kwargs: `max_ref_token` and `parser_page_size` count over the options.

        Raises:
            BadArgumentsError: There is no such file, or it may not be read.
            DocumentError: It cannot be read, or not be fetched.
        """
        address = str(self._verify_json_format_args(params)["url"])
        limits = {"max_ref_token": 20_000, "parser_page_size": 500, **self.cfg, **kwargs}
        text = read(source_of(address, self.cfg, messages))
        raw = chunks_as_records(text, address, int(limits["max_ref_token"]), int(limits["parser_page_size"]))
        return {"url": address, "raw": raw, "title": text.title or text.name}


_WORD = re.compile(r"[^\W\d_\u3400-\u9fff][\w'’-]{1,40}|[\u3400-\u9fff]+")
_MOST = 2000
_OF_VOCABULARY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "files": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The documents: files of this conversation, or addresses.",
        }
    },
    "required": ["files"],
}


class ExtractDocVocabulary(BaseTool):
    """The vocabulary of documents, so that a model asks in their words. For programs.

    Args:
        cfg: Options. `folders` and `own_network` as for `simple_doc_parser`.
    """

    name = "extract_doc_vocabulary"
    description = "Lists the words that documents use, the most telling first."
    parameters = _OF_VOCABULARY
    labels: ClassVar[Mapping[str, str]] = {"en": "Words of documents", "zh": "提取文档词汇"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "list the words of documents", "zh": "列出文档的词汇"}
    deduplicate = True
    of_documents = True
    reaches_out = True
    timeout = 300.0

    def call(self, params: str | dict[str, Any], *, messages: Sequence[Message] | None = None, **kwargs: Any) -> str:
        """The words, parted by ", "; Chinese by pairs of characters that come more than once. At most 2000.

        Args:
            params: `{"files": [...]}`.
            messages: The conversation, where a model calls: it may read the files in it.
            kwargs: Not used.

        Raises:
            BadArgumentsError: There is no such file, or it may not be read.
            DocumentError: A file cannot be read, or not be fetched.
        """
        del kwargs
        files = [str(one) for one in self._verify_json_format_args(params)["files"]]
        counted = [Counter(_words(plain(read(source_of(one, self.cfg, messages))))) for one in files]
        weight: Counter[str] = Counter()
        for words in counted:
            total = words.total() or 1
            for word, times in words.items():
                among = sum(word in other for other in counted)
                weight[word] += times / total * (1 + math.log((1 + len(counted)) / (1 + among)))  # pyright: ignore[reportArgumentType] - weights are no counts
        pairs = {word for word in weight if _is_chinese(word) and sum(words[word] for words in counted) < 2}
        return ", ".join(word for word, _ in weight.most_common() if word not in pairs)[: _MOST * 40]


def _words(text: str) -> Iterator[str]:
    for found in _WORD.findall(text.casefold()):
        if not _is_chinese(found):
            if found not in STOP_WORDS:
                yield found
            continue
        for first, second in pairwise(found):
            if first not in EMPTY_CHARACTERS and second not in EMPTY_CHARACTERS:
                yield first + second


def _is_chinese(word: str) -> bool:
    return "\u3400" <= word[0] <= "\u9fff"
