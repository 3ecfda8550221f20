"""What a scripted model says: replies as values, and their form in the OpenAI protocol."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

_WORDS = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the server, and how it comes.

    Args:
        text: The answer; a string is sent word by word, a list piece by piece.
        reasoning: What comes before it as `reasoning_content`.
        calls: Tool calls: name and arguments (a dict, or text that goes out as it is).
        cites: What the service cites: behind which piece of the text, from 0, and what: `{"url", "title", "text"}` for
            a page, `{"document", "page", "text"}` for a document.
        images: Pictures that it draws, as bytes of PNG or as addresses.
        audio: What it says aloud, as bytes of a recording.
        usage: Tokens of question and answer; words are counted where it is left out.
        reasoning_tokens: How many of the answer's went into thinking.
        cached_tokens: How many of the question's were at hand.
        finish: The finish reason; worked out where it is left out.
        status: HTTP status; from 400 on `error` is the body.
        error: The error as the service words it.
        headers: Further headers, `Retry-After` for one.
        delay: Seconds before the first byte.
        pace: Seconds between two chunks.
        split: Bytes per write, so that characters and lines come apart anywhere; 0 for whole chunks.
        argument_size: Characters of a call's arguments per chunk.
        cut_after: Drop the connection after that many chunks.
        hang: Never answer.
        hang_after: Stop sending after that many chunks, and keep the connection.
        body: Send this instead, as `content_type`.
        content_type: Of `body`.
        crlf: End lines as Windows does.
        comments: Put a comment before each event, and fields beside `data`.
        done: Whether the end is marked (`[DONE]`).
        error_after: Send `error` as an event after that many chunks, and end.
        stall_after: Pause after that many chunks,
        stall: for so many seconds.
        reset_after: Reset the connection after that many chunks.
        silent: Reset the connection instead of answering.
    """

    text: str | Sequence[str] = ""
    reasoning: str | Sequence[str] = ""
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    cites: Sequence[tuple[int, Mapping[str, Any]]] = ()
    images: Sequence[bytes | str] = ()
    audio: bytes = b""
    usage: tuple[int, int] | None = None
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    finish: str | None = None
    status: int = 200
    error: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    pace: float = 0.0
    split: int = 0
    argument_size: int = 8
    cut_after: int | None = None
    hang: bool = False
    hang_after: int | None = None
    body: str | bytes | None = None
    content_type: str = "application/json"
    crlf: bool = False
    comments: bool = False
    done: bool = True
    error_after: int | None = None
    stall_after: int | None = None
    stall: float = 0.0
    reset_after: int | None = None
    silent: bool = False


Request: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[Request], Reply]
Script: TypeAlias = Reply | Answer | Sequence[Reply | Answer]


def refusal(status: int, message: str = "", *, code: str = "", retry_after: str = "") -> Reply:
    """An error as OpenAI words it."""
    error = {"message": message or f"The script answers {status}.", "type": "scripted", "code": code or None}
    return Reply(status=status, error={"error": error}, headers={"Retry-After": retry_after} if retry_after else {})


def html_page(status: int = 200) -> Reply:
    """What a web server says that is no model service."""
    page = "<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>"
    return Reply(status=status, body=page, content_type="text/html; charset=utf-8")


def reply_from(raw: Mapping[str, Any]) -> Reply:
    """A reply from JSON; calls are `{"name", "arguments"}`.

    Raises:
        TypeError: A key that no reply has.
    """
    fields = dict(raw)
    calls = cast("list[dict[str, Any]]", fields.pop("calls", []))
    return Reply(calls=[(call["name"], call.get("arguments", {})) for call in calls], **fields)


def pieces(text: str | Sequence[str]) -> list[str]:
    """The chunks of a text: its words, or the pieces that were given."""
    return _WORDS.findall(text) if isinstance(text, str) else list(text)


def cited_behind(reply: Reply, at: int) -> list[Mapping[str, Any]]:
    """What is cited behind one piece of the text."""
    return [one for piece, one in reply.cites if piece == at]


def _annotation(cited: Mapping[str, Any]) -> dict[str, Any]:
    about = {"url": cited["url"], "title": cited.get("title", ""), "start_index": 0, "end_index": 0}
    return {"type": "url_citation", "url_citation": about}


