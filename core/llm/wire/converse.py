"""Amazon Bedrock's Converse protocol: requests to JSON, and events to ours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from core.llm.request import OUR_KEYS
from core.llm.wire.anthropic import schema_of, think
from core.llm.wire.cited import of_document, of_page
from core.llm.wire.event_frames import EventFrames
from core.llm.wire.media_parts import base64_of
from core.llm.wire.proofs import is_from, opened, sealed
from core.llm.wire.reading import EventLines, WholeReader
from core.llm.wire.tools import ToolNames, checked_functions
from core.llm.wire.turns import Made, Takes, Thought, Turn, continued, item_name, turns
from core.messages.json_text import read_object
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.request import ChatRequest
    from core.messages.content import ContentItem
    from core.messages.events import Event, FinishReason

Json: TypeAlias = dict[str, Any]

BY: Final = "bedrock_converse"
_REASONS: Final[Mapping[str, FinishReason]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "calls",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_CLAUDE: Final = re.compile(r"claude", re.IGNORECASE)
_NOVA: Final = re.compile(r"nova", re.IGNORECASE)
_NOVA_THINKS: Final = re.compile(r"nova-2", re.IGNORECASE)
_EFFORT_AS_IS: Final = re.compile(r"gpt-oss|deepseek|qwen3|kimi|minimax|glm", re.IGNORECASE)
_KEEPS: Final = re.compile(r"claude-(?:3-[57]|[a-z]+-[4-9]|[4-9])|nova", re.IGNORECASE)
_ID: Final = re.compile(r"[^A-Za-z0-9_.:-]")
_NAME: Final = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
_LONGEST_NAME: Final = 180
_CONFIG: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxTokens",
    "max_completion_tokens": "maxTokens",
    "max_new_tokens": "maxTokens",
}
_OWN: Final = frozenset(
    {
        *("guardrailConfig", "performanceConfig", "requestMetadata", "serviceTier", "promptVariables", "outputConfig"),
        *("additionalModelResponseFieldPaths", "projectIdentifier"),
    }
)
_ELSEWHERE: Final = frozenset(
    {
        *("response_format", "reasoning_effort", "stop", "stream", "stream_options", "user", "thinking", "seed"),
        *("extra_body", "extra_headers", "extra_query", "additionalModelRequestFields"),
    }
)
_IMAGES: Final = {"jpg": "jpeg", "pjpeg": "jpeg"}
_VIDEOS: Final = {"quicktime": "mov", "x-matroska": "mkv", "3gpp": "three_gp", "x-ms-wmv": "wmv", "x-flv": "flv"}


class Asking(NamedTuple):
    """How a model is asked.

    Args:
        keeps: How long the service keeps the beginnings of prompts: "" for not at all, `5m`, `1h`, or `default`.
        forces: Whether a call can be forced; else the tool is offered alone.
        cites: Whether it is to cite the documents of questions.
    """

    keeps: str = ""
    forces: bool = True
    cites: bool = False


def keeps_prompts(model: str) -> bool:
    """Whether a model is known to keep the beginnings of prompts."""
    return bool(_KEEPS.search(model))


def is_claude(model: str) -> bool:
    """Whether it is one of Anthropic's."""
    return bool(_CLAUDE.search(model))


def body_json(model: str, request: ChatRequest, takes: Takes, names: ToolNames, manner: Asking) -> Json:
    """The body of a request.

    Args:
        model: Its name, which decides how it is told to think.
        request: Its `generate` becomes the service's fields; unknown ones are the model's own.
        takes: What the model takes beside text.
        names: Tools' names on the wire.
        manner: How it is asked.
    """
    generate = request.generate
    found = turns(
        request.messages,
        takes,
        request.lang,
        proven=lambda proof: is_from(proof, BY, model),
        within_results=lambda item: item.type in {"image", "file"},
    )
    conversation = continued(found, request.lang)
    body: Json = {"messages": _messages(conversation, names)}
    if conversation and conversation[0].role == "system" and conversation[0].text:
        body["system"] = [{"text": conversation[0].text}]
    body |= {key: value for key, value in generate.items() if key in _OWN and value is not None}
    if config := _config(generate):
        body["inferenceConfig"] = config
    _offer(body, request, names, forces=manner.forces)
    _more(body, model, generate, conversation)
    schema = schema_of(generate)
    if schema is not None:
        told = {"jsonSchema": {"schema": json.dumps(schema, ensure_ascii=False), "name": "answer"}}
        body["outputConfig"] = {
            **cast("Json", body.get("outputConfig") or {}),
            "textFormat": {"type": "json_schema", "structure": told},
        }
    if manner.cites and schema is None:
        _ask_for_citations(body["messages"])
    if manner.keeps:
        _mark(body, {"type": "default", **({"ttl": manner.keeps} if manner.keeps != "default" else {})}, model)
    return body | cast("Json", generate.get("extra_body") or {})


