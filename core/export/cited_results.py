"""A turn for readers who have none of its documents: of what tools found in them, it keeps what the reply cites.

A search gives a model many passages, often all that a document has; what is shared is the reply, and what it rests on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.export.where_cited import where_cited
from core.messages.content import ContentItem
from core.messages.message import FUNCTION, USER
from core.rag.citations import harmless
from core.tools.of_documents import is_of_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.export.schema import ExportedCitation, ExportedClaim, ExportedTurn
    from core.languages import Lang
    from core.messages.message import Message

_SAID: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "one": "1 passage that the reply does not cite was left out.",
        "more": "{n} passages that the reply does not cite were left out.",
        "all": "What was read in documents was left out.",
    },
    "zh": {
        "one": "回答未引用的 1 个段落已略去。",
        "more": "回答未引用的 {n} 个段落已略去。",
        "all": "从文档中读取的内容已略去。",
    },
}


def shows_documents(turn: ExportedTurn) -> bool:
    """Whether a model was given words of documents in it: the user's files, or what tools found."""
    every = [*turn.messages, *(said for one in turn.inner for said in one.messages)]
    return any(not one.url for one in turn.citations) or any(
        (one.role == FUNCTION and is_of_documents(one))
        or (one.role == USER and any(item.type == "file" for item in one.items))
        for one in every
    )


def only_cited(turn: ExportedTurn, lang: Lang, *, thoughts: bool) -> ExportedTurn:
    """The turn without the passages of documents that it does not cite; what was found on the web stays.

    Args:
        lang: The language of what stands for them.
        thoughts: Whether what the model thought stays: after documents it quotes them, in later turns, too.
    """
    known = {one.number: one for one in turn.citations}
    told = {(one.text, one.words, one.instead) for one in turn.doubted}

    def checked(claim: ExportedClaim) -> ExportedClaim:
        """The sentence with what the page says against it: other reasons may name what passages say."""
        reasons = tuple(one for one in claim.reasons if (claim.text, one.words, one.instead) in told)
        return claim.model_copy(update={"reasons": reasons})

    def shown(message: Message) -> Message:
        kept = _result(message, known, lang)
        return kept if thoughts else kept.model_copy(update={"reasoning_content": None})

    return turn.model_copy(
        update={
            "messages": tuple(map(shown, turn.messages)),
            "inner": tuple(one.model_copy(update={"messages": tuple(map(shown, one.messages))}) for one in turn.inner),
            "citations": tuple(one if _stays(one) else _emptied(one) for one in turn.citations),
            "claims": tuple(map(checked, turn.claims)),
            "thoughts": (),
        }
    )


def _stays(one: ExportedCitation) -> bool:
    return one.cited or bool(one.url)


def _emptied(one: ExportedCitation) -> ExportedCitation:
    """Its number alone, so that the others keep theirs."""
    nothing: dict[str, Any] = {"document": "", "document_id": "", "page": None, "heading": "", "text": ""}
    return one.model_copy(update={**nothing, "rectangles": ()})


def _result(message: Message, known: Mapping[int, ExportedCitation], lang: Lang) -> Message:
    if message.role != FUNCTION:
        return message
    numbers: list[int] | None = (message.extra or {}).get("passages")
    if numbers is None:
        return _told(message, _SAID[lang]["all"]) if is_of_documents(message) else message
    found = [known[number] for number in numbers if number in known]
    if found and all(one.url for one in found):
        return message
    shown = [_block(one, lang) for one in found if _stays(one)]
    left_out = len(numbers) - len(shown)
    said = [_SAID[lang]["one" if left_out == 1 else "more"].format(n=left_out)] if left_out else []
    return _told(message, "\n\n".join([*shown, *said]) or _SAID[lang]["all"])


def _told(message: Message, text: str) -> Message:
    """The message with this text in place of its own; its files are named on the page, and not in it."""
    files = [one for one in message.items if one.type != "text"]
    return message.model_copy(update={"content": [ContentItem(text=text), *files] if files else text})


def _block(one: ExportedCitation, lang: Lang) -> str:
    """A passage as a search gives it to a model."""
    heading = f"{harmless(one.heading)}\n" if one.heading else ""
    return f"[{one.number}] ({harmless(where_cited(one, lang))})\n{heading}{harmless(one.text)}"
