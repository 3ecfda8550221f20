"""What a model says of sentences goes before what the rules leave open, and what is found later goes before both."""

from __future__ import annotations

from dataclasses import replace

from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.rag.claims.omission import LeftOut
from core.rag.claims.rules import Reason
from core.runs.judgement import open_in, without
from core.runs.log import Checked, ClaimsChecked, ClaimsJudged, Judged, LoggedEvent, MoreSaid, RunEvent
from core.runs.reply import Reply
from core.runs.rows import KEPT_KINDS, logged_of, rows_of

TEXT = "One is so. Two is so. Three is so. One is so."
ENDS = (10, 21, 34, 45)
AGAINST = (Reason("amount", "3", "4", 1),)
CLAIMS = (
    Checked(0, ENDS[0], "weak", (1,)),
    Checked(0, ENDS[1], "supported", (1,)),
    Checked(0, ENDS[2], "unsupported", (), AGAINST),
    Checked(0, ENDS[3], "weak", (1,)),
)
JUDGED = ClaimsJudged("Qwen", (Judged(0, ENDS[0], borne_out=True), Judged(0, ENDS[1], borne_out=False)))


def folded(*events: RunEvent) -> Reply:
    before: list[RunEvent] = [MessageStarted(), TextDelta(TEXT), MessageFinished("stop")]
    return Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate([*before, *events], 1))


def verdicts(reply: Reply) -> list[str]:
    return [one.verdict for one in reply.claims]


def test_a_model_decides_what_it_was_asked_about_and_nothing_else() -> None:
    reply = folded(ClaimsChecked(CLAIMS), JUDGED)
    assert verdicts(reply) == ["supported", "unsupported", "unsupported", "weak"]
    assert reply.claims[1].numbers == ()
    assert reply.claims[2].reasons == AGAINST


def test_what_the_rules_speak_against_stays_so_whatever_a_model_says() -> None:
    assert verdicts(folded(ClaimsChecked(CLAIMS), ClaimsJudged("Qwen", (Judged(0, ENDS[2], borne_out=True),))))[2] == (
        "unsupported"
    )


def test_passages_that_are_found_later_go_before_what_a_model_said() -> None:
    doubted = ClaimsJudged("Qwen", (Judged(0, ENDS[0], borne_out=False), Judged(0, ENDS[1], borne_out=False)))
    found = (CLAIMS[0]._replace(verdict="supported"), *CLAIMS[1:])
    reply = folded(ClaimsChecked(CLAIMS), doubted, ClaimsChecked(found))
    assert verdicts(reply)[:2] == ["supported", "unsupported"]
    assert reply.judged is not None
    assert [one.end for one in reply.judged.said] == [ENDS[1]]


def test_what_was_proved_since_is_no_longer_denied_whatever_the_rules_said_before() -> None:
    denied = ClaimsJudged("Qwen", (Judged(0, ENDS[0], borne_out=True), Judged(0, ENDS[1], borne_out=False)), 2)
    reply = folded(ClaimsChecked(CLAIMS), denied, without(denied, {(0, ENDS[1])}))
    assert verdicts(reply)[1] == CLAIMS[1].verdict
    assert reply.judged is not None
    assert reply.judged.decided == 2


def test_what_the_log_keeps_is_read_back_and_stays_when_it_is_pruned() -> None:
    events: list[RunEvent] = [
        ClaimsChecked(CLAIMS),
        replace(JUDGED, decided=2),
        MoreSaid((LeftOut(1, 2, 9, "Unless."),)),
    ]
    logged = [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1)]
    assert [one.event for one in logged_of(rows_of(logged))] == events
    assert {one.kind for one in rows_of(logged)} <= KEPT_KINDS


def test_each_sentence_that_no_rule_speaks_against_is_asked_about_once() -> None:
    asked = open_in(CLAIMS, {0: TEXT}, [{"text": "One is so.", "score": 1.0, "document": "a", "document_id": "a"}])
    assert asked.sentences == ("One is so.", "Two is so.")
    assert asked.places["One is so."] == ((0, ENDS[0]), (0, ENDS[3]))
    assert asked.usage.prompt_tokens > 220
    assert open_in((), {0: TEXT}, ()).sentences == ()
