"""DashScope's own protocol, spoken by the test server: HTTP and server-sent events, and the store for uploads."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

from core.testing.dialect import Answered, Asked
from core.testing.script import arguments_text, pieces, usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.testing.script import Reply, Request

_QUESTION = re.compile(r"/services/aigc/(?P<kind>text|multimodal)-generation/generation$")
_BUCKET = "/bucket"
_FIELD = re.compile(rb'name="(?P<name>[^"]+)"(?:; filename="(?P<file>[^"]*)")?')
_CODES = {
    "invalid_api_key": "InvalidApiKey",
    "insufficient_quota": "Arrearage",
    "context_length_exceeded": "InvalidParameter",
    "rate_limit_exceeded": "Throttling.RateQuota",
}
_STATUS_CODES = {
    400: "InvalidParameter",
    401: "InvalidApiKey",
    403: "AccessDenied",
    404: "ModelNotFound",
    408: "RequestTimeOut",
    429: "Throttling.RateQuota",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(slots=True)
class Uploaded:
    """A file that came into the store: its `oss://` address, bytes and form fields."""

    address: str
    raw: bytes
    form: dict[str, str]


@dataclass(slots=True)
class DashScopeDialect:
    """`…/services/aigc/text-generation/generation`, its multimodal twin, and `…/uploads?action=getPolicy`.

    Args:
        stores: Whether there is a store for files; some regions have none.
        largest: Size in MB of the largest file that the store takes.
    """

    stores: bool = True
    largest: int = 48
    uploads: list[Uploaded] = field(default_factory=list[Uploaded])
    policies: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def takes(self, asked: Asked) -> bool:
        """A question has one of two paths."""
        return asked.method == "POST" and bool(_QUESTION.search(asked.path))

    def key(self, asked: Asked) -> str:
        """The bearer's."""
        return asked.headers.get("authorization", "").removeprefix("Bearer ")

    def request(self, asked: Asked, body: Request) -> Request:
        """The messages and tools where scripts look for them, and `task`: `text` or `multimodal`."""
        found = _QUESTION.search(asked.path)
        given = cast("dict[str, Any]", body.get("input") or {})
        parameters = cast("dict[str, Any]", body.get("parameters") or {})
        return {
            **parameters,
            "model": body.get("model"),
            "messages": given.get("messages") or [],
            "task": found["kind"] if found else "",
        }

    def fault(self, asked: Asked, body: Request) -> str:
        """Nothing."""
        del asked, body
        return ""

    def streams(self, asked: Asked, body: Request) -> bool:
        """A header says so."""
        del body
        wants = asked.headers.get("accept", "")
        return asked.headers.get("x-dashscope-sse") == "enable" or "text/event-stream" in wants

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """One event for each piece; without `incremental_output` each brings everything so far."""
        whole = not cast("dict[str, Any]", body.get("parameters") or {}).get("incremental_output")
        listed = _listed(body)
        deltas = _deltas(reply, reply_id)
        tokens = json.dumps(_usage(reply, body))
        events: list[bytes] = []
        told: dict[str, Any] = {}
        for number, delta in enumerate(deltas, 1):
            told = _joined(told, delta) if whole else delta
            reason = "null" if number < len(deltas) else _reason(reply)
            message = json.dumps({"role": "assistant", **_shaped(told, listed=listed)}, ensure_ascii=False)
            output = f'{{"choices":[{{"message":{message},"finish_reason":"{reason}"}}]}}'
            data = f'{{"output":{output},"usage":{tokens},"request_id":"{reply_id}"}}'
            events.append(f"id:{number}\nevent:result\n:HTTP_STATUS/200\ndata:{data}\n\n".encode())
        return events

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """The reply as one object."""
        message: dict[str, Any] = {}
        for delta in _deltas(reply, reply_id):
            message = _joined(message, delta)
        choice = {
            "finish_reason": _reason(reply),
            "message": {"role": "assistant", **_shaped(message, listed=_listed(body))},
        }
        said = {"output": {"choices": [choice]}, "usage": _usage(reply, body), "request_id": reply_id}
        return json.dumps(said, ensure_ascii=False).encode()

    def error(self, reply: Reply) -> bytes:
        """The code in DashScope's words."""
        return json.dumps(_error(reply)).encode()

    def error_event(self, reply: Reply) -> bytes:
        """The same in the middle of a stream."""
        status = reply.status if reply.status >= 400 else 500
        return b"id:1\nevent:error\n:HTTP_STATUS/%d\ndata:%b\n\n" % (status, json.dumps(_error(reply)).encode())

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """The policy of the store, and the store itself."""
        del models
        if asked.method == "GET" and asked.path.endswith("/uploads") and "action=getPolicy" in asked.query:
            return self._policy(asked)
        if asked.method == "POST" and asked.path == _BUCKET:
            return self._store(asked)
        return None

    def _policy(self, asked: Asked) -> Answered:
        if not self.stores:
            refused = {"code": "InvalidParameter", "message": "There is no store here.", "request_id": "policy"}
            return Answered(400, json.dumps(refused).encode())
        self.policies.append({name: values[0] for name, values in parse_qs(asked.query).items()})
        data = {
            "policy": "policy",
            "signature": "signature",
            "upload_dir": f"dashscope-instant/{len(self.policies)}",
            "upload_host": f"http://{asked.headers['host']}{_BUCKET}",
            "expire_in_seconds": 300,
            "max_file_size_mb": self.largest,
            "oss_access_key_id": "id",
            "x_oss_object_acl": "private",
            "x_oss_forbid_overwrite": "true",
        }
        return Answered(200, json.dumps({"data": data, "request_id": "policy"}).encode())

    def _store(self, asked: Asked) -> Answered:
        boundary = b"--" + asked.headers.get("content-type", "").partition("boundary=")[2].strip('"').encode()
        form: dict[str, str] = {}
        raw = b""
        for part in asked.raw.split(boundary)[1:-1]:
            head, _, value = part.removeprefix(b"\r\n").removesuffix(b"\r\n").partition(b"\r\n\r\n")
            found = _FIELD.search(head)
            if found and found["file"] is not None:
                raw = value
            elif found:
                form[found["name"].decode()] = value.decode()
        if "authorization" in asked.headers or form.get("policy") != "policy" or "key" not in form:
            return Answered(403, b"<Error>AccessDenied</Error>", "application/xml")
        self.uploads.append(Uploaded(f"oss://{form['key']}", raw, form))
        return Answered(200, b"", "text/plain")


