"""Google's `generateContent` protocol: requests to JSON, and chunks to events."""

from __future__ import annotations

import json
import mimetypes
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.request import OUR_KEYS
from core.llm.wire.anthropic import schema_of
from core.llm.wire.cited import MOST_CITED, of_gemini, of_page
from core.llm.wire.media_parts import base64_of
from core.llm.wire.proofs import is_from, opened, sealed
from core.llm.wire.reading import WholeReader
from core.llm.wire.tools import ToolNames, checked_functions
from core.llm.wire.turns import Made, Takes, Thought, Turn, continued, turns
from core.messages.content import ContentItem
from core.messages.events import Event, FinishReason, ItemAdded, MessageFinished
from core.messages.json_text import read_object
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.request import ChatRequest

Json: TypeAlias = dict[str, Any]

BY: Final = "gemini"
NO_PROOF: Final = "skip_thought_signature_validator"
"""What the service takes in place of the signature of a call that it did not make itself."""
_REASONS: Final[Mapping[str, FinishReason]] = {"STOP": "stop", "MAX_TOKENS": "length"}
_FILTERED: Final = re.compile(r"SAFETY|RECITATION|BLOCKLIST|PROHIBITED|SPII|MODEL_ARMOR")
_BROKEN: Final = re.compile(r"MALFORMED|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT_SIGNATURE")
_VERSION: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?", re.IGNORECASE)
_NO_THOUGHTS: Final = re.compile(r"image|tts|live|audio|embedding|robotics|computer", re.IGNORECASE)
_HALF: Final = 3  # bytes of half a character
_HALVES: Final = re.compile(rb"\xed[\xa0-\xaf].\xed[\xb0-\xbf].", re.DOTALL)
_NAMES: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "max_new_tokens": "maxOutputTokens",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_TOP: Final = {
    "safety_settings": "safetySettings",
    "safetySettings": "safetySettings",
    "cached_content": "cachedContent",
    "cachedContent": "cachedContent",
    "labels": "labels",
}
_ELSEWHERE: Final = frozenset(
    {
        *("response_format", "reasoning_effort", "stop", "stream", "stream_options", "user"),
        *("extra_body", "extra_headers", "extra_query", "generation_config", "generationConfig", "thinking_config"),
    }
)
_BUDGETS: Final = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24_576}
_LEVELS: Final = {"none": "minimal"}


