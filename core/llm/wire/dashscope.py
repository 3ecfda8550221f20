"""DashScope's own protocol: requests to JSON, and chunks to events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.usage import usage_from
from core.llm.wire.openai import settings_json
from core.llm.wire.reading import REASONS, ReplyReader, misread
from core.llm.wire.tools import ToolNames
from core.llm.wire.turns import Turn, continued, is_partial, text_only, turns
from core.messages.events import Event, MessageFinished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import ChatRequest
    from core.llm.wire.turns import Takes
    from core.messages.content import ContentItem

Json: TypeAlias = dict[str, Any]

_OTHER_NAMES: Final = {"max_new_tokens": "max_tokens", "max_completion_tokens": "max_tokens"}
_NOT_HERE: Final = ("stream", "stream_options", "user")


def body_json(
    model: str,
    request: ChatRequest,
    takes: Takes | None = None,
    names: ToolNames | None = None,
    *,
    partial: bool = True,
) -> Json:
    """The body of a request.

    Args:
        request: Its `generate` becomes `parameters`.
        takes: What a model of the multimodal service takes beside text; `None` for the text service.
        names: Tools' names on the wire; unchanged by default.
        partial: Whether the model continues its own text natively; models that think are asked in words.

    Raises:
        ModelRefusedError: A tool cannot be sent as it is, or `function_choice` names none of them.
    """
    conversation = turns(request.messages, takes or text_only, request.lang)
    conversation = conversation if partial else continued(conversation, request.lang)
    return {
        "model": model,
        "input": {"messages": messages_json(conversation, names, listed=takes is not None)},
        "parameters": parameters_json(request, names),
    }


def parameters_json(request: ChatRequest, names: ToolNames | None = None) -> Json:
    """`generate_cfg` and tools; always with incremental output."""
    given = settings_json(request, names)
    named = {_OTHER_NAMES.get(key, key): value for key, value in given.items() if key not in _NOT_HERE}
    return {**named, "result_format": "message", "incremental_output": True}


def messages_json(conversation: list[Turn], names: ToolNames | None = None, *, listed: bool = False) -> list[Json]:
    """The messages; a last text of the assistant's is marked as partial.

    Args:
        names: As for `body_json`.
        listed: Whether contents are lists of parts, as in the multimodal service.
    """
    names = names or ToolNames()
    written = [_turn_json(turn, names, listed=listed) for turn in conversation]
    if is_partial(conversation):
        written[-1]["partial"] = True
    return written


def _turn_json(turn: Turn, names: ToolNames, *, listed: bool) -> Json:
    content = [item_json(item) for item in turn.items if item.value] if listed else turn.text
    written: Json = {"role": turn.role, "content": content}
    if turn.calls:
        written["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "index": index,
                "function": {"name": names.wire_name(call.name), "arguments": call.arguments},
            }
            for index, call in enumerate(turn.calls)
        ]
    if turn.role == "tool":
        written |= {"tool_call_id": turn.call_id, "name": names.wire_name(turn.name)}
    return written


def item_json(item: ContentItem) -> Json:
    """Text, or an address under the name of its kind."""
    return {item.type: item.value}


_STATUS: Final = re.compile(rb"^(?::HTTP_STATUS/|status:\s*)(\d{3})", re.MULTILINE)
_NEAR: Final = 4096  # bytes: an event's status is on a line before its data


@dataclass(slots=True)
class DashScopeReader(ReplyReader):
    """Parses one streamed reply of DashScope's; `request_id` is the service's id for it."""

    request_id: str = ""
    _said_usage: Json | None = None
    _recent: bytes = b""

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes.

        Raises:
            ModelMisbehavedError: A chunk is not JSON, or not of the protocol's form.
        """
        self._recent = (self._recent + piece)[-_NEAR:]
        return ReplyReader.feed(self, piece)  # `slots=True` recreates the class, which breaks `super()`

    def close(self) -> list[Event]:
        """The last events; the very last is `MessageFinished` if the reply was complete."""
        events = self._rest()
        if self.reason is None or self.error is not None:
            return events
        self.usage = usage_from(self._said_usage)
        return [*events, *self._calls.close(), MessageFinished(self._why(), self.usage)]

    def _read(self, found: list[bytes]) -> list[Event]:
        events: list[Event] = []
        text: list[str] = []
        for data in found:
            self._chunk(data, text, events)
        self._say(text, events)
        return events

    def _chunk(self, data: bytes, text: list[str], events: list[Event]) -> None:
        chunk = self._json(data)
        if chunk is None:
            return
        output = chunk.get("output")
        if not output:
            self._aside(chunk)
            return
        self.begun = True
        choices = output.get("choices")
        # A service that ignores `result_format` has text and reason in the output itself.
        choice = choices[0] if choices else {"message": {"content": output.get("text")}, **output}
        message = choice.get("message") or {}
        content = message.get("content")
        reason = choice.get("finish_reason")
        # The hot path: more text and nothing else.
        if type(content) is str and not message.get("reasoning_content") and not message.get("tool_calls"):
            text.append(content)
        else:
            self._message(message, text, events)
        if reason and reason != "null":
            self.reason = REASONS.get(str(reason), "stop")
        if usage := chunk.get("usage"):
            self._said_usage = usage
        if not self.request_id:
            self.request_id = str(chunk.get("request_id") or "")

    def _aside(self, chunk: Json) -> None:
        """A chunk without output: an error, or late usage."""
        self._said_usage = chunk.get("usage") or self._said_usage
        self.request_id = str(chunk.get("request_id") or self.request_id)
        said = chunk.get("error") or chunk
        said = cast("Json", said if isinstance(said, dict) else {"message": str(said)})
        if said.get("code") or chunk.get("error"):
            statuses = _STATUS.findall(self._recent)
            status = int(statuses[-1]) if statuses else int(chunk.get("status_code") or 0)
            self.error = {"status": status if status >= 400 else 0, **said}
        elif not chunk.get("usage") and "output" not in chunk:
            raise misread("of an unknown form")

    def _message(self, message: Json, text: list[str], events: list[Event]) -> None:
        if reasoning := message.get("reasoning_content"):
            self._think(str(reasoning), text, events)
        content = message.get("content") or ()
        for part in [content] if isinstance(content, str) else cast("Sequence[Any]", content):
            if isinstance(part, str):
                text.append(part)
            elif more := part.get("text"):  # the multimodal service sends lists of parts
                text.append(str(more))
            elif picture := part.get("image"):
                self._picture(str(picture), text, events)
        for call in cast("Sequence[Json]", message.get("tool_calls") or ()):
            self._call(call, text, events)
