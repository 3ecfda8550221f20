"""The documentation as a site: it builds without a warning, loads nothing from elsewhere, and leaves no name out."""

from __future__ import annotations

import logging
import re
from html.parser import HTMLParser
from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config

import core

ROOT = Path(__file__).resolve().parent.parent
LOADS = {"img", "script", "link", "iframe", "source", "video", "audio", "object", "embed", "use", "image"}
ADDRESSES = {"src", "href", "srcset", "data", "poster", "xlink:href"}
ELSEWHERE = re.compile(r"\s*(?:https?:)?//(?!127\.0\.0\.1)")


class Warnings(logging.Handler):
    """What a build says that is no good news."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def build_into(folder: Path) -> None:
    """What `mkdocs build --strict` does."""
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder))
    listener = Warnings()
    log = logging.getLogger("mkdocs")
    log.addHandler(listener)
    try:
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    finally:
        config.plugins.on_shutdown()
        log.removeHandler(listener)
    assert not listener.said


class Page(HTMLParser):
    """What a page loads, what it links to, and what in it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids.update(value for name, value in attrs if name == "id" and value)
        if tag in LOADS:
            self.loads += [value for name, value in attrs if name in ADDRESSES and value]


def loaded_from_elsewhere(site: Path) -> list[str]:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    loads = [f"{path.name}: {load}" for path in pages for load in Page(path).loads if ELSEWHERE.match(load)]
    sheets = [(sheet.name, sheet.read_text(encoding="utf-8")) for sheet in site.rglob("*.css")]
    return loads + [name for name, text in sheets if re.search(r"@import\s|url\(\s*[\"']?(?:https?:)?//", text)]


def without_entry(site: Path) -> list[str]:
    ids = set[str]().union(*(Page(path).ids for path in (site / "api").glob("*.html")))
    homes: dict[str, str] = vars(core)["_HOME"]
    return [name for name in core.__all__ if f"{homes[name]}.{name}" not in ids]


def test_the_site_builds_loads_nothing_from_another_host_and_leaves_no_public_name_out(tmp_path: Path) -> None:
    build_into(tmp_path)  # once: it takes several seconds
    assert not loaded_from_elsewhere(tmp_path)
    assert not without_entry(tmp_path)
