"""Anthropic's Messages protocol, spoken by the test server, which refuses what the service refuses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from core.testing.dialect import Answered, Asked
from core.testing.native_words import Json, dicts, event, extra_field, told, tools_of
from core.testing.script import arguments_text, cited_behind, pieces, usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.testing.script import Reply, Request

_KNOWN = frozenset(
    {
        *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stop_sequences", "stream", "metadata"),
        *("thinking", "output_config", "service_tier", "container", "cache_control", "inference_geo", "speed"),
        *("diagnostics", "temperature", "top_p", "top_k"),
    }
)
_SAMPLING = ("temperature", "top_p", "top_k")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NEWEST = re.compile(r"claude-\w+-5-[1-9]")
_MARK = re.compile(r'"cache_control": \{[^}]*\},? ?')
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_REASONS = {"length": "max_tokens", "content_filter": "refusal", "stop": "end_turn", "tool_calls": "tool_use"}


@dataclass(slots=True)
class AnthropicDialect:
    """`/v1/messages` and `/v1/models`.

    Args:
        signed: The thoughts that went out, by their signatures: one that comes back is compared.
        bound: What stood before them: the newest models take them back behind the same alone.
    """

    signed: dict[str, str] = field(default_factory=dict[str, str])
    bound: dict[str, str] = field(default_factory=dict[str, str])

    def takes(self, asked: Asked) -> bool:
        """A question has this path."""
        return asked.method == "POST" and asked.path.endswith("/v1/messages")

    def key(self, asked: Asked) -> str:
        """In a header of its own, or the bearer's."""
        return asked.headers.get("x-api-key") or asked.headers.get("authorization", "").removeprefix("Bearer ")

    def request(self, asked: Asked, body: Request) -> Request:
        """Messages and tools where scripts look for them."""
        del asked
        messages: list[Json] = []
        if system := body.get("system"):
            messages.append({"role": "system", "content": _text(system)})
        for message in dicts(body.get("messages")):
            messages += [
                {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": _text(block.get("content"))}
                for block in _results(message)
            ]
            if text := _text(message.get("content")):
                messages.append({"role": message.get("role"), "content": text})
        return {**body, "messages": messages, "tools": tools_of(dicts(body.get("tools")), "input_schema")}

    def fault(self, asked: Asked, body: Request) -> str:
        """What the service refuses."""
        version = asked.headers.get("anthropic-version", "")
        if not version:
            return "anthropic-version: header is required"
        if extra := extra_field(body, _KNOWN):
            return f"{extra}: Extra inputs are not permitted"
        if version >= "2026" and (extra := next((name for name in _SAMPLING if name in body), "")):
            return f"{extra}: Extra inputs are not permitted"
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: Field required"
        messages = dicts(body.get("messages"))
        return (
            self._of_messages(messages)
            or _of_citations(body)
            or _of_thinking(body)
            or _of_marks(body)
            or self._of_binding(body, messages)
        )

    def _of_binding(self, body: Request, messages: list[Json]) -> str:
        """What the newest models refuse beside."""
        if not _NEWEST.search(str(body.get("model"))):
            return ""
        thinking: Json = body.get("thinking") or {}
        choice: Json = body.get("tool_choice") or {}
        if (kind := thinking.get("type")) in {"disabled", "enabled"}:
            return f'"thinking.type.{kind}" is not supported for this model.'
        if choice.get("type") in {"any", "tool"}:
            return "tool_choice: forced tool use is not supported for this model."
        for at, message in enumerate(messages):
            for block in dicts(message.get("content")):
                known = self.bound.get(str(block.get("signature")))
                if known is not None and known != _before(body, messages[:at]):
                    return "Invalid `signature` in `thinking` block. The block is bound to a different conversation."
        return ""

    def _of_messages(self, messages: list[Json]) -> str:
        if not messages or messages[0].get("role") != "user":
            return 'messages: first message must use the "user" role'
        waiting: list[str] = []
        for at, message in enumerate(messages):
            blocks, answered = dicts(message.get("content")), [str(one.get("tool_use_id")) for one in _results(message)]
            if any(one not in answered for one in waiting):
                return f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after"
            if any(one not in waiting for one in answered):
                return f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks"
            waiting = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
            if fault := next((found for block in blocks if (found := self._of_block(block))), ""):
                return f"messages.{at}: {fault}"
        return "messages: `tool_use` ids were found without `tool_result` blocks" if waiting else ""

    def _of_block(self, block: Json) -> str:
        match block.get("type"):
            case "text" if not block.get("text"):
                return "text content blocks must be non-empty"
            case "document" if block.get("citations") not in (None, {"enabled": True}, {"enabled": False}):
                return "document.citations: Input should be a valid dictionary with `enabled`"
            case "tool_use" if not _ID.fullmatch(str(block.get("id"))):
                return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            case "thinking" if self.signed.get(str(block.get("signature"))) != block.get("thinking"):
                return "Invalid `signature` in `thinking` block"
            case _:
                return ""

    def streams(self, asked: Asked, body: Request) -> bool:
        """`stream` says so."""
        del asked
        return bool(body.get("stream"))

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """Blocks, each begun, grown and stopped."""
        known, counts = set(self.signed), _usage(reply, body)
        head: Json = {**_head(body, reply_id), "content": [], "usage": {**counts, "output_tokens": 1}}
        events = [event({"type": "message_start", "message": head}), event({"type": "ping"})]
        for index, (begun, deltas) in enumerate(self._blocks(reply, reply_id)):
            events.append(event({"type": "content_block_start", "index": index, "content_block": begun}))
            events += [event({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas]
            events.append(event({"type": "content_block_stop", "index": index}))
        self._bind(body, known)
        delta = {"stop_reason": _reason(reply), "stop_sequence": None}
        end = {"type": "message_delta", "delta": delta, "usage": counts}
        return [*events, event(end), event({"type": "message_stop"})]

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """All blocks at once."""
        content: list[Json] = []
        known = set(self.signed)
        for begun, deltas in self._blocks(reply, reply_id):
            block = {**begun}
            for delta in deltas:
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        block[name] += delta[name]
                if delta["type"] == "citations_delta":
                    block["citations"] = [*block.get("citations", []), delta["citation"]]
            if block["type"] == "tool_use":
                block["input"] = json.loads("".join(delta["partial_json"] for delta in deltas) or "{}")
            content.append(block)
        self._bind(body, known)
        said = {"content": content, "stop_reason": _reason(reply), "usage": _usage(reply, body)}
        return json.dumps({**_head(body, reply_id), **said}, ensure_ascii=False).encode()

    def _bind(self, body: Request, known: set[str]) -> None:
        for signature in self.signed.keys() - known:
            self.bound[signature] = _before(body, dicts(body.get("messages")))

    def error(self, reply: Reply) -> bytes:
        """The type by the status."""
        return json.dumps({"type": "error", "error": _error(reply), "request_id": "req_refused"}).encode()

    def error_event(self, reply: Reply) -> bytes:
        """The same in the middle of a stream."""
        return event({"type": "error", "error": _error(reply)})

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """The list of models."""
        if asked.method != "GET" or not asked.path.endswith("/v1/models") or "anthropic-version" not in asked.headers:
            return None
        data = [{"type": "model", "id": name, "display_name": name} for name in models]
        return Answered(200, json.dumps({"data": data, "has_more": False}).encode())

    def _blocks(self, reply: Reply, reply_id: str) -> list[tuple[Json, list[Json]]]:
        """Each block as it begins, and what is added to it."""
        blocks: list[tuple[Json, list[Json]]] = []
        if reply.reasoning:
            thought, signature = pieces(reply.reasoning), f"signed+{reply_id}/{len(self.signed)}=="
            self.signed[signature] = "".join(thought)
            told = [{"type": "thinking_delta", "thinking": word} for word in thought]
            opening = {"type": "thinking", "thinking": "", "signature": ""}
            blocks.append((opening, [*told, {"type": "signature_delta", "signature": signature}]))
        deltas: list[Json] = []
        for at, word in enumerate(pieces(reply.text)):
            deltas.append({"type": "text_delta", "text": word})
            if cited := [{"type": "citations_delta", "citation": _citation(one)} for one in cited_behind(reply, at)]:
                blocks.append(({"type": "text", "text": ""}, [*deltas, *cited]))  # a block is what is borne out
                deltas = []
        if deltas:
            blocks.append(({"type": "text", "text": ""}, deltas))
        for index, (name, arguments) in enumerate(reply.calls):
            text, size = arguments_text(arguments), max(reply.argument_size, 1)
            parts = ["", *(text[at : at + size] for at in range(0, len(text), size))]
            begun: Json = {"type": "tool_use", "id": f"toolu_{reply_id}_{index}", "name": name, "input": {}}
            blocks.append((begun, [{"type": "input_json_delta", "partial_json": part} for part in parts]))
        return blocks


def _citation(cited: Mapping[str, Any]) -> Json:
    text = str(cited.get("text") or "")
    if cited.get("url"):
        about = {"url": cited["url"], "title": cited.get("title"), "encrypted_index": "hidden=="}
        return {"type": "web_search_result_location", **about, "cited_text": text}
    about = {"document_index": 0, "document_title": cited.get("document"), "cited_text": text}
    if page := cited.get("page"):
        return {"type": "page_location", **about, "start_page_number": page, "end_page_number": page + 1}
    return {"type": "char_location", **about, "start_char_index": 0, "end_char_index": len(text)}


def _before(body: Request, messages: list[Json]) -> str:
    """What stands before a thought, without the marks of what is kept."""
    return _MARK.sub("", json.dumps([body.get("system"), messages], sort_keys=True))


def _head(body: Request, reply_id: str) -> Json:
    about = {"id": f"msg_{reply_id}", "type": "message", "role": "assistant", "model": str(body.get("model"))}
    return {**about, "stop_reason": None, "stop_sequence": None}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(block["text"]) for block in dicts(content) if block.get("type") == "text")


def _results(message: Json) -> list[Json]:
    return [block for block in dicts(message.get("content")) if block.get("type") == "tool_result"]


def _of_citations(body: Request) -> str:
    """Of all documents or of none, and not together with a schema."""
    blocks = [block for message in dicts(body.get("messages")) for block in dicts(message.get("content"))]
    parts = [*blocks, *(part for block in blocks for part in dicts(block.get("content")))]
    documents = [part for part in parts if part.get("type") == "document"]
    asked = {bool(cast("Json", one.get("citations") or {}).get("enabled")) for one in documents}
    if len(asked) > 1:
        return "Citations must be enabled on all documents in the request or on none of them."
    config: Json = body.get("output_config") or {}
    if True in asked and config.get("format"):
        return "Citations are not supported together with output_config.format."
    return ""


def _of_thinking(body: Request) -> str:
    thinking: Json = body.get("thinking") or {}
    if thinking.get("type") != "enabled":
        return ""
    budget = int(thinking.get("budget_tokens") or 0)
    if not 1024 <= budget < body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`, which must be at least 1024"
    choice: Json = body.get("tool_choice") or {}
    if choice.get("type") in {"any", "tool"}:
        return "Thinking may not be enabled when tool_choice forces tool use."
    last = next((one for one in reversed(body["messages"]) if one["role"] == "assistant"), None)
    blocks = dicts(last.get("content")) if last else []
    calls = any(block.get("type") == "tool_use" for block in blocks) and last is body["messages"][-2]
    if calls and blocks[0].get("type") not in {"thinking", "redacted_thinking"}:
        return "Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    return ""


def _of_marks(body: Request) -> str:
    marks = json.dumps(body).count('"cache_control"')
    return f"A maximum of 4 blocks with cache_control may be provided. Found {marks}." if marks > 4 else ""


def _reason(reply: Reply) -> str:
    reason = reply.finish or ("tool_calls" if reply.calls else "stop")
    return _REASONS.get(reason, reason)


def _usage(reply: Reply, body: Request) -> Json:
    said = usage(reply, {"messages": dicts(body.get("messages"))})
    return {
        "input_tokens": max(0, said["prompt_tokens"] - reply.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.cached_tokens,
        "output_tokens": said["completion_tokens"],
        "output_tokens_details": {"thinking_tokens": reply.reasoning_tokens},
    }


def _error(reply: Reply) -> Json:
    said = told(reply)
    kind = _TYPES.get(reply.status, "api_error") if reply.status >= 400 else str(said.get("type") or "api_error")
    return {"type": kind, "message": str(said.get("message") or "")}
