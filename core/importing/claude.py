"""Claude's export: `conversations.json`, each with `chat_messages`; of files it has names, of some the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from core.importing.tree import Attached, Foreign, Node, moment, said

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

_SENDERS = {"human": "user", "assistant": "assistant"}


def takes(one: dict[str, Any]) -> bool:
    """Whether a conversation is one of Claude's."""
    return isinstance(one.get("chat_messages"), list)


def read(one: dict[str, Any], left_out: Counter[str], _find: Callable[[str], str]) -> Foreign:
    """A conversation; `left_out` counts what is left out, by the reason."""
    nodes: list[Node] = []
    listed = one.get("chat_messages")
    before: str | None = None
    for place, value in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else []):
        if not isinstance(value, dict):
            continue
        message = cast("dict[str, Any]", value)
        node = _node(message, said(message.get("uuid")) or f"message-{place}", left_out)
        above = message.get("parent_message_uuid")
        node.parent = above if isinstance(above, str) else before
        nodes.append(node)
        before = node.id
    leaf = said(one.get("current_leaf_message_uuid")) or before
    return Foreign(said(one.get("name")), nodes, moment(one.get("created_at")), moment(one.get("updated_at")), leaf)


def _node(message: dict[str, Any], node_id: str, left_out: Counter[str]) -> Node:
    node = Node(node_id, None, "none", at=moment(message.get("created_at")))
    sender = said(message.get("sender"))
    if sender in _SENDERS:
        node.role = "user" if sender == "human" else "assistant"
    content = message.get("content")
    texts: list[str] = []
    thoughts: list[str] = []
    for value in cast("list[Any]", content) if isinstance(content, list) else []:
        part = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        kind = part.get("type")
        if kind == "text":
            texts.append(said(part.get("text")))
        elif kind == "thinking":
            thoughts.append(said(part.get("thinking")))
        else:
            left_out["tool_results"] += 1
    node.reasoning = "".join(thoughts)
    node.text = "\n\n".join(text for text in texts if text) or said(message.get("text"))
    _attach(node, message, left_out)
    return node


def _attach(node: Node, message: dict[str, Any], left_out: Counter[str]) -> None:
    told: set[str] = set()
    for kind in ("attachments", "files"):
        listed = message.get(kind)
        for value in cast("list[Any]", listed) if isinstance(listed, list) else []:
            about = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
            name, text = said(about.get("file_name")) or "file", said(about.get("extracted_content"))
            if text:
                told.add(name)
                given = name if name.endswith((".txt", ".md", ".csv")) else f"{name}.txt"
                node.attached.append(Attached(given, text.encode(errors="replace")))
            elif name not in told:
                left_out["files"] += 1
