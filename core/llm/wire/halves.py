"""Characters that a service cut in two and sent in two chunks."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Halves:
    """Puts the halves together again, for each channel of a reply by itself.

    Args:
        odd: Whether halves were met at all. Strict parsers of JSON let none through, so nothing is looked at before.
    """

    odd: bool = False
    _kept: dict[str, str] = field(default_factory=dict[str, str])

    def whole(self, channel: str, text: str) -> str:
        """The text without a half at its end, and with the one that was kept at its beginning."""
        if not self.odd:
            return text
        text = self._kept.pop(channel, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._kept[channel] = text[:-1], text[-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
