"""English for taking a conversation along as a file; part of `en.py`."""

from __future__ import annotations

EXPORT: dict[str, str] = {
    "js.export": "Export…",
    "js.export_md": "Markdown, to read",
    "js.export_json": "JSON, all of it",
}
