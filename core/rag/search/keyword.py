"""Search by words: over our own terms, ranked by BM25 and by proximity of the terms."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from core.rag.prose import ideographs
from core.rag.search.terms import STOP_WORDS, begun_word, terms

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.rag.shelf import Found, Vectors

_LONGEST = 20_000  # letters of a question that are looked at; somebody may paste a book
_MOST_TERMS = 200
_SHORTEST = 2  # letters of a word that is only begun: fewer stand in nearly every text
_ENDINGS = 8  # letters that a stem may have lost


class KeywordSearcher:
    """Words in any order; rare ones count more.

    Args:
        shelf: Where the chunks are.
        vectors: Not needed.
    """

    def __init__(self, shelf: Found, vectors: Sequence[Vectors] = ()) -> None:
        del vectors
        self._shelf = shelf

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """Chunks that hold any of the question's terms, by BM25, and by how close to each other these stand."""
        asked = list(dict.fromkeys(terms(question[:_LONGEST])))[:_MOST_TERMS]
        if not asked or k < 1:
            return []
        found = self._shelf.words(asked, max(k, LOOKED_AT), documents)
        if len(asked) > 1 and len(found) > 1:
            found = nearest_first(self._shelf.terms_of([chunk_id for chunk_id, _ in found[:LOOKED_AT]]), asked, found)
        return found[:k]

    def holding(self, text: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """Chunks that may hold all words of `text`, the last of them perhaps only begun; the best first, by BM25.

        Words are compared by their stems, so some of what is found has a word in another form.
        """
        *before, last = text[:_LONGEST].split() or [""]
        ending, begun = terms(last), begun_word(last)
        asked = list(dict.fromkeys([*terms(" ".join(before)), *(ending[:-1] if begun else ending)]))[:_MOST_TERMS]
        either: list[str] = []
        if len(begun) < _SHORTEST or (begun in STOP_WORDS and asked):
            begun = ""
        else:
            # A stem is short of the word's ending, or has another one: "polici" of "policy", "hope" of "hoping".
            cuts = range(max(_SHORTEST, len(begun) - _ENDINGS), len(begun) + 1)
            either = sorted({begun[:cut] + more for cut in cuts for more in ("", "e", "i")} | set(ending[-1:]))
        if not (asked or begun) or k < 1:
            return []
        return self._shelf.all_words(asked, k, documents, either=either, begun=begun)


LOOKED_AT = 20
_STRETCH = 12  # terms: of a sentence or so, without its stop words
_WEIGHT = 0.5  # what all of them within one stretch add to the score, as a share of it
_FOLLOWING = 0.75  # what all neighbours of the question that are neighbours there add


def nearest_first(
    terms_of: Mapping[int, str], asked: Sequence[str], found: Sequence[tuple[int, float]]
) -> list[tuple[int, float]]:
    """What was found, the first `LOOKED_AT` in the order of their raised scores.

    Args:
        terms_of: The terms of the first of them, in their order, parted by spaces.
        asked: The question's terms, each once.
        found: Chunk ids with scores, the best first.
    """
    first = found[:LOOKED_AT]
    if len(asked) < 2 or len(first) < 2:  # there is nothing to compare
        return list(found)
    # Of Chinese the pairs alone: a run's characters all stand before its pairs, so the two kinds are never close.
    wanted = frozenset(term for term in asked if len(term) > 1 or term.isascii()) or frozenset(asked)
    # Chinese pairs overlap: where one stands the next mostly does, which says nothing more.
    pairs = frozenset(pairwise(term for term in asked if term in wanted and not ideographs(term)))
    more = {chunk_id: _more(terms.split(), wanted, pairs) for chunk_id, terms in terms_of.items()}
    raised = [(chunk_id, score * (1 + more.get(chunk_id, 0.0))) for chunk_id, score in first]
    raised.sort(key=lambda one: -one[1])
    return [*raised, *found[LOOKED_AT:]]


def _more(terms: Sequence[str], wanted: Collection[str], pairs: Collection[tuple[str, str]]) -> float:
    """What the places of the wanted terms add to a passage's score, as a share of it."""
    places = [at for at, term in enumerate(terms) if term in wanted]
    more = _WEIGHT * _together(terms, places) / len(wanted)
    if pairs:
        following = {pair for at in places if (pair := tuple(terms[at : at + 2])) in pairs}
        more += _FOLLOWING * len(following) / len(pairs)
    return more


def _together(terms: Sequence[str], places: Sequence[int]) -> int:
    """The most different terms at these places within one stretch."""
    best = 0
    for number, start in enumerate(places):
        if len(places) - number <= best:
            break
        inside: set[str] = set()
        for at in places[number:]:
            if at - start >= _STRETCH:
                break
            inside.add(terms[at])
        best = max(best, len(inside))
    return best


class FrontPageSearcher(KeywordSearcher):
    """The beginnings of the documents, in the order in which these came; earlier chunks score higher."""

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """The first `k` chunks, taken from all documents in turns."""
        del question
        return [(chunk_id, 1.0 / (1 + position)) for chunk_id, position in self._shelf.beginnings(max(k, 0), documents)]
