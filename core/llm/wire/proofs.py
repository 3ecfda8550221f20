"""What a service wants back with a thought or a call, as text that goes with the message: whose it is, and what."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, cast


def sealed(by: str, model: str, what: dict[str, Any], text: str = "") -> str:
    """The proof as text.

    Args:
        by: The protocol that it belongs to.
        model: Which model gave it; another one may not take it.
        what: The service's own values, sent back as they are.
        text: The thought that it proves: where that is changed, the proof is worth nothing.
    """
    return json.dumps({"by": by, "model": model, "what": what, "of": _digest(text)}, separators=(",", ":"))


def is_from(proof: str, by: str, model: str) -> bool:
    """Whether a proof belongs to this protocol and model."""
    found = _read(proof)
    return found.get("by") == by and found.get("model") == model


def opened(proof: str, text: str = "") -> dict[str, Any]:
    """The service's own values; empty where there are none, or where the thought is not the one that they prove."""
    found = _read(proof)
    what = found.get("what")
    return cast("dict[str, Any]", what) if isinstance(what, dict) and found.get("of") == _digest(text) else {}


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16] if text else ""


def _read(proof: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(proof)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
