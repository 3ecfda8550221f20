"""Code as models hand it over: in a fence, as JSON, or bare."""

from __future__ import annotations

import re
from typing import Final

from core.messages.json_text import read_object

# Of tildes only the first of a line can begin one: else each of many in a long line is tried to its end.
_FENCE: Final = re.compile(
    r"(?:(?<!`)(?P<ticks>`{3,}+)|^[ \t]*+(?P<tildes>~{3,}+))[^\n`]*\n"
    r"(?P<code>.*?)(?:^[ \t]*(?(ticks)(?P=ticks)|(?P=tildes))|\Z)",
    re.DOTALL | re.MULTILINE,
)


def extract_code(text: str) -> str:
    """The code in `text`: the `code` of a JSON object, else the first fence with something in it, else all of it.

    A fence that is not closed reaches to the end.
    """
    if text.lstrip().startswith("{"):
        try:
            code = read_object(text).get("code")
        except ValueError:
            code = None  # it is code that begins with a brace
        if isinstance(code, str):
            return _out_of_fence(code)
    return _out_of_fence(text)


def _out_of_fence(text: str) -> str:
    found = next((match["code"] for match in _FENCE.finditer(text) if match["code"].strip()), None)
    return text if found is None else found
