"""A reply in the form of a response: typed items, as events while it is made, or whole."""

from __future__ import annotations

import json
import time
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from core.doors.chat import ReplyText, calls_json
from core.doors.citations import cited_places
from core.doors.namespaces import parted
from core.doors.response_input import APPROVAL, RESPONSE, told_again
from core.messages.events import CallDelta, CallStarted, MessageStarted, ReasoningDelta, TextDelta, ToolFinished

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.doors.door import Answer
    from core.messages.events import Event
    from core.messages.message import Usage

_HOUSE: Final = "parlour"


class ResponseReply:
    """One response.

    Args:
        answer: The reply.
        given: The request, some of which is told again.
        files: The ids of files that the program brought, by the ids of their documents.
    """

    def __init__(self, answer: Answer, given: Mapping[str, Any], files: Mapping[str, str]) -> None:
        self._name = token_hex(16)
        self.id = RESPONSE + self._name
        self.text = ReplyText()
        self.output: list[dict[str, Any]] = []
        self.asked: dict[str, dict[str, Any]] = {}
        self.answer = answer
        self._given = given
        self._files = files
        self._created = int(time.time())
        self._count = 0
        self._ends = b""
        self._open: dict[str, Any] | None = None  # the text or thought that is being written
        self._calls: dict[str, tuple[str, str]] = {}  # of all tools: name and arguments so far
        self._parted = parted(given.get("tools"))
        self._streamed: dict[str, int] = {}  # calls of a model alone, by their place in the output

    # ---- while it is made

    def first(self) -> bytes:
        """What comes before all else."""
        body: dict[str, Any] = {**self._body("in_progress"), "output": list[Any]()}
        return self._event("response.created", response=body) + self._event("response.in_progress", response=body)

    def piece(self, event: Event) -> bytes:
        """What an event adds; empty for what is not told."""
        match event:
            case TextDelta():
                text = self.text.piece(event)
                return self._more("output_text", text) if text else b""
            case ReasoningDelta(text):
                return self._more("reasoning_text", text)
            case MessageStarted():
                self.text.piece(event)
                return self._closed()
            case CallStarted(call_id, name):
                self._calls[call_id] = (name, "")
                return self._closed() + (self._call_begun(call_id, name) if self.answer.guard is None else b"")
            case CallDelta(call_id, arguments):
                name, before = self._calls.get(call_id, ("", ""))
                self._calls[call_id] = (name, before + arguments)
                return self._call_goes_on(call_id, arguments) if call_id in self._streamed else b""
            case ToolFinished(call_id, message):
                name, arguments = self._calls.get(call_id) or self._called_before(call_id, message.name or "")
                failed = bool((message.extra or {}).get("failed"))
                said = message.get_text_content()
                error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": said}]}
                more = {"output": None if failed else said, "error": error if failed else None}
                more |= {"status": "failed" if failed else "completed", "approval_request_id": None}
                call = {"type": "mcp_call", "id": f"mcp_{call_id}", "server_label": _HOUSE, "name": name}
                return self._whole_item({**call, "arguments": arguments, **more})
            case _:
                return b""

    async def last(self) -> bytes:
        """What ends it: calls of the program's tools, questions about calls, and the whole of it."""
        await self.end()
        return self._ends + self._event(f"response.{self._status}", response=await self.body())

    async def body(self) -> dict[str, Any]:
        """The whole response, when it is over."""
        return self._body(self._status, usage_json(await self.answer.account.usage()))

    def heard(self, event: Event) -> None:
        """Take in an event of a reply that is given whole."""
        self.piece(event)

    async def end(self) -> None:
        """Close what is open, and keep what is to be kept before the program hears of the end."""
        self._ends = self._ended()

    # ---- items

    def _more(self, kind: str, text: str) -> bytes:
        """A piece of text or thought."""
        begun = b""
        if self._open is None or self._open["kind"] != kind:
            begun = self._closed() + self._opened(kind)
        now = self._open
        if now is None:
            return begun
        now["text"].append(text)
        return begun + self._event(f"response.{kind}.delta", **self._place(now), delta=text, **self._logprobs(kind))

    def _opened(self, kind: str) -> bytes:
        is_text = kind == "output_text"
        item: dict[str, Any] = {"id": f"rs_{token_hex(12)}", "type": "reasoning", "summary": list[Any]()}
        if is_text:
            item = {"id": f"msg_{token_hex(12)}", "type": "message", "role": "assistant", "status": "in_progress"}
        item["content"] = list[Any]()
        now = {"kind": kind, "item": item, "at": len(self.output), "text": list[str]()}
        self._open = now
        self.output.append(item)
        part = _part(kind, "", [])
        added = self._event("response.output_item.added", output_index=now["at"], item=dict(item))
        return added + self._event("response.content_part.added", **self._place(now), part=part)

    def _closed(self) -> bytes:
        now, self._open = self._open, None
        if now is None:
            return b""
        kind, text, item = now["kind"], "".join(now["text"]), now["item"]
        part = _part(kind, text, self._marks(text) if kind == "output_text" else [])
        item["content"] = [part]
        if kind == "output_text":
            item["status"] = "completed"
        done = self._event(f"response.{kind}.done", **self._place(now), text=text, **self._logprobs(kind))
        done += self._event("response.content_part.done", **self._place(now), part=part)
        return done + self._event("response.output_item.done", output_index=now["at"], item=item)

    def _called_before(self, call_id: str, name: str) -> tuple[str, str]:
        """Name and arguments of a call that was made before the program was asked about it."""
        found = calls_json(self.answer.earlier, {call_id: call_id})
        return (found[0]["function"]["name"], found[0]["function"]["arguments"]) if found else (name, "")

    def _whole_item(self, item: dict[str, Any]) -> bytes:
        at = len(self.output)
        self.output.append(item)
        added = self._event("response.output_item.added", output_index=at, item=item)
        return added + self._event("response.output_item.done", output_index=at, item=item)

    def _call_begun(self, call_id: str, name: str) -> bytes:
        item = self._function_call(call_id, name, "", "in_progress")
        self._streamed[call_id] = len(self.output)
        self.output.append(item)
        return self._event("response.output_item.added", output_index=self._streamed[call_id], item=dict(item))

    def _function_call(self, call_id: str, name: str, arguments: str, status: str) -> dict[str, Any]:
        about = {"type": "function_call", "id": f"fc_{token_hex(12)}", "call_id": call_id, "name": name}
        return {**about, **self._parted.get(name, {}), "arguments": arguments, "status": status}

    def _call_goes_on(self, call_id: str, arguments: str) -> bytes:
        at = self._streamed[call_id]
        place = {"item_id": self.output[at]["id"], "output_index": at}
        return self._event("response.function_call_arguments.delta", **place, delta=arguments)

    def _ended(self) -> bytes:
        """Close what is open, and tell what the program does next."""
        pieces = [self._noted(), self._closed()]
        for call_id, at in self._streamed.items():
            name, arguments = self._calls[call_id]
            self.output[at] |= {"arguments": arguments, "status": "completed"}
            pieces.append(self._call_over(at, name, arguments))
        guard = self.answer.guard
        for call in calls_json(self.answer.messages(), guard.handed) if guard is not None else ():
            function = call["function"]
            item = self._function_call(call["id"], function["name"], function["arguments"], "completed")
            pieces.append(self._whole_item(item))
        for number, asking in enumerate(guard.asking.values() if guard is not None else ()):
            question = f"{APPROVAL}{self._name}_{number}"
            kept = {"call_id": asking.call_id, "name": asking.name, "arguments": dict(asking.arguments)}
            self.asked[question] = kept
            about = {"type": "mcp_approval_request", "id": question, "server_label": _HOUSE, "name": asking.name}
            pieces.append(self._whole_item({**about, "arguments": json.dumps(dict(asking.arguments))}))
        return b"".join(pieces)

    def _call_over(self, at: int, name: str, arguments: str) -> bytes:
        place = {"item_id": self.output[at]["id"], "output_index": at}
        name = self._parted.get(name, {}).get("name", name)
        done = self._event("response.function_call_arguments.done", **place, name=name, arguments=arguments)
        return done + self._event("response.output_item.done", output_index=at, item=self.output[at])

    def _noted(self) -> bytes:
        guard, asked = self.answer.guard, self.answer.asked
        told = guard.told(self.answer.lang) if guard is not None and not asked.as_json else ""
        return self._more("output_text", self.text.add(told)) if told else b""

    def _marks(self, text: str) -> list[dict[str, Any]]:
        if self.answer.guard is None:
            return []
        reply = (*self.answer.earlier, *self.answer.messages())
        found = cited_places(reply, text, self._files)
        flat = ({"type": one["type"], **one[one["type"]]} for one in found)
        return [{"file_id": "", "index": one["start_index"], **one} for one in flat]

    # ---- forms

    @property
    def _status(self) -> str:
        return "incomplete" if self.answer.reason in {"length", "content_filter"} else "completed"

    def _place(self, now: dict[str, Any]) -> dict[str, Any]:
        return {"item_id": now["item"]["id"], "output_index": now["at"], "content_index": 0}

    @staticmethod
    def _logprobs(kind: str) -> dict[str, Any]:
        return {"logprobs": []} if kind == "output_text" else {}

    def _event(self, kind: str, **fields: Any) -> bytes:
        body = json.dumps({"type": kind, "sequence_number": self._count, **fields})
        self._count += 1
        return f"event: {kind}\ndata: {body}\n\n".encode()

    def _body(self, status: str, usage: dict[str, Any] | None = None) -> dict[str, Any]:
        why = "content_filter" if self.answer.reason == "content_filter" else "max_output_tokens"
        about = {"id": self.id, "object": "response", "created_at": self._created, "status": status, "error": None}
        about |= {"incomplete_details": {"reason": why} if status == "incomplete" else None}
        about |= {"completed_at": int(time.time()) if status == "completed" else None, **told_again(self._given)}
        about |= {"model": self.answer.asked.model, "output": list(self.output)}
        return {**about, "store": self._given.get("store") is not False, "usage": usage}


def _part(kind: str, text: str, marks: list[dict[str, Any]]) -> dict[str, Any]:
    if kind == "output_text":
        return {"type": kind, "text": text, "annotations": marks, "logprobs": []}
    return {"type": kind, "text": text}


def usage_json(usage: Usage) -> dict[str, Any]:
    """Tokens, as responses tell them."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
