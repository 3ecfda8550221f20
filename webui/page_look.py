"""What a program may choose of the page: the keys of `chatbot_config`."""

from __future__ import annotations

import mimetypes
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gradio.themes import Base, Font

from core.errors import SettingsError
from webui.bundles import script, stylesheet
from webui.render.entries import face_class
from webui.words import script_words

if TYPE_CHECKING:
    from webui.words import Lang


_PAPER = ("background_fill_primary", "background_fill_secondary", "body_background_fill", "panel_background_fill")
_VALUES: dict[str, str] = {
    **dict.fromkeys(_PAPER, "var(--p-paper)"),
    "body_text_color": "var(--p-ink)",
    "body_text_color_subdued": "var(--p-ink-2)",
    "body_text_size": "var(--p-t-ui)",
    "border_color_primary": "var(--p-rule)",
    "border_color_accent": "var(--p-accent)",
    "border_color_accent_subdued": "var(--p-rule)",
    "color_accent_soft": "transparent",
    "block_background_fill": "transparent",
    "block_border_width": "0px",
    "block_border_color": "transparent",
    "block_padding": "0px",
    "block_shadow": "none",
    "block_radius": "0px",
    "block_label_background_fill": "transparent",
    "block_label_text_color": "var(--p-ink-2)",
    "container_radius": "0px",
    "panel_border_width": "0px",
    "layout_gap": "0px",
    "form_gap_width": "0px",
    "input_background_fill": "transparent",
    "input_background_fill_focus": "transparent",
    "input_border_width": "0px",
    "input_border_color": "transparent",
    "input_border_color_focus": "transparent",
    "input_shadow": "none",
    "input_shadow_focus": "none",
    "input_placeholder_color": "var(--p-ink-3)",
    "input_text_size": "var(--p-t-read)",
    "button_primary_background_fill": "var(--p-accent)",
    "button_primary_background_fill_hover": "var(--p-accent-strong)",
    "button_primary_text_color": "var(--p-on-accent)",
    "button_secondary_background_fill": "transparent",
    "button_secondary_background_fill_hover": "var(--p-wash)",
    "button_secondary_text_color": "var(--p-ink)",
    "button_secondary_border_color": "var(--p-rule-strong)",
    "link_text_color": "var(--p-accent)",
    "link_text_color_active": "var(--p-accent)",
    "link_text_color_hover": "var(--p-accent-strong)",
    "link_text_color_visited": "var(--p-accent)",
    "code_background_fill": "var(--p-code)",
    "table_border_color": "var(--p-rule)",
    "table_even_background_fill": "transparent",
    "table_odd_background_fill": "transparent",
    "table_text_color": "var(--p-ink)",
    "error_background_fill": "var(--p-sheet)",
    "error_border_color": "var(--p-bad)",
    "error_text_color": "var(--p-bad)",
    "error_icon_color": "var(--p-bad)",
    "loader_color": "var(--p-accent)",
    "chatbot_text_size": "var(--p-t-read)",
    "shadow_drop": "none",
    "shadow_drop_lg": "none",
    "shadow_spread": "0px",
}


class Theme(Base):
    """Gradio in Parlour's clothes; no font is fetched from anywhere."""

    def __init__(self) -> None:
        stack = [Font("var(--p-font-sans)")]
        mono = [Font("var(--p-font-mono)")]
        super().__init__(font=stack, font_mono=mono)
        cast("Any", self).set(**_VALUES)
        for name in [name for name in vars(self) if name.endswith("_dark")]:
            delattr(self, name)


def head() -> str:
    """What Gradio's script puts into the head, after its own styles: ours, and the page's behaviour."""
    return (
        f'<link rel="stylesheet" href="./assets/{stylesheet().name}">'
        f'<script type="module" src="./assets/{script().name}"></script>'
    )


