"""Our script and styles as one file of each, put together once at the start, and how files are compressed.

They are written as many small files and loaded as two: each request has its price, and many small texts pack badly.
The modules keep their names to themselves: each is a function that gives back what it exports.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import brotli  # pyright: ignore[reportMissingTypeStubs]

STYLES = (
    "tokens",
    "icons",
    "shell",
    "history",
    "keys",
    "palette",
    "talk",
    "prose",
    "question",
    "code",
    "bubbles",
    "agents",
    "approval",
    "composer",
    "queue",
    "demo",
    "meter",
    "evidence",
    "paper",
    "inspect",
    "room",
    "narrow",
    "models",
    "choosing",
    "comparing",
    "libraries",
    "lending",
    "tools",
    "services",
    "reading",
    "settings",
    "side",
    "steering",
)
_ENTRY = "behaviour"
_IMPORT = re.compile(r"^import \{ ([\w, ]+) \} from '\./(\w+)\.js';$", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|const|class) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_RENAMED = re.compile(r"(\w+) as (\w+)")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A file that the page loads.

    Args:
        name: What it is called under `/assets/`: it changes with what is in it.
    """

    name: str
    body: bytes
    media_type: str

    @classmethod
    def of(cls, text: str, extension: str, media_type: str) -> Bundle:
        """Named after what is in it."""
        body = text.encode()
        return cls(f"parlour-{sha256(body).hexdigest()[:12]}.{extension}", body, media_type)


@cache
def script() -> Bundle:
    """The page's behaviour."""
    return Bundle.of(joined_script(assets_folder() / "js", _ENTRY), "js", "text/javascript; charset=utf-8")


@cache
def stylesheet() -> Bundle:
    """The page's looks; later files stand above earlier ones."""
    folder = assets_folder() / "css"
    text = "".join(_read(folder / f"{name}.css") for name in STYLES)
    # The pictures lie one folder up from each file, and beside the whole.
    return Bundle.of(text.replace('url("../', 'url("./'), "css", "text/css; charset=utf-8")


def joined_script(folder: Path, entry: str) -> str:
    """The module `entry` and all that it imports, each after what it needs itself.

    Args:
        entry: The name of one, without `.js`.

    Raises:
        ValueError: A module imports or exports in a way that is not read here, or modules import each other.
    """
    done: dict[str, str] = {}
    _join(folder, entry, done, ())
    return "".join(done.values())


def _join(folder: Path, name: str, done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"Modules import each other: {' → '.join((*above, name))}.")
    if name in done:
        return
    text = _read(folder / f"{name}.js")
    for _, needed in _IMPORT.findall(text):
        _join(folder, needed, done, (*above, name))
    exported = [found for _, found in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(_taken, text))
    left = _OTHER.search(body)
    if left is not None:
        raise ValueError(f"{name}.js has a line that cannot be put into one script: {left[0]}")
    done[name] = f"const ${name} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();\n"


def _taken(found: re.Match[str]) -> str:
    names = _RENAMED.sub(r"\1: \2", found[1])
    return f"const {{ {names} }} = ${found[2]};"


def _read(path: Path) -> str:
    text = path.read_text("utf-8")
    return text if text.endswith("\n") else text + "\n"


_HERE = Path(__file__).resolve().parent


def assets_folder() -> Path:
    """The folder `assets`, which ends up inside `webui` when Parlour is installed as a package.

    Raises:
        FileNotFoundError: Neither place has it, so the copy of Parlour is not whole.
    """
    for folder in (_HERE / "assets", _HERE.parent / "assets"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"Parlour's folder of assets is missing beside {_HERE}.")


Coding: TypeAlias = Literal["br", "gzip", ""]

_QUALITY = 5  # 11 saves a twelfth more, and takes twenty times as long


def coding_for(accept: str) -> Coding:
    """The best that an `Accept-Encoding` header allows: browsers take `br` over HTTPS and on this machine alone."""
    taken: set[str] = set()
    for part in accept.lower().split(","):
        name, _, quality = part.partition(";")
        if quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}:
            taken.add(name.strip())
    if "br" in taken:
        return "br"
    return "gzip" if "gzip" in taken else ""


def packed(body: bytes, coding: Coding) -> bytes:
    """`body` in that coding.

    Args:
        coding: "" leaves it as it is.
    """
    if coding == "br":
        return cast("bytes", cast("Any", brotli).compress(body, quality=_QUALITY))
    return gzip.compress(body, 6, mtime=0) if coding == "gzip" else body
