"""Google's `generateContent` protocol, spoken by the test server, which refuses what the service refuses."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from core.testing.dialect import Answered, Asked
from core.testing.native_words import Json, dicts, event, extra_field, told, tools_of
from core.testing.script import arguments_text, pieces, usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.testing.script import Reply, Request

_QUESTION = re.compile(r"/v1(?:beta)?/models/(?P<model>[^/:]+):(?P<verb>streamGenerateContent|generateContent)$")
_KNOWN = frozenset(
    {
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
        "cachedContent",
        "labels",
    }
)
_CONFIG = frozenset(
    {
        *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "presencePenalty"),
        *("frequencyPenalty", "responseMimeType", "responseJsonSchema", "responseSchema", "thinkingConfig"),
        *("candidateCount", "responseModalities", "speechConfig", "imageConfig", "responseLogprobs", "logprobs"),
        *("mediaResolution",),
    }
)
_PARTS = ("text", "functionCall", "functionResponse", "inlineData", "fileData")
_UNSIGNED = "skip_thought_signature_validator"
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "stop": "STOP", "tool_calls": "STOP"}


@dataclass(slots=True)
class GeminiDialect:
    """`/v1beta/models/<name>:generateContent`, `:streamGenerateContent`, and the list of models.

    Args:
        signed: The names of calls that went out, by their signatures.
    """

    signed: dict[str, str] = field(default_factory=dict[str, str])

    def takes(self, asked: Asked) -> bool:
        """A question has one of two paths."""
        return asked.method == "POST" and bool(_QUESTION.search(asked.path))

    def key(self, asked: Asked) -> str:
        """In a header of its own."""
        return asked.headers.get("x-goog-api-key", "")

    def request(self, asked: Asked, body: Request) -> Request:
        """Messages and tools where scripts look for them."""
        found = _QUESTION.search(asked.path)
        messages: list[Json] = []
        if system := body.get("systemInstruction"):
            messages.append({"role": "system", "content": _text(system)})
        for content in dicts(body.get("contents")):
            given = [cast("Json", part["functionResponse"]) for part in _of(content, "functionResponse")]
            messages += [
                {"role": "tool", "tool_call_id": one.get("id"), "content": json.dumps(one.get("response"))}
                for one in given
            ]
            if text := _text(content):
                role = "assistant" if content.get("role") == "model" else "user"
                messages.append({"role": role, "content": text})
        declared = [one for tool in dicts(body.get("tools")) for one in dicts(tool.get("functionDeclarations"))]
        about = {"model": found["model"] if found else "", "messages": messages}
        return {**body, **about, "tools": tools_of(declared, "parametersJsonSchema")}

    def fault(self, asked: Asked, body: Request) -> str:
        """What the service refuses."""
        if extra := extra_field(body, _KNOWN):
            return f'Invalid JSON payload received. Unknown name "{extra}": Cannot find field.'
        config = cast("Json", body.get("generationConfig") or {})
        if extra := extra_field(config, _CONFIG):
            return f"Invalid JSON payload received. Unknown name \"{extra}\" at 'generation_config': Cannot find field."
        found = _QUESTION.search(asked.path)
        model = found["model"] if found else ""
        thinking = cast("Json", config.get("thinkingConfig") or {})
        if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
            return "You can only set one of thinking budget and thinking level."
        return self._of_contents(dicts(body.get("contents")), signs=bool(re.search(r"gemini-[3-9]", model)))

    def _of_contents(self, contents: list[Json], *, signs: bool) -> str:
        if not contents or contents[0].get("role") != "user":
            return "Please ensure that the first content is with role 'user'."
        waiting = 0
        turn = max(at for at, one in enumerate(contents) if one.get("role") == "user" and (at == 0 or _is_asked(one)))
        for at, content in enumerate(contents):
            if any(not any(name in part for name in _PARTS) for part in dicts(content.get("parts"))):
                return "contents.parts must have one initialized field."
            calls, results = _of(content, "functionCall"), _of(content, "functionResponse")
            if len(results) != waiting:
                return (
                    "Please ensure that the number of function response parts is equal to the number of function call "
                    "parts of the function call turn."
                )
            waiting = len(calls)
            signatures = [str(part.get("thoughtSignature") or "") for part in dicts(content.get("parts"))]
            if unknown := [one for one in signatures if one and one != _UNSIGNED and one not in self.signed]:
                return f"Thought signature is not valid: {unknown[0]}"
            if signs and at > turn and calls and not calls[0].get("thoughtSignature"):
                return "Function call is missing a thought_signature in functionCall parts."
        return "Please ensure that function call turn comes before a function response." if waiting else ""

    def streams(self, asked: Asked, body: Request) -> bool:
        """The path says so."""
        del body
        return asked.path.endswith(":streamGenerateContent")

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """One chunk for each part; the last has the reason."""
        chunks: list[Json] = []
        parts = self._parts(reply, reply_id)
        for number, part in enumerate(parts, 1):
            last = {"finishReason": _reason(reply), **_grounding(reply)} if number == len(parts) else {}
            candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **last}
            chunks.append({"candidates": [candidate], **_about(reply, body, reply_id)})
        return [event(chunk, named=False) for chunk in chunks]

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """All parts at once."""
        parts = self._parts(reply, reply_id)
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": _reason(reply), "index": 0}
        candidate |= _grounding(reply)
        return json.dumps({"candidates": [candidate], **_about(reply, body, reply_id)}, ensure_ascii=False).encode()

    def error(self, reply: Reply) -> bytes:
        """The status in Google's words."""
        return json.dumps({"error": _error(reply)}).encode()

    def error_event(self, reply: Reply) -> bytes:
        """The same in the middle of a stream."""
        return event({"error": _error(reply)}, named=False)

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """The list of models."""
        if asked.method != "GET" or not asked.path.endswith("/v1beta/models"):
            return None
        return Answered(200, json.dumps({"models": [{"name": f"models/{name}"} for name in models]}).encode())

    def _parts(self, reply: Reply, reply_id: str) -> list[Json]:
        parts: list[Json] = [{"text": word, "thought": True} for word in pieces(reply.reasoning)]
        parts += [{"text": word} for word in pieces(reply.text)]
        for picture in reply.images:
            data = b64encode(picture).decode() if isinstance(picture, bytes) else picture
            parts.append({"inlineData": {"mimeType": "image/png", "data": data}})
        for index, (name, arguments) in enumerate(reply.calls):
            given: Any = json.loads(arguments_text(arguments))
            part: Json = {"functionCall": {"id": f"fc_{reply_id}_{index}", "name": name, "args": given}}
            if not index:  # only the first of calls that are made at once is signed
                part["thoughtSignature"] = b64encode(f"signed {reply_id} {len(self.signed)}".encode()).decode()
                self.signed[part["thoughtSignature"]] = name
            parts.append(part)
        closing: Json = {"text": ""}
        if reply.text and not reply.calls:
            closing["thoughtSignature"] = b64encode(f"signed {reply_id} {len(self.signed)}".encode()).decode()
            self.signed[closing["thoughtSignature"]] = ""
        return [*parts, closing]


