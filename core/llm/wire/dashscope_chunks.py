"""DashScope's chunks to events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.usage import usage_from
from core.llm.wire.reading import REASONS, ReplyReader, misread
from core.messages.events import Event, MessageFinished

if TYPE_CHECKING:
    from collections.abc import Sequence

Json: TypeAlias = dict[str, Any]

_STATUS: Final = re.compile(rb"^(?::HTTP_STATUS/|status:\s*)(\d{3})", re.MULTILINE)
_NEAR: Final = 4096  # the status of an event stands on a line before its data


@dataclass(slots=True)
class DashScopeReader(ReplyReader):
    """Reads one streamed reply of DashScope's; `request_id` is the service's name for it."""

    request_id: str = ""
    _said_usage: Json | None = None
    _recent: bytes = b""

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes.

        Raises:
            ModelMisbehavedError: A chunk is not JSON, or not of the protocol's form.
        """
        self._recent = (self._recent + piece)[-_NEAR:]
        return ReplyReader.feed(self, piece)  # a class with slots is made anew, and `super` knows the old one

    def close(self) -> list[Event]:
        """What is left when the bytes end; the last event is `MessageFinished` if the reply was whole."""
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
        # The hot path: a word more of the text and nothing else.
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
        """A chunk without output: an error, or a late word about tokens."""
        self._said_usage = chunk.get("usage") or self._said_usage
        self.request_id = str(chunk.get("request_id") or self.request_id)
        said = chunk.get("error") or chunk
        said = cast("Json", said if isinstance(said, dict) else {"message": str(said)})
        if said.get("code") or chunk.get("error"):
            statuses = _STATUS.findall(self._recent)
            told = int(statuses[-1]) if statuses else int(chunk.get("status_code") or 0)
            self.error = {"status": told if told >= 400 else 0, **said}
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
