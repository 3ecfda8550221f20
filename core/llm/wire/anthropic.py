"""Anthropic's Messages protocol: requests to JSON, and events to ours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from core.llm.request import OUR_KEYS, is_off, is_on
from core.llm.wire.cited import of_claude
from core.llm.wire.media_parts import base64_of
from core.llm.wire.proofs import is_from, opened, sealed
from core.llm.wire.reading import WholeReader
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

BY: Final = "anthropic"
REASONS: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "calls",
    "refusal": "content_filter",
}
_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d)(?!\d))?")
_BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
_LEAST_BUDGET: Final = 1024
_LONGEST_TITLE: Final = 500
_ID: Final = re.compile(r"[^A-Za-z0-9_-]")
_EFFORTS: Final = {"minimal": "low"}
_OURS: Final = (OUR_KEYS - {"seed"}) | {
    "reasoning_effort",
    "response_format",
    "stop",
    "stream",
    "max_completion_tokens",
}
_OURS_TOO: Final = frozenset({"extra_body", "extra_headers", "extra_query", "user"})
SAMPLING: Final = frozenset({"temperature", "top_p", "top_k"})
"""Parameters that versions of the API from 2026-10-21 on do not have."""


class Manner(NamedTuple):
    """How a model is asked.

    Args:
        caching: Whether beginnings of prompts are kept at the service, and for how long: `5m` or `1h`.
        forces: Whether a call can be forced; else the tool is offered alone.
        cites: Whether it is to cite the documents of questions.
    """

    caching: bool | str = True
    forces: bool = True
    cites: bool = True


def version_of(model: str) -> tuple[int, int]:
    """Which generation a model is of, by its name: `claude-opus-4-6` is (4, 6); the newest where it does not tell."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (9, 0)


def is_adaptive(model: str) -> bool:
    """Whether it decides by itself how long it thinks; earlier ones are told a number of tokens."""
    return version_of(model) >= (4, 6)


def can_stop_thinking(model: str) -> bool:
    """Whether thinking can be turned off; the newest models think always."""
    return version_of(model) < (5, 1) and not re.search(r"fable|mythos", model)


def least_thinking(model: str) -> Json:
    """The fields for as little thinking as the model can do with."""
    if can_stop_thinking(model):
        return {"thinking": {"type": "disabled"}}
    if "sonnet" in model:
        return {"thinking": {"type": "between_tools"}}
    return {"output_config": {"effort": "low"}}


def body_json(
    model: str,
    request: ChatRequest,
    takes: Takes,
    names: ToolNames,
    manner: Manner,
) -> Json:
    """The body of a request.

    Args:
        model: Its name.
        request: Its `generate` becomes the service's fields; unknown ones pass.
        takes: What the model takes beside text.
        names: Tools' names on the wire.
        manner: How it is asked.
    """
    caching = manner.caching
    generate = request.generate
    proven = turns(
        request.messages, takes, request.lang, proven=lambda p: is_from(p, BY, model), within_results=_within_results
    )
    conversation = continued(proven, request.lang)
    body: Json = {"model": model, "max_tokens": _longest(model, generate), "messages": _messages(conversation, names)}
    if conversation and conversation[0].role == "system" and conversation[0].text:
        body["system"] = [{"type": "text", "text": conversation[0].text}]
    body |= {key: value for key, value in generate.items() if key not in _OURS | _OURS_TOO and value is not None}
    if stops := _stops(generate.get("stop")):
        body["stop_sequences"] = stops
    if generate.get("user"):
        body["metadata"] = {"user_id": str(generate["user"])}
    if request.functions:
        _offer(body, request, names, forces=manner.forces)
    think(body, model, generate, conversation)
    schema = schema_of(generate)
    if manner.cites and schema is None:
        _ask_for_citations(body["messages"])
    if schema:
        body["output_config"] = {**body.get("output_config", {}), "format": {"type": "json_schema", "schema": schema}}
    body |= cast("Json", generate.get("extra_body") or {})
    if caching and not is_off(caching):
        _mark(body, {"type": "ephemeral", **({"ttl": caching} if isinstance(caching, str) else {})})
    body["stream"] = not is_off(generate.get("stream"))
    return body


