"""What a program may choose of the page: the keys of `chatbot_config`."""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from core.errors import SettingsError
from webui.render.entries import face_class

_KEYS = ("user.name", "user.avatar", "agent.avatar", "input.placeholder", "prompt.suggestions", "verbose")
_MOST_BYTES = 1024 * 1024  # of a picture: it travels with the page


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question to begin with."""

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
            rules.append(f"#chat .prose p.p-speaker:not(.p-faced) {{ {_face(self.agent_picture)} }}")
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
