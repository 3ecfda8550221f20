"""Open WebUI's export: rows whose `chat` has a `history` of messages; pictures and texts of files stand in it."""

from __future__ import annotations

import base64
import binascii
import re
from html import unescape
from typing import TYPE_CHECKING, Any, Final, cast

from core.importing.tree import Attached, Foreign, Node, moment, said

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

_PICTURE: Final = re.compile(r"data:image/(png|jpeg|gif|webp);base64,(.*)", re.DOTALL)
_OPENING: Final = re.compile(r"<details type=\"(\w+)\"[^<>]*>\s*")
_ENDING: Final = "</details>"
_WHITE: Final = re.compile(r"\s*")


def takes(one: dict[str, Any]) -> bool:
    """Whether a conversation is one of Open WebUI's."""
    chat = one.get("chat")
    return isinstance(chat, dict) and ("history" in chat or "messages" in chat)


def read(one: dict[str, Any], left_out: Counter[str], _find: Callable[[str], str]) -> Foreign:
    """A conversation; `left_out` counts what is left out, by the reason."""
    chat = _of(one.get("chat"))
    history = _of(chat.get("history"))
    messages = _of(history.get("messages"))
    leaf = said(history.get("currentId"))
    listed: list[Any] = list(messages.values())
    if not listed and isinstance(chat.get("messages"), list):
        listed = cast("list[Any]", chat["messages"])
    nodes: list[Node] = []
    before: str | None = None
    for place, value in enumerate(listed):
        if isinstance(value, dict):
            node = _node(cast("dict[str, Any]", value), place, before, left_out)
            nodes.append(node)
            before = node.id
    title = said(one.get("title")) or said(chat.get("title"))
    return Foreign(title, nodes, moment(one.get("created_at")), moment(one.get("updated_at")), leaf or before)


def _node(message: dict[str, Any], place: int, before: str | None, left_out: Counter[str]) -> Node:
    node = Node(said(message.get("id")) or f"message-{place}", None, "none", at=moment(message.get("timestamp")))
    above = message.get("parentId", before)
    node.parent = above if isinstance(above, str) else None
    role = said(message.get("role"))
    if role in {"user", "assistant"}:
        node.role = "user" if role == "user" else "assistant"
    elif role:
        left_out["hidden"] += 1
    node.model = said(message.get("modelName")) or said(message.get("model"))
    node.text = said(message.get("content"))
    if node.role == "assistant":
        node.text = _without_details(node, left_out)
    files = message.get("files")
    for value in cast("list[Any]", files) if isinstance(files, list) else []:
        _attach(node, _of(value), left_out)
    return node


def _without_details(node: Node, left_out: Counter[str]) -> str:
    """The text without what stands in it of thoughts and of calls; each sign of it is looked at once."""
    text, at = node.text, 0
    kept: list[str] = []
    thoughts: list[str] = []
    while (opened := _OPENING.search(text, at)) is not None:
        end = text.find(_ENDING, opened.end())
        if end < 0:
            break
        kept.append(text[at : opened.start()])
        if opened[1] == "reasoning":
            inside = text[opened.end() : end]
            body = inside.partition("</summary>")[2] if inside.startswith("<summary>") else inside
            lines = (line.removeprefix("&gt;").removeprefix(">").strip() for line in body.strip().splitlines())
            thoughts.append(unescape("\n".join(lines)))
        else:
            left_out["tool_results"] += 1
        after = _WHITE.match(text, end + len(_ENDING))
        at = after.end() if after is not None else end + len(_ENDING)
    node.reasoning += "".join(thoughts)
    return "".join([*kept, text[at:]])


def _attach(node: Node, about: dict[str, Any], left_out: Counter[str]) -> None:
    name = said(about.get("name")) or "file"
    picture = _PICTURE.fullmatch(said(about.get("url")))
    file = _of(about.get("file"))
    text = said(_of(file.get("data")).get("content"))
    if picture is not None:
        try:
            node.attached.append(Attached(f"picture.{picture[1]}", base64.b64decode(picture[2], validate=True)))
        except (ValueError, binascii.Error):
            left_out["files"] += 1
    elif text:
        given = name if name.endswith((".txt", ".md", ".csv")) else f"{name}.txt"
        node.attached.append(Attached(given, text.encode(errors="replace")))
    else:
        left_out["files"] += 1


def _of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
