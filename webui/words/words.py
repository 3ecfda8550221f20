"""Looking up a sentence: its language, its blanks, and what to say about an error."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from core.errors import ParlourError
from webui.words.en import WORDS as EN
from webui.words.sandbox_zh import why_not
from webui.words.zh import WORDS as ZH

if TYPE_CHECKING:
    from collections.abc import Mapping

Lang: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Lang, ...] = get_args(Lang)

_TABLES: dict[Lang, dict[str, str]] = {"en": EN, "zh": ZH}


class _Blanks(dict[str, Any]):
    """Blanks of a sentence: one that nobody filled becomes "…", never an error on the page."""

    def __missing__(self, name: str) -> str:
        return "…"


class Words:
    """The words of one language: `words("history.new")`, `words("reply.thought", seconds="3 s")`."""

    def __init__(self, lang: Lang) -> None:
        self.lang: Lang = lang
        self._table = _TABLES[lang]

    def __call__(self, key: str, **blanks: Any) -> str:
        """The sentence, its blanks filled; raises `KeyError` for a key that no language has."""
        return self._table[key].format_map(_Blanks(blanks))

    def __contains__(self, key: str) -> bool:
        return key in self._table

    @classmethod
    def of(cls, accept_language: str | None) -> Words:
        """The words for an `Accept-Language` header; English where neither language is wanted."""
        return cls(_preferred(accept_language or ""))

    def error_parts(self, error: ParlourError | Mapping[str, Any]) -> tuple[str, str]:
        """What happened, and what to do about it (may be empty).

        Args:
            error: An error, or a run's `{"key", "message", "hint", "details"}`.
        """
        if isinstance(error, ParlourError):
            key, details = error.words_key, error.details
        else:
            key, details = str(error.get("key", "")), cast("dict[str, Any]", error.get("details") or {})
        if key == "model_unavailable" and details.get("code"):
            key = "model_said_error"
        if f"error.{key}" not in self:
            key = "unexpected"
        blanks = {name: str(value) for name, value in details.items()}
        if key == "sandbox_off":
            blanks["reason"] = self.sandbox(blanks.get("reason", ""))
        remedy = f"error.{key}.do"
        return self(f"error.{key}", **blanks), self(remedy, **blanks) if remedy in self else ""

    def error(self, error: ParlourError | Mapping[str, Any]) -> str:
        """What happened and what to do, in a line: for a toast."""
        return self.line(*self.error_parts(error))

    def line(self, happened: str, remedy: str = "") -> str:
        """Two sentences, of which the first may lack its stop, in a line."""
        stop = "。" if self.lang == "zh" else "."
        sentence = happened if happened.endswith((".", "。", "?", "？")) else happened + stop
        return sentence + ("" if self.lang == "zh" or not remedy else " ") + remedy

    def sandbox(self, why: str) -> str:
        """Why code cannot be run, as the sandbox says it, in this language and without its stop."""
        return why_not(why) if self.lang == "zh" else why.strip().rstrip(".")

    def model(self, label: str) -> str:
        """What the page calls a model, by the label that it has everywhere."""
        name = label.removesuffix(", built in")
        return self("ready.inside", model=name) if name != label else label

    def seconds(self, seconds: float, *, whole: bool = False) -> str:
        """A duration: tenths below ten seconds (unless `whole`), whole seconds above, minutes above a hundred."""
        if seconds < 10 and not whole:
            return self("time.seconds", n=f"{max(seconds, 0.0):.1f}")
        if seconds < 100:
            return self("time.seconds", n=max(round(seconds), 1))
        minutes, rest = divmod(round(seconds), 60)
        return self("time.minutes", n=minutes, s=rest)


def _preferred(header: str) -> Lang:
    """The first of our languages in the order of their weights."""
    wanted: list[tuple[float, Lang]] = []
    for part in header.split(","):
        match = re.match(r"\s*(en|zh)\b[^;]*(?:;\s*q=([^;]*))?", part, re.IGNORECASE)
        if match:
            lang: Lang = "zh" if match[1].lower() == "zh" else "en"
            wanted.append((_weight(match[2]), lang))
    # `max` keeps the first of equals.
    return max(wanted, key=lambda choice: choice[0], default=(0.0, "en"))[1]


def _weight(text: str | None) -> float:
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        return 0.0


@cache
def script_words(lang: Lang) -> str:
    """What the page's own script says, as JSON that may stand inside a script element."""
    words = {key[3:]: said for key, said in _TABLES[lang].items() if key.startswith("js.")}
    return json.dumps(words, ensure_ascii=False).replace("<", "\\u003c")
