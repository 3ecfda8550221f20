"""What a model's service cites by itself is shown as every source is, and goes into exports."""

from __future__ import annotations

from html import unescape

from core.export.markdown import MarkdownWriter
from core.export.redaction import Redaction
from core.export.turns import turn_of
from core.llm.wire.cited import of_document, of_page
from core.messages.events import MessageFinished, MessageStarted, SourceCited, TextDelta
from core.messages.message import ASSISTANT, Message
from core.messages.transcript import Transcript
from core.runs.log import LoggedEvent, RunFinished
from core.runs.reply import Reply
from core.runs.rows import logged_of, rows_of
from core.storage.base import StoredMessage
from core.storage.whole_conversations import WholeTurn
from webui.panels.evidence import evidence_html
from webui.render.reply import reply_entries
from webui.words import Words

ROWS = [
    {**row, "number": number}
    for number, row in enumerate(
        [*of_page("https://example.org/oslo", "Oslo <b>"), *of_document("plan.pdf", "Oslo is the capital.", 3)], 1
    )
]
EVENTS = [
    MessageStarted(),
    TextDelta("Oslo is the capital. [1]"),
    SourceCited((ROWS[0],)),
    TextDelta(" So says the plan. [2]"),
    SourceCited((ROWS[1],)),
    MessageFinished("stop"),
]


def shown() -> Reply:
    logged = [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(EVENTS, 1)]
    return Reply([*logged_of(rows_of(logged)), LoggedEvent(9, 0.0, RunFinished("complete"))])


def test_its_marks_lead_to_their_sources() -> None:
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
    entries = reply_entries(turn, shown(), Words("en"), last=True)
    page = "\n".join(str(entry["content"][0]["text"]) for entry in entries if "metadata" not in entry)
    assert 'href="#cite-m-1" class="cite" title="Oslo <b> · example.org"' in unescape(page)
    assert "Oslo <b>" not in page
    assert 'href="#cite-m-2" class="cite" title="plan.pdf, page 3"' in unescape(page)


def test_the_panel_of_sources_has_them() -> None:
    for lang in ("en", "zh"):
        panel = evidence_html(shown().passages, 1, Words(lang), message_id="m", page=None)
        assert 'href="https://example.org/oslo"' in unescape(panel)
        assert "Oslo is the capital." in unescape(panel)


def test_an_export_has_them_with_the_marks_that_name_them() -> None:
    parts = Transcript(EVENTS).messages()
    assert [one.role for one in parts] == [ASSISTANT]
    stored = StoredMessage("m", "c", None, "assistant", tuple(parts), None, "complete", 1.0)
    turn = turn_of(WholeTurn(stored), Redaction(), shown=True)
    told = [(one.number, one.document, one.url, one.page, one.cited) for one in turn.citations]
    assert told == [(1, "Oslo <b>", "https://example.org/oslo", None, True), (2, "plan.pdf", "", 3, True)]
    assert turn.messages[0].extra == {"passages": [1, 2]}
    assert "https://example.org/oslo" in MarkdownWriter({}).turn(turn)


def test_a_message_stays_the_same_object_until_more_is_cited() -> None:
    transcript = Transcript(EVENTS[:3])
    (before,) = transcript.messages()
    assert transcript.messages()[0] is before
    transcript.apply(SourceCited((ROWS[1],)))
    (after,) = transcript.messages()
    assert isinstance(after, Message)
    assert [len((one.extra or {})["passages"]) for one in (before, after)] == [1, 2]