def _deltas(reply: Reply, reply_id: str) -> list[dict[str, Any]]:
    """What each event adds; the last adds nothing."""
    deltas: list[dict[str, Any]] = [{"content": "", "reasoning_content": word} for word in pieces(reply.reasoning)]
    deltas += [{"content": word} for word in pieces(reply.text)]
    for index, (name, arguments) in enumerate(reply.calls):
        first = {"index": index, "id": f"call_{reply_id}_{index}", "type": "function"}
        text, size = arguments_text(arguments), max(reply.argument_size, 1)
        deltas.append({"content": "", "tool_calls": [{**first, "function": {"name": name, "arguments": ""}}]})
        for at in range(0, len(text), size):
            more = {"index": index, "id": "", "type": "function", "function": {"arguments": text[at : at + size]}}
            deltas.append({"content": "", "tool_calls": [more]})
    deltas += [{"content": "", "image": _address(picture)} for picture in reply.images]
    return [*deltas, {"content": ""}]


def _address(picture: bytes | str) -> str:
    return picture if isinstance(picture, str) else f"data:image/png;base64,{b64encode(picture).decode('ascii')}"


def _joined(told: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    """Everything so far, with what is new."""
    joined = {**told}
    for name in ("content", "reasoning_content"):
        if name in told or name in delta:
            joined[name] = told.get(name, "") + delta.get(name, "")
    calls = [{**call, "function": {**call["function"]}} for call in told.get("tool_calls", [])]
    for call in delta.get("tool_calls", []):
        if call["index"] < len(calls):
            calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        else:
            calls.append({**call, "function": {**call["function"]}})
    return {**joined, **({"tool_calls": calls} if calls else {}), **{k: v for k, v in delta.items() if k == "image"}}


def _shaped(message: dict[str, Any], *, listed: bool) -> dict[str, Any]:
    """The multimodal service has a list of parts for its content."""
    shaped = {name: value for name, value in message.items() if name != "image"}
    if listed:
        parts = [{"text": message["content"]}] if message.get("content") else []
        shaped["content"] = parts + ([{"image": message["image"]}] if message.get("image") else [])
    return shaped


def _listed(body: Request) -> bool:
    """Whether the question was put to the multimodal service: its messages are lists of parts."""
    given = cast("dict[str, Any]", body.get("input") or {})
    messages = cast("list[dict[str, Any]]", given.get("messages") or [])
    return any(isinstance(message.get("content"), list) for message in messages)


def _reason(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _usage(reply: Reply, body: Request) -> dict[str, Any]:
    said = usage(reply, cast("dict[str, Any]", body.get("input") or {}))
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    details = {"completion_tokens_details": "output_tokens_details"}
    return {({**names, **details}).get(name, name): value for name, value in said.items()}


def _error(reply: Reply) -> dict[str, str]:
    said = cast("dict[str, Any]", (reply.error or {}).get("error") or reply.error or {})
    code = str(said.get("code") or "")
    return {
        "code": _CODES.get(code, code) or _STATUS_CODES.get(reply.status, "InternalError"),
        "message": str(said.get("message") or ""),
        "request_id": "refused",
    }
