"""Reads a file or an address and gives its text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from core.tools.base import BaseTool
from core.tools.documents import pages_of, plain, read, source_of

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
    steady = True
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
