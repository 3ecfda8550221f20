"""OpenAI's Responses protocol, nothing of it kept at the service: requests to JSON, and events to ours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.request import OUR_KEYS, is_off, is_on
from core.llm.usage import usage_from
from core.llm.wire.cited import end_of, of_openai
from core.llm.wire.media_parts import nameless
from core.llm.wire.proofs import is_from, opened, sealed
from core.llm.wire.reading import WholeReader
from core.llm.wire.tools import ToolNames, checked_functions
from core.llm.wire.turns import Made, Takes, Thought, Turn, continued, item_name, turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.request import ChatRequest
    from core.messages.content import ContentItem
    from core.messages.events import Event

Json: TypeAlias = dict[str, Any]

BY: Final = "openai_responses"
_THINKS: Final = re.compile(r"(?:^|[/.])(?:o[134]\b|gpt-(?:[5-9]|oss)|codex)", re.IGNORECASE)
_OTHER_NAMES: Final = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "max_new_tokens": "max_output_tokens",
}
_ELSEWHERE: Final = frozenset(
    {"response_format", "reasoning_effort", "stop", "stream_options", "extra_body", "extra_headers", "extra_query"}
)
_ENCRYPTED: Final = "reasoning.encrypted_content"


def thinks(model: str) -> bool:
    """Whether it is known to think."""
    return bool(_THINKS.search(model)) and "chat" not in model.lower()


def body_json(model: str, request: ChatRequest, takes: Takes, names: ToolNames, *, tells: bool = True) -> Json:
    """The body of a request.

    Args:
        model: Its name.
        request: Its `generate` becomes the service's fields; unknown ones pass.
        takes: What the model takes beside text.
        names: Tools' names on the wire.
        tells: Whether a summary of what it thinks is asked for.
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
    body: Json = {"model": model, "input": [item for turn in conversation for item in _items(turn, names)]}
    if conversation and conversation[0].role == "system" and conversation[0].text:
        body["instructions"] = conversation[0].text
    given = {key: value for key, value in generate.items() if key not in OUR_KEYS - {"seed"} and value is not None}
    body |= {_OTHER_NAMES.get(key, key): value for key, value in given.items() if key not in _ELSEWHERE}
    body["store"] = is_on(generate.get("store", False))
    if request.functions:
        _offer(body, request, names)
    effort = generate.get("reasoning_effort")
    if thinks(model) or effort:
        told: Json = {**({"effort": effort} if effort else {}), **({"summary": "auto"} if tells else {})}
        body["reasoning"] = {**told, **cast("Json", generate.get("reasoning") or {})}
        body["include"] = list(dict.fromkeys([*cast("list[str]", generate.get("include") or []), _ENCRYPTED]))
        if not body["reasoning"]:
            del body["reasoning"]
    if wanted := _format(generate.get("response_format")):
        body["text"] = {**cast("Json", generate.get("text") or {}), "format": wanted}
    body |= cast("Json", generate.get("extra_body") or {})
    body["stream"] = not is_off(generate.get("stream"))
    return body


def _format(wanted: Any) -> Json | None:
    """How the answer is held to a form; the schema stands beside its type here."""
    if not isinstance(wanted, dict):
        return None
    asked = cast("Json", wanted)
    inner: Any = asked.get("json_schema")
    return {"type": "json_schema", **cast("Json", inner)} if isinstance(inner, dict) else asked


def _offer(body: Json, request: ChatRequest, names: ToolNames) -> None:
    """The tools, and which of them may be called."""
    body["tools"] = [
        {"type": "function", "strict": False, **each, "name": names.wire_name(each["name"])}
        for each in checked_functions(request.functions)
    ]
    choice = str(request.generate.get("function_choice") or "auto")
    named = {"type": "function", "name": names.wire_name(choice)}
    body["tool_choice"] = choice if choice in {"auto", "none"} else named
    if "parallel_function_calls" in request.generate:
        body["parallel_tool_calls"] = is_on(request.generate["parallel_function_calls"])


