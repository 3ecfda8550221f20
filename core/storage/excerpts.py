"""The words that somebody looks for, where they stand in a text, and the line of the text that shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from core.storage.message_texts import UNSPACED, is_unspaced, plain, spaced

LONGEST_QUESTION: Final = 300
"""Characters of what is looked for that count."""
_WORDS: Final = 16
_SHOWN: Final = 200  # characters of a line
_BEFORE: Final = 40  # of them before the first word
_TAKEN: Final = 1_000  # characters around a word that its line is made of
_PLACES: Final = 40  # of each word that are looked at

# A letter that is part of a word, not a word by itself.
_LETTER: Final = f"[^\\W_{''.join(f'{chr(first)}-{chr(last)}' for first, last in UNSPACED)}]"
_ACCENTS: Final = "[\u0300-\u036f]*"
_MARKUP: Final = re.compile(
    r"[*`~]+|(?<![^\W_])_+|_+(?![^\W_])|^[ \t]*(?:#{1,6}|>|[-+])[ \t]+|\[\d{1,3}\]", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line of a text; `marks` are where the words begin and end in it, in characters."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for.

    Args:
        words: Each as the index has it: small, without accents, as one or more of its words.
        match: The same as FTS5 reads it.
        patterns: The same for texts that went through `plain`.
    """

    words: tuple[str, ...]
    match: str
    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, text: str) -> Sought:
        """Read what somebody typed; whatever it is, it is looked for as words."""
        split = (re.findall(r"[^\W_]+", spaced(one)) for one in text[:LONGEST_QUESTION].split())
        words = [tokens for tokens in split if tokens][:_WORDS]
        begun = bool(words) and not is_unspaced(words[-1][-1][-1])
        quoted = [f'"{" ".join(tokens)}"' for tokens in words]
        if begun:
            quoted[-1] += " *"
        patterns = [_pattern(tokens, begun=begun and tokens is words[-1]) for tokens in words]
        return cls(tuple(" ".join(tokens) for tokens in words), " AND ".join(quoted), tuple(patterns))

    def fits(self, name: str) -> bool:
        """Whether a name has all the words."""
        said = plain(name)
        return all(pattern.search(said) for pattern in self.patterns)


def marked(text: str, sought: Sought) -> tuple[tuple[int, int], ...]:
    """Where the words stand in a text, in order; those that overlap are one."""
    said = plain(text)
    found = sorted(one.span() for pattern in sought.patterns for one in pattern.finditer(said) if one.group())
    marks: list[tuple[int, int]] = []
    for begin, end in found:
        if marks and begin <= marks[-1][1]:
            marks[-1] = marks[-1][0], max(end, marks[-1][1])
        else:
            marks.append((begin, end))
    return tuple(marks)


def excerpt(text: str, sought: Sought) -> Excerpt:
    """The line of a text in which most of the words stand, without what only lays it out."""
    around = _best_place(plain(text), sought)
    near = text[max(0, around - _TAKEN) : around + _TAKEN]
    said = " ".join(_MARKUP.sub("", near).replace("|", " ").split())
    marks = marked(said, sought)
    first = _best_place(plain(said), sought)
    begin = max(0, first - _BEFORE)
    if begin:
        gap = said.find(" ", begin, first)
        begin = gap + 1 if gap >= 0 else first if first - begin < _BEFORE else begin
    dots = "… " if begin or around > _TAKEN else ""
    line = dots + said[begin : begin + _SHOWN]
    shift = len(dots) - begin
    shown = ((one + shift, min(end + shift, len(line))) for one, end in marks if begin <= one < begin + _SHOWN)
    return Excerpt(line, tuple(shown))


def _best_place(said: str, sought: Sought) -> int:
    """Where the most different words begin close together; 0 where there is none."""
    places: list[tuple[int, int]] = []
    for number, pattern in enumerate(sought.patterns):
        for one, found in zip(range(_PLACES), pattern.finditer(said), strict=False):
            del one
            places.append((found.start(), number))
    places.sort()
    best, most = 0, 0
    for at, (begin, _) in enumerate(places):
        together = len({number for place, number in places[at:] if place - begin < _SHOWN - _BEFORE * 2})
        if together > most:
            best, most = begin, together
    return best


def _pattern(tokens: list[str], *, begun: bool) -> re.Pattern[str]:
    """Finds one word that was typed, in a text without capitals and accents."""
    first, last = tokens[0][0], tokens[-1][-1]
    before = "" if is_unspaced(first) else f"(?<!{_LETTER})"
    after = "" if begun or is_unspaced(last) else f"(?!{_LETTER})"
    letters = (_ACCENTS.join(map(re.escape, token)) + _ACCENTS for token in tokens)
    return re.compile(before + r"[\W_]{0,4}?".join(letters) + after)
