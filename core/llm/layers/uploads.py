"""Tells the model by name what a person added to a message: files always, pictures and sounds where it helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from core.llm.wire.notes import item_name
from core.messages.content import ContentItem
from core.messages.message import SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.llm.request import ChatRequest, Lang, Layer, ModelFacts, Source, Stream

_KINDS: Final = {
    "en": {"file": "[file]", "image": "![image]", "video": "![video]", "audio": "![audio]"},
    "zh": {"file": "[文件]", "image": "![图片]", "video": "![视频]", "audio": "![音频]"},
}
_STORE: Final = "/files/"
_UPLOADED: Final = {"en": "(Uploaded {names}) ", "zh": "（上传了 {names}）"}


def uploads(model: ModelFacts) -> Layer:
    """The layer for one model.

    A file is named and taken out, for no service reads files. What the model can see or hear stays, and is named too
    where tools are on offer, so that a call can point to it; what it cannot is named and taken out.
    """

    def takes(item: ContentItem) -> bool:
        if item.type == "audio":
            return model.support_audio_input
        return item.type in {"text", "image", "video"} and model.support_multimodal_input

    def layer(request: ChatRequest, below: Source) -> Stream:
        names_all = bool(request.functions)
        told = [named(each, takes, request.lang, names_all=names_all) for each in request.messages]
        if all(new is old for new, old in zip(told, request.messages, strict=True)):
            return below(request)
        return below(replace(request, messages=tuple(told)))

    return layer


def named(
    message: Message, takes: Callable[[ContentItem], bool], lang: Lang = "en", *, names_all: bool = False
) -> Message:
    """The message with the names of its uploads before its text; one without any is the same object.

    Args:
        message: Never changed. Only a user's or the system's is looked at.
        takes: Whether the model takes an item as it is.
        lang: Of the words around the names.
        names_all: Whether what the model takes is named as well.
    """
    if isinstance(message.content, str) or message.role not in {SYSTEM, USER} or not message.is_multimodal():
        return message
    kept = [item for item in message.content if item.type == "text" or takes(item)]
    told = [item for item in message.content if item.type != "text" and (names_all or not takes(item))]
    given = _given_names(message)
    names = [name for item in told for name in _names(item, lang, given)]
    words = _UPLOADED[lang].format(names=" ".join(names))
    if not names or any(words.strip() in (item.text or "") for item in kept):
        items = kept
    else:
        items = [ContentItem(text=words), *kept]
    if all(item.type == "text" for item in items):
        return message.model_copy(update={"content": "".join(item.text or "" for item in items)})
    return message.model_copy(update={"content": items})


def _given_names(message: Message) -> dict[str, str]:
    """What the files of a store are called, by id."""
    about: Any = (message.extra or {}).get("files") or ()
    if not isinstance(about, list | tuple):
        return {}
    rows = [cast("Mapping[str, Any]", one) for one in cast("Sequence[object]", about) if isinstance(one, Mapping)]
    return {str(one["id"]): str(one["name"]) for one in rows if one.get("id") and one.get("name")}


def _names(item: ContentItem, lang: Lang, given: Mapping[str, str]) -> list[str]:
    kind = _KINDS[lang][item.type]
    if isinstance(item.value, list):
        frames = [str(frame) for frame in cast("Sequence[object]", item.value)]
        return [_name(kind, ContentItem(video=frame), given) for frame in frames if frame]
    return [_name(kind, item, given)]


def _name(kind: str, item: ContentItem, given: Mapping[str, str]) -> str:
    """The kind and the name; that of a file in a store is the store's own unless the message says what it was."""
    name = item_name(item)
    if str(item.value).startswith(_STORE) and "." not in name:
        name = given.get(name, "")
    return f"{kind}({name})" if name else kind.strip("!")
