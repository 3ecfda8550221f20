"""Footnotes of Markdown: `[^name]` in the text, and `[^name]: what it says` on a line of its own.

The page's own Markdown knows none. What they say comes to the end of the text, and each leads to the other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAME: Final = r"[\w.-]{1,40}"
_DEFINED = re.compile(rf" {{0,3}}\[\^(?P<name>{NAME})\]:[ \t]+(?P<text>\S.*)\Z")
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>.*)\Z")
_CONTINUED = re.compile(r"(?: {2,}|\t)(?P<text>\S.*)\Z")


_END, _FOOT = "</a></sup>", '<sup><a class="p-do p-foot"'


class Footnotes:
    """The footnotes of one text, numbered as the text names them.

    Attributes:
        rest: The lines without those that say what a footnote says.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._texts: dict[str, str] = {}
        self._order: list[str] = []
        self._numbers: dict[str, int] = {}
        self.rest = self._without_definitions(lines)

    def mark(self, name: str) -> str | None:
        """Markup of the number that leads to a footnote; `None` where there is none of that name."""
        if name not in self._texts:
            return None
        if name not in self._numbers:
            self._order.append(name)
            self._numbers[name] = len(self._order)
        return _link("foot", self._numbers[name], name)

    def listed(self, safe: Callable[[str], str]) -> list[str]:
        """Lines of Markdown with what those say that the text names; none where it names none.

        Args:
            safe: Makes the text of one fit to be shown.
        """
        made: list[str] = []
        for number, name in enumerate(self._order, 1):  # one may name another, which then comes behind it
            made += ["", f"{_link('footback', number, name)} {safe(self._texts[name])}"]
        return ["", '<p class="p-feet"></p>', *made] if made else []

    def _without_definitions(self, lines: Sequence[str]) -> list[str]:
        rest: list[str] = []
        closing = last = ""
        for line in lines:
            fence = _FENCE.match(line)
            if closing:
                if line.strip().startswith(closing) and not line.strip().strip(closing[0]):
                    closing = ""
            elif fence and not (fence["fence"][0] == "`" and "`" in fence["info"]):
                closing = fence["fence"]
            elif found := _DEFINED.match(line):
                last = found["name"]
                self._texts.setdefault(last, found["text"])
                continue
            elif last and (found := _CONTINUED.match(line)):
                self._texts[last] += " " + found["text"]
                continue
            last = ""
            rest.append(line)
        return rest


def apart(markup: str) -> str:
    """Markup in which the number that directly follows another one says so: fingers need room between the two."""
    return markup.replace(f"{_END}{_FOOT}", f'{_END}{_FOOT[:-1]} p-next"')


def _link(act: str, number: int, name: str) -> str:
    """The script goes from one to the other; `assets/js/source.js` turns both back where a reply is copied."""
    return f'<sup><a class="p-do p-{act}" role="button" href="#do-{act}-{number}-{name}">{number}</a></sup>'
