"""Media as parts of a request: what a `data:` address holds."""

from __future__ import annotations


def nameless(address: str) -> str:
    """A `data:` address as services take it, which know no name in it; any other as it is."""
    inside = base64_of(address)
    return f"data:{inside[0]};base64,{inside[1]}" if inside is not None else address


def base64_of(address: str) -> tuple[str, str] | None:
    """The media type and the base64 of a `data:` address; `None` for any other."""
    head, comma, data = address.partition(",")
    if not head.startswith("data:") or not comma:
        return None
    return head.removeprefix("data:").partition(";")[0] or "application/octet-stream", data
