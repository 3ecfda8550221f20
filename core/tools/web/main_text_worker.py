"""The process in which the main text of a web page is found: `python -m core.tools.web.main_text_worker`.

It reads a page from standard input and answers with one JSON object. It starts with bounds on memory and processor
time and nothing of the parent's environment: a page that fills its memory or never ends costs that page only.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from importlib import import_module
from typing import Any

from core.rag.parsers.web_page import decoded

_MEMORY = 1024 * 1024 * 1024
_PROCESSOR_SECONDS = 10


def main() -> None:
    """Answer and end."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    logging.disable(logging.CRITICAL)
    bounded()
    url = sys.stdin.buffer.readline().decode("utf-8", "replace").strip()
    try:
        found = main_text(decoded(sys.stdin.buffer.read()), url)
    except MemoryError:
        found = {}
    answer.write(json.dumps(found))
    answer.flush()


def main_text(page: str, url: str) -> dict[str, str]:
    """Title, date and main text (Markdown) of a page; empty where it has none.

    Args:
        page: HTML.
    """
    library: Any = import_module("trafilatura")
    found = library.bare_extraction(
        page, url=url, with_metadata=True, include_tables=True, include_comments=False, favor_recall=True
    )
    text = library.extract(
        page,
        url=url,
        output_format="markdown",
        include_tables=True,
        include_links=False,
        include_images=False,
        include_comments=False,
        favor_recall=True,
        with_metadata=False,
    )
    about = {name: str(getattr(found, name, None) or "") for name in ("title", "date", "sitename")} if found else {}
    return {**about, "text": text or ""}


def bounded() -> None:
    """Bound memory and processor time, where the system can."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_CPU, _PROCESSOR_SECONDS),
    ):
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):  # macOS refuses some; the parent's clock remains
            continue


if __name__ == "__main__":
    main()
