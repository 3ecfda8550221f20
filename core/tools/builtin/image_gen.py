"""Draws a picture from words, with a service that the user has an account at."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, ClassVar

from core.errors import BadArgumentsError
from core.llm.media import kind_of
from core.messages.content import ContentItem
from core.tools.base import BaseTool, ToolResult
from core.tools.drawing import Drawer
from core.tools.pictures import opened, picture_item
from core.tools.web.base import Account

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        return ToolResult(_DRAWN["zh" if lang == "zh" else "en"], (item,))

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
