"""Reads a file or an address and gives it in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from core.tools.base import BaseTool
from core.tools.documents import chunks_as_records, read, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "description": "A file of this conversation, or an address."}
    },
    "required": ["url"],
}


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
    steady = True
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
