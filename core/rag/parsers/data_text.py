"""JSON, JSON Lines and notebooks."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeGuard

from core.errors import BrokenDocumentError
from core.rag.document import About, Block, table
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean, ending
from core.rag.parsers.text import decode, looks_like_text, markdown_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ENDINGS = frozenset({".json", ".geojson", ".jsonl", ".ndjson", ".ipynb"})
_ROWS = 500  # in one block
_COLUMNS = 50
_FEW = 8  # values that need no heading of their own
_LINES = 200  # in one block
_MOST_PRINTED = 20_000  # characters of one output of a program
_ANSI = re.compile("\x1b?\\[[0-9;]{1,20}m")  # colours; `clean` took the first character away


class DataTextParser:
    """Reads values with their paths (`a.b[2].c: value`); lists of records become tables."""

    def accepts(self, name: str, head: bytes) -> str:
        """Text whose name says that it is JSON."""
        return "application/json" if ending(name) in _ENDINGS and looks_like_text(head) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Lines of the form `a.b[2].c: value`, tables, and a heading for each larger part.

        Raises:
            BrokenDocumentError: It is no JSON, or nested too deep.
        """
        yield About()
        value = _loaded(decode(path.read_bytes()))
        if ending(name) == ".ipynb" and _is_map(value) and "cells" in value:
            yield from _notebook(value)
        else:
            yield from _blocks(value)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise BrokenDocumentError("The file's parts stand in each other too deep.") from error
    except ValueError as error:
        records = _by_lines(text)
        if records is None:
            raise BrokenDocumentError("The file is called JSON, but is none.") from error
        return records


def _by_lines(text: str) -> list[Any] | None:
    """One value per line; a truncated last line is skipped. `None` if it is no JSON Lines."""
    lines = [line for line in text.split("\n") if line.strip()]
    values: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            return values if values and number == len(lines) > 1 else None
    return values


def _blocks(value: Any) -> Iterator[Block]:
    """Blocks of a value; top-level names become headings where there is much under them."""
    if not _is_map(value) or len(value) == 1:
        yield from _under("", value)
        return
    small: dict[str, Any] = {}
    for name, part in value.items():
        if _is_small(part):
            small[name] = part
            continue
        yield from _under("", small)
        small = {}
        title = clean(name).strip() or "-"
        yield Block("heading", title, level=1)
        yield from _under(title, part)
    yield from _under("", small)


def _is_small(value: Any) -> bool:
    members = _members(value)
    return members is None or (len(members) <= _FEW and all(_members(one) is None for one in members))


def _is_map(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _members(value: object) -> list[Any] | None:
    """The members of a list or map; `None` for a plain value."""
    if _is_map(value):
        return list(value.values())
    return value if _is_list(value) else None


def _under(start: str, value: Any) -> Iterator[Block]:
    """The values below a name, in order. Not recursive: the file decides the depth."""
    lines: list[str] = []
    waiting: list[tuple[str, Any]] = [(start, value)]
    while waiting:
        name, here = waiting.pop()
        records = _records(here)
        if records or len(lines) >= _LINES:
            yield from _paragraph(lines)
            lines = []
        if records:
            if name and name != start:
                yield Block("heading", name, level=2)
            yield from records
        elif _is_map(here):
            waiting.extend((_below(name, key), one) for key, one in reversed(here.items()))
        elif _is_list(here) and any(_members(one) is not None for one in here):
            waiting.extend((f"{name}[{at}]", here[at]) for at in range(len(here) - 1, -1, -1))
        elif text := _text(here):
            lines.append(f"{name}: {text}" if name else text)
    yield from _paragraph(lines)


def _below(name: str, key: str) -> str:
    return f"{name}.{clean(key)}" if name else clean(key)


def _records(value: Any) -> list[Block]:
    """A list of records with the same fields, as tables; empty for anything else."""
    records = list(filter(_is_map, value)) if _is_list(value) else []
    if len(records) < 2 or len(records) < len(value):
        return []
    names = list(dict.fromkeys(name for one in records for name in one))
    cells = sum(map(len, records))
    flat = all(_is_small(part) for one in records for part in one.values())
    if not names or len(names) > _COLUMNS or not flat or cells * 2 < len(names) * len(records):
        return []
    rows = [tuple(_text(one.get(name)) for name in names) for one in records]
    return [table([tuple(map(clean, names)), *rows[at : at + _ROWS]]) for at in range(0, len(rows), _ROWS)]


def _text(value: object) -> str:
    if isinstance(value, str):
        return clean(value).strip()
    if _is_list(value):
        return ", ".join(map(_text, value))
    if _is_map(value):
        return ", ".join(f"{clean(name)}: {_text(one)}" for name, one in value.items())
    return "" if value is None else json.dumps(value)


def _paragraph(lines: list[str]) -> Iterator[Block]:
    if lines:
        yield Block("paragraph", "\n".join(lines))


def _notebook(value: dict[str, Any]) -> Iterator[Block]:
    """A notebook's texts and programs, and what the programs printed, as far as it is text."""
    cells = value["cells"]
    for cell in filter(_is_map, cells if _is_list(cells) else ()):
        text = _joined(cell.get("source"))
        if cell.get("cell_type") == "markdown":
            yield from markdown_blocks(text)
            continue
        if text.strip():
            yield Block("code", text.strip("\n").rstrip())
        outputs: object = cell.get("outputs")
        for output in filter(_is_map, outputs if _is_list(outputs) else ()):
            if printed := _printed(output).strip("\n").rstrip():
                yield Block("code", printed)


def _joined(lines: object) -> str:
    """A text that may be kept as a list of its lines."""
    return clean("".join(map(str, lines)) if _is_list(lines) else lines if isinstance(lines, str) else "")


def _printed(output: Mapping[str, Any]) -> str:
    """What one output of a program says: what it printed, the text of its result, or its error in one line."""
    if output.get("output_type") == "error":
        return _ANSI.sub("", f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}")
    data: object = output.get("data")
    text = _joined(data.get("text/plain") if _is_map(data) else output.get("text"))
    shown = _ANSI.sub("", text)
    return shown if len(shown) <= _MOST_PRINTED else f"{shown[:_MOST_PRINTED]}\n…"
