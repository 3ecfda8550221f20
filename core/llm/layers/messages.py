"""Layers that act on the messages: what is invisible goes, uploads are named, whole documents stand first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from core.llm.calling.neutral import neutral_items
from core.llm.media import is_document
from core.llm.request import ModelFacts
from core.llm.wire.turns import item_name
from core.messages.content import STORED, ContentItem
from core.messages.invisible import without_invisible
from core.messages.message import FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.languages import Lang
    from core.llm.request import ChatRequest, Layer, Source, Stream


def visible(request: ChatRequest, below: Source) -> Stream:
    """The layer that removes invisible characters from messages and tools; unaffected ones stay the same objects."""
    messages = tuple(_visible_message(message) for message in request.messages)
    if any(new is not old for new, old in zip(messages, request.messages, strict=True)):
        request = replace(request, messages=messages)
    functions = tuple(cast("Mapping[str, Any]", _value(function)) for function in request.functions)
    if any(new is not old for new, old in zip(functions, request.functions, strict=True)):
        request = replace(request, functions=functions)
    return below(request)


def _visible_message(message: Message) -> Message:
    if isinstance(message.content, str):
        text, removed = without_invisible(message.content)
        return message.model_copy(update={"content": text}) if removed else message
    if not any(without_invisible(item.text).removed for item in message.content if item.text):
        return message
    items = [ContentItem(text=without_invisible(item.text).text) if item.text else item for item in message.content]
    return message.model_copy(update={"content": items})


def _value(value: object) -> object:
    """A JSON value without invisible characters, in keys too."""
    if isinstance(value, str):
        text, removed = without_invisible(value)
        return text if removed else value
    if isinstance(value, list | tuple):
        old = cast("list[object]", value)
        new = [_value(one) for one in old]
        return new if any(a is not b for a, b in zip(new, old, strict=True)) else cast("object", value)
    if isinstance(value, dict):
        known = cast("dict[str, object]", value)
        cleaned = {cast("str", _value(name)): _value(one) for name, one in known.items()}
        same = len(cleaned) == len(known) and all(
            name is old and cleaned[name] is known[old] for name, old in zip(cleaned, known, strict=True)
        )
        return known if same else cleaned
    return value


_KINDS: Final = {
    "en": {"file": "[file]", "image": "![image]", "video": "![video]", "audio": "![audio]"},
    "zh": {"file": "[文件]", "image": "![图片]", "video": "![视频]", "audio": "![音频]"},
}
_UPLOADED: Final = {"en": "(Uploaded {names}) ", "zh": "（上传了 {names}）"}


def uploads(model: ModelFacts) -> Layer:
    """The layer that names uploads in the text of a message, and removes what the model cannot take.

    Files are removed, but for PDF documents where the model reads them. What the model can see or hear stays, and is
    named too if tools are on offer, so that a call can refer to it.
    """

    def takes(item: ContentItem) -> bool:
        if item.type == "file":
            return model.support_document_input and is_document(item)
        if item.type == "audio":
            return model.support_audio_input
        return item.type in {"text", "image", "video"} and model.support_multimodal_input

    def layer(request: ChatRequest, below: Source) -> Stream:
        names_all = bool(request.functions)
        told = [with_upload_names(each, takes, request.lang, names_all=names_all) for each in request.messages]
        if all(new is old for new, old in zip(told, request.messages, strict=True)):
            return below(request)
        return below(replace(request, messages=tuple(told)))

    return layer


def with_upload_names(
    message: Message, takes: Callable[[ContentItem], bool], lang: Lang = "en", *, names_all: bool = False
) -> Message:
    """The message with the names of its uploads before its text; the same object if it has none.

    Args:
        message: Only user and system messages are changed.
        takes: Whether the model takes an item as it is.
        lang: Of the words around the names.
        names_all: Whether to name also what the model takes.
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
    """The names of stored files, by id."""
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
    """The kind and the name; a stored file's name comes from the message's `files`."""
    name = item_name(item)
    if str(item.value).startswith(STORED) and "." not in name:
        name = given.get(name, "")
    return f"{kind}({name})" if name else kind.strip("!")


WHOLE = "all_documents"
"""In the `extra` of a result: it is all of the documents, the same for each question about them."""


class KeepingModel(ModelFacts, Protocol):
    """A model as this layer sees it."""

    keeps_prompt: bool


def documents_first(model: KeepingModel) -> Layer:
    """The layer for one model; inactive where nothing of a prompt is kept, and for small models.

    The others read a prompt only from where it differs from the last one, and each turn gives it the documents
    anew. Behind the conversation they would be read again with each question; before it, once.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        if not model.keeps_prompt or model.small:
            return below(request)
        return below(replace(request, messages=with_documents_first(request.messages)))

    return layer


def with_documents_first(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, with the whole documents of the last turn in front of the first question, without their call."""
    questions = [at for at, message in enumerate(messages) if message.role == USER]
    if not questions:
        return tuple(messages)
    found = next((at for at in range(questions[-1], len(messages)) if _is_whole(messages[at])), None)
    if found is None:
        return tuple(messages)
    known = (messages[found].extra or {}).get("function_id")
    first, *_ = questions
    told: list[Message] = []
    for at, message in enumerate(messages):
        if at == first:
            told.append(_with_documents(messages[found], message))
        elif at != found and not (message.function_call and (message.extra or {}).get("function_id") == known):
            told.append(message)
    return tuple(told)


def _is_whole(message: Message) -> bool:
    return message.role == FUNCTION and bool((message.extra or {}).get(WHOLE))


def _with_documents(documents: Message, question: Message) -> Message:
    items = [*neutral_items(documents.items), ContentItem(text="\n\n"), *question.items]
    return question.model_copy(update={"content": items})
