"""Long results: what is left of them when only their two ends may stay."""

from __future__ import annotations


def cut_to_ends(text: str, limit: int) -> tuple[str, int]:
    """The text, or its beginning and end with a line between that says how much is missing.

    Args:
        text: A tool's result.
        limit: The most bytes (UTF-8) that may stay, the line between included.

    Returns:
        The text, and the bytes it had before if it was cut, else 0. No character is torn.
    """
    if len(text) * 4 <= limit:
        return text, 0
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text, 0
    notice = f"\n\n[… {len(raw)} bytes in all; the middle is left out …]\n\n"
    room = max(limit - len(notice.encode()), 0)
    head = raw[: room - room // 2].decode("utf-8", "ignore")
    tail = raw[len(raw) - room // 2 :].decode("utf-8", "ignore")
    return f"{head}{notice}{tail}", len(raw)
