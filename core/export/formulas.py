"""Formulas of LaTeX as MathML, which browsers draw by themselves; nothing but elements and signs of MathML is made."""

from __future__ import annotations

import logging
import re
from functools import cache, lru_cache
from html import escape, unescape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree.ElementTree import Element

_LOG: Final = logging.getLogger(__name__)
_LONGEST: Final = 1000  # signs; what is longer stays as it was written
_DEEPEST: Final = 60  # groups and scripts in each other
_ELEMENTS: Final = frozenset(
    (
        *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mstyle", "mpadded", "mphantom", "menclose"),
        *("msup", "msub", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none"),
        *("mfrac", "msqrt", "mroot", "mtable", "mtr", "mtd"),
    )
)
_ATTRIBUTES: Final = frozenset(
    (
        *(
            "displaystyle",
            "scriptlevel",
            "mathvariant",
            "stretchy",
            "symmetric",
            "fence",
            "form",
            "separator",
            "accent",
        ),
        *("accentunder", "lspace", "rspace", "linethickness", "movablelimits", "largeop", "minsize", "maxsize"),
        *(
            "columnalign",
            "columnlines",
            "columnspacing",
            "rowlines",
            "rowspacing",
            "width",
            "height",
            "depth",
            "notation",
        ),
    )
)
"""None of which names an address, a style or a program."""
_ROOTS: Final = ("msqrt", "mroot")
_ALIGNED: Final = "align*"
_ENVIRONMENTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("align", "aligned", "eqnarray", "eqnarray*"), _ALIGNED),
    **dict.fromkeys(("gather", "gather*", "gathered"), "matrix"),
    **dict.fromkeys(("equation", "equation*", "displaymath", "math"), ""),
}
"""What is drawn alike under a name that the translator knows; it numbers no lines."""
_ENVIRONMENT: Final = re.compile(r"\\(begin|end)\{([a-z]+\*?)\}")


def mathml(latex: str, *, apart: bool = False) -> str:
    """A formula as MathML; "" where it cannot be translated, or the extra `page` is not installed.

    Args:
        latex: The formula, without the signs around it.
        apart: Whether it stands on lines of its own.
    """
    return _made(latex.strip(), apart)


@lru_cache(256)
def _made(latex: str, apart: bool) -> str:  # noqa: FBT001 - positional, as the cache compares
    if not latex or len(latex) > _LONGEST or _depth(latex) > _DEEPEST or not _is_there():
        return ""
    from latex2mathml.converter import convert_to_element  # reads a table of signs, which only formulas need

    try:
        return _written(convert_to_element(_ENVIRONMENT.sub(_known, latex)), latex, apart=apart)
    except Exception as error:  # noqa: BLE001 - what models write is often no formula; it has many ways to say so
        _LOG.debug("A formula stays as it was written: %s", type(error).__name__)
        return ""


@cache
def _is_there() -> bool:
    return find_spec("latex2mathml") is not None


def _depth(latex: str) -> int:
    """About how many groups are within each other."""
    return max(latex.count(opening) for opening in ("{", "\\left", "\\begin", "^", "_", "\\frac", "\\sqrt"))


def _known(found: re.Match[str]) -> str:
    name = _ENVIRONMENTS.get(found[2], found[2])
    return f"\\{found[1]}{{{name}}}" if name else ""


def _written(math: Element, latex: str, *, apart: bool) -> str:
    """The element as HTML. Raises ValueError where it holds what is no MathML, or a sign that was not understood."""
    within = "".join(map(_element, math))
    if "\\" in unescape(within):
        raise ValueError(latex)
    shown = ' display="block"' if apart else ""
    return f'<math{shown} alttext="{escape(latex)}">{within}</math>'


def _root(one: Element) -> str:
    """A root, as a sign and a line: a browser without a font for formulas leaves the sign out of an `<msqrt>`."""
    within, degree = list(map(_element, one)), ""
    if one.tag == "mroot":
        degree = f"<msup><mrow></mrow>{within.pop()}</msup>"
    return f'<mrow>{degree}<mo class="root">√</mo><mrow class="rooted">{"".join(within)}</mrow></mrow>'


def _element(one: Element) -> str:
    said = unescape(one.text or "")
    if one.tag not in _ELEMENTS or (one.tag == "mi" and said == "&"):
        raise ValueError(one.tag)
    if one.tag in _ROOTS:
        return _root(one)
    kept = "".join(f' {name}="{escape(unescape(value))}"' for name, value in one.items() if name in _ATTRIBUTES)
    return f"<{one.tag}{kept}>{escape(said)}{''.join(map(_element, one))}</{one.tag}>{escape(unescape(one.tail or ''))}"
