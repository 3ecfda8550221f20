"""The structure of prose: sentences in English, German and Chinese, Markdown markup, and estimated tokens."""

from __future__ import annotations

import re
from itertools import pairwise

# A run of stops is tried once, from its start: a file of a million dots must not cost a million times a million.
# Chinese ends need no space after them; others do, so that 3.14 and e.g. names of files stay whole.
_END = re.compile(
    r"[。！？；]+[”’」』）)\"']*"
    r"|(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|St|No|vs|al|cf))(?<!\b(?:Mrs|Fig|Eqs|etc|Inc|Ltd|e\.g|i\.e))"
    r"(?<![.!?])[.!?]++[\"')\]”’]*+(?=\s)"
    r"|\n+"
)
_STOP = re.compile(r"[.!?。！？；\n]")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“])(?:[A-Z]|Dr|Mr|Ms|Mrs|Prof|St|No|Nr|vs|al|cf|ca|Fig|Figs|Eq|Eqs|Sec|Ch|Vol|pp?|approx|e\.g|i\.e)\.$"
)
_LONGEST_ABBREVIATION = 8  # letters, with what stands before it and the full stop
_ITEM = re.compile(r"\W*\d{1,3}(?:\.\d{1,3})*\.$")
_SECTION = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{1,3})+\.$")
_DAY = re.compile(r"(?<!\bI )\b(?:am|vom|[Zz]um|bis|ab|dem|den|der|des|seit|[Ii]m|beim) (?:[1-9]|[12]\d|3[01])\.$")
_TAIL = 40  # letters in which it is looked for
_IDEOGRAPH = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_TOKENS_PER_IDEOGRAPH = 0.75
_TOKENS_PER_LETTER = 0.25


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every sentence; together they cover the whole text, white space going with what precedes it."""
    if not _STOP.search(text, 0, len(text) - 1):  # as in most lines; nothing is cut before the end
        return [(0, len(text))] if text else []
    cuts, passed = [0], 0  # white space is passed once, however many line ends are in it
    for end in _END.finditer(text):
        at = max(end.end(), passed)
        while at < len(text) and text[at].isspace():
            at += 1
        passed = at
        if at > cuts[-1] and not (at < len(text) and _goes_on(text, cuts[-1], end.end(), at)):
            cuts.append(at)
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return list(pairwise(cuts))


def _goes_on(text: str, start: int, end: int, at: int) -> bool:
    return text[end - 1] in ".\n" and goes_on_after(text[max(start, end - _TAIL) : end], text[at])


def goes_on_after(text: str, letter: str) -> bool:
    """Whether the full stop at the end belongs to a number such as "1.2." or "am 31." and ends no sentence.

    Args:
        letter: What follows after the space; "" if nothing does.
    """
    if not letter or not text.endswith((".", ".\n")):  # most do not, and looking is dear
        return False
    if not text.removesuffix("\n")[-2:-1].isdecimal():
        return False
    number = _SECTION.search(text)
    if number is None:
        return letter.isalpha() and bool(_DAY.search(text))
    is_first = not any(sign.isalnum() for sign in text[: number.start()])
    return is_first or letter.islower() or ideographs(letter) > 0


def ends_in_abbreviation(text: str) -> bool:
    """Whether the full stop at the end belongs to an abbreviation such as "Dr." or to the number of a list item."""
    last = text[-2:-1]
    if last.isdecimal():
        return bool(_ITEM.match(text))
    return last.isalpha() and bool(_ABBREVIATION.search(text, len(text) - _LONGEST_ABBREVIATION))


def ideographs(text: str) -> int:
    """How many characters are Chinese or Japanese."""
    return 0 if text.isascii() else len(_IDEOGRAPH.findall(text))


def count_tokens(text: str) -> float:
    """An estimate that needs no tokenizer: four Latin letters a token, four Chinese characters three."""
    wide = ideographs(text)
    return wide * _TOKENS_PER_IDEOGRAPH + (len(text) - wide) * _TOKENS_PER_LETTER


_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_LIST = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_CLOSERS = {"(": ")", "[": "]"}
_ORDINARY = re.compile(r"(?:[^\s#>*+\-\d`~|$\\]|>[> ]*+(?![#~]))[^`$\\|\n]*+")
_SIGNS = frozenset("`$\\|")
_SIGN = re.compile(r"[`$\\|]")  # with which a letter says something of those after it


class Markup:
    """Follows a Markdown text letter by letter: which letters are code or formulas, and which lines are prose."""

    def __init__(self) -> None:
        self._line: list[str] = []
        self._has_bar = False
        self._fence = ""
        self._in_list = False
        self._after_blank = True
        self._ticks = 0  # backticks just read
        self._code = 0  # how many opened the code that we are in
        self._dollars = 0
        self._math = ""  # what ends the formula that we are in
        self._last = ""

    def is_literal(self, letter: str) -> bool:
        """Read a letter; whether it belongs to code or a formula."""
        if letter == "\n":
            self._end_line()
            return bool(self._fence or self._math)
        self._line.append(letter)
        if self._fence:
            return True
        if letter not in _SIGNS and not (self._ticks or self._dollars or self._last == "\\"):
            self._last = letter
            return bool(self._code or self._math) or self._is_indented_code()
        literal = self._is_code(letter) or self._is_math(letter)
        self._has_bar = self._has_bar or (letter == "|" and not literal)
        self._last = "" if self._last == "\\" else letter
        return literal or self._is_indented_code()

    def is_ordinary(self, line: str) -> bool:
        """Whether all of a line is prose; then it and its end are read by this."""
        if self._fence or self._math or self._line or not _ORDINARY.fullmatch(line):
            return False
        if self._after_blank:
            self._in_list = self._after_blank = False
        return True

    def read(self, letters: str) -> bool | None:
        """Read letters without signs among them; whether they are literal, `None` where none was read.

        That is where the first may be literal and the others not, or the other way round.
        """
        if not self._is_steady(letters[0]):
            return None
        self._line += letters
        if self._fence:
            return True
        self._last = letters[-1]
        return bool(self._code or self._math) or self._is_indented_code()

    def without_literals(self, text: str) -> str:
        """Read a part of a line; the same with spaces for the letters of code and formulas."""
        read, at = "", 0
        while at < len(text):
            if not self._is_steady(text[at]):
                read += " " if self.is_literal(text[at]) else text[at]
                at += 1
                continue
            found = None if self._fence else _SIGN.search(text, at)  # what is searched is read, so each letter once
            end = found.start() if found else len(text)
            self._line += text[at:end]
            literal = self._fence or self._code or self._math or self._is_indented_code()
            read += " " * (end - at) if literal else text[at:end]
            self._last = self._last if self._fence else text[end - 1]
            at = end
        return read

    def _is_steady(self, letter: str) -> bool:
        """Whether this letter is no sign and is literal as are all of those after it, up to the next sign."""
        if self._fence:
            return True
        if letter in _SIGNS or self._ticks or self._dollars or self._last == "\\":
            return False
        return len(self._line) >= 4 or (self._line[0] if self._line else letter) not in " \t"

    def is_prose(self) -> bool:
        """Whether the line so far may carry a mark: no heading, table, code or formula."""
        if self._fence or self._has_bar or self._math == "$$":
            return False
        quoted = "".join(self._line[:8]).lstrip().lstrip("> ")
        return not quoted.startswith(("#", "|", "```", "~~~")) and not self._is_indented_code()

    def _end_line(self) -> None:
        if not self._line and not self._fence and not self._dollars and not self._ticks:
            self._math, self._after_blank, self._code, self._last = "", True, 0, ""
            return
        line = "".join(self._line)
        bare = line.strip()
        if self._fence:
            if bare and set(bare) == {self._fence[0]} and len(bare) >= len(self._fence):
                self._fence = ""
        elif bare[:1] in {"`", "~"} and (opening := _FENCE.match(line)):
            self._fence = opening[1]
        else:
            self._settle("\n")
        if not bare or self._math == "$":
            self._math = ""
        if (bare[:1] in {"-", "*", "+"} or bare[:1].isdigit()) and _LIST.match(line):
            self._in_list = True
        elif bare and not line.startswith((" ", "\t")) and self._after_blank:
            self._in_list = False
        self._after_blank = not bare
        self._line, self._has_bar, self._code, self._ticks, self._dollars, self._last = [], False, 0, 0, 0, ""

    def _is_indented_code(self) -> bool:
        if self._in_list or not self._after_blank or not self._line or self._line[0] not in " \t":
            return False
        start = "".join(self._line[:4])
        return start == "    " or start.startswith("\t")

    def _is_code(self, letter: str) -> bool:
        if letter == "`" and not self._math:
            self._ticks += 1
            return True
        if self._ticks:
            self._code = self._ticks if not self._code else (0 if self._code == self._ticks else self._code)
            self._ticks = 0
        return self._code > 0

    def _is_math(self, letter: str) -> bool:
        if self._last == "\\":
            if not self._math and letter in _CLOSERS:
                self._math = _CLOSERS[letter]
            elif letter == self._math:
                self._math = ""
            return True
        if letter == "$":
            self._dollars += 1
            return True
        self._settle(letter)
        return bool(self._math)

    def _settle(self, letter: str) -> None:
        """After dollar signs: two begin or end a display formula; one an inline formula, unless it is a price."""
        if self._dollars >= 2:
            self._math = "" if self._math == "$$" else (self._math or "$$")
        elif self._dollars == 1:
            if self._math == "$":
                self._math = ""
            elif not self._math and not letter.isspace() and not letter.isdigit():
                self._math = "$"
        self._dollars = 0
