"""The mark of what a service cites stands behind the words that it names, where they are said twice, too."""

from __future__ import annotations

import pytest

from core.agents.marks import TurnMarks
from core.messages.events import SourceCited
from core.rag.document import Passage

TEXT = "It rains. Oslo is wet.\n\nIt rains. Bring a coat. It rains.\n\nBye for now."
ENDS = [at + len("It rains.") for at in (0, 24, 48)]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("miscounted", [0, 3, -3, 5])
def test_of_equal_sentences_the_one_nearest_to_the_counted_place_is_marked(end: int, miscounted: int) -> None:
    row = {**Passage("Rain all week.", 1.0, "oslo.md", "d", 1).as_dict(), "said": "It rains."}
    event = SourceCited((row,), back=len(TEXT) - end - miscounted)
    (told,) = TurnMarks().marked(event, [], TEXT)
    assert isinstance(told, SourceCited)
    assert len(TEXT) - told.back == end
