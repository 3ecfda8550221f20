"""The words that somebody looks for, where they stand in a text, and the line of the text that shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from core.storage.message_texts import is_unspaced, plain, words_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_QUESTION: Final = 300
"""Characters of what is looked for that count."""
_WORDS: Final = 16
_SHOWN: Final = 200  # characters of a line
_BEFORE: Final = 40  # of them before the first word
_TAKEN: Final = 400  # characters around a word that its line is made of
_PLACES: Final = 200  # of each word that are looked at

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
class Word:
    """One word that is looked for.

    Args:
        pattern: Its letters, for texts that went through `plain`.
        begins: No other letter stands before it.
        ends: None stands after it.
    """

    pattern: re.Pattern[str]
    begins: bool
    ends: bool

    def spans(self, said: str) -> Iterator[tuple[int, int]]:
        """Where it stands in a text without capitals and accents."""
        for found in self.pattern.finditer(said):
            begin, end = found.span()
            before, after = said[begin - 1 : begin], said[end : end + 1]
            if not (self.begins and _is_letter(before)) and not (self.ends and _is_letter(after)):
                yield begin, end


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for.

    Args:
        tokens: Each word, as the words that an index makes of it.
        begun: Whether the last one may go on.
        words: The same for the texts themselves.
    """

    tokens: tuple[tuple[str, ...], ...]
    begun: bool
    words: tuple[Word, ...]

    @classmethod
    def of(cls, text: str) -> Sought:
        """Read what somebody typed; whatever it is, it is looked for as words."""
        split = (words_in(one) for one in text[:LONGEST_QUESTION].split())
        words = [tuple(tokens) for tokens in split if tokens][:_WORDS]
        begun = bool(words) and not is_unspaced(words[-1][-1][-1])
        found = (_word(tokens, begun=begun and tokens is words[-1]) for tokens in words)
        return cls(tuple(words), begun, tuple(found))

    @property
    def match(self) -> str:
        """The words as FTS5 reads them; empty where there is none."""
        return " AND ".join(f'"{" ".join(tokens)}"' for tokens in self.tokens) + (" *" if self.begun else "")

    def fits(self, name: str) -> bool:
        """Whether a name has all the words."""
        said = plain(name)
        return all(any(word.spans(said)) for word in self.words)


def marked(text: str, sought: Sought) -> tuple[tuple[int, int], ...]:
    """Where the words stand in a text, in order; those that overlap are one."""
    said = plain(text)
    found = sorted(span for word in sought.words for span in word.spans(said))
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
    first = _best_place(plain(said), sought)
    begin = max(0, first - _BEFORE)
    if begin:
        gap = said.find(" ", begin, first)
        begin = gap + 1 if gap >= 0 else begin
    dots = "… " if begin or around > _TAKEN else ""
    line = dots + said[begin : begin + _SHOWN]
    return Excerpt(line, marked(line, sought))


def _best_place(said: str, sought: Sought) -> int:
    """Where the most different words begin close together; 0 where there is none."""
    places = sorted(
        (begin, number) for number, word in enumerate(sought.words) for begin, _ in islice(word.spans(said), _PLACES)
    )
    best, most, first, near = 0, 0, 0, [0] * len(sought.words)
    for begin, number in places:  # the window ends with this one
        near[number] += 1
        while begin - places[first][0] >= _SHOWN - _BEFORE * 2:
            near[places[first][1]] -= 1
            first += 1
        together = sum(map(bool, near))
        if together > most:
            best, most = places[first][0], together
    return best


def _is_letter(char: str) -> bool:
    """Whether a character is part of a word; one that is a word by itself is not."""
    return char.isalnum() and not is_unspaced(char)


def _word(tokens: Sequence[str], *, begun: bool) -> Word:
    """One word that was typed."""
    letters = (_ACCENTS.join(map(re.escape, token)) + _ACCENTS for token in tokens)
    ends = not begun and not is_unspaced(tokens[-1][-1])
    return Word(re.compile(r"[\W_]{0,4}?".join(letters)), not is_unspaced(tokens[0][0]), ends)
