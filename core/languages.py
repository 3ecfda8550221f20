"""The languages that `core` itself speaks: to a model in its prompts, to a person in a tool's label and result.

The page has more room: each file of `webui/words` is a language of the page, and names the one of these nearest to it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Lang: TypeAlias = Literal["en", "zh"]
LANGS: Final[tuple[Lang, ...]] = get_args(Lang)


def spoken(code: object) -> Lang:
    """The language with this code; English where `core` does not speak it."""
    return "zh" if code == "zh" else "en"