_KEYS = ("user.name", "user.avatar", "agent.avatar", "input.placeholder", "prompt.suggestions", "verbose")
_MOST_BYTES = 1024 * 1024  # of a picture: it travels with the page


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question to begin with.

    Args:
        text: The question.
        files: What comes with it.
    """

    text: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What a program chose of the page; what is empty stays Parlour's own.

    Args:
        user_name: What stands above the user's questions.
        user_picture: A `data:` address of a small picture, before that name.
        agent_picture: The same, before an agent's name.
        agent_pictures: Names of agents, and the picture of each, where they differ.
        placeholder: What stands in the empty composer.
        suggestions: Questions to begin with, perhaps none; where it is `None`, Parlour's own four.
        verbose: Whether the terminal gets a line for each call of a model.
    """

    user_name: str = ""
    user_picture: str = ""
    agent_picture: str = ""
    agent_pictures: tuple[tuple[str, str], ...] = ()
    placeholder: str = ""
    suggestions: tuple[Suggestion, ...] | None = None
    verbose: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any] | None) -> Look:
        """Read a `chatbot_config`. Parlour's own questions speak of samples that a program's page has not.

        Raises:
            SettingsError: A key is unknown, or a value is of the wrong kind; the sentence names it.
        """
        given = dict(config or {})
        for name in given:
            if name not in _KEYS:
                near = get_close_matches(str(name), _KEYS, 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"The keys are {', '.join(_KEYS)}."
                raise SettingsError(f"chatbot_config has no key {name!r}.", hint=hint)
        return cls(
            _text(given, "user.name"),
            _picture(given, "user.avatar"),
            "" if isinstance(given.get("agent.avatar"), Mapping) else _picture(given, "agent.avatar"),
            _pictures(given, "agent.avatar"),
            _text(given, "input.placeholder"),
            tuple(_suggestion(one) for one in _list(given, "prompt.suggestions")),
            _truth(given, "verbose"),
        )

    def style(self) -> str:
        """CSS that puts names and pictures above what was said; empty where nothing was chosen."""
        rules: list[str] = []
        if self.user_name or self.user_picture:
            content = f"content: {_quoted(self.user_name)}; display: block; margin: 0 0 4px; font-weight: 600; "
            look = f"{content}{_SMALL}{_face(self.user_picture)}"
            rules.append(f"#chat .user-row .message:not(.message .message)::before {{ {look} }}")
        if self.agent_picture:
            rules.append(f"#chat .prose p.p-speaker:not(:has(.p-face)) {{ {_face(self.agent_picture)} }}")
            rules.append(f".p-face.p-face {{ {_portrait(self.agent_picture)} }}")
        for name, picture in self.agent_pictures:
            rules.append(f".p-face.{face_class(name)} {{ {_portrait(picture)} }}")
        return f"<style>{' '.join(rules)}</style>" if rules else ""


_SMALL = "font-size: var(--p-t-small); color: var(--p-ink-2); "


def _face(picture: str) -> str:
    if not picture:
        return ""
    return (
        f'background: url("{picture}") left center / 20px 20px no-repeat; padding-left: 28px; '
        "min-height: 20px; line-height: 20px; "
    )


def _portrait(picture: str) -> str:
    """The program's own picture in the place of initials."""
    return f'background-image: url("{picture}"); color: transparent; '


def _quoted(text: str) -> str:
    """A CSS string: whatever is no letter or figure is written as its number, so that nothing ends it."""
    return '"' + "".join(one if one.isalnum() else f"\\{ord(one):06x}" for one in text) + '"'


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise SettingsError(f"{name} of chatbot_config is a text, not {value!r}.")
    return value or ""


def _truth(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise SettingsError(f"{name} of chatbot_config is True or False, not {value!r}.")
    return bool(value)


def _list(given: Mapping[str, Any], name: str) -> list[object]:
    value = given.get(name)
    if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise SettingsError(f"{name} of chatbot_config is a list, not {value!r}.")
    return list(cast("Sequence[object]", value or ()))


def _picture(given: Mapping[str, Any], name: str) -> str:
    """A picture's file as an address that the page can show: it loads nothing from elsewhere."""
    value = given.get(name)
    if value is None or value == "":
        return ""
    if not isinstance(value, str | Path):
        raise SettingsError(f"{name} of chatbot_config is the path of a picture, not {value!r}.")
    path, kind = Path(value), mimetypes.guess_type(str(value))[0] or ""
    if not path.is_file() or not kind.startswith("image/"):
        hint = "Give the path of a picture on this machine: the page loads nothing from elsewhere."
        raise SettingsError(f"{name} of chatbot_config is no picture: {str(value)!r}.", hint=hint)
    if path.stat().st_size > _MOST_BYTES:
        raise SettingsError(f"{name} of chatbot_config is larger than 1 MiB.", hint="Give a small picture.")
    return f"data:{kind};base64,{b64encode(path.read_bytes()).decode('ascii')}"


def _pictures(given: Mapping[str, Any], name: str) -> tuple[tuple[str, str], ...]:
    """Pictures by the names of agents."""
    value = given.get(name)
    if not isinstance(value, Mapping):
        return ()
    named = cast("Mapping[object, object]", value)
    return tuple((str(agent), _picture({name: picture}, name)) for agent, picture in named.items() if picture)


def _suggestion(given: object) -> Suggestion:
    """A text, or a dict with `text` and `files`."""
    if isinstance(given, str):
        return Suggestion(given)
    if isinstance(given, Mapping):
        one = cast("Mapping[str, Any]", given)
        files = tuple(Path(file) for file in one.get("files") or ())
        missing = next((file for file in files if not file.is_file()), None)
        if missing is not None:
            raise SettingsError(f"A file of prompt.suggestions is not there: {str(missing)!r}.")
        if isinstance(one.get("text"), str):
            return Suggestion(str(one["text"]), files)
    raise SettingsError(f"prompt.suggestions of chatbot_config holds texts, not {given!r}.")


_GRADIO_APP = b"<gradio-app"  # in the page itself, and in no other document
_END = b"</head>"


def with_head(page: bytes, lang: Lang) -> bytes:
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
        '<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">'
        f'<link rel="preload" as="style" href="./assets/{stylesheet().name}">'
        f'<link rel="modulepreload" href="./assets/{script().name}">'
        f'<script type="application/json" id="p-words">{script_words(lang)}</script>'
    )
    return page.replace(_END, head.encode() + _END, 1)


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

# The reader's choice where it is kept, else the system's. A browser that keeps nothing for a frame throws.
_CHOOSE = (
    "(() => { let chosen = null; try { chosen = localStorage.getItem('p-theme'); } catch { } "
    "const dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches; "
    "document.documentElement.classList.toggle('dark', dark); })();"
)
_OUTLINE = (
    b'<div id="p-first" aria-hidden="true"><div class="p-first-side"><span>Parlour</span></div>'
    b'<div class="p-first-talk"><div></div></div></div>'
)


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
height:60px;margin:auto;border:1px solid var(--f-edge);border-radius:10px;background:var(--f-sheet)}}
@media (max-width:1199.98px){{.p-first-side{{width:248px}}}}
@media (max-width:839.98px){{.p-first-side{{display:none}}.p-first-talk div{{bottom:10px;width:calc(100% - 24px)}}}}
""".replace("\n", "")

_IN_HEAD = f'<meta name="color-scheme" content="light dark"><style>{_STYLE}</style><script>{_CHOOSE}</script>'.encode()


def with_first_paint(page: bytes) -> bytes:
    """The page with its outline; any other document as it is."""
    if _GRADIO_APP not in page:
        return page
    page = _LINKED.sub(_ADDED, page)
    return page.replace(_HEAD, _HEAD + _IN_HEAD, 1).replace(_GRADIO_APP, _OUTLINE + _GRADIO_APP, 1)