def chunks(reply: Reply, request: Request, reply_id: str) -> list[bytes]:
    """The reply as server-sent events, one `bytes` each, `[DONE]` last."""
    head = {
        "id": reply_id,
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": str(request.get("model", "scripted")),
    }
    start = json.dumps(head, ensure_ascii=False)[:-1] + ', "choices": [{"index": 0, "delta": '
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in pieces(reply.reasoning)]
    for at, piece in enumerate(pieces(reply.text)):
        deltas.append({"content": piece})
        deltas += [{"annotations": [_annotation(one)]} for one in cited_behind(reply, at) if one.get("url")]
    deltas += [{"images": [_image_part(picture)]} for picture in reply.images]
    deltas += _audio_deltas(reply_id, reply.audio)
    for index, (name, arguments) in enumerate(reply.calls):
        deltas += _call_deltas(f"call_{reply_id}_{index}", index, name, arguments_text(arguments), reply.argument_size)
    events = [
        f'data: {start}{json.dumps(delta, ensure_ascii=False)}, "finish_reason": null}}]}}\n\n' for delta in deltas
    ]
    events.append(f'data: {start}{{}}, "finish_reason": "{finish}"}}]}}\n\n')
    options = cast("dict[str, Any]", request.get("stream_options") or {})
    if options.get("include_usage"):
        said = json.dumps({**head, "choices": [], "usage": usage(reply, request)}, ensure_ascii=False)
        events.append(f"data: {said}\n\n")
    return [event.encode() for event in events] + [b"data: [DONE]\n\n"]


def completion(reply: Reply, request: Request, reply_id: str) -> dict[str, Any]:
    """The reply as one JSON object, for a request that asks for no stream."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(pieces(reply.text))}
    if reply.reasoning:
        message["reasoning_content"] = "".join(pieces(reply.reasoning))
    if noted := [_annotation(one) for _, one in reply.cites if one.get("url")]:
        message["annotations"] = noted
    if reply.images:
        message["images"] = [_image_part(picture) for picture in reply.images]
    if reply.audio:
        message["audio"] = {"id": f"audio_{reply_id}", "data": b64encode(reply.audio).decode("ascii")}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{reply_id}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": arguments_text(arguments)},
            }
            for index, (name, arguments) in enumerate(reply.calls)
        ]
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    return {
        "id": reply_id,
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": str(request.get("model", "scripted")),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage(reply, request),
    }


def usage(reply: Reply, request: Request) -> dict[str, Any]:
    """What the service says about tokens: words, unless the script knows better."""
    asked, answered = reply.usage or (
        sum(len(str(message.get("content") or "").split()) for message in request.get("messages", ())),
        len(pieces(reply.text)) + len(pieces(reply.reasoning)),
    )
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }


def arguments_text(arguments: Mapping[str, Any] | str) -> str:
    """A call's arguments as JSON text; text stays as it is."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def picture_address(picture: bytes | str) -> str:
    """A drawn picture as the service sends it: its address, or itself as a `data:` URI."""
    if isinstance(picture, str):
        return picture
    return f"data:image/png;base64,{b64encode(picture).decode('ascii')}"


def recording_address(recording: bytes) -> str:
    """What was said aloud as a `data:` URI."""
    return f"data:audio/wav;base64,{b64encode(recording).decode('ascii')}"


def _image_part(picture: bytes | str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": picture_address(picture)}}


def _audio_deltas(reply_id: str, audio: bytes) -> list[dict[str, Any]]:
    """A recording in pieces of base64 that no decoder can take one by one."""
    data = b64encode(audio).decode("ascii")
    return [{"audio": {"id": f"audio_{reply_id}", "data": data[at : at + 1021]}} for at in range(0, len(data), 1021)]


def _call_deltas(call_id: str, index: int, name: str, arguments: str, size: int) -> list[dict[str, Any]]:
    first = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [arguments[at : at + size] for at in range(0, len(arguments), max(size, 1))]
    return [
        {"tool_calls": [first]},
        *({"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest),
    ]
