"""Tells the model by name what a person added to a message: files always, pictures and sounds where it helps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

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
    names = [name for item in told for name in _names(item, lang)]
    words = _UPLOADED[lang].format(names=" ".join(names))
    if not names or any(words.strip() in (item.text or "") for item in kept):
        items = kept
    else:
        items = [ContentItem(text=words), *kept]
    if all(item.type == "text" for item in items):
        return message.model_copy(update={"content": "".join(item.text or "" for item in items)})
    return message.model_copy(update={"content": items})


def _names(item: ContentItem, lang: Lang) -> list[str]:
    kind = _KINDS[lang][item.type]
    if isinstance(item.value, list):
        frames = [str(frame) for frame in cast("Sequence[object]", item.value)]
        return [_name(kind, ContentItem(video=frame)) for frame in frames if frame]
    return [_name(kind, item)]


def _name(kind: str, item: ContentItem) -> str:
    """The kind and the name; a file without an ending lies in a store, and its name is the store's own."""
    name = item_name(item)
    is_stored = "." not in name and "://" not in str(item.value)
    return kind.strip("!") if is_stored else f"{kind}({name})"
