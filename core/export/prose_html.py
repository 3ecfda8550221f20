"""Markdown of models as HTML that can hold no script: every sign is escaped, and no picture is fetched."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from core.export.formulas import mathml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_LONGEST: Final = 200_000  # characters; what is longer is shown as it was written
_DEEPEST: Final = 100  # lists and quotes in each other; what is deeper markdown-it leaves out
_LINK: Final = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_INLINE: Final = re.compile(
    r"\\\((?P<a>.{1,1000}?)\\\)|\\\[(?P<b>.{1,4000}?)\\\]|\$\$(?P<c>.{1,4000}?)\$\$"
    r"|\$(?P<d>[^\s$`](?:[^$\n`]{0,300}[^\s$\\`])?)\$(?!\d)",
    re.DOTALL,
)
_BLOCK: Final = {"$$": "$$", "\\[": "\\]"}
_SENTENCES: Final = re.compile(r" {0,3}(?:[^\W\d_]|[,.;:?!()%])(?:[^\W_]|[ ,.;:?!()%-])*")
"""A line in which Markdown finds nothing and HTML escapes nothing: most short pieces of replies."""
_PLAIN: Final = re.compile(r"(?:[^\n!$&*<\[\\\]_`~]++|!(?!\[))++")
_ADDRESS: Final = re.compile(
    r"(?<![A-Za-z0-9_/])https?://[^\s<>\"`|\[\]\\^{}，。；：！？、（）【】「」『』《》“”‘’…]+", re.IGNORECASE
)
_NOT_AT_ITS_END: Final = ".,;:!?'*_~"
_DIRECTED: Final = frozenset(
    f"{name}_open"
    for name in ("paragraph", "heading", "blockquote", "bullet_list", "ordered_list", "list_item", "th", "td")
)
_WHITE: Final = re.compile(r"\s+")


class Prose:
    """Makes HTML of Markdown.

    Args:
        picture: What stands in place of a picture from the web, by its description and host.
        drawn: Whether formulas are written as MathML, which browsers draw; else as LaTeX.
    """

    def __init__(self, picture: Callable[[str, str], str], *, drawn: bool = True) -> None:
        options = {"html": False, "breaks": True, "maxNesting": _DEEPEST}  # as the page: a new line is a new line
        reader = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
        reader.disable("reference")  # or a line of the text says where the marks of others lead
        reader.disable(["html_block", "html_inline"])  # which find nothing here, and are asked at every sign
        reader.inline.ruler.at("text", _plain)
        reader.validateLink = _may_be_linked  # what a link says otherwise stays text
        reader.inline.ruler.before("escape", "formula", _formula)
        reader.block.ruler.before("fence", "formulas", _formulas, {"alt": ["paragraph", "blockquote", "list"]})
        reader.core.ruler.push("addresses", _addresses)
        reader.core.ruler.push("directions", _directions)
        shown = _drawn if drawn else _shown
        for name, rule in (("fence", _fence), ("code_block", _fence), ("formula", shown), ("text", _text)):
            reader.add_render_rule(name, rule)
        reader.add_render_rule("link_open", _link)
        reader.add_render_rule("image", _no_picture)
        self._reader, self._picture = reader, picture

    def html(self, text: str, cite: Callable[[str], str] | None = None) -> str:
        """The text as HTML.

        Args:
            cite: Puts links in place of marks such as `[1]`; it gets text that is escaped already, never code.
        """
        if len(text) > _LONGEST:
            return f'<pre class="long">{escape(text)}</pre>'
        if _SENTENCES.fullmatch(text):  # a tenth of the time
            said = text.strip(" ")
            return f'<p dir="auto">{cite(said) if cite is not None else said}</p>\n'
        return self._reader.render(text, {"cite": cite, "picture": self._picture})


def linked(text: str) -> str:
    """Text as HTML in which addresses of the web are links."""
    made: list[str] = []
    for said, address in _parted(text):
        made += [escape(said), _anchor(address) + escape(address) + "</a>" if address else ""]
    return "".join(made)


def _parted(text: str) -> Iterator[tuple[str, str]]:
    """Text and the address behind it, in turns; at the end without one."""
    at = 0
    for found in _ADDRESS.finditer(text):
        address = _without_its_end(found[0])
        if _host(address):
            yield text[at : found.start()], address
            at = found.start() + len(address)
    yield text[at:], ""


def _without_its_end(address: str) -> str:
    """Without the signs that belong to the sentence: a point, a bracket that was not opened in the address."""
    surplus, end = address.count(")") - address.count("("), len(address)
    while end and (address[end - 1] in _NOT_AT_ITS_END or (address[end - 1] == ")" and surplus > 0)):
        surplus -= address[end - 1] == ")"
        end -= 1
    return address[:end]


def _addresses(state: StateCore) -> None:
    """Make links of addresses that stand in the text, as the page does."""
    for block in state.tokens:
        if block.type != "inline" or "://" not in block.content or block.children is None:
            continue
        made: list[Token] = []
        within = 0
        for token in block.children:
            within += token.nesting if token.type in {"link_open", "link_close"} else 0
            made += [token] if within or token.type != "text" else _with_links(token)
        block.children = made


def _with_links(token: Token) -> Iterator[Token]:
    for said, address in _parted(token.content):
        if said:
            yield Token("text", "", 0, content=said, level=token.level)
        if address:
            yield Token("link_open", "a", 1, attrs={"href": address})
            yield Token("text", "", 0, content=address)
            yield Token("link_close", "a", -1)


def _directions(state: StateCore) -> None:
    """Let each block run as its own first letters do; and name how cells are aligned, for no style may stand there."""
    for token in state.tokens:
        if token.nesting == 1 and token.type in _DIRECTED:
            token.attrs["dir"] = "auto"
        if aligned := str(token.attrs.pop("style", "")).removeprefix("text-align:"):
            token.attrs["class"] = aligned


def _may_be_linked(url: str) -> bool:
    return _LINK.match(url) is not None


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _plain(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as markdown-it calls it
    """As markdown-it's own rule, which stops at every sign that means something in any of its extensions.

    What it stops at is taken one by one, with all rules asked about each.
    """
    found = _PLAIN.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.append_pending(found[0])
    state.pos = found.end()
    return True


def _formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as markdown-it calls it
    if state.src[state.pos] not in "\\$":
        return False
    found = _INLINE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = next(part for part in found.groups() if part is not None)
        token.meta = {"apart": found["b"] is not None or found["c"] is not None}
    state.pos = found.end()
    return True


def _formulas(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - as markdown-it calls it
    """A formula on lines of its own, which may look like a heading or a list."""

    def line(at: int) -> str:
        return state.src[state.bMarks[at] + state.tShift[at] : state.eMarks[at]].rstrip()

    opening = line(start)
    closing = _BLOCK.get(opening[:2])
    if closing is None or state.is_code_block(start):
        return False
    lines, at = [opening[2:]], start
    while not (lines[-1].endswith(closing)):
        at += 1
        if at >= end or not line(at):
            return False
        lines.append(line(at))
    if silent:
        return True
    token = state.push("formula", "", 0)
    token.content = "\n".join(lines).removesuffix(closing)
    token.meta, token.block, token.map = {"apart": True}, True, [start, at + 1]
    state.line = at + 1
    return True


def _drawn(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    apart = bool(token.meta.get("apart"))
    made = mathml(token.content, apart=apart)
    if not made:
        return _shown(renderer, tokens, at, options, env)
    return f'<div class="math">{made}</div>\n' if token.block else made


def _shown(_renderer: RendererHTML, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    token = tokens[at]
    said = escape(token.content.strip())
    name = "formula apart" if token.meta.get("apart") else "formula"
    return f'<div class="{name}">{said}</div>\n' if token.block else f'<code class="{name}">{said}</code>'


def _fence(_renderer: RendererHTML, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    language = (tokens[at].info or "").split(maxsplit=1)[0:1]
    label = f"<span>{escape(language[0][:40])}</span>" if language else ""
    return f'<div class="code">{label}<pre><code>{escape(tokens[at].content)}</code></pre></div>\n'


def _text(_renderer: RendererHTML, tokens: Sequence[Token], at: int, _options: Any, env: Any) -> str:
    said = escape(tokens[at].content)
    cite = cast("dict[str, Any]", env).get("cite")
    return cite(said) if cite is not None else said


def _no_picture(_renderer: RendererHTML, tokens: Sequence[Token], at: int, _options: Any, env: Any) -> str:
    token = tokens[at]
    said = cast("dict[str, Any]", env)["picture"](token.content, _host(str(token.attrs.get("src") or "")))
    return f"<em>{escape(said)}</em>"


def _link(_renderer: RendererHTML, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    return _anchor(_WHITE.sub("%20", str(tokens[at].attrs.get("href") or "")))


def _anchor(address: str) -> str:
    return f'<a href="{escape(address)}" rel="noreferrer noopener" title="{escape(address)}">'
