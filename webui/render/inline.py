"""Text between blocks of code: raw HTML becomes text, formulas are marked, pictures from elsewhere become links.

One pass from left to right, as the Markdown reader on the page goes: whatever begins first wins. Where the two might
read code differently nothing depends on it: no `<` is passed on but that of a tag we wrote or know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from webui.render.delimiters import DISPLAY, INLINE, NOTE, note_index
from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# From the numbers in a mark such as "[1, 3]" to markup; an empty string where none of them points anywhere.
Cite: TypeAlias = "Callable[[list[int]], str]"
# From a picture's description and host to the text of the link that stands for it.
Picture: TypeAlias = "Callable[[str, str], str]"

# What is never closed must not be looked for again from each place where it opens: no part goes past the next opening
# of its kind, and none gives back what it took. So the time grows with the text, whatever is in it.
_TOKENS = re.compile(
    rf"(?P<note>{NOTE})|"
    r"""
      (?P<displayed> \$\$ (?P<d1> (?:(?!\n[ \t]*\n|\$\$)[\s\S]){1,4000} ) \$\$
                   | \\\[ (?P<d2> (?: [^\\\n] | \n(?![ \t]*\n) | \\[^\[\]\n] | \\(?=\n) ){1,4000}+ ) \\\] )
    | (?P<formula>   \\\( (?P<f1> (?: [^\\\n] | \\[^()\n] ){1,2000}+ ) \\\)
                   | (?<![\\$0-9A-Za-z]) \$ (?! [\s$] )
                     (?P<f2> (?:\\.|[^$\\\n`]){0,1000}? (?:\\[^\s]|[^\s$\\`]) ) \$ (?! [\d$] ) )
    | (?P<escape>  \\ [!-/:-@\[-`{-~] )
    | (?P<code>    (?P<tick>`+) (?!`) (?P<inside> [^\n]{0,4000}? (?<!`)) (?P=tick) (?!`) )
    | (?P<ticks>   `+ )
    | (?P<picture> !\[ (?P<alt> (?: [^\]\n!] | !(?!\[) ){0,500}+ ) \]
                   \( [ ]? <? (?P<src> (?: [^)\s>!] | !(?!\[) ){1,4000}+ ) (?: [^)\n!] | !(?!\[) ){0,300}+ \) )
    | (?P<bang>    !(?=\[) )
    | (?P<address> < (?P<url> https?:// [^\s<>]{1,2000} ) > )
    | (?P<tag>     < (?: /? (?:sub|sup|kbd|details|summary) | br[ ]?/? ) > )
    | (?P<less>    < )
    | (?P<cite>    (?<![ \t\u00a0]) [ \t\u00a0]*+
                   (?: (?<!\]) \[ (?P<n1> \d{1,3} (?: [,，、;] [ ]? \d{1,3} ){0,9} ) \] (?!\()
                     | 【 (?P<n2> \d{1,3} ) [^】\n]{0,40} 】 ) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A kept tag at the beginning of a line would open an HTML block, inside which code is not code.
_LINE_BEGINS = re.compile(r"[\s>*+\-\d.)#|]*")
_NUMBERS = re.compile(r"\d+")
_OWN_FILE = re.compile(r"\.?/(?:files|assets/samples)/[\w.-]+(?:\?download=1)?\Z")
_NOTHING = "&#8203;"
_FIXED = {"bang": "", "less": "&lt;"}


class Inline:
    """Makes one run of text safe.

    Args:
        cite: What marks become.
        picture: What foreign pictures become.
        notes: What the marks of our notes become.
    """

    def __init__(self, cite: Cite | None, picture: Picture, notes: Sequence[str] = ()) -> None:
        self._cite = cite
        self._picture = picture
        self._notes = notes

    def safe(self, text: str) -> str:
        """The text as Markdown in which no raw HTML is left but a few bare tags and our own marks."""
        return _TOKENS.sub(self._token, text)

    def _token(self, match: re.Match[str]) -> str:
        token = match[0]
        if (fixed := _FIXED.get(match.lastgroup or "")) is not None:
            return fixed
        if match["note"]:
            return self._notes[note_index(token)]
        if match["displayed"]:
            return DISPLAY[0] + _formula(match["d1"] or match["d2"]) + DISPLAY[1]
        if match["formula"]:
            return INLINE[0] + _formula(match["f1"] or match["f2"]) + INLINE[1]
        if match["code"]:
            return f"<code>{escaped(match['inside'].strip())}</code>" if "<" in token else token
        if match["picture"]:
            return self._pictured(match["alt"], match["src"])
        if match["address"]:
            return match["url"]
        if match["tag"]:
            line = match.string.rfind("\n", 0, match.start()) + 1
            return (_NOTHING if _LINE_BEGINS.fullmatch(match.string, line, match.start()) else "") + token
        if match["cite"]:
            return self._cited(match)
        return token

    def _cited(self, match: re.Match[str]) -> str:
        if self._cite is None:
            return match[0]
        return self._cite([int(number) for number in _NUMBERS.findall(match["n1"] or match["n2"])])

    def _pictured(self, alt: str, source: str) -> str:
        label = self.safe(alt.replace("[", "").replace("<", ""))
        if _OWN_FILE.match(source):
            return f"![{label}]({source})"
        try:
            host = urlsplit(source).hostname or ""
        except ValueError:
            host = ""
        if not host or not source.lower().startswith(("http://", "https://")):
            return label
        return f"[{self._picture(label, host)}]({source.replace('<', '%3C')})"


def _formula(text: str) -> str:
    """A formula goes around the Markdown reader and comes back as HTML: there its signs are entities."""
    return text.replace("<", "&lt;").replace(">", "&gt;")