def _ask_for_citations(messages: Sequence[Json]) -> None:
    """Of all documents or of none, as the service wants it: those within results cannot be cited."""
    blocks = [block for message in messages for block in cast("list[Json]", message["content"])]
    within = [part for block in blocks for part in cast("list[Json]", block.get("content") or ())]
    if any(part.get("type") == "document" for part in within):
        return
    for block in blocks:
        if block.get("type") == "document":
            block["citations"] = {"enabled": True}


def schema_of(generate: Mapping[str, Any]) -> Json | None:
    """The schema in a `response_format` of the type `json_schema`; `None` where there is none."""
    wanted: Any = generate.get("response_format")
    found: Any = cast("Json", wanted).get("json_schema") if isinstance(wanted, dict) else None
    schema: Any = cast("Json", found).get("schema") if isinstance(found, dict) else None
    return cast("Json", schema) if isinstance(schema, dict) else None


def _longest(model: str, generate: Mapping[str, Any]) -> int:
    given = generate.get("max_tokens") or generate.get("max_completion_tokens")
    return int(given) if given else 16_384 if version_of(model) >= (4, 0) else 4096


def _stops(given: Any) -> list[str]:
    words = [given] if isinstance(given, str) else list(given or ())
    return [str(word) for word in words if str(word).strip()]  # the service refuses white space alone


def _offer(body: Json, request: ChatRequest, names: ToolNames, *, forces: bool) -> None:
    """The tools, and which of them may be called."""
    choice = str(request.generate.get("function_choice") or "auto")
    if choice not in {"auto", "none"} and not forces:
        request = replace(request, functions=tuple(one for one in request.functions if one.get("name") == choice))
        choice = "auto"
    body["tools"] = [
        {
            "name": names.wire_name(each["name"]),
            **({"description": each["description"]} if each.get("description") else {}),
            "input_schema": each["parameters"],
        }
        for each in checked_functions(request.functions)
    ]
    chosen: Json = {"type": choice} if choice in {"auto", "none"} else {"type": "tool", "name": names.wire_name(choice)}
    parallel = request.generate.get("parallel_function_calls")
    if parallel is not None and choice != "none":
        chosen["disable_parallel_tool_use"] = not is_on(parallel)
    body["tool_choice"] = chosen


