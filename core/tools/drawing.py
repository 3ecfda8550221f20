"""Services that draw pictures: those that speak as OpenAI does, and DashScope with its two ways."""

from __future__ import annotations

import asyncio
import re
from binascii import a2b_base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from core.errors import SettingsError, ToolError
from core.net.fetcher import FetchLimits, fetch
from core.tools.web.answers import asked, first, object_of, refusal, rows, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.net.service import Answer
    from core.tools.web.base import Account

Speaks: TypeAlias = Literal["openai", "dashscope"]

OPENAI, DASHSCOPE = "https://api.openai.com/v1", "https://dashscope.aliyuncs.com/api/v1"
_SECONDS = 180.0
_LIMITS = FetchLimits(size=48 * 1024 * 1024, seconds=_SECONDS)
_PICTURE = FetchLimits(
    size=32 * 1024 * 1024, seconds=60.0, types=("image/", "application/octet-stream", "binary/octet-stream")
)
_DRAWN_BY_DASHSCOPE = ("wan", "qwen-image", "z-image", "flux", "stable-diffusion")
_AT_ONCE = re.compile(r"qwen-image|z-image|wan2\.[6-9]|wan[3-9]")  # the others are asked for, and asked after
_CODE = re.compile(r"[\w.-]{1,60}")
_PAUSE = 2.0  # seconds between two looks at a picture that is being drawn
_AT_WORK = frozenset({"PENDING", "RUNNING"})


@dataclass(frozen=True, slots=True)
class Drawer:
    """A service with a model that draws.

    Args:
        account: Whose.
        model: As the service calls it.
        speaks: Its protocol.
    """

    account: Account
    model: str
    speaks: Speaks

    @classmethod
    def of(cls, account: Account, model: str, speaks: str) -> Drawer:
        """The service that a tool's options name; its protocol is worked out where it is not said.

        Raises:
            SettingsError: There is no key, no model, or no such protocol.
        """
        if not account.api_key and not account.base_url:
            raise SettingsError(
                "Drawing pictures needs a key.", hint="Enter one of OpenAI or DashScope, or the address of a server."
            )
        if not speaks:
            is_dashscope = "dashscope" in account.base_url or model.startswith(_DRAWN_BY_DASHSCOPE)
            is_dashscope = is_dashscope and not account.base_url.endswith("/compatible-mode/v1")
            speaks = "dashscope" if is_dashscope else "openai"
        if speaks not in {"openai", "dashscope"}:
            raise SettingsError(f"There is no service that speaks {speaks!r}.", hint="Write openai or dashscope.")
        return cls(account, model or ("wan2.6-t2i" if speaks == "dashscope" else "gpt-image-1"), cast("Speaks", speaks))

    @property
    def label(self) -> str:
        """What to call the service in errors."""
        return "DashScope" if self.speaks == "dashscope" else "The picture service"

    async def drawn(self, prompt: str, size: tuple[int, int] | None) -> bytes:
        """A picture.

        Args:
            prompt: What it shall show.
            size: Width and height in pixels; the service's own if left out.

        Raises:
            ToolError: The service refuses, fails, or answers with something else.
            FetchError: It, or the picture, cannot be reached.
        """
        if self.speaks == "openai":
            return await self._as_openai(prompt, size)
        if _AT_ONCE.match(self.model):
            return await self._at_once(prompt, size)
        return await self._after_a_while(prompt, size)

    async def _as_openai(self, prompt: str, size: tuple[int, int] | None) -> bytes:
        body = {"model": self.model, "prompt": prompt, "n": 1}
        body |= {"size": f"{size[0]}x{size[1]}"} if size else {}
        said = await self._asked("images/generations", body=body)
        row = first(said, "data")
        packed: Any = row.get("b64_json")
        if isinstance(packed, str):
            try:
                return a2b_base64(packed)
            except ValueError as error:
                raise self._no_picture() from error
        return await self._fetched(row.get("url"))

    async def _at_once(self, prompt: str, size: tuple[int, int] | None) -> bytes:
        body = {
            "model": self.model,
            "input": {"messages": [{"role": "user", "content": [{"text": prompt}]}]},
            "parameters": _parameters(size),
        }
        said = await self._asked("services/aigc/multimodal-generation/generation", body=body)
        content = rows(first(said, "output", "choices"), "message", "content")
        return await self._fetched(next((row["image"] for row in content if row.get("image")), None))

    async def _after_a_while(self, prompt: str, size: tuple[int, int] | None) -> bytes:
        body = {"model": self.model, "input": {"prompt": prompt}, "parameters": _parameters(size)}
        path, wait = "services/aigc/text2image/image-synthesis", {"x-dashscope-async": "enable"}
        output = _output(await self._asked(path, wait, body=body))
        task = str(output.get("task_id") or "")
        if not _CODE.fullmatch(task):
            raise self._no_picture()
        async with asyncio.timeout(_SECONDS):
            while output.get("task_status") in _AT_WORK:
                await asyncio.sleep(_PAUSE)
                output = _output(await self._asked(f"tasks/{task}"))
        if output.get("task_status") != "SUCCEEDED":
            raise self._refused(text_of(output.get("code"), 60))
        return await self._fetched(next((row["url"] for row in rows(output, "results") if row.get("url")), None))

    async def _asked(self, path: str, more: Mapping[str, str] | None = None, **question: Any) -> dict[str, Any]:
        key = {"authorization": f"Bearer {self.account.api_key}"} if self.account.api_key else {}
        base = self.account.base_url or (DASHSCOPE if self.speaks == "dashscope" else OPENAI)
        url, headers = f"{base}/{path}", {**key, **(more or {})}
        answer = await asked(self.label, url, headers=headers, reach=self.account.reach, limits=_LIMITS, **question)
        if answer.status == 400 and (code := _code(answer)):
            raise self._refused(code)
        if answer.status != 200:
            raise refusal(self.label, answer)
        return object_of(self.label, answer)

    async def _fetched(self, address: object) -> bytes:
        if not isinstance(address, str):
            raise self._no_picture()
        return (await fetch(address, limits=_PICTURE, reach=self.account.reach)).data

    def _no_picture(self) -> ToolError:
        return ToolError(f"{self.label} answered without a picture.", hint="Check the model's name.")

    def _refused(self, code: str) -> ToolError:
        why = f" ({code})" if _CODE.fullmatch(code) else ""
        return ToolError(f"{self.label} did not draw this{why}.", hint="Describe it in other words, or another size.")


def _parameters(size: tuple[int, int] | None) -> dict[str, Any]:
    return {"n": 1, **({"size": f"{size[0]}*{size[1]}"} if size else {})}


def _output(said: Mapping[str, Any]) -> Mapping[str, Any]:
    output: Any = said.get("output")
    return cast("Mapping[str, Any]", output) if isinstance(output, dict) else {}


def _code(answer: Answer) -> str:
    """The name of what went wrong: the words beside it could repeat the key."""
    try:
        said: Any = answer.json()
    except ValueError:
        return ""
    if not isinstance(said, dict):
        return ""
    found = cast("dict[str, Any]", said)
    inner: Any = found.get("error")
    return text_of((cast("dict[str, Any]", inner) if isinstance(inner, dict) else found).get("code"), 60)
