"""Chinese for taking a conversation along as a file; part of `zh.py`."""

from __future__ import annotations

EXPORT: dict[str, str] = {
    "js.export": "导出…",
    "js.export_md": "Markdown（便于阅读）",
    "js.export_json": "JSON（全部内容）",
}
