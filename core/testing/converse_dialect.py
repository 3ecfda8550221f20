"""Amazon Bedrock's Converse protocol, spoken by the test server in frames, which refuses what the service refuses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from struct import pack
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote
from zlib import crc32

from core.testing.dialect import Answered, Asked
from core.testing.native_words import Json, dicts, extra_field, told, tools_of
from core.testing.script import arguments_text, cited_behind, pieces, usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.testing.script import Reply, Request

_QUESTION: Final = re.compile(r"/model/(?P<model>[^/]+)/(?P<verb>converse|converse-stream)$")
_KNOWN: Final = frozenset(
    {
        *("messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields"),
        *("promptVariables", "additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig"),
        *("serviceTier", "outputConfig", "projectIdentifier"),
    }
)
_CONFIG: Final = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})
_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_DOCUMENT: Final = re.compile(r"[a-zA-Z0-9 ()\[\]-]{1,200}")
_KEPT: Final = re.compile(r"claude|nova", re.IGNORECASE)
_REASONS: Final = {
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "stop": "end_turn",
    "tool_calls": "tool_use",
}


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of an event stream, with its checksums."""
    told = b"".join(
        pack(">B", len(name)) + name.encode() + pack(">BH", 7, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = pack(">II", 16 + len(told) + len(payload), len(told))
    begun = prelude + pack(">I", crc32(prelude)) + told + payload
    return begun + pack(">I", crc32(begun))


def event_frame(name: str, payload: Json) -> bytes:
    """An event as a frame."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, json.dumps(payload, ensure_ascii=False).encode())


@dataclass(slots=True)
class ConverseDialect:
    """`/model/<name>/converse` and `/model/<name>/converse-stream`.

    Args:
        signed: The thoughts that went out, by their signatures: one that comes back is compared.
        stream_type: The media type of streams.
    """

    signed: dict[str, str] = field(default_factory=dict[str, str])
    stream_type: str = "application/vnd.amazon.eventstream"

    def takes(self, asked: Asked) -> bool:
        """A question has one of two paths."""
        return asked.method == "POST" and bool(_QUESTION.search(asked.path))

    def key(self, asked: Asked) -> str:
        """The bearer's, or the id of the key that the request is signed with."""
        given = asked.headers.get("authorization", "")
        found = re.search(r"Credential=([^/]+)/", given)
        return found[1] if found else given.removeprefix("Bearer ")

    def request(self, asked: Asked, body: Request) -> Request:
        """Messages and tools where scripts look for them."""
        found = _QUESTION.search(asked.path)
        messages: list[Json] = []
        if system := _text(body.get("system")):
            messages.append({"role": "system", "content": system})
        for message in dicts(body.get("messages")):
            messages += [
                {"role": "tool", "tool_call_id": one.get("toolUseId"), "content": _text(one.get("content"))}
                for one in _of(message, "toolResult")
            ]
            if text := _text(message.get("content")):
                messages.append({"role": message.get("role"), "content": text})
        specs = [cast("Json", tool["toolSpec"]) for tool in _tools(body) if "toolSpec" in tool]
        flat = [{**spec, "schema": cast("Json", spec["inputSchema"]).get("json")} for spec in specs]
        about = {"model": unquote(found["model"]) if found else "", "messages": messages}
        return {**body, **about, "tools": tools_of(flat, "schema")}

    def fault(self, asked: Asked, body: Request) -> str:
        """What the service refuses."""
        if extra := extra_field(body, _KNOWN) or extra_field(body.get("inferenceConfig") or {}, _CONFIG):
            return f"extraneous key [{extra}] is not permitted"
        found = _QUESTION.search(asked.path)
        if "cachePoint" in json.dumps(body) and not _KEPT.search(found["model"] if found else ""):
            return "You invoked an unsupported model or your request did not allow prompt caching."
        messages = dicts(body.get("messages"))
        return self._of_messages(messages, has_tools=bool(_tools(body))) or _of_documents(body, messages)

    def _of_messages(self, messages: list[Json], *, has_tools: bool) -> str:
        if not messages or messages[0].get("role") != "user":
            return "A conversation must start with a user message."
        waiting: list[str] = []
        before = ""
        for message in messages:
            if message.get("role") == before:
                return "A conversation must alternate between user and assistant roles."
            before = str(message.get("role"))
            answered = [str(one.get("toolUseId")) for one in _of(message, "toolResult")]
            if sorted(answered) != sorted(waiting):
                return "Expected toolResult blocks at messages for the ids of the toolUse blocks before them."
            waiting = [str(one.get("toolUseId")) for one in _of(message, "toolUse")]
            if (answered or waiting) and not has_tools:
                return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
            if any(not _ID.fullmatch(one) for one in waiting):
                return "toolUseId must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"
            for block in dicts(message.get("content")):
                if fault := self._of_block(block):
                    return fault
        return "Expected toolResult blocks for the last toolUse blocks." if waiting else ""

    def _of_block(self, block: Json) -> str:
        if "text" in block and not str(block["text"]).strip():
            return "The text field in the ContentBlock object is blank."
        thought = cast("Json", cast("Json", block.get("reasoningContent") or {}).get("reasoningText") or {})
        signature = str(thought.get("signature") or "")
        if signature and self.signed.get(signature) != thought.get("text"):
            return "Invalid `signature` in `thinking` block"
        return ""

    def streams(self, asked: Asked, body: Request) -> bool:
        """The path says so."""
        del body
        return asked.path.endswith("converse-stream")

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """Blocks, each begun, grown and stopped, as frames."""
        events = [event_frame("messageStart", {"role": "assistant"})]
        for index, (begun, deltas) in enumerate(self._blocks(reply, reply_id)):
            at = {"contentBlockIndex": index}
            events += [event_frame("contentBlockStart", {"start": begun, **at})] if begun else []
            events += [event_frame("contentBlockDelta", {"delta": delta, **at}) for delta in deltas]
            events.append(event_frame("contentBlockStop", at))
        events.append(event_frame("messageStop", {"stopReason": _reason(reply)}))
        return [*events, event_frame("metadata", {"usage": _usage(reply, body), "metrics": {"latencyMs": 9}})]

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """All blocks at once."""
        content: list[Json] = []
        for begun, deltas in self._blocks(reply, reply_id):
            if "toolUse" in begun:
                given = "".join(str(delta["toolUse"]["input"]) for delta in deltas)
                content.append({"toolUse": {**begun["toolUse"], "input": json.loads(given or "{}")}})
            elif "reasoningContent" in deltas[0]:
                parts = [cast("Json", delta["reasoningContent"]) for delta in deltas]
                text = "".join(str(part.get("text") or "") for part in parts)
                signature = parts[-1].get("signature")
                content.append({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}})
            else:
                said = [{"text": "".join(str(delta.get("text") or "") for delta in deltas)}]
                cited = [delta["citation"] for delta in deltas if "citation" in delta]
                content.append({"citationsContent": {"content": said, "citations": cited}} if cited else said[0])
        message = {"role": "assistant", "content": content}
        about: Json = {"output": {"message": message}, "stopReason": _reason(reply), "usage": _usage(reply, body)}
        return json.dumps({**about, "metrics": {"latencyMs": 9}}, ensure_ascii=False).encode()

    def error(self, reply: Reply) -> bytes:
        """The message alone, as the service words it; the kind is in a header."""
        return json.dumps({"message": str(told(reply).get("message") or "")}).encode()

    def error_event(self, reply: Reply) -> bytes:
        """As a frame that is an exception."""
        said = told(reply)
        name = "throttlingException" if said.get("code") == "rate_limit_exceeded" else "modelStreamErrorException"
        headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
        return frame(headers, json.dumps({"message": said.get("message")}).encode())

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """What the service says to a request that nobody signed."""
        del models
        if asked.method != "GET" or asked.path != "/":
            return None
        return Answered(403, b'{"Message": "Missing Authentication Token"}')

    def _blocks(self, reply: Reply, reply_id: str) -> list[tuple[Json, list[Json]]]:
        """Each block as it begins, and what is added to it."""
        blocks: list[tuple[Json, list[Json]]] = []
        if reply.reasoning:
            thought, signature = pieces(reply.reasoning), f"signed+{reply_id}/{len(self.signed)}=="
            self.signed[signature] = "".join(thought)
            grown: list[Json] = [{"reasoningContent": {"text": word}} for word in thought]
            blocks.append(({}, [*grown, {"reasoningContent": {"signature": signature}}]))
        deltas: list[Json] = []
        for at, word in enumerate(pieces(reply.text)):
            deltas.append({"text": word})
            if cited := [{"citation": _citation(one)} for one in cited_behind(reply, at)]:
                blocks.append(({}, [*deltas, *cited]))
                deltas = []
        if deltas:
            blocks.append(({}, deltas))
        for index, (name, arguments) in enumerate(reply.calls):
            text, size = arguments_text(arguments), max(reply.argument_size, 1)
            parts = [text[at : at + size] for at in range(0, len(text), size)]
            begun: Json = {"toolUse": {"toolUseId": f"tooluse_{reply_id}_{index}", "name": name}}
            blocks.append((begun, [{"toolUse": {"input": part}} for part in parts]))
        return blocks


def _citation(cited: Mapping[str, Any]) -> Json:
    told = {"title": cited.get("title") or cited.get("document"), "sourceContent": [{"text": cited.get("text") or ""}]}
    if cited.get("url"):
        return {**told, "location": {"web": {"url": cited["url"]}}}
    page = cited.get("page")
    where = "documentPage" if page else "documentChar"
    return {**told, "location": {where: {"documentIndex": 0, "start": page or 0, "end": (page or 0) + 1}}}


def _of(message: Json, kind: str) -> list[Json]:
    return [cast("Json", block[kind]) for block in dicts(message.get("content")) if kind in block]


def _text(content: Any) -> str:
    return "".join(str(block["text"]) for block in dicts(content) if "text" in block)


def _tools(body: Request) -> list[Json]:
    return dicts(cast("Json", body.get("toolConfig") or {}).get("tools"))


def _of_documents(body: Request, messages: list[Json]) -> str:
    found: list[Json] = []
    for message in messages:
        here = _of(message, "document")
        if here and not _text(message.get("content")):
            return "A conversation with documents must include a text block."
        inner = [one for result in _of(message, "toolResult") for one in dicts(result.get("content"))]
        found += [*here, *(cast("Json", one["document"]) for one in inner if "document" in one)]
    names = [str(one.get("name")) for one in found]
    if any(not _DOCUMENT.fullmatch(name) for name in names):
        return "The document file name can only contain alphanumeric characters, whitespace, hyphens, parentheses."
    if len(set(names)) < len(names):
        return "The document names must be unique."
    asked = {bool(cast("Json", one.get("citations") or {}).get("enabled")) for one in found}
    if len(asked) > 1:
        return "Citations must be enabled on all documents or on none."
    if True in asked and "textFormat" in (body.get("outputConfig") or {}):
        return "Citations are not supported together with a text format."
    return ""


def _reason(reply: Reply) -> str:
    reason = reply.finish or ("tool_calls" if reply.calls else "stop")
    return _REASONS.get(reason, reason)


def _usage(reply: Reply, body: Request) -> Json:
    said = usage(reply, {"messages": dicts(body.get("messages"))})
    return {
        "inputTokens": max(0, said["prompt_tokens"] - reply.cached_tokens),
        "outputTokens": said["completion_tokens"],
        "totalTokens": said["total_tokens"],
        "cacheReadInputTokens": reply.cached_tokens,
        "cacheWriteInputTokens": 0,
    }
