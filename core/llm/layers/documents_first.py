"""Whole documents before the conversation, where a model of this process still knows what it has read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from core.llm.calling.neutral import neutral_items
from core.llm.request import ModelFacts
from core.messages.content import ContentItem
from core.messages.message import FUNCTION, USER, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import ChatRequest, Layer, Source, Stream

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
