"""Only a few places may open a connection to elsewhere, each for a reason; everything else goes through `core.net`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# What can open a connection; of `asyncio` and `socket` what does.
PACKAGES = {
    *("aiohttp", "ddgs", "ftplib", "http.client", "httpcore", "httpx", "httpx2", "primp", "pycurl", "requests"),
    *("smtplib", "socket", "telnetlib", "trafilatura", "urllib.request", "urllib3", "websockets", "xmlrpc.client"),
}
CALLS = {"open_connection", "create_connection", "open_unix_connection", "urlopen", "urlretrieve", "fetch_url"}
# What none of these is in imports and calls none of them; "http" alone stands in every address.
SAID = re.compile(
    r"\b(?:import|from)\s[^\n]*\bhttp\b|['\"]http\.client|"
    + "|".join(re.escape(one.split(".")[0]) for one in (*PACKAGES, *CALLS) if not one.startswith("http."))
)
MAY: dict[str, tuple[set[str], str]] = {
    "core/net/": ({"httpx", "socket"}, "the guarded way itself"),
    "core/llm/": ({"httpx", "httpx2"}, "models and weights, at addresses of the owner's settings"),
    "core/llm/backends/network.py": ({"httpx2", "socket", "create_connection"}, "what carries the requests to models"),
    "core/llm/backends/http_clients.py": ({"urllib.request"}, "which proxies the system names; it opens nothing"),
    "core/llm/local_files.py": ({"urllib.request"}, "how a system writes paths; it opens nothing"),
    "core/rag/json_service.py": ({"httpx"}, "models for vectors and ranks, at addresses of the owner's settings"),
    "core/people/openid.py": ({"httpx"}, "the service that people sign in by, at the address of the settings"),
    "core/mcp/": ({"httpx2"}, "MCP servers that an owner added"),
    "core/net/unpacking.py": ({"httpx2"}, "unpacks the body of an answer; it opens nothing"),
    "core/testing/": ({"socket"}, "servers of tests"),
    "core/tools/web/metasearch.py": ({"ddgs"}, "public search engines, whose addresses are the package's own"),
    "core/tools/web/main_text_worker.py": ({"trafilatura"}, "finds the text of a page that was fetched already"),
    "core/tools/openapi/operations.py": ({"httpx"}, "writes the parts of a form; it opens nothing"),
    "core/tools/sandbox/remote.py": ({"httpx"}, "sandboxes on other machines, at addresses of the settings"),
    "core/tools/sandbox/": ({"socket", "create_connection"}, "tries what the sandbox must refuse"),
    "webui/": ({"socket"}, "the page's own port"),
}


def files() -> list[Path]:
    return sorted(
        path.relative_to(ROOT) for folder in ("core", "webui", "parlour") for path in (ROOT / folder).rglob("*.py")
    )


def reached(tree: ast.Module) -> Iterator[str]:
    """The packages that a module imports, also by name at run time, and the calls that open a connection."""
    for node in _running(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{one.name}" for one in names)
            case ast.Call(func=ast.Name(id="import_module" | "__import__"), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in CALLS:
                yield name
            case _:
                pass


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node but what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _running(child)


def allowed(path: Path) -> set[str]:
    return {name for place, (names, _) in MAY.items() if path.as_posix().startswith(place) for name in names}


def unsaid(path: Path) -> set[str]:
    """What a module reaches out with, and no place here says why."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if not SAID.search(text):
        return set()  # to parse a file takes a hundred times as long as to look for a word
    found = set(reached(ast.parse(text)))
    out = {one for one in found if one in CALLS or any(one == name or one.startswith(f"{name}.") for name in PACKAGES)}
    return {one for one in out if not any(one == name or one.startswith(f"{name}.") for name in allowed(path))}


def test_modules_reach_out_through_the_guarded_fetcher_or_say_why_not() -> None:
    own = {path.as_posix(): names for path in files() if (names := unsaid(path))}
    assert not own, f"Fetch through core.net.fetcher, or ask through core.net.service: {own}"


def test_every_place_that_may_is_there() -> None:
    paths = [path.as_posix() for path in files()]
    assert [place for place in MAY if not any(path.startswith(place) for path in paths)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import httpx",
        "from urllib.request import urlopen",
        "from urllib import request",
        "import_module('ddgs')",
        "import urllib.request as u",
        "asyncio.open_connection('x', 1)",
        "from http import client",
    ],
)
def test_a_new_place_is_noticed(code: str) -> None:
    found = set(reached(ast.parse(code)))
    assert found & CALLS or any(one == name or one.startswith(f"{name}.") for one in found for name in PACKAGES)
