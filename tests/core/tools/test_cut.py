"""Long results keep their two ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.tools.results import truncate_middle


@given(st.text(max_size=600), st.integers(min_value=80, max_value=400))
def test_a_cut_text_fits_and_keeps_whole_characters_from_both_ends(text: str, limit: int):
    kept, size = truncate_middle(text, limit)
    raw = text.encode("utf-8", "replace")
    if not size:
        assert kept == text
        return
    assert size == len(raw) > limit
    assert len(kept.encode()) <= limit
    head, _, tail = kept.partition("\n\n[… ")
    assert raw.startswith(head.encode())
    assert raw.endswith(tail.partition(" …]\n\n")[2].encode())