def _items(turn: Turn, names: ToolNames) -> list[Json]:
    match turn.role:
        case "system":
            return []
        case "tool":
            only_text = all(item.type == "text" for item in turn.items)
            output = turn.text if only_text else [item_json(item) for item in turn.items if item.value]
            return [{"type": "function_call_output", "call_id": turn.call_id, "output": output}]
        case "user":
            return [{"role": "user", "content": [item_json(item) for item in turn.items]}]
        case _:
            return _said(turn, names)


def _said(turn: Turn, names: ToolNames) -> list[Json]:
    items: list[Json] = []
    thought: list[Json] = []
    for piece in turn.said:
        match piece:
            case Thought():
                thought = _thought(piece)
            case Made(call, _):
                called = {"call_id": call.call_id, "name": names.wire_name(call.name), "arguments": call.arguments}
                items += [*thought, {"type": "function_call", **called}]
                thought = []
            case _:
                items += [*thought, {"role": "assistant", "content": piece}]
                thought = []
    return items  # a thought that led to nothing is refused


def _thought(thought: Thought) -> list[Json]:
    """The item as it came; nothing where its text was changed."""
    what = opened(thought.proof, thought.text)
    if not what:
        return []
    summary = [{"type": "summary_text", "text": thought.text}] if thought.text and not what.get("raw") else []
    return [{"type": "reasoning", "id": what.get("id"), "summary": summary, "encrypted_content": what.get("secret")}]


def item_json(item: ContentItem) -> Json:
    """Text, a picture, a document or a recording as the service's part."""
    match item.type:
        case "text":
            return {"type": "input_text", "text": item.text or ""}
        case "image":
            return {"type": "input_image", "image_url": str(item.image), "detail": "auto"}
        case "file":
            address = str(item.file)
            if address.startswith("data:"):
                return {
                    "type": "input_file",
                    "filename": item_name(item) or "document.pdf",
                    "file_data": nameless(address),
                }
            return {"type": "input_file", "file_url": address}
        case _:
            from core.llm.wire.openai import item_json as part

            return part(item)