def version_of(model: str) -> tuple[int, int]:
    """Which generation a model is of, by its name; (0, 0) where that does not tell."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def thinks(model: str) -> bool:
    """Whether it is known to think."""
    return version_of(model) >= (2, 5) and not _NO_THOUGHTS.search(model)


def body_json(model: str, request: ChatRequest, takes: Takes, names: ToolNames) -> Json:
    """The body of a request.

    Args:
        model: Its name, which decides how it is told to think.
        request: Its `generate` becomes `generationConfig`; unknown ones pass.
        takes: What the model takes beside text.
        names: Tools' names on the wire.
    """
    signs = version_of(model) >= (3, 0)
    found = turns(
        request.messages,
        takes,
        request.lang,
        proven=lambda proof: is_from(proof, BY, model),
        within_results=_in_results if signs else None,
    )
    conversation = continued(found, request.lang)
    body: Json = {"contents": _contents(conversation, names, signs=signs)}
    if conversation and conversation[0].role == "system" and conversation[0].text:
        body["systemInstruction"] = {"parts": [{"text": conversation[0].text}]}
    generate = request.generate
    body |= {_TOP[key]: value for key, value in generate.items() if key in _TOP and value is not None}
    if request.functions:
        _offer(body, request, names)
    if config := _config(model, generate):
        body["generationConfig"] = config
    return {**body, **cast("Json", generate.get("extra_body") or {})}


def _offer(body: Json, request: ChatRequest, names: ToolNames) -> None:
    """The tools, and which of them may be called."""
    declared = [
        {
            "name": names.wire_name(each["name"]),
            "description": str(each.get("description") or each["name"]),
            "parametersJsonSchema": each["parameters"],
        }
        for each in checked_functions(request.functions)
    ]
    body["tools"] = [{"functionDeclarations": declared}]
    choice = str(request.generate.get("function_choice") or "auto")
    if choice in {"auto", "none"}:
        how: Json = {"mode": choice.upper()}
    else:
        how = {"mode": "ANY", "allowedFunctionNames": [names.wire_name(choice)]}
    body["toolConfig"] = {"functionCallingConfig": how}


def _config(model: str, generate: Mapping[str, Any]) -> Json:
    config: Json = {
        _NAMES.get(key, key): value
        for key, value in generate.items()
        if key not in OUR_KEYS - {"seed"} and key not in _ELSEWHERE and key not in _TOP and value is not None
    }
    stop: Any = generate.get("stop")
    if stops := [stop] if isinstance(stop, str) else list(stop or ()):
        config["stopSequences"] = stops
    if schema := schema_of(generate):
        config |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
    elif isinstance(wanted := generate.get("response_format"), dict) and "json_object" in cast("Json", wanted).values():
        config["responseMimeType"] = "application/json"
    if thinking := _thinking(model, generate):
        config["thinkingConfig"] = thinking
    given: Json = generate.get("generationConfig") or generate.get("generation_config") or {}
    return {**config, **given}


def _thinking(model: str, generate: Mapping[str, Any]) -> Json:
    if isinstance(given := generate.get("thinking_config"), dict):
        return cast("Json", given)
    effort = str(generate.get("reasoning_effort") or "")
    if not effort and not thinks(model):
        return {}
    told: Json = {"includeThoughts": True}
    if not effort:
        return told
    if version_of(model) >= (3, 0):
        return {**told, "thinkingLevel": _LEVELS.get(effort, effort)}
    budget = _BUDGETS.get(effort, _BUDGETS["high"])
    return {**told, "thinkingBudget": budget} if budget else {"thinkingBudget": 0}


def _contents(conversation: Sequence[Turn], names: ToolNames, *, signs: bool) -> list[Json]:
    """The turns; results are parts of a user's, and neighbours of one role are one content."""
    written: list[Json] = []
    for turn in conversation:
        if turn.role == "system":
            continue
        role = "model" if turn.role == "assistant" else "user"
        parts = _parts(turn, names, signs=signs)
        if written and written[-1]["role"] == role:
            cast("list[Json]", written[-1]["parts"]).extend(parts)
        elif parts:
            written.append({"role": role, "parts": parts})
    return written


def _parts(turn: Turn, names: ToolNames, *, signs: bool) -> list[Json]:
    if turn.role == "tool":
        told: Json = {"id": turn.call_id, "name": names.wire_name(turn.name)}
        told["response"] = {"error" if turn.failed else "result": turn.text}
        if media := [part for item in turn.items if item.type != "text" for part in item_parts(item)]:
            told["parts"] = media
        return [{"functionResponse": told}]
    if turn.role == "user":
        parts = [part for item in turn.items for part in item_parts(item)]
        return parts or [{"text": "…"}]  # a turn cannot be empty
    parts: list[Json] = []
    unsigned = signs
    for piece in turn.said:
        match piece:
            case Made(call, proof):
                called: Json = {
                    "id": call.call_id,
                    "name": names.wire_name(call.name),
                    "args": _arguments(call.arguments),
                }
                signature = opened(proof).get("signature") or (NO_PROOF if unsigned else "")
                parts.append({"functionCall": called, **({"thoughtSignature": signature} if signature else {})})
                unsigned = False  # of calls that are made at once only the first is signed
            case Thought():  # summaries do not go back, what signs the text before does
                _sign(parts, str(opened(piece.proof).get("signature") or ""))
            case _ if piece:
                parts.append({"text": piece})
            case _:
                pass
    return parts


def _sign(parts: list[Json], signature: str) -> None:
    """Put the signature of a text to it; one that came without text goes back so."""
    if signature and parts and parts[-1].keys() == {"text"}:
        parts[-1]["thoughtSignature"] = signature
    elif signature:
        parts.append({"text": "", "thoughtSignature": signature})


def _arguments(text: str) -> Json:
    try:
        return read_object(text)
    except (ValueError, RecursionError):  # what the model wrote was no object: the service takes nothing else
        return {"arguments": text}


def _in_results(item: ContentItem) -> bool:
    return item.type in {"image", "file"}


