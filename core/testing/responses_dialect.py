"""OpenAI's Responses protocol, spoken by the test server, which refuses what the service refuses."""

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
        *(
            "model",
            "input",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "store",
            "include",
            "stream",
        ),
        *("reasoning", "text", "max_output_tokens", "temperature", "top_p", "metadata", "previous_response_id"),
        *("prompt_cache_key", "safety_identifier", "service_tier", "truncation", "top_logprobs", "user", "background"),
        *("max_tool_calls", "conversation", "prompt", "stream_options", "prompt_cache_retention"),
    }
)
_THINKS = re.compile(r"o[134]\b|gpt-5|gpt-oss|scripted-thinking")
_ENCRYPTED = "reasoning.encrypted_content"


@dataclass(slots=True)
class ResponsesDialect:
    """`/v1/responses`.

    Args:
        signed: What went out as encrypted thoughts, with their ids.
    """

    signed: dict[str, str] = field(default_factory=dict[str, str])

    def takes(self, asked: Asked) -> bool:
        """A question has this path."""
        return asked.method == "POST" and asked.path.endswith("/responses")

    def key(self, asked: Asked) -> str:
        """The bearer's."""
        return asked.headers.get("authorization", "").removeprefix("Bearer ")

    def request(self, asked: Asked, body: Request) -> Request:
        """Messages and tools where scripts look for them."""
        del asked
        messages: list[Json] = []
        if instructions := body.get("instructions"):
            messages.append({"role": "system", "content": instructions})
        for item in _items(body):
            if item.get("type") == "function_call_output":
                messages.append(
                    {"role": "tool", "tool_call_id": item.get("call_id"), "content": _text(item.get("output"))}
                )
            elif item.get("role"):
                messages.append({"role": item["role"], "content": _text(item.get("content"))})
        tools = [{"type": "function", "function": tool} for tool in dicts(body.get("tools"))]
        return {**body, "messages": messages, "tools": tools}

    def fault(self, asked: Asked, body: Request) -> str:
        """What the service refuses."""
        del asked
        if extra := extra_field(body, _KNOWN):
            return f"Unknown parameter: '{extra}'."
        model = str(body.get("model"))
        if _ENCRYPTED in (body.get("include") or ()) and not _THINKS.search(model):
            return "Encrypted content is not supported with this model."
        if "reasoning" in body and not _THINKS.search(model):
            return "Unsupported parameter: 'reasoning.effort' is not supported with this model."
        return self._of_items(_items(body))

    def _of_items(self, items: list[Json]) -> str:
        if not items:
            return "One of 'input' or 'previous_response_id' must be provided."
        waiting: set[str] = set()
        for at, item in enumerate(items):
            match item.get("type"):
                case "reasoning":
                    follows = items[at + 1] if at + 1 < len(items) else {}
                    if follows.get("type") != "function_call" and follows.get("role") != "assistant":
                        return "Item of type 'reasoning' was provided without its required following item."
                    if self.signed.get(str(item.get("encrypted_content"))) != item.get("id"):
                        return f"The encrypted content for item {item.get('id')} could not be verified."
                case "function_call":
                    waiting.add(str(item.get("call_id")))
                case "function_call_output":
                    if item.get("call_id") not in waiting:
                        return f"No tool call found for function call output with call_id {item.get('call_id')}."
                    waiting.discard(str(item["call_id"]))
                case _ if waiting:
                    return f"No tool output found for function call {waiting.pop()}."
                case _:
                    pass
        return f"No tool output found for function call {waiting.pop()}." if waiting else ""

    def streams(self, asked: Asked, body: Request) -> bool:
        """`stream` says so."""
        del asked
        return bool(body.get("stream"))

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """Items, each added, grown and done."""
        head = _head(body, reply_id)
        told: list[Json] = [{"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}]
        output = self._output(reply, reply_id, body)
        for index, item in enumerate(output):
            about = {"output_index": index, "item_id": item["id"]}
            told.append({"type": "response.output_item.added", "output_index": index, "item": _begun(item)})
            told += [{**delta, **about} for delta in _deltas(item, reply)]
            told.append({"type": "response.output_item.done", "output_index": index, "item": item})
        told.append({"type": _ending(reply), "response": {**head, **_over(reply, body), "output": output}})
        return [event({**one, "sequence_number": number}) for number, one in enumerate(told)]

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """All items at once."""
        said = {**_head(body, reply_id), **_over(reply, body), "output": self._output(reply, reply_id, body)}
        return json.dumps(said, ensure_ascii=False).encode()

    def error(self, reply: Reply) -> bytes:
        """As it stands."""
        return OpenAIDialect().error(reply)

    def error_event(self, reply: Reply) -> bytes:
        """As an event of its own."""
        said = told(reply)
        about = {"code": said.get("code"), "message": said.get("message"), "param": None, "sequence_number": 9}
        return event({"type": "error", **about})

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """Nothing: its list of models is OpenAI's."""
        del asked, models
        return None

    def _output(self, reply: Reply, reply_id: str, body: Request) -> list[Json]:
        items: list[Json] = []
        if reply.reasoning or reply.calls:
            words = "".join(pieces(reply.reasoning))
            summary = [{"type": "summary_text", "text": words}] if words else []
            thought: Json = {"type": "reasoning", "id": f"rs_{reply_id}", "summary": summary}
            if _ENCRYPTED in (body.get("include") or ()):
                thought["encrypted_content"] = f"hidden+{reply_id}/{len(self.signed)}=="
                self.signed[thought["encrypted_content"]] = thought["id"]
            items += [thought] if words or "encrypted_content" in thought else []
        if text := "".join(pieces(reply.text)):
            content: list[Json] = [{"type": "output_text", "text": text, "annotations": _annotations(reply)}]
            message = {"type": "message", "id": f"msg_{reply_id}", "status": "completed", "role": "assistant"}
            items.append({**message, "content": content})
        for index, (name, arguments) in enumerate(reply.calls):
            called = {"call_id": f"call_{reply_id}_{index}", "name": name, "arguments": arguments_text(arguments)}
            items.append({"type": "function_call", "id": f"fc_{reply_id}_{index}", "status": "completed", **called})
        return items


def _items(body: Request) -> list[Json]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else dicts(given)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(str(part.get("text") or "") for part in dicts(content))


def _begun(item: Json) -> Json:
    empty: dict[str, Json] = {
        "reasoning": {"summary": []},
        "message": {"content": []},
        "function_call": {"arguments": ""},
    }
    return {**item, **empty[item["type"]], **({} if item["type"] == "reasoning" else {"status": "in_progress"})}


def _deltas(item: Json, reply: Reply) -> list[Json]:
    match item["type"]:
        case "reasoning":
            words = pieces(reply.reasoning)
            return [
                {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": one} for one in words
            ]
        case "message":
            part: Json = {"type": "output_text", "text": "", "annotations": []}
            grown: list[Json] = []
            for at, one in enumerate(pieces(reply.text)):
                grown.append({"type": "response.output_text.delta", "content_index": 0, "delta": one, "logprobs": []})
                noted = (_annotation(reply, at, cited) for cited in cited_behind(reply, at))
                added = {"type": "response.output_text.annotation.added", "content_index": 0}
                grown += [{**added, "annotation": note} for note in noted]
            done = {"type": "response.content_part.done", "content_index": 0, "part": item["content"][0]}
            return [{"type": "response.content_part.added", "content_index": 0, "part": part}, *grown, done]
        case _:
            text, size = str(item["arguments"]), max(reply.argument_size, 1)
            parts = [text[at : at + size] for at in range(0, len(text), size)]
            pieced: list[Json] = [{"type": "response.function_call_arguments.delta", "delta": part} for part in parts]
            return [*pieced, {"type": "response.function_call_arguments.done", "arguments": text, "name": item["name"]}]


def _annotations(reply: Reply) -> list[Json]:
    return [_annotation(reply, at, cited) for at, cited in reply.cites]


def _annotation(reply: Reply, at: int, cited: Mapping[str, Any]) -> Json:
    end = len("".join(pieces(reply.text)[: at + 1]))
    if cited.get("url"):
        place = {"start_index": max(0, end - 1), "end_index": end}
        return {"type": "url_citation", **place, "url": cited["url"], "title": cited.get("title", "")}
    return {"type": "file_citation", "index": end, "file_id": "file-1", "filename": cited.get("document", "")}


def _head(body: Request, reply_id: str) -> Json:
    about = {
        "id": f"resp_{reply_id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": str(body.get("model")),
    }
    more: Json = {
        "tool_choice": "auto",
        "tools": [],
        "parallel_tool_calls": True,
        "error": None,
        "incomplete_details": None,
    }
    return {**about, **more, "status": "completed"}


def _ending(reply: Reply) -> str:
    return "response.incomplete" if reply.finish in {"length", "content_filter"} else "response.completed"


def _over(reply: Reply, body: Request) -> Json:
    said = usage(reply, {"messages": [{"content": _text(one.get("content"))} for one in _items(body)]})
    counts: Json = {
        "input_tokens": said["prompt_tokens"],
        "input_tokens_details": said["prompt_tokens_details"],
        "output_tokens": said["completion_tokens"],
        "output_tokens_details": cast("Json", said["completion_tokens_details"]),
        "total_tokens": said["total_tokens"],
    }
    why = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(str(reply.finish))
    if why is None:
        return {"status": "completed", "usage": counts}
    return {"status": "incomplete", "incomplete_details": {"reason": why}, "usage": counts}