def _grounding(reply: Reply) -> Json:
    """What is cited: the places of the text in bytes, and numbers of chunks."""
    if not reply.cites:
        return {}
    chunks: list[Json] = []
    supports: list[Json] = []
    words = pieces(reply.text)
    for number, (at, one) in enumerate(reply.cites):
        begun, end = len("".join(words[:at]).encode()), len("".join(words[: at + 1]).encode())
        segment = {"startIndex": begun, "endIndex": end, "text": "".join(words[at : at + 1])}
        supports.append({"segment": segment, "groundingChunkIndices": [number]})
        page = {"pageSpan": {"firstPage": one["page"], "lastPage": one["page"]}} if one.get("page") else {}
        kept = {"title": one.get("document"), "uri": "", "ragChunk": {"text": one.get("text"), **page}}
        web = {"web": {"uri": one.get("url"), "title": one.get("title")}}
        chunks.append(web if one.get("url") else {"retrievedContext": kept})
    return {"groundingMetadata": {"groundingChunks": chunks, "groundingSupports": supports}}


def _text(content: Any) -> str:
    found = dicts(cast("Json", content).get("parts"))
    return "".join(str(part["text"]) for part in found if part.get("text") and not part.get("thought"))


def _of(content: Json, kind: str) -> list[Json]:
    return [part for part in dicts(content.get("parts")) if kind in part]


def _is_asked(content: Json) -> bool:
    return not _of(content, "functionResponse")


def _reason(reply: Reply) -> str:
    reason = reply.finish or "stop"
    return _REASONS.get(reason, reason)


def _about(reply: Reply, body: Request, reply_id: str) -> Json:
    said = usage(reply, {"messages": [{"content": _text(one)} for one in dicts(body.get("contents"))]})
    counts = {
        "promptTokenCount": said["prompt_tokens"],
        "candidatesTokenCount": max(0, said["completion_tokens"] - reply.reasoning_tokens),
        "thoughtsTokenCount": reply.reasoning_tokens,
        "cachedContentTokenCount": reply.cached_tokens,
        "totalTokenCount": said["total_tokens"],
    }
    return {"usageMetadata": counts, "modelVersion": "scripted", "responseId": reply_id}


def _error(reply: Reply) -> Json:
    said = told(reply)
    usual = 429 if said.get("code") == "rate_limit_exceeded" else 500
    status = reply.status if reply.status >= 400 else usual
    return {"code": status, "message": str(said.get("message") or ""), "status": _STATUSES.get(status, "UNKNOWN")}
