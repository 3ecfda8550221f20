"""Draws a picture from words, with a service that the user has an account at."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from binascii import a2b_base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from core.errors import BadArgumentsError, SettingsError, ToolError
from core.languages import spoken
from core.llm.media import kind_of
from core.messages.content import ContentItem
from core.net.fetcher import FetchLimits, fetch
from core.tools.base import BaseTool, ToolResult
from core.tools.given_files import opened, picture_item
from core.tools.web.base import Account, asked, first, object_of, refusal, rows, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.net.service import Answer


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
        model: As the service calls it.
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


_RESOLUTION = re.compile(r"\s*(\d{2,4})\s*[*xX×]\s*(\d{2,4})\s*")
_DRAWN = {"en": "The picture is drawn, and the user sees it.", "zh": "图片已生成，用户可以看到。"}
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "minLength": 1,
            "description": "What the picture shall show, in detail: who or what, where, in which style.",
        },
        "resolution": {
            "type": "string",
            "description": "Width*height in pixels, as 1024*1024; the service's own if left out.",
        },
    },
    "required": ["prompt"],
}


class ImageGen(BaseTool):
    """Asks a service for a picture. It costs money, so it counts as writing: the user is asked first.

    For whoever has a key; without one it is left out.

    Args:
        cfg: Options. `api_key` is for the service; `base_url` is where it is, OpenAI's own address or DashScope's by
            default, and with `own_network=True` one on this machine or its network. `model` is its model, and
            `service` is `openai` or `dashscope`, where the model does not tell. `size` is the usual resolution.
    """

    name = "image_gen"
    description = "Draws a picture from a description and shows it to the user."
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Draw a picture", "zh": "生成图片"}
    wishes: ClassVar[Mapping[str, str]] = {
        "en": "have a picture drawn, which the service may charge for",
        "zh": "请服务生成一张图片，可能产生费用",
    }
    reads = False
    writes = True
    reaches_out = True
    idempotent = False
    timeout = 270.0

    def addresses(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """None: it asks the service that the user chose."""
        del arguments
        return ()

    def validate_credentials(self, credentials: Mapping[str, Any]) -> None:
        """Whether there is a service to ask; nothing is sent.

        Raises:
            SettingsError: There is no key, or no such service.
        """
        self._drawer(credentials)

    async def call(self, params: str | dict[str, Any], *, lang: str = "en", **kwargs: Any) -> ToolResult:
        """Draw.

        Args:
            params: `{"prompt": ..., "resolution": "1024*1024"}`.
            lang: The language of what is said beside the picture.
            kwargs: Not used.

        Raises:
            BadArgumentsError: The resolution is none.
            SettingsError: There is no key.
            ToolError: The service refuses, fails, or sends no picture.
            FetchError: It cannot be reached.
        """
        del kwargs
        arguments = self._verify_json_format_args(params)
        size = _size(str(arguments.get("resolution") or self.cfg.get("size") or ""))
        data = await self._drawer(self.credentials).drawn(str(arguments["prompt"]), size)
        item = await asyncio.to_thread(_item, data)
        return ToolResult(_DRAWN[spoken(lang)], (item,))

    def _drawer(self, credentials: Mapping[str, Any]) -> Drawer:
        cfg = {**self.cfg, **credentials}
        return Drawer.of(Account.of(cfg), str(cfg.get("model") or ""), str(cfg.get("service") or ""))


def _size(resolution: str) -> tuple[int, int] | None:
    if not resolution.strip():
        return None
    sides = _RESOLUTION.fullmatch(resolution)
    if sides is None:
        raise BadArgumentsError("The field 'resolution' must be like 1024*1024.", field="resolution")
    return int(sides[1]), int(sides[2])


def _item(data: bytes) -> ContentItem:
    """The picture as it came; one of a kind that pages do not show as PNG."""
    picture = opened(data)
    kind = kind_of(data)
    if kind not in {"image/png", "image/jpeg", "image/webp"}:
        return picture_item(picture, name="drawn.png")
    packed = b64encode(data).decode("ascii")
    return ContentItem(image=f"data:{kind};name=drawn.{kind.removeprefix('image/')};base64,{packed}")
