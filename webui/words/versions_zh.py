"""Chinese for the versions of a question or reply; part of `zh.py`."""

from __future__ import annotations

VERSIONS: dict[str, str] = {
    "versions.which": "第 {number} 个版本，共 {total} 个",
    "versions.older": "上一个版本",
    "versions.newer": "下一个版本",
}