def _config(generate: Mapping[str, Any]) -> Json:
    config: Json = {_CONFIG[key]: value for key, value in generate.items() if key in _CONFIG and value is not None}
    stop: Any = generate.get("stop")
    words = [stop] if isinstance(stop, str) else list(stop or ())
    if stops := [str(word) for word in words if str(word).strip()]:
        config["stopSequences"] = stops
    return config


def _offer(body: Json, request: ChatRequest, names: ToolNames, *, forces: bool) -> None:
    """The tools. A conversation with calls needs them even where none is offered any more."""
    choice = str(request.generate.get("function_choice") or "auto")
    functions = list(checked_functions(request.functions)) if choice != "none" else []
    if choice not in {"auto", "none"} and not forces:
        functions, choice = [one for one in functions if one.get("name") == choice], "auto"
    tools = [_tool(names.wire_name(one["name"]), one.get("description"), one["parameters"]) for one in functions]
    if not tools:
        called = dict.fromkeys(
            str(block["toolUse"]["name"])
            for message in cast("list[Json]", body["messages"])
            for block in cast("list[Json]", message["content"])
            if "toolUse" in block
        )
        tools = [_tool(name, "Not on offer any more: do not call it.", {"type": "object"}) for name in called]
    if not tools:
        return
    offered: Json = {"tools": tools}
    if functions:
        chosen: Json = {"auto": {}} if choice in {"auto", "none"} else {"tool": {"name": names.wire_name(choice)}}
        offered["toolChoice"] = chosen
    body["toolConfig"] = offered


def _tool(name: str, description: Any, parameters: Any) -> Json:
    told = {"description": str(description)} if description else {}
    return {"toolSpec": {"name": name, **told, "inputSchema": {"json": parameters}}}


def _more(body: Json, model: str, generate: Mapping[str, Any], conversation: Sequence[Turn]) -> None:
    """What is the model's own: how it thinks, and settings that this protocol has no place for."""
    known = _CONFIG.keys() | _OWN | _ELSEWHERE | (OUR_KEYS - {"seed"})
    fields: Json = {key: value for key, value in generate.items() if key not in known and value is not None}
    fields |= cast("Json", generate.get("additionalModelRequestFields") or {})
    effort = str(generate.get("reasoning_effort") or "")
    if "thinking" in generate:
        fields["thinking"] = generate["thinking"]
    elif is_claude(model):
        _claude(fields, body, model, generate, conversation)
    elif _NOVA.search(model):
        if top := fields.pop("top_k", None):
            fields["inferenceConfig"] = {"topK": top}
        if effort and _NOVA_THINKS.search(model):
            enabled = {"type": "enabled", "maxReasoningEffort": "low" if effort == "minimal" else effort}
            fields["reasoningConfig"] = {"type": "disabled"} if effort == "none" else enabled
    elif effort and _EFFORT_AS_IS.search(model):
        fields["reasoning_effort"] = effort
    if fields:
        body["additionalModelRequestFields"] = fields


def _claude(fields: Json, body: Json, model: str, generate: Mapping[str, Any], conversation: Sequence[Turn]) -> None:
    """Thinking, in Anthropic's own words."""
    config = cast("Json", body.get("inferenceConfig") or {})
    forced = "tool" in cast("Json", cast("Json", body.get("toolConfig") or {}).get("toolChoice") or {})
    asked: Json = {"max_tokens": int(config.get("maxTokens") or 16_384)}
    if forced:
        asked["tool_choice"] = {"type": "tool"}
    think(asked, model, generate, conversation)
    fields |= {name: asked[name] for name in ("thinking", "output_config") if name in asked}
    if "thinking" in asked and "budget_tokens" in cast("Json", asked["thinking"]):
        body["inferenceConfig"] = {**config, "maxTokens": asked["max_tokens"]}


def _ask_for_citations(messages: Sequence[Json]) -> None:
    """Of all documents or of none: those within results cannot be cited."""
    blocks = [block for message in messages for block in cast("list[Json]", message["content"])]
    results = [part for block in blocks for part in cast("Json", block.get("toolResult") or {}).get("content") or ()]
    if not any("document" in part for part in cast("list[Json]", results)):
        for block in blocks:
            if "document" in block:
                block["document"]["citations"] = {"enabled": True}


def _mark(body: Json, point: Json, model: str) -> None:
    """Mark where beginnings of the prompt end that may come again: tools, instructions, and all of it."""
    mark = {"cachePoint": point}
    if is_claude(model) and (config := body.get("toolConfig")):
        cast("list[Json]", config["tools"]).append(mark)
    if system := cast("list[Json]", body.get("system") or []):
        system.append(mark)
    if (messages := cast("list[Json]", body["messages"])) and messages[-1]["role"] == "user":
        cast("list[Json]", messages[-1]["content"]).append(mark)


