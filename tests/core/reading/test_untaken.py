"""Files that were too many to be added at once are known to a conversation until they are added after all."""

from __future__ import annotations

from typing import Any

import pytest

from core.rag.attached import Attached
from core.rag.coverage import Coverage, places_told
from core.reading.attachments import UNTAKEN, untaken, with_true_names, with_untaken, without_added

NAMES = [f"{number:03}.txt" for number in range(40, 250)]


def test_they_are_counted_and_the_first_are_named_until_all_are_added() -> None:
    kept = with_untaken({"model": "m"}, NAMES)
    assert untaken(kept) == Attached("040.txt, 041.txt, 042.txt, …", "untaken", total=210)
    kept = without_added(with_untaken(kept, NAMES[40:]), NAMES[:40])
    assert untaken(kept) == Attached("080.txt, 081.txt, 082.txt, …", "untaken", total=170)
    ten = [f"{number:03}.txt" for number in range(40, 50)]
    assert untaken(with_untaken({}, ten)) == Attached(", ".join(ten), "untaken", total=10)
    kept = without_added(kept, NAMES[:-1])
    assert untaken(kept) == Attached("249.txt", "untaken", total=1)
    assert without_added(kept, NAMES) == {"model": "m"}


def test_of_very_many_the_names_of_some_are_kept_and_all_are_counted() -> None:
    kept = with_untaken({}, [f"{number}.txt" for number in range(900)], 1000)
    found = untaken(kept)
    assert found is not None
    assert found.total == 1900
    assert len(kept[UNTAKEN]["names"]) == 500


def test_a_file_that_is_added_by_the_name_of_what_is_in_it_is_left_out_no_more() -> None:
    kept = with_true_names(with_untaken({}, NAMES[:3]), {"041.txt": "041.docx", "another.txt": "another.png"})
    assert untaken(kept) == Attached("040.txt, 041.docx, 042.txt", "untaken", total=3)
    assert untaken(without_added(kept, ["041.docx"])) == Attached("040.txt, 042.txt", "untaken", total=2)
    assert with_true_names({"model": "m"}, {"041.txt": "041.docx"}) == {"model": "m"}


def test_a_file_with_a_very_long_name_is_left_out_no_more_once_it_is_added() -> None:
    name = f"{'long ' * 20}.txt"
    assert without_added(with_untaken({}, [name]), [name]) == {}


def test_what_was_taken_back_before_it_was_sent_is_forgotten() -> None:
    assert with_untaken(with_untaken({}, NAMES, 3), []) == {}


@pytest.mark.parametrize("kept", [None, 1, [], {"names": 1}, {"names": [1, None], "more": "x"}, {"more": -0.5}])
def test_what_makes_no_sense_is_none(kept: Any) -> None:
    assert untaken({UNTAKEN: kept}) is None


def test_an_answer_that_read_all_that_is_here_is_not_said_to_rest_on_all() -> None:
    left = untaken(with_untaken({}, NAMES))
    assert left is not None
    coverage = Coverage((), unread=(left.as_dict(),))
    assert not coverage.complete
    assert places_told(coverage, "en") == "210 files that were not added (040.txt, 041.txt, 042.txt, …)"
    assert places_told(coverage, "zh").startswith("210 个未添加的文件（040.txt")