@dataclass(slots=True)
class ResponsesReader(WholeReader):
    """Parses one reply of the Responses protocol, streamed or whole."""

    _thought: list[str] = field(default_factory=list[str])
    _raw: bool = False
    _parts: set[tuple[Any, Any]] = field(default_factory=set[tuple[Any, Any]])
    _told: set[Any] = field(default_factory=set[Any])
    _noted: set[str] = field(default_factory=set[str])

    def _chunk(self, chunk: Json, text: list[str], events: list[Event]) -> None:
        kind = str(chunk.get("type") or "")
        if kind.startswith("response."):
            self.begun = True
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                text.append(str(chunk["delta"]))
                self._told.add(chunk.get("output_index"))
            case "response.function_call_arguments.delta":
                said = {"index": chunk.get("output_index"), "function": {"arguments": chunk["delta"]}}
                self._told.add(chunk.get("output_index"))
                self._call(said, text, events)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._more(chunk, text, events)
            case "response.output_item.added":
                self._added(chunk.get("output_index"), chunk["item"], text, events)
            case "response.output_item.done":
                self._ended(chunk.get("output_index"), chunk["item"], text, events)
            case "response.created":
                self.response_id = str(chunk["response"].get("id") or "")
            case "response.completed" | "response.incomplete" | "response.failed":
                self._over(chunk["response"])
            case "error":
                told: Any = chunk.get("error")
                self.error = cast("Json", told) if isinstance(told, dict) else {**chunk, "type": ""}
            case _:
                self._whole(chunk, text, events)

    def _whole(self, chunk: Json, text: list[str], events: list[Event]) -> None:
        """What is cited, a reply that came at once, or an event that says nothing more."""
        if chunk.get("type") == "response.output_text.annotation.added":
            self._note(chunk.get("output_index"), chunk["annotation"], text, events)
        elif chunk.get("object") == "response":
            self.begun = True
            self.response_id = str(chunk.get("id") or "")
            for index, item in enumerate(cast("list[Json]", chunk.get("output") or [])):
                self._added(index, item, text, events)
                self._ended(index, item, text, events)
            self._over(chunk)
        elif isinstance(error := chunk.get("error"), dict):
            self.error = cast("Json", error)

    def _more(self, chunk: Json, text: list[str], events: list[Event]) -> None:
        part = (chunk.get("output_index"), chunk.get("summary_index", chunk.get("content_index")))
        self._raw = "content_index" in chunk
        new = part not in self._parts
        self._parts.add(part)
        self._grow(("\n\n" if new and self._thought else "") + str(chunk["delta"]), text, events)

    def _grow(self, thought: str, text: list[str], events: list[Event]) -> None:
        self._thought.append(thought)
        self._think(thought, text, events)

    def _added(self, index: Any, item: Json, text: list[str], events: list[Event]) -> None:
        if item.get("type") == "function_call":
            said = {"index": index, "id": item.get("call_id"), "function": {"name": item.get("name")}}
            self._call(said, text, events)

    def _ended(self, index: Any, item: Json, text: list[str], events: list[Event]) -> None:
        """An item is over; what did not come in pieces is told now."""
        match item.get("type"):
            case "reasoning":
                if not self._thought and (whole := "\n\n".join(_texts(item.get("summary")))):
                    self._grow(whole, text, events)
                thought, self._thought = "".join(self._thought), []
                what = {"id": item.get("id"), "secret": item.get("encrypted_content"), "raw": self._raw}
                if what["secret"]:
                    self._prove(sealed(BY, self.model, what, thought), text, events)
            case "function_call" if index not in self._told:
                said = {"index": index, "function": {"arguments": item.get("arguments")}}
                self._call(said, text, events)
            case "message":
                self._message(index, item, text, events)
            case "image_generation_call" if item.get("result"):
                self._picture(f"data:image/png;base64,{item['result']}", text, events)
            case _:
                pass

    def _message(self, index: Any, item: Json, text: list[str], events: list[Event]) -> None:
        """A whole message: its text where it has not come yet, and what it cites."""
        parts = cast("list[Json]", item.get("content") or [])
        for part in parts:
            said = str(part.get("text") or part.get("refusal") or "") if index not in self._told else ""
            begun = 0
            noted = cast("list[Any]", part.get("annotations") or [])
            notes = [cast("Json", one) for one in noted if isinstance(one, dict)]
            for note in sorted(notes, key=lambda one: end_of(one) or 0):
                at = end_of(note)
                end = len(said) if at is None else min(len(said), at)
                text.append(said[begun:end])
                begun = max(begun, end)
                self._note(index, note, text, events)
            text.append(said[begun:])

    def _note(self, index: Any, note: Json, text: list[str], events: list[Event]) -> None:
        """What is cited, once: it comes with the text, and again with the whole message."""
        about = f"{index} {json.dumps(note, sort_keys=True)}"
        if about not in self._noted:
            self._noted.add(about)
            self._cite(of_openai(note), text, events)

    def _over(self, response: Json) -> None:
        self.usage = usage_from(response.get("usage")) or self.usage
        error = response.get("error")
        if isinstance(error, dict):
            self.error = cast("Json", error)
            return
        why = cast("Json", response.get("incomplete_details") or {}).get("reason")
        self.reason = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(str(why), "stop")  # pyright: ignore[reportAttributeAccessIssue]
        self.done = True


def _texts(parts: Any) -> list[str]:
    found: Sequence[Any] = cast("Sequence[Any]", parts) if isinstance(parts, list) else ()
    dicts: list[Mapping[str, Any]] = [cast("Json", part) for part in found if isinstance(part, dict)]
    return [str(part.get("text") or part.get("refusal") or "") for part in dicts]
