"""Mermaid source of models and documents, made safe to be drawn, or refused."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 20_000
"""Characters of the longest source that is drawn."""
_TAG = re.compile(r"<(?!br ?/?>)(?=[a-zA-Z/!?])")
# To Mermaid a label is HTML, and what stands there as an entity becomes a tag of the page.
_ENTITY = re.compile(r"&(?=[#a-zA-Z])")
# Links, callbacks and classes of one's own.
_REACHES = re.compile(
    r"(?:^|;)[ \t]*+(?:click|callback|links?|properties|details)[ \t]+[\"'\w]", re.MULTILINE | re.IGNORECASE
)
# Properties of a node may name a picture, or spell its key with escapes. Where they end depends on quotes that
# Mermaid reads in its own way, so all that follows their beginning is looked at.
_PROPERTIES = re.compile(r"@[ \t]*+\{")
_PICTURE = re.compile(r"img|\\", re.IGNORECASE)
_DIRECTIVE, _DIRECTIVE_ENDS = "%%{", "}%%"
_RULE = re.compile(r"^-{3}[ \t]*+$", re.MULTILINE)
_SPACE = re.compile(r"\s*+")


def drawable(source: str) -> str | None:
    """The source as it may be handed to Mermaid, `None` where it reaches out of the drawing.

    Directives and front matter are left out: they set styles and options of the whole page's Mermaid.

    Args:
        source: At most `LONGEST` characters.
    """
    bare = _without_directives(source)
    if bare is not None:
        bare = _without_front_matter(bare)
    if bare is None or _REACHES.search(bare):
        return None
    properties = _PROPERTIES.search(bare)
    if properties and _PICTURE.search(bare, properties.end()):
        return None
    return _TAG.sub("#lt;", _ENTITY.sub("#amp;", bare)).replace("<", "&lt;")


def _without_directives(source: str) -> str | None:
    """Without those on lines of their own. What is left around any other could be a tag, so there is none then."""
    kept: list[str] = []
    at = 0
    while (begins := source.find(_DIRECTIVE, at)) >= 0:
        ends = source.find(_DIRECTIVE_ENDS, begins)
        if ends < 0 or source[at:begins].rpartition("\n")[2].strip(" \t"):
            return None
        kept.append(source[at:begins])
        at = ends + len(_DIRECTIVE_ENDS)
    bare = "".join([*kept, source[at:]])
    return None if _DIRECTIVE in bare else bare


def _without_front_matter(source: str) -> str | None:
    """Without what stands between two lines of dashes at the beginning, again and again."""
    at = _begin(source, 0)
    while source.startswith("---", at):
        closing = _RULE.search(source, at + 3)
        if _RULE.match(source, at) is None or closing is None:
            return None
        at = _begin(source, closing.end())
    return source[at:]


def _begin(source: str, at: int) -> int:
    """Where something begins at last."""
    found = _SPACE.match(source, at)
    return found.end() if found else at