def _messages(conversation: Sequence[Turn], names: ToolNames) -> list[Json]:
    """The turns; results are parts of a user's, and neighbours of one role are one message."""
    written: list[Json] = []
    documents: set[str] = set()
    for turn in conversation:
        if turn.role == "system":
            continue
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = _blocks(turn, names, documents)
        if written and written[-1]["role"] == role:
            cast("list[Json]", written[-1]["content"]).extend(blocks)
        elif blocks:
            written.append({"role": role, "content": blocks})
    return written


def _blocks(turn: Turn, names: ToolNames, documents: set[str]) -> list[Json]:
    if turn.role == "assistant":
        return _said(turn, names) if turn.text or turn.calls else []  # a thought alone cannot be a turn
    blocks = [block for item in turn.items if (block := item_json(item, documents))]
    if turn.role == "tool":
        content = blocks or [{"text": "…"}]
        status = {"status": "error"} if turn.failed else {}
        return [{"toolResult": {"toolUseId": plain_id(turn.call_id), "content": content, **status}}]
    if not any("text" in block for block in blocks):
        blocks.append({"text": "…"})  # a turn cannot be empty, and a document comes with words
    return blocks


def _said(turn: Turn, names: ToolNames) -> list[Json]:
    blocks: list[Json] = []
    for piece in turn.said:
        match piece:
            case Thought():
                blocks += _thought(piece)
            case Made(call, _):
                about = {"toolUseId": plain_id(call.call_id), "name": names.wire_name(call.name)}
                blocks.append({"toolUse": {**about, "input": _arguments(call.arguments)}})
            case _ if piece.strip():
                blocks.append({"text": piece.rstrip()})
            case _:
                pass
    return blocks


def _thought(thought: Thought) -> list[Json]:
    """The block as it came; nothing where it is not the one that was signed."""
    what = opened(thought.proof, thought.text)
    if what.get("data"):
        return [{"reasoningContent": {"redactedContent": what["data"]}}]
    if not what.get("signature"):
        return []
    return [{"reasoningContent": {"reasoningText": {"text": thought.text, "signature": what["signature"]}}}]


def _arguments(text: str) -> Json:
    try:
        return read_object(text)
    except (ValueError, RecursionError):  # what the model wrote was no object: the service takes nothing else
        return {"arguments": text}


def plain_id(call_id: str) -> str:
    """The id of a call as the service takes it."""
    return _ID.sub("_", call_id)[:64] or "call"


def item_json(item: ContentItem, documents: set[str]) -> Json | None:
    """Text, a picture, a document or a video as the service's block; `None` for an empty text.

    Args:
        documents: The names that are taken: each document has one of its own.
    """
    if item.type == "text":
        return {"text": item.text} if (item.text or "").strip() else None
    inside = base64_of(str(item.value))
    if inside is None:
        return None
    kind, data = inside[0].partition("/")[2].lower(), {"bytes": inside[1]}
    if item.type == "image":
        return {"image": {"format": _IMAGES.get(kind, kind), "source": data}}
    if item.type == "video":
        return {"video": {"format": _VIDEOS.get(kind, kind), "source": data}}
    return {"document": {"format": "pdf", "name": _document_name(item, documents), "source": data}}


def _document_name(item: ContentItem, taken: set[str]) -> str:
    """Letters, figures, spaces and a few signs: the service refuses others, as part of the prompt."""
    plain = " ".join(_NAME.sub(" ", item_name(item).removesuffix(".pdf")).split())[:_LONGEST_NAME] or "document"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain} ({number})"
    taken.add(name)
    return name