def item_parts(item: ContentItem) -> list[Json]:
    """An item as the service's parts; none for an empty text."""
    match item.type:
        case "text":
            return [{"text": item.text}] if item.text else []
        case "video" if isinstance(item.video, list):
            return [_media(str(frame), "image/jpeg") for frame in item.video]
        case "audio" if isinstance(item.audio, dict):
            data = {"mimeType": f"audio/{item.audio.get('format') or 'wav'}", "data": item.audio.get("data")}
            return [{"inlineData": data}]
        case kind:
            usual = {"image": "image/jpeg", "audio": "audio/wav", "video": "video/mp4"}.get(kind, "application/pdf")
            return [_media(str(item.value), usual)]


def _media(address: str, usual: str) -> Json:
    inside = base64_of(address)
    if inside is not None:
        return {"inlineData": {"mimeType": inside[0], "data": inside[1]}}
    kind = mimetypes.guess_type(address.partition("?")[0])[0] or usual
    return {"fileData": {"fileUri": address, "mimeType": kind}}


@dataclass(slots=True)
class GeminiReader(WholeReader):
    """Parses one reply of `generateContent`, streamed or whole: both have the same form."""

    _made: int = 0
    _signature: str = ""
    _written: bytearray = field(default_factory=bytearray)  # the text so far: the service counts places in bytes
    _placed: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    _ahead: list[tuple[int, list[Json]]] = field(default_factory=list[tuple[int, list[Json]]])  # of text to come

    def close(self) -> list[Event]:
        """The last events; `done` says whether the reply was complete."""
        events = WholeReader.close(self)  # `slots=True` recreates the class, which breaks `super()`
        last = events[-1] if events else None
        if self._signature and isinstance(last, MessageFinished):
            events[-1] = replace(last, proof=sealed(BY, self.model, {"signature": self._signature}))
        return events

    def _chunk(self, chunk: Json, text: list[str], events: list[Event]) -> None:
        if error := chunk.get("error"):
            self.error = cast("Json", error) if isinstance(error, dict) else {"message": str(error)}
            return
        candidates = cast("list[Json]", chunk.get("candidates") or [])
        if candidates:
            self.begun = True
            content = cast("Json", candidates[0].get("content") or {})
            reason = str(candidates[0].get("finishReason") or "")
            cited = [*self._ahead, *self._fresh(_cited_places(candidates[0]))]
            cited = sorted(cited, key=lambda one: one[0])[:MOST_CITED]  # no more are told
            for part in cast("list[Json]", content.get("parts") or []):
                self._part(part, cited, text, events)
            self._ahead = [one for one in cited if one[0] > len(self._written) and not reason]
            for end, rows in cited[: len(cited) - len(self._ahead)]:
                self._cite(rows, text, events, self._after(end))
            self._stopped(reason)
        elif blocked := cast("Json", chunk.get("promptFeedback") or {}).get("blockReason"):
            self.error = {"status": "content_filter", "message": f"The service blocked the question ({blocked})."}
        if counts := chunk.get("usageMetadata"):
            self.begun = True
            self.usage = usage_of(cast("Json", counts))
        if not self.response_id:
            self.response_id = str(chunk.get("responseId") or "")

    def _part(self, part: Json, cited: list[tuple[int, list[Json]]], text: list[str], events: list[Event]) -> None:
        if called := part.get("functionCall"):
            signature = part.get("thoughtSignature")
            proof = sealed(BY, self.model, {"signature": signature}) if signature else ""
            arguments = json.dumps(called.get("args") or {}, ensure_ascii=False)
            function = {"name": called.get("name"), "arguments": arguments}
            said = {"index": self._made, "id": called.get("id"), "function": function, "proof": proof}
            self._made += 1
            self._call(said, text, events)
        elif inline := part.get("inlineData"):
            address = f"data:{inline.get('mimeType')};base64,{inline.get('data')}"
            if part.get("thought"):
                return  # a draft of a picture
            if str(inline.get("mimeType")).startswith("audio/"):
                self._say(text, events)
                events.append(ItemAdded(ContentItem(audio=address)))
                self.spoke = True
            else:
                self._picture(address, text, events)
        elif part.get("text") is not None:
            said = str(part["text"])
            if part.get("thought"):
                if said:
                    self._think(said, text, events)
                return
            self._tell(said, cited, text, events)
            self._signature = str(part.get("thoughtSignature") or self._signature)

    def _tell(self, said: str, cited: list[tuple[int, list[Json]]], text: list[str], events: list[Event]) -> None:
        """Text; what is cited within it stands behind its own place."""
        raw = said.encode("utf-8", "surrogatepass")  # half a character may come, and its other half after it
        self._written += raw
        self._join(len(self._written) - len(raw))
        begun = len(self._written) - len(raw)
        told = 0
        for place in [one for one in cited if begun < one[0] <= len(self._written)]:
            cited.remove(place)
            end = _behind_character(raw, place[0] - begun)
            text.append(raw[told:end].decode("utf-8", "surrogatepass"))
            self._cite(place[1], text, events)
            told = end
        if rest := raw[told:]:
            text.append(rest.decode("utf-8", "surrogatepass"))

    def _join(self, at: int) -> None:
        """Make one character of two halves that meet at a place: the service counts it as one."""
        around = slice(max(0, at - _HALF), at + _HALF)
        if _HALVES.fullmatch(self._written[around]):
            halves = self._written[around].decode("utf-8", "surrogatepass")
            self._written[around] = halves.encode("utf-16", "surrogatepass").decode("utf-16").encode()

    def _fresh(self, cited: list[tuple[int, list[Json]]]) -> list[tuple[int, list[Json]]]:
        """What was not cited before: a stream may tell all of it again with each piece."""
        found: list[tuple[int, list[Json]]] = []
        for end, rows in cited:
            new = [row for row in rows if (end, str(row["document_id"])) not in self._placed]
            self._placed |= {(end, str(row["document_id"])) for row in new}
            found += [(end, new)] if new else []
        return found

    def _after(self, end: int) -> int:
        """How many characters have been told after a place; 0 where it is not told."""
        if not 0 < end < len(self._written):
            return 0
        return len(self._written[_behind_character(self._written, end) :].decode("utf-8", "surrogatepass"))

    def _stopped(self, reason: str) -> None:
        if not reason:
            return
        if _BROKEN.search(reason):
            self.error = {"status": reason, "message": "The model wrote a call that its service cannot read."}
        self.reason = "content_filter" if _FILTERED.search(reason) else _REASONS.get(reason, "stop")


