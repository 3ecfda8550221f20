"""LibreChat's export: one conversation with `messages`, as a list or as a tree of `children`; of files it has names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from core.importing.tree import Foreign, Node, moment, said

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable


def takes(one: dict[str, Any]) -> bool:
    """Whether a conversation is one of LibreChat's."""
    return isinstance(one.get("messages"), list) and ("conversationId" in one or "endpoint" in one)


def read(one: dict[str, Any], left_out: Counter[str], _find: Callable[[str], str]) -> Foreign:
    """A conversation; `left_out` counts what is left out, by the reason."""
    nodes: list[Node] = []
    listed = one.get("messages")
    roots = cast("list[Any]", listed) if isinstance(listed, list) else []
    waiting: list[tuple[Any, str | None]] = [(value, None) for value in reversed(roots)]
    while waiting:
        value, above = waiting.pop()
        if not isinstance(value, dict):
            continue
        message = cast("dict[str, Any]", value)
        node = _node(message, len(nodes), above, left_out)
        nodes.append(node)
        children = message.get("children")
        if isinstance(children, list):
            waiting += [(child, node.id) for child in reversed(cast("list[Any]", children))]
    last = max(nodes, key=lambda node: node.at or 0.0).id if nodes else None
    options = one.get("options")
    model = said(cast("dict[str, Any]", options).get("model")) if isinstance(options, dict) else ""
    for node in nodes:
        node.model = node.model or (model if node.role == "assistant" else "")
    return Foreign(said(one.get("title")), nodes, None, moment(one.get("exportAt")), last)


def _node(message: dict[str, Any], place: int, above: str | None, left_out: Counter[str]) -> Node:
    parent = message.get("parentMessageId")
    node = Node(
        said(message.get("messageId")) or f"message-{place}",
        above or (parent if isinstance(parent, str) else None),
        "user" if message.get("isCreatedByUser") is True else "assistant",
        at=moment(message.get("createdAt")),
        model=said(message.get("model")),
    )
    content = message.get("content")
    texts: list[str] = []
    thoughts: list[str] = []
    for value in cast("list[Any]", content) if isinstance(content, list) else []:
        part = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        kind = said(part.get("type"))
        if kind in {"text", "think"}:
            held = part.get(kind)
            text = said(cast("dict[str, Any]", held).get("value")) if isinstance(held, dict) else said(held)
            (texts if kind == "text" else thoughts).append(text)
        else:
            left_out["tool_results"] += 1
    node.reasoning = "".join(thoughts)
    node.text = "\n\n".join(text for text in texts if text) or said(message.get("text"))
    files = message.get("files")
    left_out["files"] += len(cast("list[Any]", files)) if isinstance(files, list) else 0
    return node
