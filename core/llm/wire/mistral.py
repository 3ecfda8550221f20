"""Mistral's chat protocol: OpenAI's in most, with its own thoughts, documents, ids of calls and ways to go on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.request import is_off
from core.llm.wire.cited import of_mistral
from core.llm.wire.media_parts import nameless
from core.llm.wire.openai import ChunkReader, settings_json
from core.llm.wire.proofs import is_from, opened, sealed
from core.llm.wire.turns import Thought, Turn, is_partial, item_name, turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import ChatRequest
    from core.llm.wire.tools import ToolNames
    from core.llm.wire.turns import Takes
    from core.messages.content import ContentItem
    from core.messages.events import Event

Json: TypeAlias = dict[str, Any]

BY: Final = "mistral"
_ID: Final = re.compile(r"[A-Za-z0-9]{9}")
_OTHER_NAMES: Final = {"seed": "random_seed", "max_completion_tokens": "max_tokens", "max_new_tokens": "max_tokens"}
_NOT_HERE: Final = ("stream", "stream_options", "user", "extra_headers", "extra_query")


def body_json(model: str, request: ChatRequest, takes: Takes, names: ToolNames) -> Json:
    """The body of a request.

    Args:
        model: Its name.
        request: Its `generate` becomes the service's fields; unknown ones pass.
        takes: What the model takes beside text.
        names: Tools' names on the wire.
    """
    conversation = turns(
        request.messages,
        takes,
        request.lang,
        proven=lambda proof: is_from(proof, BY, model),
        within_results=lambda item: item.type in {"image", "file"},
    )
    given = settings_json(request, names)
    named = {_OTHER_NAMES.get(key, key): value for key, value in given.items() if key not in _NOT_HERE}
    messages = _messages(conversation, names)
    return {"model": model, "messages": messages, **named, "stream": not is_off(request.generate.get("stream"))}


def _messages(conversation: Sequence[Turn], names: ToolNames) -> list[Json]:
    written: list[Json] = []
    for turn in conversation:
        if turn.role == "user" and written and written[-1]["role"] == "tool":
            written.append({"role": "assistant", "content": "OK"})  # a question right after a result is refused
        written.append(_turn_json(turn, names))
    if is_partial([*conversation]):
        written[-1]["prefix"] = True  # it goes on with its own text
    return written


def _turn_json(turn: Turn, names: ToolNames) -> Json:
    only_text = all(item.type == "text" for item in turn.items)
    content: Any = turn.text if only_text else [item_json(item) for item in turn.items if item.value]
    if turn.role == "tool":
        return {
            "role": "tool",
            "tool_call_id": short_id(turn.call_id),
            "name": names.wire_name(turn.name),
            "content": content,
        }
    written: Json = {"role": turn.role, "content": content}
    thoughts = [chunk for piece in turn.said if isinstance(piece, Thought) for chunk in _thought(piece)]
    if thoughts:
        written["content"] = [*thoughts, *([{"type": "text", "text": turn.text}] if turn.text else [])]
    if turn.calls:
        written["tool_calls"] = [
            {
                "id": short_id(call.call_id),
                "type": "function",
                "function": {"name": names.wire_name(call.name), "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    return written


def _thought(thought: Thought) -> list[Json]:
    """The chunk as it came; nothing where its text was changed."""
    what = opened(thought.proof, thought.text)
    if not what or not thought.text:
        return []
    signature = {"signature": what["signature"]} if what.get("signature") else {}
    return [{"type": "thinking", "thinking": [{"type": "text", "text": thought.text}], "closed": True, **signature}]


def short_id(call_id: str) -> str:
    """The id of a call as the service takes it: nine letters and figures; another's is made into such a one."""
    return call_id if _ID.fullmatch(call_id) else sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]


def item_json(item: ContentItem) -> Json:
    """An item as the service's chunk."""
    match item.type:
        case "text":
            return {"type": "text", "text": item.text or ""}
        case "image":
            return {"type": "image_url", "image_url": str(item.image)}
        case "file":
            return {
                "type": "document_url",
                "document_url": nameless(str(item.file)),
                "document_name": item_name(item) or "document.pdf",
            }
        case _:
            given = item.audio.get("data") if isinstance(item.audio, dict) else str(item.value)
            head, comma, data = str(given).partition(",")
            return {"type": "input_audio", "input_audio": data if comma and head.startswith("data:") else given}


@dataclass
class MistralReader(ChunkReader):
    """Parses one reply of Mistral's: a thought ends where text or a call begins.

    Args:
        model: Which model answers.
        response_id: Not told by this service.
        sources: What tools gave, by the ids by which a reply cites it.
    """

    model: str = ""
    response_id: str = ""
    _thoughts: list[str] = field(default_factory=list[str])
    _signature: str = ""
    sources: dict[str, Json] = field(default_factory=dict[str, Json])

    def close(self) -> list[Event]:
        """The last events; `done` says whether the reply was complete."""
        events: list[Event] = []
        self._end(events)
        return [*events, *super().close()]

    def _delta(self, choice: Json, text: list[str], events: list[Event]) -> None:
        if choice.get("finish_reason") == "model_length":
            choice = {**choice, "finish_reason": "length"}
        elif choice.get("finish_reason") == "error":
            self.error = {"message": "The service could not finish the reply."}
        super()._delta(choice, text, events)

    def _content(self, content: object, text: list[str], events: list[Event]) -> None:
        if not isinstance(content, list):
            super()._content(content, text, events)
            return
        for part in cast("list[Json]", content):
            self._signature = str(part.get("signature") or self._signature)
            if part.get("type") in {"reference", "tool_reference"}:
                self._cite(of_mistral(part, self.sources), text, events)
            else:
                super()._content([part], text, events)

    def _think(self, reasoning: str, text: list[str], events: list[Event]) -> None:
        super()._think(reasoning, text, events)
        self._thoughts.append(reasoning)

    def _say(self, text: list[str], events: list[Event]) -> None:
        if any(text):
            self._end(events)
        super()._say(text, events)

    def _call(self, piece: Json, text: list[str], events: list[Event]) -> None:
        self._say(text, events)
        self._end(events)
        super()._call(piece, text, events)

    def _end(self, events: list[Event]) -> None:
        """The thought is over: what it was goes back with what it led to."""
        if self._thoughts:
            thought, self._thoughts = "".join(self._thoughts), []
            what = {"signature": self._signature or None, "thought": True}
            self._prove(sealed(BY, self.model, what, thought), [], events)
            self._signature = ""
