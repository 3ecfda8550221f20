"""DashScope over HTTP: a question, the bytes of its reply within time limits, and the policy of its store."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2
from pydantic_core import from_json

from core.errors import SettingsError
from core.llm.backends.dashscope_media import policy_of
from core.llm.backends.http_clients import CONNECT_SECONDS, http_pool
from core.llm.backends.patience import Patience
from core.llm.backends.time_limits import AFTER_END_SECONDS
from core.llm.backends.translator import HTTP_ERRORS
from core.llm.retry_after import seconds_until
from core.llm.wire.sse import EventLines, one_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AsyncExitStack

    from core.llm.backends.dashscope_errors import Translator
    from core.llm.backends.time_limits import Limits
    from core.llm.wire.dashscope import Json
    from core.llm.wire.dashscope_chunks import DashScopeReader

_TASK: Final = "services/aigc/{}-generation/generation"
_NO_STORE: Final = {400, 404, 405}


@dataclass(frozen=True, slots=True)
class DashScopeService:
    """The service as one model uses it.

    Args:
        address: Up to and with `/api/v1`.
        headers: Of every request, the key among them.
        model: The model's name.
        translator: Words its refusals.
    """

    address: str
    headers: Mapping[str, str] = field(repr=False)
    model: str
    translator: Translator

    async def connect(self) -> None:
        """Open a connection, whatever the service thinks of the question.

        Raises:
            httpx2.RequestError: It is out of reach.
        """
        http = await http_pool().client(self)
        await http.get(f"{self.address}/models", params={"page_size": 1}, headers=self.headers)

    async def ask(self, stack: AsyncExitStack, task: str, body: Json, limits: Limits) -> AsyncGenerator[bytes, None]:
        """Put a question; the bytes of the reply as server-sent events.

        Args:
            stack: Closes the response, and with it whatever the service is still doing.
            task: "text" or "multimodal".
            body: The question.
            limits: For connecting and the reply's head.

        Raises:
            ModelServiceError: The service refuses.
            SettingsError: The settings cannot be sent.
            httpx2.RequestError: It is out of reach.
        """
        try:
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        except (TypeError, ValueError, RecursionError) as error:
            hint = "Give texts, numbers, lists and dicts alone."
            raise SettingsError(f"generate_cfg cannot be written as JSON: {error}.", hint=hint) from error
        http = await http_pool().client(self)
        headers = {
            **self.headers,
            "Content-Type": "application/json; charset=utf-8",
            "Accept": "text/event-stream",
            "X-DashScope-SSE": "enable",
            "X-Accel-Buffering": "no",
        }
        if b'"oss://' in content:
            headers["X-DashScope-OssResourceResolve"] = "enable"
        opening = http.stream(
            "POST",
            f"{self.address}/{_TASK.format(task)}",
            content=content,
            headers=headers,
            timeout=httpx2.Timeout(limits.first, connect=CONNECT_SECONDS, read=None),  # reading has a limit of ours
        )
        response = await stack.enter_async_context(opening)
        await self._check(response)
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise self.translator.html()
        if "json" in kind and "event" not in kind:  # a model that does not stream, or an error it calls a success
            return one_event(await response.aread())
        return response.aiter_bytes()

    async def policy(self) -> dict[str, Any] | None:
        """Where the service's store takes a file; `None` where it has no store.

        Raises:
            ModelServiceError: The service refuses, for another reason.
        """
        http = await http_pool().client(self)
        asked = {"action": "getPolicy", "model": self.model}
        response = await http.get(f"{self.address}/uploads", params=asked, headers=self.headers)
        if response.status_code in _NO_STORE:
            return None
        await self._check(response)
        return policy_of(_said(response))

    async def _check(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        await response.aread()
        html = "html" in response.headers.get("content-type", "").lower()
        if html and status < 500 and status not in {401, 403}:
            raise self.translator.html()
        said = _said(response)
        inner: Any = said.get("error")  # a server of OpenAI's protocol
        said = cast("dict[str, Any]", inner) if isinstance(inner, dict) else said
        if not said and not html and response.text:
            said = {"message": response.text}
        raise self.translator.refusal(status, said, seconds_until(response.headers.get("retry-after")))


async def in_time(
    first: bytes | None, source: AsyncGenerator[bytes, None], limits: Limits, reader: DashScopeReader
) -> AsyncGenerator[bytes, None]:
    """The bytes of a reply within its limits.

    No chunk is marked as the last. Once the service has told why it ended, what still comes is read if it comes at
    once, so that the connection can serve the next question.

    Args:
        first: What has come already; `None` where there is nothing.
        source: The rest.
        limits: For each further piece.
        reader: Knows when the reply is whole.
    """
    piece = first
    with Patience() as patience:
        async with aclosing(source):
            while piece is not None:
                yield piece
                if reader.error is not None:
                    return
                limit = limits.idle if reader.reason is None else AFTER_END_SECONDS
                try:
                    piece = await patience.next(source, limit)
                except HTTP_ERRORS:
                    if reader.reason is None:
                        raise
                    return


def _said(response: httpx2.Response) -> dict[str, Any]:
    """The JSON of a body that is one object, or a stream of one event, as some refusals are."""
    lines = EventLines()
    for raw in (response.content, *lines.feed(response.content), *lines.close()):
        try:
            said: Any = from_json(raw)
        except ValueError:
            continue
        if isinstance(said, dict):
            return cast("dict[str, Any]", said)
    return {}
