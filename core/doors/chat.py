"""A reply in the form of a chat completion: in pieces as it is made, or whole."""

from __future__ import annotations

import json
import time
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from core.doors.citations import cited_places, for_chat
from core.messages.events import CallDelta, CallStarted, ItemAdded, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.doors.door import Answer
    from core.messages.events import Event
    from core.messages.message import Message, Usage

FINISH: Final = {"stop": "stop", "length": "length", "calls": "tool_calls", "content_filter": "content_filter"}
DONE: Final = b"data: [DONE]\n\n"
_BETWEEN: Final = "\n\n"


class ReplyText:
    """The text of a reply as a program gets it: what is said in several turns stands apart."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._apart = False

    def piece(self, event: Event) -> str:
        """What an event adds; "" for most."""
        if type(event) is TextDelta:
            text = event.text
            if self._apart:
                if not text.strip():
                    return ""
                text, self._apart = _BETWEEN + text.lstrip(), False
            self._pieces.append(text)
            return text
        if isinstance(event, MessageStarted):
            self._apart = bool(self._pieces)
        return ""

    def add(self, text: str) -> str:
        """A paragraph of ours at the end; returns what is added."""
        more = _BETWEEN + text if self._pieces else text
        self._pieces.append(more)
        return more

    @property
    def whole(self) -> str:
        """All of it."""
        return "".join(self._pieces)


class ChatReply:
    """One chat completion.

    Args:
        answer: The reply.
        files: The ids of files that the program brought, by the ids of their documents.
    """

    def __init__(self, answer: Answer, files: Mapping[str, str]) -> None:
        self.id = f"chatcmpl-{token_hex(12)}"
        self.text = ReplyText()
        self._answer = answer
        self._files = files
        self._thoughts: list[str] = []
        self._pictures: list[dict[str, Any]] = []
        self._calls: dict[str, int] = {}  # of a model alone, as they come
        self._created = int(time.time())
        begins = json.dumps(self._about("chat.completion.chunk"))[:-1] + ',"choices":[{"index":0,"delta":'
        self._begins = f"data: {begins}".encode()
        no_usage = ',"usage":null' if answer.asked.with_usage else ""
        self._ends = f',"logprobs":null,"finish_reason":null}}]{no_usage}}}\n\n'.encode()
        self._says = self._begins + b'{"content":'
        self._said = b"}" + self._ends

    # ---- in pieces

    def first(self) -> bytes:
        """The piece that comes before all others."""
        return self._piece({"role": "assistant", "content": ""})

    def piece(self, event: Event) -> bytes:
        """What an event adds to a stream; empty for what a program is not told."""
        if type(event) is TextDelta:
            text = self.text.piece(event)
            return self._says + json.dumps(text).encode() + self._said if text else b""
        return self._other(event)

    async def last(self) -> bytes:
        """What ends a stream: calls of the program's own tools, where marks lead, the reason, and what it took."""
        pieces: list[bytes] = []
        if note := self._note():
            pieces.append(self._piece({"content": note}))
        calls = self._handed()
        if calls:
            pieces.append(self._piece({"tool_calls": [{"index": at, **one} for at, one in enumerate(calls)]}))
        found = self._annotations()
        about = self._about("chat.completion.chunk")
        end = {"index": 0, "delta": {"annotations": found} if found else {}, "logprobs": None}
        nothing = {"usage": None} if self._answer.asked.with_usage else {}
        pieces.append(_event({**about, "choices": [{**end, "finish_reason": self.reason}], **nothing}))
        if self._answer.asked.with_usage:
            pieces.append(_event({**about, "choices": [], "usage": usage_json(await self._answer.account.usage())}))
        return b"".join(pieces) + DONE

    # ---- whole

    async def completion(self) -> dict[str, Any]:
        """The reply as one object."""
        note, calls = self._note(), self._handed() or self._calls_made()
        del note  # it stands in the text now
        content = self.text.whole
        message: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else ""), "refusal": None}
        message["annotations"] = self._annotations()
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self._pictures:
            message["images"] = self._pictures
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.reason}
        usage = usage_json(await self._answer.account.usage())
        return {**self._about("chat.completion"), "choices": [choice], "usage": usage}

    def heard(self, event: Event) -> None:
        """Take in an event of a reply that is given whole."""
        self.piece(event)

    @property
    def reason(self) -> str:
        """Why it ended, in the words of the protocol."""
        return FINISH.get(self._answer.reason, "stop")

    # ---- inside

    def _other(self, event: Event) -> bytes:
        match event:
            case ReasoningDelta(text):
                self._thoughts.append(text)
                return self._piece({"reasoning_content": text})
            case ItemAdded(item) if item.type == "image" and _may_be_seen(item.value):
                picture = {"type": "image_url", "image_url": {"url": item.value}}
                self._pictures.append(picture)
                return self._piece({"images": [picture]})
            case CallStarted(call_id, name) if self._is_model:
                at = self._calls.setdefault(call_id, len(self._calls))
                call = {"index": at, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
                return self._piece({"tool_calls": [call]})
            case CallDelta(call_id, arguments) if call_id in self._calls:
                call = {"index": self._calls[call_id], "function": {"arguments": arguments}}
                return self._piece({"tool_calls": [call]})
            case _:
                self.text.piece(event)
                return b""

    @property
    def _is_model(self) -> bool:
        return self._answer.guard is None

    def _note(self) -> str:
        """What was not run, in sentences; where the answer is to be JSON, nothing is added to it."""
        guard = self._answer.guard
        told = guard.told(self._answer.lang) if guard is not None and not self._answer.asked.as_json else ""
        return self.text.add(told) if told else ""

    def _handed(self) -> list[dict[str, Any]]:
        """The calls of the program's own tools that an agent makes."""
        guard = self._answer.guard
        return calls_json(self._answer.messages(), guard.handed) if guard is not None and guard.handed else []

    def _calls_made(self) -> list[dict[str, Any]]:
        return calls_json(self._answer.messages(), {one: one for one in self._calls}) if self._calls else []

    def _annotations(self) -> list[dict[str, Any]]:
        if self._is_model:
            return []
        reply = (*self._answer.earlier, *self._answer.messages())
        return [for_chat(one) for one in cited_places(reply, self.text.whole, self._files)]

    def _about(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self._created, "model": self._answer.asked.model}

    def _piece(self, delta: dict[str, Any]) -> bytes:
        return self._begins + json.dumps(delta).encode() + self._ends


def calls_json(reply: Sequence[Message], wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """Those of a reply's calls that a program makes, in OpenAI's form.

    Args:
        wanted: What the program knows each by, by its own id.
    """
    found: list[dict[str, Any]] = []
    for message in reply:
        call_id = str((message.extra or {}).get("function_id") or "")
        if message.role == ASSISTANT and message.function_call is not None and call_id in wanted:
            call = message.function_call
            function = {"name": call.name, "arguments": call.arguments}
            found.append({"id": wanted[call_id], "type": "function", "function": function})
    return found


def usage_json(usage: Usage) -> dict[str, Any]:
    """Tokens, in OpenAI's form."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens, "audio_tokens": 0},
    }


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _may_be_seen(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("data:image/", "https://"))
