"""Fingerprints of what servers say of their tools."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_types import Tool


def fingerprint(tool: Tool) -> str:
    """What a server says of a tool, in 32 letters: another description, schema or hint gives others."""
    said = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    told = {key: said.get(key) for key in ("name", "title", "description", "inputSchema", "annotations")}
    return sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:32]
