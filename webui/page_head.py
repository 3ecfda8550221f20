"""What Parlour adds to Gradio's document: icon, words, preloads, and an outline until the styles are there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from webui.bundles import assets_folder, script, stylesheet
from webui.words import Words, script_words

_GRADIO_APP = b"<gradio-app"  # in the page itself, and in no other document
_END = b"</head>"
# Gradio's names its own picture, stands at the root of the site, and is asked for without the reader's cookie.
_MANIFEST = re.compile(rb'<link rel="manifest"[^>]*>')


def with_head(page: bytes, lang: str) -> bytes:
    """The page with its head; any other document as it is.

    Args:
        page: Gradio's document.
        lang: The reader's language: the script gets the words of this one.
    """
    if _GRADIO_APP not in page:
        return page
    # Gradio's script asks for ours when it has drawn the page; by then they are there.
    head = (
        '<link rel="icon" type="image/svg+xml" href="./assets/icons/favicon.svg">'
        '<link rel="manifest" crossorigin="use-credentials" href="./assets/app.webmanifest">'
        '<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">'
        f'<link rel="preload" as="style" href="./assets/{stylesheet().name}">'
        f'<link rel="modulepreload" href="./assets/{script().name}">'
        f'<script type="application/json" id="p-words" lang="{lang}">{script_words(lang)}</script>'
    )
    return _MANIFEST.sub(b"", page).replace(_END, head.encode() + _END, 1)


_HEAD = b"<head>"
# No browser draws anything before the styles that a document links; those that a script adds are not waited for.
_LINKED = re.compile(rb'<link rel="stylesheet" crossorigin href="([\w./-]+)">')
_ADDED = (
    rb"<script>document.head.append(Object.assign(document.createElement('link'), "
    rb"{ rel: 'stylesheet', crossOrigin: '', href: '\1' }));</script>"
)


@dataclass(frozen=True, slots=True)
class Colours:
    """Those of `assets/css/tokens.css` that the outline needs."""

    desk: str
    paper: str
    sheet: str
    rule: str
    edge: str
    ink: str


LIGHT = Colours("#eceae3", "#f8f7f3", "#fffefb", "#d8d5ca", "#7f8076", "#1d201c")
DARK = Colours("#121412", "#191b19", "#222522", "#343832", "#74776c", "#e8e5da")

# The reader's choices where they are kept, else the system's. A browser that keeps nothing for a frame throws.
_CHOOSE = (
    "(() => { const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; } }; "
    "const root = document.documentElement, chosen = kept('p-theme'), size = kept('p-size'); "
    "const asked = new URLSearchParams(location.search).get('__theme'); "
    "if (parent !== self && ['dark', 'light'].includes(asked)) root.dataset.outer = asked; "
    "const dark = (chosen || root.dataset.outer) ? (chosen || asked) === 'dark' "
    ": matchMedia('(prefers-color-scheme: dark)').matches; "
    "root.classList.toggle('dark', dark); if (size) root.dataset.size = size; "
    "if (/\\/settings(\\/[a-z]*)?$/.test(location.pathname)) root.dataset.settings = 'open'; })();"
)
# Gradio asks the browser alone which language its reader wants.
_SPEAK = (
    "for (const [name, value] of [['language', '{lang}'], ['languages', ['{lang}']]]) "
    "Object.defineProperty(navigator, name, {{ value }});"
)
_OUTLINE = (
    b'<div id="p-first" aria-hidden="true"><div class="p-first-side"><span>Parlour</span></div>'
    b'<div class="p-first-talk"><div></div></div></div>'
)


@cache
def _framed() -> str:
    return (assets_folder() / "framed" / "early.js").read_text("utf-8")


def _tokens(colours: Colours, scheme: str) -> str:
    return (
        f"color-scheme:{scheme};background:{colours.desk};--f-paper:{colours.paper};--f-sheet:{colours.sheet};"
        f"--f-rule:{colours.rule};--f-edge:{colours.edge};--f-ink:{colours.ink};--f-desk:{colours.desk}"
    )


# It goes by itself, too, should the styles never come.
_STYLE = f"""
:root{{{_tokens(LIGHT, "light")}}}
:root.dark{{{_tokens(DARK, "dark")}}}
#p-first{{position:fixed;inset:0;z-index:90;display:flex;background:var(--f-desk);animation:p-first 0s 20s forwards}}
@keyframes p-first{{to{{visibility:hidden}}}}
.p-first-side{{flex:none;box-sizing:border-box;width:272px;padding:17px 0 0 58px;border-right:1px solid var(--f-rule);
color:var(--f-ink);font:500 22px/30px Georgia,"Noto Serif",serif}}
.p-first-talk{{position:relative;flex:1;
background:linear-gradient(var(--f-rule),var(--f-rule)) 0 63px/100% 1px no-repeat var(--f-paper)}}
.p-first-talk div{{position:absolute;left:0;right:0;bottom:35px;box-sizing:border-box;width:min(100% - 32px,554px);
height:98px;margin:auto;border:1px solid var(--f-edge);border-radius:10px;background:var(--f-sheet)}}
[data-settings] .p-first-talk div{{display:none}}
@media (max-width:1199.98px){{.p-first-side{{width:248px}}}}
@media (max-width:839.98px){{.p-first-side{{display:none}}.p-first-talk div{{bottom:10px;width:calc(100% - 24px)}}}}
""".replace("\n", "")

_IN_HEAD = '<meta name="color-scheme" content="light dark"><style>{style}</style><script>{script}</script>'


def with_first_paint(
    page: bytes, base: str = "./", language: str = "", *, framed: bool = False, visitor: str = ""
) -> bytes:
    """The page with its outline; any other document as it is.

    Args:
        page: Gradio's document.
        base: The way from the page's address to its root: all its links are relative to that.
        language: The code that its reader chose; "" for the browser's own.
        framed: It is asked for by a frame.
        visitor: By which a reader is known whose browser keeps no cookies for a page in a frame.
    """
    if _GRADIO_APP not in page:
        return page
    page = _LINKED.sub(_ADDED, page)
    spoken = _SPEAK.format(lang=Words.named(language)("lang.tag")) if language else ""
    # The base stands before all that is relative to it.
    known = f'<meta name="p-visitor" content="{visitor}">' if visitor else ""
    head = f'<base href="{base}">{known}' + _IN_HEAD.format(
        style=_STYLE, script=_CHOOSE + spoken + (_framed() if framed else "")
    )
    return page.replace(_HEAD, _HEAD + head.encode(), 1).replace(_GRADIO_APP, _OUTLINE + _GRADIO_APP, 1)
