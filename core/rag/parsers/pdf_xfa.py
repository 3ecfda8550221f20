"""The fields of a form that a PDF holds as XML alone (XFA), which only Adobe's programs draw.

Such a file has one page that asks to wait, or for another program. What people see of the form stands in two parts: a
template, with the labels and the kinds of fields, and the data that were filled in.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from core.rag.document import Block
from core.rag.parsers.base import clean
from core.rag.parsers.pdf_forms import name_told, value_told
from core.rag.parsers.pdf_page import MOST_XFA_BYTES, Field
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.languages import Lang
    from core.rag.parsers.pdf_page import FieldKind

_MOST_LINES = 5_000
_DEEPEST = 60
_MOST_REPEATED = 200  # times that one part of a form is filled in
_MOST_PARTS = 20_000  # parts that are gone into, however often each is filled in
_MOST_STEPS = 1_000_000  # elements of the template that are looked at, however often each
_NOTICE = 2_500  # letters that a page has at most which only says to wait
_UNSEEN = frozenset({"hidden", "invisible", "inactive"})
_NOWHERE = (0.0, 0.0, 0.0, 0.0)
_STEPS = re.compile(r"[.\[\]*#0-9]+")

_Node = Any  # of lxml, which has no types


def is_notice(text: str) -> bool:
    """Whether the text of a page only says that another program is needed, in whatever language it does."""
    return len(text) <= _NOTICE and ("adobe" in text.casefold() or not text.strip())


def blocks(packets: Mapping[str, bytes], number: int) -> list[Block]:
    """The texts and fields of a form in the order of its template; without a template the data by their names.

    Args:
        packets: The parts of the form by their names.
        number: The page that they are said to stand on.
    """
    whole = _parsed(packets.get("", b""))
    parts = {} if whole is None else {_name(one): one for one in whole}
    template = parts.get("template", _parsed(packets.get("template", b"")))
    data = parts.get("datasets", _parsed(packets.get("datasets", b"")))
    filled = next((one for one in _within(data, "data")), None) if data is not None else None
    reader = _Reader()
    if template is not None:
        root = next((one for one in template if _is(one, "subform")), None)
        if root is not None:
            reader.part(root, [] if filled is None else [filled], 0)
    elif filled is not None:
        reader.plain(filled, 0)
    return list(reader.told(number))


def _parsed(written: bytes) -> _Node | None:
    """The root of a part; `None` where it is no XML. Entities stay as they are, and nothing is fetched."""
    etree = cast("Any", import_module("lxml.etree"))
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, recover=True
    )
    if len(written) > MOST_XFA_BYTES or not written.strip():
        return None
    try:
        return etree.fromstring(written, parser)
    except (etree.LxmlError, ValueError):
        return None


def _name(node: _Node) -> str:
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _is(node: _Node, *names: str) -> bool:
    return _name(node) in names


def _within(node: _Node, *path: str) -> Iterator[_Node]:
    """The elements below a node by their names, step by step."""
    here = [node]
    for step in path:
        here = [child for one in here for child in one if _is(child, step)]
    yield from here


def _text(node: _Node) -> str:
    """All letters of an element, in one line."""
    return " ".join(clean(" ".join(str(part) for part in node.itertext())).split())


class _Reader:
    """Goes through the template with the data beside it."""

    def __init__(self) -> None:
        self._items: list[tuple[Field | None, str]] = []  # a field with its label, or a text of the form
        self._parts = self._steps = 0
        # The elements stay in these, so that each is the same object whenever it is met.
        self._named: dict[_Node, dict[str, list[_Node]]] = {}
        self._taken: dict[tuple[_Node, str], int] = {}

    def told(self, number: int) -> Iterator[Block]:
        """What was found: texts as paragraphs, fields that follow each other as lines of one."""
        label = " ".join(text for _, text in self._items)
        lang: Lang = "zh" if 2 * ideographs(label) > len(label.replace(" ", "")) else "en"
        lines: list[str] = []
        for field, text in [*self._items, (None, "")]:
            if field is not None:
                lines.append(value_told(field, text, lang))
                continue
            if lines:
                yield Block("paragraph", "\n".join(lines), number)
                lines = []
            if text:
                yield Block("paragraph", text, number)

    def plain(self, node: _Node, depth: int) -> None:
        """Data without a template: each value by its element's name."""
        for child in node:
            if len(child) and depth < _DEEPEST:
                self.plain(child, depth + 1)
            elif _name(child):
                self._take(_field("text", _name(child), _text(child)), "")

    def part(self, node: _Node, data: list[_Node], depth: int) -> None:
        """A part of the form, once for each time that it is filled in.

        Args:
            node: Its place in the template.
            data: Where its values are looked up, the nearest first.
            depth: In how many other parts it stands.
        """
        if node.get("presence") in _UNSEEN or depth > _DEEPEST:
            return
        name = node.get("name", "")
        found = self._found(name, data) if name else []
        for one in found[:_MOST_REPEATED] or [None]:
            if self._parts >= _MOST_PARTS:
                return
            self._inside(node, data if one is None else [one, *data], depth)

    def _inside(self, node: _Node, data: list[_Node], depth: int) -> None:
        self._parts += 1
        for child in node:
            self._steps += 1
            if len(self._items) >= _MOST_LINES or self._steps > _MOST_STEPS:
                return
            if _is(child, "subform", "subformSet", "area"):
                self.part(child, data, depth + 1)
            elif child.get("presence") in _UNSEEN:
                continue
            elif _is(child, "field"):
                self._field(child, data)
            elif _is(child, "exclGroup"):
                self._group(child, data)
            elif _is(child, "draw"):
                text = " ".join(_text(one) for one in _within(child, "value", "text"))
                text = text or " ".join(_text(one) for one in _within(child, "value", "exData"))
                if text:
                    self._items.append((None, text))

    def _field(self, node: _Node, data: list[_Node]) -> None:
        kind = next((_name(one) for ui in _within(node, "ui") for one in ui), "textEdit")
        if kind in {"button", "barcode"}:
            return
        value, label, name = self._value(node, data), _caption(node), node.get("name", "")
        shown, kept = _choices(node)
        if kind == "signature":
            self._take(_field("signature", name, on=bool(value)), label)
        elif kind == "checkButton":
            self._take(_field("check", name, on=value != "" and value == (kept or ["1"])[0]), label)
        elif shown:
            chosen = shown[kept.index(value)] if value in kept else value
            self._take(_field("choice", name, chosen, tuple(shown)), label)
        else:
            self._take(_field("text", name, value), label)

    def _group(self, node: _Node, data: list[_Node]) -> None:
        """Buttons of which one is chosen: a choice among their labels."""
        value = self._value(node, data)
        options: list[str] = []
        chosen = ""
        for one in _within(node, "field"):
            label = _caption(one) or one.get("name", "")
            _, kept = _choices(one)
            own = self._value(one, data)
            options.append(label)
            if kept and kept[0] in {value, own} - {""}:
                chosen = label
        self._take(_field("choice", node.get("name", ""), chosen, tuple(options)), _caption(node))

    def _take(self, field: Field, label: str) -> None:
        if len(self._items) < _MOST_LINES:
            self._items.append((field, label or name_told(field.name)))

    def _value(self, node: _Node, data: list[_Node]) -> str:
        """What was filled in; where nothing was, what the template has in its place."""
        bound = next(_within(node, "bind"), None)
        name = node.get("name", "")
        if bound is not None and bound.get("match") == "none":
            name = ""
        elif bound is not None and bound.get("ref"):
            steps = [step for step in _STEPS.split(bound.get("ref")) if step and step not in {"$", "$record", "$data"}]
            name = steps[-1] if steps else name
        found = self._found(name, data, once=True) if name else []
        if found:
            return _text(found[0])
        return " ".join(_text(one) for one in _within(node, "value")).strip()

    def _found(self, name: str, data: list[_Node], *, once: bool = False) -> list[_Node]:
        """The data of that name in the nearest place that has any; a value is used once, as fields of one name are."""
        for place in data:
            here = self._children(place).get(name)
            if here and once:
                at = self._taken.get((place, name), 0)
                self._taken[place, name] = at + 1
                return [here[min(at, len(here) - 1)]]
            if here:
                return here
        return []

    def _children(self, place: _Node) -> dict[str, list[_Node]]:
        """The elements right below one, by their names; looked at once."""
        found = self._named.get(place)
        if found is None:
            found = self._named[place] = {}
            for child in place:
                found.setdefault(_name(child), []).append(child)
        return found


def _field(kind: FieldKind, name: str, value: str = "", options: tuple[str, ...] = (), *, on: bool = False) -> Field:
    return Field(name, "", kind, value, on, options, _NOWHERE)


def _caption(node: _Node) -> str:
    return " ".join(_text(one) for one in _within(node, "caption", "value")).strip(" :：")


def _choices(node: _Node) -> tuple[list[str], list[str]]:
    """What people choose from, and what is kept of it; the same where only one is told."""
    lists = [[_text(one) for one in items] for items in _within(node, "items")]
    saved = next(
        (one for one, items in zip(lists, _within(node, "items"), strict=True) if items.get("save") == "1"), None
    )
    shown = next((one for one in lists if one is not saved), saved or [])
    return shown, saved if saved is not None and len(saved) == len(shown) else shown
