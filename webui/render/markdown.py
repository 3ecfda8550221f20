"""Markdown of models, tools and people, made safe to show.

The page's sanitiser keeps forms, positions and ids: with them a reply could paint over the page. So nothing but a few
bare tags survives as HTML, outside code. Code is found line by line and written again in one form that no reader can
take for anything else: a fence longer than any in it, after an empty line, closed. Then what we take for code is code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from webui.render.footnotes import Footnotes, apart
from webui.render.markup import DISPLAY, INLINE, MARKS, NOTE, escaped, note_index, note_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webui.words import Words

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>.*)\Z")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
_LANGUAGE = re.compile(r"[\w+#.-]+")
_TICKS = re.compile(r"`+")
_FORBIDDEN = re.compile(f"[{MARKS}\0]|{NOTE}")
_NOTE = re.compile(NOTE)
_DEPTH = 6


def markdown(
    text: str, words: Words, cite: Cite | None = None, *, growing: bool = False, notes: Sequence[tuple[int, str]] = ()
) -> str:
    """Text as Markdown for the Chatbot.

    Args:
        text: As it was written; may end anywhere, also in the middle of code.
        words: For what is said about pictures from elsewhere.
        cite: Replaces marks such as `[1]`; without it they stay.
        growing: More text will come: diagrams are still code, for each new frame would begin them anew, and the
            browser may take away the place that one is just being drawn into.
        notes: Markup of ours and where it goes: behind so many characters of the text, in growing order. What would
            stand in code is left out.
    """

    def picture(alt: str, host: str) -> str:
        return words("reply.picture_of", alt=alt or words("reply.picture"), host=host)

    show = f'<a class="p-do p-picture" role="button" href="#do-picture">{words("reply.picture_show")}</a>'
    footnotes = Footnotes(_with_marks(text, [end for end, _ in notes]).split("\n"))
    inline = Inline(cite, picture, [markup for _, markup in notes], footnotes.mark, show)
    lines = _blocks(footnotes.rest, _Way(inline, not growing, words("reply.drawing_long")), _DEPTH)
    made = "\n".join([*lines, *footnotes.listed(inline.safe)])
    return _NOTE.sub("", made) if notes else made


def _with_marks(text: str, ends: Sequence[int]) -> str:
    """The text without forbidden characters, and with the placeholders of our notes, which are ours alone."""
    pieces = [text[start:end] for start, end in pairwise([0, *ends, len(text)])]
    clean = [_FORBIDDEN.sub("", piece.replace("\r\n", "\n").replace("\r", "\n")) for piece in pieces]
    return "".join(piece + note_mark(index) for index, piece in enumerate(clean[:-1])) + clean[-1]


@dataclass(frozen=True, slots=True)
class _Way:
    """How text outside code is made safe, whether diagrams are drawn, and the note for one that is too long."""

    inline: Inline
    draws: bool
    too_long: str


def fenced(text: str, language: str = "", indent: str = "") -> list[str]:
    """Lines of a code block, whatever the text holds; an indented one needs an empty line before it."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = [fence + language, *text.split("\n"), fence]
    return [indent + line for line in lines] if indent else lines


def _blocks(lines: list[str], way: _Way, depth: int) -> list[str]:
    """Split into code, quotes and the text between, and make each safe."""
    out: list[str] = []
    text: list[str] = []

    def flush() -> None:
        if text:
            out.append(way.inline.safe("\n".join(text)))
            text.clear()

    at = 0
    while at < len(lines):
        fence = _opened(lines[at])
        if fence:
            flush()
            at = _code(lines, at, fence, out, way)
        elif _QUOTE.match(lines[at]):
            flush()
            at = _quote(lines, at, way, depth, out)
        else:
            text.append(lines[at])
            at += 1
    flush()
    return out


def _opened(line: str) -> re.Match[str] | None:
    match = _FENCE.match(line)
    return match if match and not (match["fence"][0] == "`" and "`" in match["info"]) else None


def _code(lines: list[str], at: int, fence: re.Match[str], out: list[str], way: _Way) -> int:
    """Write the code block that opens at `at` in its one form; returns the line after it."""
    column = len(fence["indent"].expandtabs(4))
    if fence["item"]:
        # A list item that begins with code gets an empty text, so that the code has lines of its own.
        out.append(fence["indent"] + fence["item"] + "&#8203;")
        column += len(fence["item"].expandtabs(4))
    closing = re.compile(rf"[ \t]*{re.escape(fence['fence'][0])}{{{len(fence['fence'])},}}[ \t]*\Z")
    end = at + 1
    while end < len(lines) and not closing.match(lines[end]):
        end += 1
    closed = end < len(lines)
    body = "\n".join(_outdented(line, column) for line in lines[at + 1 : end])
    language = _LANGUAGE.match(fence["info"].strip())
    if out and out[-1].strip():
        out.append("")
    out.extend(_written(body, language[0] if language else "", " " * column, way, closed=closed))
    return end + 1


