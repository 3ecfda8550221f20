"""Either shelf keeps vectors of one length for a model, and takes those that were made elsewhere."""

from __future__ import annotations

import threading
from typing import cast

import numpy as np
import pytest

from core.errors import ModelMisbehavedError
from core.rag.search.turns import Makes, Round
from core.rag.shelf import Shelf
from tests.contract.test_shelves import TEXTS, ByLot, filled, opened, put, shelf, vectors_of
from tests.grown_shelves import shelves

__all__ = ["opened", "shelf", "shelves"]


def test_vectors_of_another_length_are_refused_in_a_sentence_and_nothing_is_mixed(shelf: Shelf) -> None:
    put(shelf, "tea")
    assert filled(vectors_of(shelf, 16))
    shorter = vectors_of(shelf, 8)
    with pytest.raises(ModelMisbehavedError, match="vectors of 8 numbers, and those of this library have 16"):
        shorter.like("tea")
    put(shelf, "lamp")
    with pytest.raises(ModelMisbehavedError, match="vectors of 8 numbers"):
        Round(cast("Makes", shorter)).step(threading.Event())
    as_before = vectors_of(shelf, 16)
    assert as_before.made(["tea", "lamp"]) == {"tea": (2, 2), "lamp": (0, 2)}
    assert filled(as_before)
    assert as_before.like("tea") is not None
    shelf.remove("tea")
    shelf.remove("lamp")
    put(shelf, "tea")
    assert filled(shorter), "where there are none any more, others may come"
    assert shorter.like("tea") is not None


def test_vectors_that_were_made_elsewhere_are_kept_but_those_of_passages_that_are_gone(shelf: Shelf) -> None:
    put(shelf, "tea")
    ids = shelf.first_ids("tea", 9)
    vectors = vectors_of(shelf)
    rows = ByLot().passages([passage.text for passage in shelf.whole(["tea"])]).astype(np.float16)
    vectors.keep([(ids[0], rows[0]), (ids[1], rows[1]), (10**9, rows[0])])
    assert vectors.made(["tea"]) == {"tea": (2, 2)}
    likeness = vectors.like(TEXTS["tea"][0])
    assert likeness is not None
    assert likeness.ids[int(likeness.cosines.argmax())] == ids[0]