@dataclass(slots=True)
class ConverseReader(WholeReader):
    """Parses one reply of the Converse protocol, streamed or whole."""

    _lines: EventLines = field(default_factory=EventFrames)
    _thought: list[str] = field(default_factory=list[str])
    _signature: str = ""
    _citations: list[Json] = field(default_factory=list[Json])

    def _chunk(self, chunk: Json, text: list[str], events: list[Event]) -> None:
        if "exception" in chunk:
            said = cast("Json", chunk.get("said") or {})
            self.error = {
                "type": str(chunk["exception"]),
                "message": str(said.get("message") or said.get("Message") or ""),
            }
        elif "output" in chunk:
            self._whole(chunk, text, events)
        for name, value in chunk.items():
            match name:
                case "messageStart":
                    self.begun = True
                case "contentBlockStart":
                    self._started(value, text, events)
                case "contentBlockDelta":
                    self._delta(value, text, events)
                case "contentBlockStop":
                    self._ended(text, events)
                case "messageStop":
                    self._stopped(value.get("stopReason"))
                case "metadata":
                    self.usage = usage_of(value.get("usage") or {})
                    self.done = self.reason is not None
                case _:
                    pass  # whatever comes to be

    def _started(self, told: Json, text: list[str], events: list[Event]) -> None:
        called = cast("Json", told.get("start") or {}).get("toolUse")
        if isinstance(called, dict):
            known = cast("Json", called)
            said = {"index": told.get("contentBlockIndex"), "id": known.get("toolUseId")}
            self._call({**said, "function": {"name": known.get("name")}}, text, events)

    def _delta(self, told: Json, text: list[str], events: list[Event]) -> None:
        delta = cast("Json", told.get("delta") or {})
        if (more := delta.get("text")) is not None:
            text.append(str(more))
        elif called := delta.get("toolUse"):
            said = {"index": told.get("contentBlockIndex"), "function": {"arguments": called.get("input")}}
            self._call(said, text, events)
        elif thought := delta.get("reasoningContent"):
            self._reason(thought, text, events)
        elif cited := delta.get("citation"):
            self._citations.append(cited)

    def _reason(self, thought: Json, text: list[str], events: list[Event]) -> None:
        if said := str(thought.get("text") or ""):
            self._thought.append(said)
            self._think(said, text, events)
        self._signature += str(thought.get("signature") or "")
        if data := thought.get("redactedContent"):
            self._prove(sealed(BY, self.model, {"data": data}), text, events)

    def _ended(self, text: list[str], events: list[Event]) -> None:
        """A block is over: a thought gets its proof, a text what it comes from."""
        citations, self._citations = self._citations, []
        self._cite([row for one in citations for row in of_converse(one)], text, events)
        thought, self._thought = "".join(self._thought), []
        if self._signature:
            self._prove(sealed(BY, self.model, {"signature": self._signature}, thought), text, events)
            self._signature = ""

    def _whole(self, reply: Json, text: list[str], events: list[Event]) -> None:
        """All blocks at once, as if they had come one by one."""
        self.begun = True
        message = cast("Json", cast("Json", reply["output"]).get("message") or {})
        for index, block in enumerate(cast("list[Json]", message.get("content") or [])):
            if "toolUse" in block:
                self._started({"start": block, "contentBlockIndex": index}, text, events)
            self._citations += cast("Json", block.get("citationsContent") or {}).get("citations") or []
            self._delta({"delta": _as_delta(block), "contentBlockIndex": index}, text, events)
            self._ended(text, events)
        self.usage = usage_of(cast("Json", reply.get("usage") or {}))
        self._stopped(reply.get("stopReason"))
        self.done = self.reason is not None

    def _stopped(self, reason: object) -> None:
        if reason:
            self.reason = _REASONS.get(str(reason), "stop")
        if str(reason).startswith("malformed"):
            self.error = {"type": str(reason), "message": "The model wrote a call that its service cannot read."}


def _as_delta(block: Json) -> Json:
    """A whole block as a stream has all of it."""
    if "toolUse" in block:
        given: Any = cast("Json", block["toolUse"]).get("input") or {}
        return {"toolUse": {"input": json.dumps(given, ensure_ascii=False)}}
    if "reasoningContent" in block:
        thought = cast("Json", block["reasoningContent"])
        return {"reasoningContent": {**cast("Json", thought.get("reasoningText") or {}), **thought}}
    if "citationsContent" in block:
        said = cast("list[Json]", cast("Json", block["citationsContent"]).get("content") or [])
        return {"text": "".join(str(one.get("text") or "") for one in said)}
    return block


def of_converse(citation: Json) -> list[Json]:
    """One of its citations: of a document, of what a tool found, or of a page of the web."""
    parts: list[Json] = citation.get("sourceContent") or []
    text = "".join(str(part.get("text") or "") for part in parts)
    title, place = citation.get("title"), cast("Json", citation.get("location") or {})
    if isinstance(web := place.get("web"), dict):
        return of_page(cast("Json", web).get("url"), title or cast("Json", web).get("domain"), text)
    source = str(citation.get("source") or "")
    if found := of_page(source, title, text):
        return found
    page: Any = place.get("documentPage")
    return of_document(title or source, text, cast("Json", page).get("start") if isinstance(page, dict) else None)


def usage_of(counts: Mapping[str, Any]) -> Usage:
    """The usage: what was read from the service's cache and written to it is part of the prompt."""
    cached, kept = _number(counts, "cacheReadInputTokens"), _number(counts, "cacheWriteInputTokens")
    asked, answered = _number(counts, "inputTokens") + cached + kept, _number(counts, "outputTokens")
    return Usage(
        prompt_tokens=asked,
        completion_tokens=answered,
        total_tokens=asked + answered,
        cached_tokens=cached,
        kept_tokens=kept,
    )


def _number(counts: Mapping[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if type(value) is int and value >= 0 else 0
