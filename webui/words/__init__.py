"""The page's sentences in each language: `<code>.toml` beside this file, looked up by key."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from core.agents.config.problems import SENTENCES as CONFIG
from core.backup.problems import SENTENCES as BACKUP
from core.batch.problems import SENTENCES as BATCH
from core.errors import ParlourError
from core.extras import in_checkout, install_command
from core.importing.problems import SENTENCES as IMPORTING
from core.judging.problems import SENTENCES as JUDGING
from core.languages import spoken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang

LANGUAGES: Final = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.toml")))
"""A new language is a new file, named by its code."""

_ACCEPTED: Final = re.compile(rf"\s*({'|'.join(LANGUAGES)})\b[^;]*(?:;\s*q=([^;]*))?", re.IGNORECASE)
_DRIVER: Final = re.compile(r"(bubblewrap|landlock|docker|runsc|auto): (.*)", re.DOTALL)
_BETWEEN_DRIVERS: Final = re.compile(r"; (?=(?:bubblewrap|landlock|docker|runsc|auto): )")

_NAMED: Final = 3  # files that a sentence names; others are counted
# What the remedy of an error counts: of one it has words of its own.
_COUNTED = {"quota_messages": "hours", "quota_tokens": "days", "quota_cost": "days"}


class _Table(NamedTuple):
    """A language as its file has it."""

    sentences: dict[str, str]
    sandbox: tuple[tuple[str, str], ...]
    """Regular expressions of what the sandbox says in English, and their translations; none in English."""


@cache
def _table(lang: str) -> _Table:
    found: dict[str, Any] = tomllib.loads(Path(__file__).with_name(f"{lang}.toml").read_text("utf-8"))
    sandbox: dict[str, str] = found.pop("sandbox", {})
    return _Table({**_english_of_core(), **found} if lang == "en" else found, tuple(sandbox.items()))


def _english_of_core() -> dict[str, str]:
    """The errors whose English is in `core`, which has to say them without a page, too."""
    return {
        **{f"error.{key}": sentence for key, sentence in {**CONFIG, **BATCH, **JUDGING}.items()},
        **{f"error.{key}": happened for key, (happened, _) in {**BACKUP, **IMPORTING}.items()},
        **{f"error.{key}.do": remedy for key, (_, remedy) in {**BACKUP, **IMPORTING}.items() if remedy},
    }


class _Blanks(dict[str, Any]):
    """Blanks of a sentence: one that nobody filled becomes "…", never an error on the page."""

    def __missing__(self, name: str) -> str:
        return "…"


class Words:
    """The words of one language: `words("history.new")`, `words("reply.thought", seconds="3 s")`."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self._sentences, self._sandbox = _table(lang)
        self.spoken: Lang = spoken(self._sentences["lang.core"])
        """What `core` speaks to who reads this language: in prompts, labels of tools, exports and reports."""

    def __call__(self, key: str, **blanks: Any) -> str:
        """The sentence, its blanks filled; raises `KeyError` for a key that no language has."""
        return self._sentences[key].format_map(_Blanks(blanks))

    def __contains__(self, key: str) -> bool:
        return key in self._sentences

    @classmethod
    def of(cls, accept_language: str | None) -> Words:
        """The words for an `Accept-Language` header; English where no language of ours is wanted."""
        return cls(_preferred(accept_language or ""))

    @classmethod
    def named(cls, code: str) -> Words:
        """The words of the language with this code; English where there is none."""
        return cls(code if code in LANGUAGES else "en")

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
        if key == "document_not_what_it_says" and details.get("kind") and details.get("promised"):
            key = "document_is_another_kind"
        blanks = {name: str(value) for name, value in details.items()}
        if key == "document_parts_unread" and isinstance(files := details.get("files"), list | tuple) and files:
            key, blanks["files"], blanks["n"] = self._unread_parts(details)
        if f"error.{key}" not in self:
            key = "unexpected"
        blanks["install"] = self.install(blanks.get("extra") or ("ocr" if key == "document_scanned" else ""))
        if key == "sandbox_off":
            blanks["reason"] = self.sandbox(blanks.get("reason", ""))
        remedy = f"error.{key}.do"
        if blanks.get(_COUNTED.get(key, "")) == "1":
            remedy = f"{remedy}_one"
        return self(f"error.{key}", **blanks), self(remedy, **blanks) if remedy in self else ""

    def _unread_parts(self, details: Mapping[str, Any]) -> tuple[str, str, str]:
        """The sentence on files within a document that were not read, the first of their names, and how many more."""
        files, more = [str(one) for one in details["files"]], details.get("more")
        n = max(0, len(files) - _NAMED) + (more if isinstance(more, int) else 0)
        said = "document_parts_unread_more" if n else "document_parts_unread_named"
        return said, self("lang.comma").join(files[:_NAMED]), str(n)

    def install(self, extra: str) -> str:
        """How an extra is installed, as a clause: in a checkout's folder, or anywhere."""
        return self("install.checkout" if in_checkout() else "install.wheel", command=install_command(extra))

    def error(self, error: ParlourError | Mapping[str, Any]) -> str:
        """What happened and what to do, on one line: for a toast."""
        return self.line(*self.error_parts(error))

    def line(self, happened: str, remedy: str = "") -> str:
        """Two sentences on one line; the first may lack its full stop."""
        first = happened if happened.endswith((".", "。", "?", "？")) else happened + self("lang.stop")
        return self("lang.sentences", first=first, second=remedy) if remedy else first

    def sandbox(self, why: str) -> str:
        """Why code cannot be run, without a full stop; what the operating system itself said stays as it is."""
        why = why.strip().rstrip(".")
        if not self._sandbox:
            return why
        return self("lang.semicolon").join(self._sandbox_reason(part) for part in _BETWEEN_DRIVERS.split(why))

    def _sandbox_reason(self, reason: str) -> str:
        found = _DRIVER.fullmatch(reason)
        driver, sentence = found.groups() if found else ("auto", reason)
        for pattern, translation in self._sandbox:
            if match := re.fullmatch(pattern, sentence, re.DOTALL):
                sentence = match.expand(translation)
                break
        return sentence if driver == "auto" else driver + self("lang.colon") + sentence

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


def _preferred(header: str) -> str:
    """The first of our languages in the order of their weights."""
    found = (_ACCEPTED.match(part) for part in header.split(","))
    wanted = [(_weight(match[2]), match[1].lower()) for match in found if match]
    # `max` keeps the first of equals.
    return max(wanted, key=lambda choice: choice[0], default=(0.0, "en"))[1]


def _weight(text: str | None) -> float:
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        return 0.0


def sentences(lang: str) -> Mapping[str, str]:
    """All sentences of a language by their keys, blanks unfilled."""
    return _table(lang).sentences


@cache
def script_words(lang: str) -> str:
    """The sentences of the page's own script (`js.…`), as JSON that may stand inside a script element."""
    words = {key[3:]: sentence for key, sentence in sentences(lang).items() if key.startswith("js.")}
    return json.dumps(words, ensure_ascii=False).replace("<", "\\u003c")
