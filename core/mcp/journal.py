"""What a server says beside its answers, its last lines without keys; and strangers' names, made fit to be shown."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from core.messages.invisible import written_out

if TYPE_CHECKING:
    from collections.abc import Iterable


LONGEST_NAME = 128
LONGEST_DESCRIPTION = 10_000
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def one_line(text: str, most: int = LONGEST_NAME) -> str:
    """A name or message in one line: controls are written out, what is too long ends in "…"."""
    text = _ANSI.sub("", text[: most * 8])
    text = re.sub(r"[\r\n\t\u2028\u2029]+", " ", text)
    text = written_out(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def many_lines(text: str, most: int = LONGEST_DESCRIPTION) -> str:
    """A description: lines stay lines; hidden characters are written out, so that what a model reads can be seen."""
    text = _ANSI.sub("", text[: most * 2]).replace("\r\n", "\n").replace("\r", "\n")
    text = written_out(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def rule_name(server: str, tool: str) -> str:
    """`mcp:<server>:<tool>`, by which rules know a tool: printable, and another one for each tool.

    Where a name had to be changed for that, the end says which it was: else what is allowed to one tool would be
    allowed to every other whose name looks the same.
    """
    return f"mcp:{_one_of_a_kind(server)}:{_one_of_a_kind(tool)}"


def _one_of_a_kind(name: str) -> str:
    shown = one_line(name)
    return shown if shown == name else f"{shown}#{sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


_MOST_LINES = 200
_MOST_NOTES = 20
_MOST_QUOTED = 3  # lines of its error output, where it could not start
_LONGEST = 500  # characters of a line
_SHORTEST_KEY = 6  # characters: shorter values (a port, "true") are no secrets
KEYS = re.compile(
    r"""\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf|tvly|AKIA|AIza|npm)[-_]?[A-Za-z0-9_-]{12,}
    | \beyJ[A-Za-z0-9_-]{8,1000}+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?
    | (?<=://)[^\s/@?#"'<>`]+(?=@)""",
    re.VERBOSE,
)
# Of bounded parts: what repeats such names is not read to its end from each of them.
NAMED = re.compile(
    r"""(?P<name>(?:api[-_ ]?key|access[-_ ]?key|private[-_ ]?key|secret|token|passw(?:or)?d|passphrase|credential
        |authorization|cookie)\w{0,60}[*_`]{0,6}\\{0,9}["']?\s{0,60}(?:[:=]|\bis\b)[*_]{0,6}\s{0,60}\\{0,9}["'`]?)
        (?:(?:bearer|basic|digest|token|api-?key)\s+)?[^\s"',;`]{4,}""",
    re.VERBOSE | re.IGNORECASE,
)
BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line.

    Args:
        when: Seconds since 1970.
        text: Printable, and without keys.
    """

    when: float
    text: str


class ServerLog:
    """The last lines of one server.

    Args:
        secrets: What must not be repeated: the values of its variables and headers.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.status = 0  # with which it refused the last request over HTTP; 0 where it did not
        given = {key for secret in secrets for key in (secret, secret.partition(" ")[2])}  # "Bearer …" in parts too
        self._secrets: list[str] = []
        self.hide(*given)
        self._lines: deque[LogLine] = deque(maxlen=_MOST_LINES)
        self._notes: deque[LogLine] = deque(maxlen=_MOST_NOTES)
        self._errors: deque[str] = deque(maxlen=_MOST_QUOTED)

    def hide(self, *secrets: str) -> None:
        """Repeat these no more, either: keys that came later."""
        known = {*self._secrets, *(key for key in secrets if len(key) >= _SHORTEST_KEY)}
        self._secrets = sorted(known, key=len, reverse=True)

    def hidden(self, said: Any) -> Any:
        """A text, or texts within lists and objects, with "…" in the place of each key."""
        match said:
            case str():
                for secret in self._secrets:
                    said = said.replace(secret, "…")
                return said
            case dict():
                known = cast("dict[Any, Any]", said)
                return {self.hidden(name): self.hidden(value) for name, value in known.items()}
            case list():
                return [self.hidden(one) for one in cast("list[Any]", said)]
            case _:
                return said

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """The oldest first."""
        return tuple(sorted((*self._lines, *self._notes), key=lambda line: line.when))

    @property
    def last(self) -> str:
        """The last lines of its error output, else the last line of all; "" where there is none."""
        return "\n".join(self._errors) or (self._lines[-1].text if self._lines else "")

    def write(self, text: str, *, is_error: bool = False) -> None:
        """Keep a line; empty ones are passed over.

        Args:
            is_error: It comes from the error output. An indented one belongs to a traceback, whose end says why.
        """
        shown = self.clean(text)
        if not shown.strip():
            return
        self._lines.append(LogLine(time.time(), shown))
        if is_error and text[:1].isspace():
            self._errors.clear()
        elif is_error:
            self._errors.append(shown)

    def note(self, text: str) -> None:
        """Keep a remark of ours on the server, which no flood of lines drives out."""
        self._notes.append(LogLine(time.time(), self.clean(text)))

    def clean(self, text: str, most: int = _LONGEST) -> str:
        """Text of a server, to be repeated to people and models: one line, and without keys."""
        text = text[: most * 8]
        for secret in self._secrets:
            text = text.replace(secret, "…")
        text = NAMED.sub(r"\g<name>…", BEARER.sub(r"\1 …", KEYS.sub("…", text)))
        return one_line(text.strip(), most)
