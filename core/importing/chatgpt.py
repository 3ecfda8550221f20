"""ChatGPT's export: `conversations.json`, each with a `mapping` of nodes, and files named after their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from core.importing.tree import Attached, Foreign, Node, moment, said, strings

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable


def takes(one: dict[str, Any]) -> bool:
    """Whether a conversation is one of ChatGPT's."""
    return isinstance(one.get("mapping"), dict)


def read(one: dict[str, Any], left_out: Counter[str], find: Callable[[str], str]) -> Foreign:
    """A conversation.

    Args:
        left_out: Counts what is left out, by the reason.
        find: The entry of the archive whose name begins so; "" where there is none.
    """
    mapping = _of(one.get("mapping"))
    nodes = [_node(key, value, left_out, find) for key, value in mapping.items() if isinstance(value, dict)]
    return Foreign(
        said(one.get("title")),
        nodes,
        moment(one.get("create_time")),
        moment(one.get("update_time")),
        said(one.get("current_node")),
    )


def _node(key: str, given: Any, left_out: Counter[str], find: Callable[[str], str]) -> Node:
    parent, message = given.get("parent"), given.get("message")
    node = Node(key, parent if isinstance(parent, str) else None, "none")
    if not isinstance(message, dict):
        return node
    about = cast("dict[str, Any]", message)
    role = said(_of(about.get("author")).get("role"))
    content, metadata = _of(about.get("content")), _of(about.get("metadata"))
    node.at = moment(about.get("create_time"))
    node.model = said(metadata.get("model_slug"))
    if role == "tool":
        left_out["tool_results"] += 1
        return node
    if role not in {"user", "assistant"} or metadata.get("is_visually_hidden_from_conversation") is True:
        if content.get("parts") not in (None, [], [""]):
            left_out["hidden"] += 1
        return node
    _fill(node, content, left_out, find)
    node.role = "user" if role == "user" else "assistant"
    _attach(node, metadata, left_out, find)
    return node


def _fill(node: Node, content: dict[str, Any], left_out: Counter[str], find: Callable[[str], str]) -> None:
    kind, parts = said(content.get("content_type")), content.get("parts")
    listed: list[Any] = cast("list[Any]", parts) if isinstance(parts, list) else []
    if kind == "code":
        language = said(content.get("language"))
        node.text = f"```{language if language.isalnum() else ''}\n{said(content.get('text'))}\n```"
    elif kind == "thoughts":
        thoughts = content.get("thoughts")
        texts = [_of(one).get("content") for one in cast("list[Any]", thoughts)] if isinstance(thoughts, list) else []
        node.reasoning = "\n\n".join(strings(texts))
    elif kind in {"reasoning_recap", "user_editable_context", "model_editable_context"}:
        left_out["hidden"] += kind != "reasoning_recap"
    else:
        texts = [one if isinstance(one, str) else said(_of(one).get("text")) for one in listed]
        node.text = "\n\n".join(text for text in texts if text) or said(content.get("text"))
        for one in listed:
            pointer = said(_of(one).get("asset_pointer")).rpartition("//")[2]
            if pointer:
                _take(node, pointer, pointer, left_out, find)


def _attach(node: Node, metadata: dict[str, Any], left_out: Counter[str], find: Callable[[str], str]) -> None:
    attachments = metadata.get("attachments")
    there = {file.entry for file in node.attached}
    for one in cast("list[Any]", attachments) if isinstance(attachments, list) else []:
        about = _of(one)
        file_id, name = said(about.get("id")), said(about.get("name"))
        if not file_id or (find(file_id) or None) not in there:
            _take(node, file_id, name, left_out, find)


def _take(node: Node, file_id: str, name: str, left_out: Counter[str], find: Callable[[str], str]) -> None:
    entry = find(file_id) if file_id else ""
    if not entry:
        left_out["files"] += 1
        return
    given = name if "." in name else entry.rpartition("/")[2]
    node.attached.append(Attached(given, entry=entry))


def _of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
