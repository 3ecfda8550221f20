"""Names of agents in what people and models write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = "[A-Za-z0-9_\u00c0-\u024f]"  # letters that need a space between words; Chinese ones need none
_AROUND = " \t\r\n*_`'\"“”‘’「」『』《》<>()（）[]【】@＠"
_AFTER = ".,;:!?。，；：！？、"


def mentioned(text: str, names: Sequence[str]) -> list[str]:
    """The names that stand after an @ in the text, in their order there, each once.

    Of names that begin alike the longest counts; upper and lower case are the same. An address such as
    `ada@example.org` mentions nobody.
    """
    if not names or not ("@" in text or "＠" in text):
        return []
    known = {name.casefold(): name for name in names}
    pattern = f"(?<!{_WORD})[@＠](?P<name>{_any_of(names)})"
    found = (known[match["name"].casefold()] for match in re.finditer(pattern, text, re.IGNORECASE))
    return list(dict.fromkeys(found))


def named(text: str, names: Sequence[str]) -> str | None:
    """The one name that a model meant: alone, in quotes, with a full stop, or the only one in its sentence."""
    known = {name.casefold(): name for name in names}
    plain = text.strip(_AROUND).casefold()
    for one in (plain, plain.rstrip(_AFTER).strip(_AROUND)):
        if one in known:
            return known[one]
    if not names:
        return None
    pattern = f"(?<!{_WORD})(?P<name>{_any_of(names)})"
    found = {known[match["name"].casefold()] for match in re.finditer(pattern, text, re.IGNORECASE)}
    return found.pop() if len(found) == 1 else None


def _any_of(names: Sequence[str]) -> str:
    """A pattern of all names, the longest first, none of which ends in the middle of a word."""
    longest = sorted(names, key=len, reverse=True)
    return "|".join(re.escape(name) + (f"(?!{_WORD})" if re.search(f"{_WORD}$", name) else "") for name in longest)
