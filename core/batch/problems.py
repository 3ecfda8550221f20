"""What can be wrong with a file of questions or answers, in English here and in the page's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.agents.config.problems import one_line
from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

SENTENCES: Final[Mapping[str, str]] = {
    "batch_no_file": "There is no file {file}.",
    "batch_folder": "{file} is a folder; name a file in it.",
    "batch_unreadable": "The file {file} cannot be read: {why}.",
    "batch_kind": "The file {file} must end in .jsonl, .ndjson or .csv.",
    "batch_none": "There is no question in {file}.",
    "batch_no_json": "Line {line} of {file} is no JSON: {why}.",
    "batch_no_text": "Line {line} of {file} is not UTF-8.",
    "batch_no_question": "Line {line} of {file} is no question: give a text, or an object with question or messages.",
    "batch_empty": "Line {line} of {file} has an empty question.",
    "batch_messages": "Line {line} of {file} has messages that are none: {why}",
    "batch_id": "Line {line} of {file} has an id that is neither a text nor a whole number.",
    "batch_same_id": "Lines {other} and {line} of {file} have the same id {id}.",
    "batch_column": "The first line of {file} names no column question.",
    "batch_no_answer": "Line {line} of {file} is no answer of a batch, so nothing is written there.",
    "batch_same_file": "Questions and answers cannot be the same file.",
    "batch_in_use": "Another batch is writing to {file}: wait for its end, or choose another file with --out.",
}
"""Keys to English; the other languages are in `webui/words`."""


class BatchError(SettingsError, ValueError):
    """A file of questions or answers is wrong."""

    def __init__(self, key: str, **details: Any) -> None:
        told = {name: one_line(value) if isinstance(value, str) else value for name, value in details.items()}
        super().__init__(SENTENCES[key].format_map(told), key=key, **told)
