"""Mistral's chat protocol, spoken by the test server below `/mistral`, which refuses what the service refuses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from core.testing.dialect import Answered, Asked, OpenAIDialect
from core.testing.native_words import Json, dicts, event, extra_field, told
from core.testing.script import arguments_text, cited_behind, pieces, usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.testing.script import Reply, Request

_KNOWN = frozenset(
    {
        *("model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop", "random_seed", "metadata"),
        *("response_format", "tools", "tool_choice", "presence_penalty", "frequency_penalty", "n", "prediction"),
        *("parallel_tool_calls", "reasoning_effort", "prompt_mode", "guardrails", "prompt_cache_key", "service_tier"),
        *("safe_prompt", "min_tokens", "repetition_penalty", "top_k", "logprobs", "top_logprobs"),
    }
)
_ID = re.compile(r"[a-zA-Z0-9]{9}")
_AFTER = {"system": {"system"}, "user": {"system", "user", "assistant"}, "assistant": {"user", "tool"}}


@dataclass(slots=True)
class MistralDialect(OpenAIDialect):
    """`/mistral/v1/chat/completions`: OpenAI's words, with chunks for thoughts and closer looks at a conversation.

    Args:
        signed: The thoughts that went out, by their signatures.
    """

    signed: dict[str, str] = field(default_factory=dict[str, str])

    def takes(self, asked: Asked) -> bool:
        """A question has this path."""
        return asked.method == "POST" and asked.path.endswith("/mistral/v1/chat/completions")

    def fault(self, asked: Asked, body: Request) -> str:
        """What the service refuses."""
        del asked
        if extra := extra_field(body, _KNOWN):
            return f"Extra inputs are not permitted: {extra}"
        before = ""
        for message in dicts(body.get("messages")):
            role = str(message.get("role"))
            if before and before not in _AFTER.get(role, {"assistant", "tool"}):
                return f"Unexpected role '{role}' after role '{before}'"
            ids = (
                [message.get("tool_call_id")]
                if role == "tool"
                else [one["id"] for one in message.get("tool_calls") or ()]
            )
            if any(not _ID.fullmatch(str(one)) for one in ids):
                return f"Tool call id was {ids[0]} but must be a-z, A-Z, 0-9, with a length of 9."
            for chunk in dicts(message.get("content")):
                if chunk.get("type") == "thinking" and self.signed.get(str(chunk.get("signature"))) != _thought(chunk):
                    return "The signature of a thinking chunk is not valid."
            before = "assistant, to go on" if message.get("prefix") else role
        return "Expected last role User or Tool for serving but got assistant" if before == "assistant" else ""

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """As chunks; the last has the reason and the usage."""
        head = {"id": reply_id, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": body.get("model")}
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": [chunk]} for chunk in self._thinking(reply, reply_id)]
        for at, word in enumerate(pieces(reply.text)):
            deltas.append({"content": word})
            if cited := cited_behind(reply, at):
                deltas.append({"content": [_reference(one) for one in cited]})
        if calls := _calls(reply, reply_id):
            deltas.append({"tool_calls": calls})
        choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {"content": ""}, "finish_reason": _reason(reply)})
        chunks: list[Json] = [{**head, "choices": [choice]} for choice in choices]
        chunks[-1]["usage"] = usage(reply, body)
        return [*(event(chunk, named=False) for chunk in chunks), b"data: [DONE]\n\n"]

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """As one object."""
        text = "".join(pieces(reply.text))
        thoughts = self._thinking(reply, reply_id)
        whole = [{"type": "text", "text": "".join(_thought(chunk) for chunk in thoughts)}] if thoughts else []
        content: Any = text
        if thoughts:
            content = [{**thoughts[-1], "thinking": whole}, *([{"type": "text", "text": text}] if text else [])]
        elif reply.cites:
            content = []
            for at, word in enumerate(pieces(reply.text)):
                content += [{"type": "text", "text": word}, *(_reference(one) for one in cited_behind(reply, at))]
        message = {"role": "assistant", "content": content, "tool_calls": _calls(reply, reply_id) or None}
        choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
        said = {"id": reply_id, "object": "chat.completion", "created": 1_700_000_000, "model": body.get("model")}
        return json.dumps({**said, "choices": [choice], "usage": usage(reply, body)}, ensure_ascii=False).encode()

    def error(self, reply: Reply) -> bytes:
        """In the service's own form."""
        said = told(reply)
        error = {"object": "error", "message": said.get("message"), "type": said.get("type"), "code": said.get("code")}
        return json.dumps({**error, "param": None}).encode()

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """Nothing: its list of models is as OpenAI's."""
        del asked, models
        return None

    def _thinking(self, reply: Reply, reply_id: str) -> list[Json]:
        words = pieces(reply.reasoning)
        chunks: list[Json] = [{"type": "thinking", "thinking": [{"type": "text", "text": word}]} for word in words]
        if chunks:
            chunks[-1]["signature"] = f"signed {reply_id} {len(self.signed)}"
            self.signed[chunks[-1]["signature"]] = "".join(words)
        return chunks


def _reference(cited: Mapping[str, Any]) -> Json:
    """By the id under which a tool gave it, else as the service's own tools give it."""
    if "id" in cited:
        return {"type": "reference", "reference_ids": [cited["id"]]}
    return {"type": "tool_reference", "tool": "web_search", "title": cited.get("title"), "url": cited.get("url")}


def _thought(chunk: Json) -> str:
    return "".join(str(part.get("text") or "") for part in dicts(chunk.get("thinking")))


def _calls(reply: Reply, reply_id: str) -> list[Json]:
    number = int("".join(filter(str.isdigit, reply_id)) or 0)
    functions = [{"name": name, "arguments": arguments_text(arguments)} for name, arguments in reply.calls]
    return [
        {"id": f"m{number:04d}{index:04d}", "type": "function", "index": index, "function": cast("Json", function)}
        for index, function in enumerate(functions)
    ]


def _reason(reply: Reply) -> str:
    reason = reply.finish or ("tool_calls" if reply.calls else "stop")
    return "model_length" if reason == "length" else reason