def think(body: Json, model: str, generate: Mapping[str, Any], conversation: Sequence[Turn]) -> None:
    """How long it thinks, and that its thoughts are told. What `generate_cfg` says of `thinking` itself stands."""
    if "thinking" in body:
        return
    effort = str(generate.get("reasoning_effort") or "")
    forced = cast("Json", body.get("tool_choice") or {}).get("type") == "tool"
    if is_adaptive(model):
        if effort == "none":
            body |= least_thinking(model)
        elif not forced and (effort or version_of(model) >= (5, 0)):
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
        if effort and effort != "none":
            config = cast("Json", body.get("output_config") or {})
            body["output_config"] = {"effort": _EFFORTS.get(effort, effort), **config}
        return
    if not effort or effort == "none" or forced or not _may_think(conversation) or version_of(model) < (3, 7):
        return
    budget = _BUDGETS.get(effort, _BUDGETS["medium"])
    if generate.get("max_tokens") or generate.get("max_completion_tokens"):
        budget = min(budget, int(body["max_tokens"]) // 2)
    elif body["max_tokens"] <= budget:
        body["max_tokens"] += budget
    if budget >= _LEAST_BUDGET:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _may_think(conversation: Sequence[Turn]) -> bool:
    """Whether calls that wait for the model were made with a thought that can be sent back: it must begin with one."""
    last = next((turn for turn in reversed(conversation) if turn.role in {"assistant", "user"}), None)
    if last is None or last.role != "assistant":
        return True
    first = next(iter(last.said), None)
    return isinstance(first, Thought) and bool(opened(first.proof, first.text))


def _mark(body: Json, control: Json) -> None:
    """Mark where beginnings of the prompt end that may come again: tools, instructions, and all of it."""
    if tools := cast("list[Json]", body.get("tools") or []):
        tools[-1]["cache_control"] = control
    if system := cast("list[Json]", body.get("system") or []):
        system[-1]["cache_control"] = control
    messages = cast("list[Json]", body["messages"])
    if messages:
        block = cast("list[Json]", messages[-1]["content"])[-1]
        if block.get("text") != "":
            block["cache_control"] = control


def _messages(conversation: Sequence[Turn], names: ToolNames) -> list[Json]:
    """The turns; results are parts of a user's, and neighbours of one role are one message."""
    written: list[Json] = []
    for turn in conversation:
        if turn.role == "system":
            continue
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = _blocks(turn, names)
        if written and written[-1]["role"] == role:
            cast("list[Json]", written[-1]["content"]).extend(blocks)
        elif blocks:
            written.append({"role": role, "content": blocks})
    return written


def _blocks(turn: Turn, names: ToolNames) -> list[Json]:
    if turn.role == "tool":
        content = [block for item in turn.items if (block := item_json(item))]
        result: Json = {"type": "tool_result", "tool_use_id": _plain_id(turn.call_id), "content": content}
        return [{**result, "is_error": True} if turn.failed else result]
    if turn.role == "user":
        blocks = [block for item in turn.items if (block := item_json(item))]
        return blocks or [{"type": "text", "text": "…"}]  # a turn cannot be empty
    if not turn.text and not turn.calls:
        return []  # a thought alone cannot be a turn
    blocks: list[Json] = []
    for piece in turn.said:
        match piece:
            case Thought():
                blocks += _thought(piece)
            case Made(call, _):
                arguments = _arguments(call.arguments)
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": _plain_id(call.call_id),
                        "name": names.wire_name(call.name),
                        "input": arguments,
                    }
                )
            case _ if piece.strip():
                blocks.append({"type": "text", "text": piece.rstrip()})
            case _:
                pass
    return blocks


def _thought(thought: Thought) -> list[Json]:
    """The block as it came; nothing where it is not the one that was signed."""
    what = opened(thought.proof, thought.text)
    if what.get("data"):
        return [{"type": "redacted_thinking", "data": what["data"]}]
    if what.get("signature"):
        return [{"type": "thinking", "thinking": thought.text, "signature": what["signature"]}]
    return []


def _arguments(text: str) -> Json:
    try:
        return read_object(text)
    except (ValueError, RecursionError):  # what the model wrote was no object: the service takes nothing else
        return {"arguments": text}


def _plain_id(call_id: str) -> str:
    return _ID.sub("_", call_id) or "call"


def _within_results(item: ContentItem) -> bool:
    return item.type in {"image", "file"}


def item_json(item: ContentItem) -> Json | None:
    """Text, a picture or a document as the service's block; `None` for an empty text."""
    if item.type == "text":
        return {"type": "text", "text": item.text} if (item.text or "").strip() else None
    address = str(item.value)
    inside = base64_of(address)
    source = {"type": "url", "url": address}
    if inside is not None:
        source = {"type": "base64", "media_type": inside[0], "data": inside[1]}
    if item.type != "file":
        return {"type": "image", "source": source}
    name = item_name(item)[:_LONGEST_TITLE]
    return {"type": "document", "source": source, **({"title": name} if name else {})}


