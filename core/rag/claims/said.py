"""A sentence as the rules look at it, and what speaks against one."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from core.rag.attribution import words_of
from core.rag.claims.figures import Figure, figures_of
from core.rag.claims.names import KnownNames, Name, names_of
from core.rag.prose import ideographs

ReasonKind: TypeAlias = Literal["amount", "date", "name", "role", "denial", "opposite", "extent", "condition", "mark"]
_MOST_NAMES = 40
_PAREN = re.compile(r"\[\d{1,3}\]")


class Reason(NamedTuple):
    """What speaks against a sentence.

    Args:
        kind: `amount`, `date` and `name`: no passage has it, or the passage has another one in its place. `role`: who
            does it and to whom is the other way round. `denial`: one of both denies what the other says. `opposite`:
            it says "rose" where the passage says "fell". `extent`: it says "all" where the passage says "some".
            `condition`: it says "if" where the passage says "unless", or "without" where it says "with". `mark`: a mark
            of it leads to no passage.
        words: The words of the sentence.
        rival: What the passage says instead; "" where nothing stands in the place.
        passage: The number of that passage, from 1; 0 where none is like the sentence.
    """

    kind: ReasonKind
    words: str
    rival: str = ""
    passage: int = 0


@dataclass(frozen=True)
class Said:
    """A sentence, with what the rules look at; each is worked out when it is first needed."""

    text: str
    number: int = 0

    @cached_property
    def plain(self) -> str:
        """Without marks, in plain letters."""
        return unicodedata.normalize("NFKC", _PAREN.sub(" ", self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its content words."""
        return frozenset(words_of(self.text))

    @cached_property
    def is_wide(self) -> bool:
        """Whether it is in Chinese."""
        return 2 * ideographs(self.text) > len(self.text)

    @cached_property
    def figures(self) -> list[Figure]:
        """Its figures and dates."""
        return figures_of(self.plain)

    @cached_property
    def told(self) -> list[Figure]:
        """These, and what a passage says besides by "one year" and "half a million"."""
        return figures_of(self.plain, loosely=True)

    @cached_property
    def names(self) -> list[Name]:
        """Its names."""
        return names_of(self.plain)[:_MOST_NAMES]

    @cached_property
    def known(self) -> KnownNames:
        """The words in which names are looked for."""
        return KnownNames([self.plain])
