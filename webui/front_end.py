"""Gradio's front end as the page gets it: as it lies in the package, but for two things that would cost for nothing.

Both are looked for by what they do. Where another version of Gradio writes them otherwise, its file goes as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from gradio.route_utils import BUILD_PATH_LIB

FRONT_END = Path(BUILD_PATH_LIB)

_STREAMED_VIDEO = re.compile(r"hls-[\w-]{8}\.js")
_EXPORTS = re.compile(rb"export\{([^{}]+)\};?\s*$")
_PROGRESS = re.compile(r"statustracker-[\w-]{8}\.js")
_EACH_FRAME = re.compile(
    rb"(function (\w+)\(\)\{\w+\(\(\)=>\{\w+\(\w+,\(performance\.now\(\)-\w+\(\w+\)\)/1e3\),)(\w+&&\2\(\)\}\)\})"
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
    return _counting_while_pending(body) if _PROGRESS.fullmatch(name) else body


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
