"""What the page is made of, under `/assets/`: our script and styles, and the modules of Gradio's front end.

Their names change with what is in them, so browsers keep them for good; but for the few modules that are changed here,
which keep Gradio's names: browsers ask each time whether they changed. Each is packed once and kept in memory.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread
from gradio.route_utils import BUILD_PATH_LIB
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Match, Route

from webui import bundles
from webui.bundles import assets_folder, coding_for, packed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import Scope

    from webui.bundles import Coding

_KEPT = {"cache-control": "public, max-age=31536000, immutable"}
_FOR_GOOD = {**_KEPT, "vary": "Accept-Encoding"}
_ASKED_FOR = {"cache-control": "no-cache", "vary": "Accept-Encoding"}
_TEXTS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_HASHED = re.compile(r"[\w.-]+-[\w-]{8,}\.[a-z0-9]+")
_LONGEST_NAME = 200  # of a file of the page
_WORTH = 256  # bytes; less grows when it is packed


def asset_routes() -> list[BaseRoute]:
    """Everything under `/assets/` but what is Gradio's alone."""
    return [
        _PageFileRoute(_PageFiles()),
        _AssetRoute("/assets/{name:path}", _asset, methods=["GET"]),
    ]


class _Packed(NamedTuple):
    """A file as it is sent; `tag` tells the versions of a changed one apart, and is empty for all others."""

    body: bytes
    coding: Coding
    tag: str


class _PageFiles:
    """Finds, packs and keeps them."""

    def __init__(self) -> None:
        self._own = {bundle.name: bundle for bundle in (bundles.script(), bundles.stylesheet())}
        self._packed: dict[tuple[str, Coding], _Packed] = {}

    def has(self, name: str) -> bool:
        """Whether a file of that name is one of these."""
        if name in self._own:
            return True
        return len(name) <= _LONGEST_NAME and bool(_HASHED.fullmatch(name)) and (FRONT_END / name).is_file()

    async def file(self, request: Request) -> Response:
        """One of them; `has` was asked first."""
        name: str = request.path_params["name"]
        coding = coding_for(request.headers.get("accept-encoding", ""))
        kept = self._packed.get((name, coding))
        if kept is None:
            kept = self._packed[(name, coding)] = await to_thread.run_sync(self._made, name, coding)
        headers = {**_ASKED_FOR, "etag": kept.tag} if kept.tag else dict(_FOR_GOOD)
        if kept.tag and request.headers.get("if-none-match") == kept.tag:
            return Response(status_code=304, headers=headers)
        if kept.coding:
            headers["content-encoding"] = kept.coding
        return Response(kept.body, headers=headers, media_type=self._type(name))

    def _made(self, name: str, coding: Coding) -> _Packed:
        own = self._own.get(name)
        body = own.body if own else front_end_file(name)
        is_changed = own is None and body != (FRONT_END / name).read_bytes()
        tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"' if is_changed else ""
        if Path(name).suffix not in _TEXTS or len(body) < _WORTH:
            coding = ""
        return _Packed(packed(body, coding), coding, tag)

    def _type(self, name: str) -> str:
        suffix = Path(name).suffix
        return _TEXTS.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


async def _asset(request: Request) -> Response:
    """A file of `assets`; kept for good where the address names a version."""
    path = _asset_path(request.path_params["name"])
    if path is None:
        return PlainTextResponse("There is no such file.", 404)
    return FileResponse(path, headers=_KEPT if "v" in request.query_params else {"cache-control": "no-cache"})


class _PageFileRoute(Route):
    """Serves the files that the page is made of; every other name falls through to the next route."""

    def __init__(self, files: _PageFiles) -> None:
        super().__init__("/assets/{name}", files.file, methods=["GET"])
        self._has = files.has

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is not Match.NONE and not self._has(child["path_params"]["name"]):
            return Match.NONE, {}
        return match, child


class _AssetRoute(Route):
    """Serves Parlour's own assets; Gradio's, under the same address, fall through to it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is not Match.NONE and _asset_path(child["path_params"]["name"]) is None:
            return Match.NONE, {}
        return match, child


def _asset_path(name: str) -> Path | None:
    if len(name) > _LONGEST_NAME:
        return None
    folder = assets_folder().resolve()
    path = (folder / name).resolve()
    return path if path.is_relative_to(folder) and path.is_file() else None


FRONT_END = Path(BUILD_PATH_LIB)

_STREAMED_VIDEO = re.compile(r"hls-[\w-]{8}\.js")
_EXPORTS = re.compile(rb"export\{([^{}]+)\};?\s*$")
_PROGRESS = re.compile(r"statustracker-[\w-]{8}\.js")
_EACH_FRAME = re.compile(
    rb"(function (\w+)\(\)\{\w+\(\(\)=>\{\w+\(\w+,\(performance\.now\(\)-\w+\(\w+\)\)/1e3\),)(\w+&&\2\(\)\}\)\})"
)
_ENTRY = re.compile(r"index-[\w-]{8}\.js")
_BY_SIGHT = re.compile(
    rb"typeof window<`u`&&typeof document<`u`&&document\.visibilityState!==`hidden`"
    rb"\?setTimeout\((\w+),0,(\w+)\):\1\(\2\)"
)
_IS_PENDING = re.compile(rb"(\w+\.status===`pending`)\?\w+\(\):")


def front_end_file(name: str) -> bytes:
    """A file of the front end.

    Args:
        name: As it is called under `/assets/`.
    """
    body = (FRONT_END / name).read_bytes()
    if _STREAMED_VIDEO.fullmatch(name):
        return _without_player(body)
    if _ENTRY.fullmatch(name):
        return _in_order(body)
    return _counting_while_pending(body) if _PROGRESS.fullmatch(name) else body


def _in_order(body: bytes) -> bytes:
    """Each message of the server is handled as it comes.

    Gradio's client lets a timer handle it while the tab is in sight, and handles it at once in a hidden one. When a
    tab is hidden in the middle of a reply, a message so overtakes those before it; each is a change of the one
    before, so none can be applied any more, and the tab is not painted until somebody does something in it.
    """
    return _BY_SIGHT.sub(rb"\1(\2)", body)


def _without_player(body: bytes) -> bytes:
    """In the place of the player for streamed video, which is never used, one that says that it can play nothing.

    Gradio's video and audio import it wherever they are imported, and it is a quarter of all that the page would load.
    """
    exported = _EXPORTS.search(body)
    if exported is None:
        return body
    names = [part.split(b" as ")[-1].strip() for part in exported[1].split(b",")]
    return b"const no = () => false;\nexport { " + b", ".join(b"no as " + name for name in names) + b" };\n"


def _counting_while_pending(body: bytes) -> bytes:
    """The counter of seconds ends with what it counts.

    That of the page's own loading goes on for ever, sixty times a second, since its component is taken away first:
    three to five per cent of a core, for as long as the page is open.
    """
    pending = _IS_PENDING.search(body)
    return _EACH_FRAME.sub(rb"\1" + pending[1] + rb"&&\3", body, count=1) if pending else body