def _written(body: str, language: str, indent: str, way: _Way, *, closed: bool) -> list[str]:
    if language != "mermaid":
        return fenced(body, language, indent)
    # A diagram is drawn when it is complete; until then it is code.
    if not (way.draws and closed) or indent or "```" in body:
        return fenced(body, "", indent)
    if len(body) > LONGEST_DIAGRAM:
        return [f'<p class="p-cap">{way.too_long}</p>', "", *fenced(body)]
    safe = drawable(body)
    return ["```mermaid", safe, "```"] if safe is not None else fenced(body)


def _outdented(line: str, column: int) -> str:
    """Without up to `column` leading columns."""
    if not column:
        return line
    stripped = line.lstrip(" \t")
    width = len(line[: len(line) - len(stripped)].expandtabs(4))
    return " " * max(0, width - column) + stripped


def _quote(lines: list[str], at: int, way: _Way, depth: int, out: list[str]) -> int:
    """Render a quote as a text of its own; returns the line after it."""
    inner: list[str] = []
    while at < len(lines) and (match := _QUOTE.match(lines[at])):
        inner.append(lines[at][match.end() :])
        at += 1
    if depth:
        out.extend("> " + line for block in _blocks(inner, way, depth - 1) for line in block.split("\n"))
    else:
        out.append("> " + way.inline.safe(" ".join(line.lstrip("> \t") for line in inner)))
    return at


# From the numbers of a mark such as "[1, 3]" to markup; "" where none has a passage.
Cite: TypeAlias = "Callable[[list[int]], str]"
# From a picture's description and host to the text of the link that stands for it.
Picture: TypeAlias = "Callable[[str, str], str]"

# Linear time on any input: no part goes past the next opening of its kind, and quantifiers are possessive.
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
    | (?P<foot>    (?<!\]) (?: \[\^ [\w.-]{1,40} \] )++ (?! [(:\[] ) )
    | (?P<cite>    (?<![ \t\u00a0]) [ \t\u00a0]*+
                   (?: (?<!\]) \[ (?P<n1> \d{1,3} (?: [,，、;] [ ]? \d{1,3} ){0,9} ) \] (?!\()
                     | 【 (?P<n2> \d{1,3} ) [^】\n]{0,40} 】 ) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A kept tag at the beginning of a line would open an HTML block, inside which code is not code.
_LINE_BEGINS = re.compile(r"[\s>*+\-\d.)#|]*")
_NUMBERS = re.compile(r"\d+")
_FOOT = re.compile(r"\[\^([\w.-]{1,40})\]")
_OWN_FILE = re.compile(r"\.?/(?:files|assets/samples)/[\w.-]+(?:\?download=1)?\Z")
_NOTHING = "&#8203;"
_FIXED = {"bang": "", "less": "&lt;"}


class Inline:
    """Makes one run of text safe.

    Args:
        notes: What the marks of our notes become.
        footnote: From the name of a footnote to its mark, `None` where there is none.
        show: Markup behind the link to a picture from elsewhere, which shows it; `assets/js/pictures.js` knows it.
    """

    def __init__(
        self,
        cite: Cite | None,
        picture: Picture,
        notes: Sequence[str] = (),
        footnote: Callable[[str], str | None] = lambda _: None,
        show: str = "",
    ) -> None:
        self._cite = cite
        self._footnote = footnote
        self._show = show
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
        return self._cited(match) if match["foot"] or match["cite"] else token

    def _cited(self, match: re.Match[str]) -> str:
        if match["foot"]:
            return apart(_FOOT.sub(lambda one: self._footnote(one[1]) or one[0], match[0]))
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
        return f"[{self._picture(label, host)}]({source.replace('<', '%3C')}) {self._show}".rstrip()


def _formula(text: str) -> str:
    """A formula goes around the Markdown reader and comes back as HTML: there its signs are entities."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


LONGEST_DIAGRAM: Final = 20_000
"""Characters of the longest diagram that is drawn."""
_TAG = re.compile(r"<(?!br ?/?>)(?=[a-zA-Z/!?])")
# Mermaid takes labels for HTML, where an entity becomes a tag of the page.
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
    """Mermaid source made safe; `None` where it reaches out of the diagram (links, callbacks, pictures).

    Directives and front matter are left out: they set styles and options of the whole page's Mermaid.

    Args:
        source: At most `LONGEST_DIAGRAM` characters.
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
    """Without directives on lines of their own; `None` with any other, whose surroundings could form a tag."""
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
    """Without front matter between two lines of dashes, also when repeated."""
    at = _begin(source, 0)
    while source.startswith("---", at):
        closing = _RULE.search(source, at + 3)
        if _RULE.match(source, at) is None or closing is None:
            return None
        at = _begin(source, closing.end())
    return source[at:]


def _begin(source: str, at: int) -> int:
    """The index of the first character that is no space."""
    found = _SPACE.match(source, at)
    return found.end() if found else at