def _behind_character(raw: bytes | bytearray, at: int) -> int:
    """The end of the character in which a place lies, where it lies in one."""
    while at < len(raw) and raw[at] & 0xC0 == 0x80:
        at += 1
    return at


def _cited_places(candidate: Json) -> list[tuple[int, list[Json]]]:
    """What a candidate cites: where the text ends that it bears out, in bytes, and the passages."""
    told: Any = candidate.get("groundingMetadata")
    grounding = cast("Json", told) if isinstance(told, dict) else {}
    chunks = cast("list[Json]", grounding.get("groundingChunks") or [])
    places: list[tuple[int, list[Json]]] = []
    for support in cast("list[Json]", grounding.get("groundingSupports") or []):
        segment = cast("Json", support.get("segment") or {})
        numbers = [at for at in cast("list[Any]", support.get("groundingChunkIndices") or []) if type(at) is int]
        rows = [row for at in numbers if 0 <= at < len(chunks) for row in of_gemini(chunks[at], segment.get("text"))]
        places.append((_number(segment, "endIndex"), rows))
    if not places:
        places = [(0, [row for chunk in chunks for row in of_gemini(chunk)])]
    told = candidate.get("citationMetadata")
    recited = cast("Json", told) if isinstance(told, dict) else {}
    for one in cast("list[Json]", recited.get("citationSources") or recited.get("citations") or []):
        places.append((_number(one, "endIndex"), of_page(one.get("uri"), one.get("title"))))
    by_end: dict[int, list[Json]] = {}
    for end, rows in places:
        by_end.setdefault(end, []).extend(rows)
    return sorted((end, rows) for end, rows in by_end.items() if rows)


def usage_of(counts: Mapping[str, Any]) -> Usage:
    """The usage: what went into thinking is counted beside the answer, and belongs to it."""
    asked = _number(counts, "promptTokenCount") + _number(counts, "toolUsePromptTokenCount")
    thought = _number(counts, "thoughtsTokenCount")
    answered = _number(counts, "candidatesTokenCount") + thought
    return Usage(
        prompt_tokens=asked,
        completion_tokens=answered,
        total_tokens=asked + answered,
        reasoning_tokens=thought,
        cached_tokens=_number(counts, "cachedContentTokenCount"),
    )


def _number(counts: Mapping[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if type(value) is int and value >= 0 else 0