@dataclass(slots=True)
class AnthropicReader(WholeReader):
    """Parses one reply of the Messages protocol, streamed or whole."""

    _counts: Json = field(default_factory=dict[str, Any])
    _thought: list[str] = field(default_factory=list[str])
    _signature: str = ""
    _citations: list[Json] = field(default_factory=list[Json])

    def _chunk(self, chunk: Json, text: list[str], events: list[Event]) -> None:
        match chunk.get("type"):
            case "content_block_delta":
                self._delta(chunk.get("index"), chunk["delta"], text, events)
            case "content_block_start":
                self._block(chunk.get("index"), chunk["content_block"], text, events)
            case "content_block_stop":
                self._ended(text, events)
            case "message_start":
                self.begun = True
                self.response_id = str(chunk["message"].get("id") or "")
                self._count(chunk["message"].get("usage"))
            case "message_delta":
                self._count(chunk.get("usage"))
                self._stopped(chunk["delta"].get("stop_reason"))
            case "message_stop":
                self.done = True
            case "message":
                self._whole(chunk, text, events)
            case "error":
                told: Any = chunk.get("error")
                self.error = cast("Json", told) if isinstance(told, dict) else {"message": str(told)}
            case _:
                pass  # `ping`, and whatever comes to be

    def _whole(self, message: Json, text: list[str], events: list[Event]) -> None:
        self.begun = True
        self.response_id = str(message.get("id") or "")
        for index, block in enumerate(cast("list[Json]", message.get("content") or [])):
            self._block(index, block, text, events)
            if block.get("type") == "tool_use":
                given = json.dumps(block.get("input") or {}, ensure_ascii=False)
                self._call({"index": index, "function": {"arguments": given}}, text, events)
            self._ended(text, events)
        self._count(message.get("usage"))
        self._stopped(message.get("stop_reason"))
        self.done = True

    def _block(self, index: Any, block: Json, text: list[str], events: list[Event]) -> None:
        match block.get("type"):
            case "text":
                if block.get("text"):
                    text.append(str(block["text"]))
                self._citations += cast("list[Json]", block.get("citations") or [])
            case "thinking":
                self._more(str(block.get("thinking") or ""), text, events)
                self._signature = str(block.get("signature") or "")
            case "redacted_thinking":
                self._prove(sealed(BY, self.model, {"data": block.get("data")}), text, events)
            case "tool_use":
                said = {"index": index, "id": block.get("id"), "function": {"name": block.get("name")}}
                self._call(said, text, events)
            case _:
                pass

    def _delta(self, index: Any, delta: Json, text: list[str], events: list[Event]) -> None:
        match delta.get("type"):
            case "text_delta":
                text.append(str(delta["text"]))
            case "input_json_delta":
                said = {"index": index, "function": {"arguments": delta.get("partial_json")}}
                self._call(said, text, events)
            case "thinking_delta":
                self._more(str(delta["thinking"]), text, events)
            case "signature_delta":
                self._signature += str(delta["signature"])
            case "citations_delta":
                self._citations.append(delta["citation"])
            case _:
                pass

    def _more(self, thought: str, text: list[str], events: list[Event]) -> None:
        if thought:
            self._thought.append(thought)
            self._think(thought, text, events)

    def _ended(self, text: list[str], events: list[Event]) -> None:
        """A block is over: a thought gets its proof, a text what it comes from."""
        citations, self._citations = self._citations, []
        self._cite([row for one in citations for row in of_claude(one)], text, events)
        thought, self._thought = "".join(self._thought), []
        if self._signature:
            self._prove(sealed(BY, self.model, {"signature": self._signature}, thought), text, events)
            self._signature = ""

    def _stopped(self, reason: object) -> None:
        if reason:
            self.reason = REASONS.get(str(reason), "stop")

    def _count(self, reported: object) -> None:
        if isinstance(reported, dict):
            counts = cast("Json", reported)
            self._counts |= {name: value for name, value in counts.items() if value is not None}
            self.usage = usage_of(self._counts)


def usage_of(counts: Mapping[str, Any]) -> Usage:
    """The usage: what was read from the service's cache and written to it is part of the prompt."""
    fresh, answered = _number(counts, "input_tokens"), _number(counts, "output_tokens")
    cached, kept = _number(counts, "cache_read_input_tokens"), _number(counts, "cache_creation_input_tokens")
    details: Any = counts.get("output_tokens_details")
    thought = _number(cast("Json", details), "thinking_tokens") if isinstance(details, dict) else 0
    asked = fresh + cached + kept
    return Usage(
        prompt_tokens=asked,
        completion_tokens=answered,
        total_tokens=asked + answered,
        reasoning_tokens=thought,
        cached_tokens=cached,
        kept_tokens=kept,
    )


def _number(counts: Mapping[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if type(value) is int and value >= 0 else 0
