"""Questions from a file: JSON lines, or a table as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from core.batch.problems import BatchError
from core.bridge.snapshots import as_messages
from core.errors import BadMessagesError
from core.messages.message import USER, Message

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class BatchQuestion:
    """A question.

    Args:
        id: What its answer is found by: its own, or made of what is asked.
        mark: Of what is asked: another question has another one.
        line: Where it stands, from 1.
    """

    id: str
    mark: str
    messages: list[Message]
    line: int

    @property
    def text(self) -> str:
        """What is asked last."""
        return self.messages[-1].get_text_content()


def read_questions(path: Path) -> list[BatchQuestion]:
    """The questions of a file, in their order.

    A line of JSON is a text, `{"question": …}` or `{"messages": […]}`, the latter two with an `id` if they have one.
    A table has a column `question`, and may have `id`. Whatever else stands there is not looked at.

    Raises:
        BatchError: The file cannot be read, or a line is no question; the line is named.
    """
    readers = {".jsonl": _lines, ".ndjson": _lines, ".csv": _table}
    if not path.is_file():
        raise BatchError("batch_folder" if path.is_dir() else "batch_no_file", file=str(path))
    if path.suffix.lower() not in readers:
        raise BatchError("batch_kind", file=str(path))
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BatchError("batch_unreadable", file=path.name, why=error.strerror or "") from error
    questions: list[BatchQuestion] = []
    lines_of: dict[str, int] = {}
    times: dict[str, int] = {}
    for line, given in readers[path.suffix.lower()](raw, path.name):
        own_id, messages = _asked(given, line, path.name)
        mark = mark_of(messages)
        times[mark] = times.get(mark, 0) + (not own_id)
        name = own_id or (mark if times[mark] == 1 else f"{mark}-{times[mark]}")
        if name in lines_of:
            raise BatchError("batch_same_id", file=path.name, line=line, other=lines_of[name], id=name)
        lines_of[name] = line
        questions.append(BatchQuestion(name, mark, messages, line))
    if not questions:
        raise BatchError("batch_none", file=path.name)
    return questions


def mark_of(messages: list[Message]) -> str:
    """The mark of what is asked."""
    said = json.dumps([message.model_dump() for message in messages], ensure_ascii=False, sort_keys=True)
    return sha256(said.encode(errors="surrogatepass")).hexdigest()[:20]


def _lines(raw: bytes, file: str) -> Iterator[tuple[int, Any]]:
    for line, written in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not written.strip():
            continue
        try:
            yield line, json.loads(written.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise BatchError("batch_no_text", file=file, line=line) from error
        except json.JSONDecodeError as error:
            why = f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.colno}"
            raise BatchError("batch_no_json", file=file, line=line, why=why) from error
        except (ValueError, RecursionError) as error:
            raise BatchError("batch_no_json", file=file, line=line, why="it cannot be read") from error


def _table(raw: bytes, file: str) -> Iterator[tuple[int, Any]]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BatchError("batch_no_text", file=file, line=line) from error
    rows = csv.reader(text.splitlines(keepends=True))
    try:
        names = [name.strip().lower() for name in next(rows, list[str]())]
        if "question" not in names:
            raise BatchError("batch_column", file=file)
        first = rows.line_num + 1
        for row in rows:
            line, first = first, rows.line_num + 1
            own = dict(zip(names, row, strict=False))
            if any(cell.strip() for cell in row):
                yield line, {"question": own.get("question", ""), "id": own.get("id", "").strip()}
    except csv.Error as error:
        raise BatchError("batch_unreadable", file=file, why=str(error)) from error


def _asked(given: Any, line: int, file: str) -> tuple[str, list[Message]]:
    """The id ("" for none) and the conversation of a line."""
    if isinstance(given, str):
        given = {"question": given}
    own: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    question, messages, own_id = own.get("question"), own.get("messages"), own.get("id")
    if own_id is not None and (isinstance(own_id, bool) or not isinstance(own_id, str | int)):
        raise BatchError("batch_id", file=file, line=line)
    name = "" if own_id is None else str(own_id)
    if isinstance(question, str):
        if not question.strip():
            raise BatchError("batch_empty", file=file, line=line)
        return name, [Message(USER, question)]
    if not isinstance(messages, list) or not messages:
        raise BatchError("batch_no_question", file=file, line=line)
    try:
        return name, as_messages(cast("list[dict[str, Any]]", messages))[0]
    except BadMessagesError as error:
        raise BatchError("batch_messages", file=file, line=line, why=str(error.message)) from error
