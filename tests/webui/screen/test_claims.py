"""What the documents say to a reply is shown at its sentences and below it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any, Literal

import pytest

from core.messages.events import CallStarted, MessageFinished, MessageStarted, TextDelta, ToolFinished, ToolStarted
from core.messages.message import FUNCTION, Message
from core.rag.claims.rules import Reason
from core.runs.log import Checked, ClaimsChecked, Hurried, LoggedEvent, RunEvent, RunFinished, Uncounted
from core.runs.reply import Reply
from core.storage.base import StoredMessage
from webui.render.markdown import markdown
from webui.render.reply import reply_entries
from webui.words import Words

FIRST, SECOND, THIRD = "The deductible is 300 dollars. [1]", "Bicycles are insured.", "It was founded by sailors."
TEXT = f"{FIRST} {SECOND} {THIRD}"
ENDS = (len(FIRST), len(FIRST) + 1 + len(SECOND), len(TEXT))


def shown(
    *claims: Checked,
    text: str = TEXT,
    lang: str = "en",
    hurried: Literal["", Hurried] = "",
    ended: int = 2,
    uncounted: tuple[Uncounted, ...] = (),
    **more: str,
) -> str:
    """The page of a reply; the last `ended` events are those of the check and the end."""
    passage = {
        "text": "…",
        "document": "policy.pdf",
        "document_id": "a",
        "page": 2,
        "chunk_id": 1,
        "score": 1.0,
        **more,
    }
    found = Message(FUNCTION, "…", name="ask_documents", extra={"passages": [passage, {**passage, "chunk_id": 2}]})
    events: list[RunEvent] = [
        CallStarted("1", "ask_documents"),
        ToolStarted("1"),
        ToolFinished("1", found),
        MessageStarted(),
        TextDelta(text),
        MessageFinished("stop"),
        *(ClaimsChecked(claims, hurried, uncounted), RunFinished("complete"))[:ended],
    ]
    reply = Reply(LoggedEvent(seq, seq * 2.0, event) for seq, event in enumerate(events, 1))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
    entries = reply_entries(turn, reply, Words("zh" if lang == "zh" else "en"), last=True)
    return "\n".join(str(entry["content"][0]["text"]) for entry in entries if "metadata" not in entry)


def test_a_sentence_that_the_documents_do_not_say_carries_a_sign_that_searches_again() -> None:
    page = shown(Checked(1, ENDS[0], "supported", (1,)), Checked(1, ENDS[2], "unsupported", ()))
    sentence, sign = page.split("founded by sailors.", 1)
    assert 'href="#do-again-m.1"' in sign
    assert "p-unsupported" in sign
    assert "p-claim" not in sentence


@pytest.mark.parametrize(
    ("text", "numbers", "marks"),
    [
        ("末句“虫声新透绿窗纱”……[2] 又以沾雨的春花作结。", (2,), [2]),
        ("The deductible is 300 dollars [1], and 750 for a storm.", (1, 2), [1, 2]),
        ("The deductible is 300 dollars, and 750 for a storm.", (1, 2), [1, 2]),
        ("The deductible is 300 dollars, and 750 for a storm. [2]", (1, 2), [2]),
    ],
)
def test_no_sentence_gets_a_second_mark_of_the_same_passage(
    text: str, numbers: tuple[int, ...], marks: list[int]
) -> None:
    page = shown(Checked(1, len(text), "supported", numbers), text=text)
    assert [int(number) for number in re.findall(r'href="#cite-m-(\d)"', page)] == marks


def test_a_supported_sentence_shows_its_passage_once() -> None:
    page = shown(Checked(1, ENDS[0], "supported", (1,)), Checked(1, ENDS[1], "supported", (2,)))
    assert page.count("#cite-m-1") == 1
    assert page.index("Bicycles are insured.") < page.index("#cite-m-2") < page.index("It was founded")
    assert "p-claim" not in page


def test_the_line_below_counts_the_sentences_that_stand_in_the_documents() -> None:
    supported, weak = Checked(1, ENDS[0], "supported", (1,)), Checked(1, ENDS[1], "weak", (2,))
    assert "1 of 2 sentences resemble a passage; short ones are not checked" in shown(supported, weak)
    assert "1 of 1 sentences resemble a passage" in shown(supported)
    assert "2 句中有 1 句与文档段落相近" in shown(supported, weak, lang="zh")
    assert "p-checked" not in shown()


@pytest.mark.parametrize(("lang", "said"), [("en", "short ones are not checked"), ("zh", "短句不检查")])
def test_short_sentences_are_said_to_be_left_out_only_where_there_are_some(lang: str, said: str) -> None:
    long = "The insurer was founded by sailors of the northern coast."
    two = [Checked(1, ENDS[0], "supported", (1,)), Checked(1, ENDS[0] + 1 + len(long), "weak", (2,))]
    assert said not in shown(*two, text=f"{FIRST} {long}", lang=lang)
    assert said not in shown(*two, text=f"{FIRST} {long} Could the sailors of the northern coast be asked?", lang=lang)
    assert said in shown(*two, text=f"{FIRST} {long} Good news.", lang=lang)


def test_a_text_cannot_forge_a_sign_and_no_sign_stands_in_code() -> None:
    words = Words("en")
    forged = "a\U0010f000b"
    assert markdown(forged, words, notes=[(len(forged), "<i>!</i>")]) == "ab<i>!</i>"
    assert markdown("```\nx = 1\n```", words, notes=[(6, "<i>!</i>")]) == "```\nx = 1\n```"
    assert markdown("run `rm -r`", words, notes=[(8, "<i>!</i>")]) == "run `rm -r`"
    assert markdown("one\r\ntwo", words, notes=[(3, "1"), (8, "2")]) == "one1\ntwo2"


def test_what_is_from_the_web_is_called_so_and_is_not_searched_for_in_documents() -> None:
    web: dict[str, Any] = {"url": "https://insurer.example/policy"}
    page = shown(Checked(1, ENDS[0], "supported", (1,)), Checked(1, ENDS[2], "unsupported", ()), **web)
    assert "do-again" not in page
    assert "Nothing that was found on the web resembles this" in page
    assert "1 of 2 sentences resemble what was found on the web" in page
    assert "网上找到" in shown(Checked(1, ENDS[0], "supported", (1,)), lang="zh", **web)


@pytest.mark.parametrize(("lang", "said"), [("en", "Here “300”, in passage 2 “750”."), ("zh", "段落 2 中是“750”")])
def test_a_sentence_that_says_otherwise_than_a_passage_shows_both_words(lang: str, said: str) -> None:
    reasons = (Reason("amount", "300", "750", 2),)
    page = shown(Checked(1, ENDS[0], "unsupported", (), reasons), lang=lang)
    assert said in unescape(page)
    assert "≠" in page
    assert ("in 1, a name" if lang == "en" else "有 1 句的名称") in page


def test_a_sentence_with_a_word_that_is_nowhere_and_one_that_differs_is_signed_by_the_one_that_differs() -> None:
    reasons = (Reason("name", "Anna"), Reason("amount", "300", "750", 2))
    page = unescape(shown(Checked(1, ENDS[0], "unsupported", (), reasons)))
    assert "Here “300”, in passage 2 “750”." in page
    assert '<span aria-hidden="true">≠</span>' in page


def test_what_stands_in_no_passage_is_told_with_its_words() -> None:
    page = shown(Checked(1, ENDS[0], "unsupported", (), (Reason("name", "<Anna>"),)))
    assert "<Anna>" not in page
    assert "“<Anna>” is in no passage that was found. Search for it again." in unescape(page)


@pytest.mark.parametrize(
    ("hurried", "lang", "said"),
    [
        ("words", "en", "1 of 1 sentences resemble a passage; by words and rules alone"),
        ("words", "zh", "只按词语和规则检查"),
        ("searches", "en", "took too long and was not finished"),
        ("searches", "zh", "查找用时过长，未完成"),
    ],
)
def test_what_a_check_had_no_time_for_is_told(hurried: Hurried, lang: str, said: str) -> None:
    assert said in shown(Checked(1, ENDS[0], "supported", (1,)), lang=lang, hurried=hurried)


@pytest.mark.parametrize(
    ("lang", "said", "calm"),
    [("en", "No program counted this", "sentences resemble"), ("zh", "没有程序统计过", "句与文档段落相近")],
)
def test_figures_that_no_program_counted_are_told_in_place_of_what_would_calm(lang: str, said: str, calm: str) -> None:
    supported, weak = Checked(1, ENDS[0], "supported", (1,)), Checked(1, ENDS[1], "weak", (2,))
    for claims in ((), (supported,)):
        page = shown(*claims, lang=lang, uncounted=(Uncounted(),))
        assert f'<span class="p-checked p-doubt">{said}' in page
        assert calm not in page
    doubted = shown(supported, weak, lang=lang, uncounted=(Uncounted(),))
    assert said in doubted
    assert calm in doubted
    assert "\N{IDEOGRAPHIC FULL STOP} " not in unescape(doubted)
    assert said not in shown(supported, lang=lang)


def test_the_sentence_that_no_program_counted_carries_a_sign_and_keeps_what_else_is_said_of_it() -> None:
    supported, weak = Checked(1, ENDS[0], "supported", (1,)), Checked(1, ENDS[1], "weak", (2,))
    page = unescape(shown(supported, weak, uncounted=tuple(Uncounted(1, end) for end in ENDS)))
    first, second, third = re.findall(r"<sup>(<a class=[^>]*p-claim.*?</a>)</sup>", page)
    assert ">Σ<" in first
    assert 'href="#do-again-m.0"' in first
    assert 'title="No program counted this figure. Search for it again."' in first
    assert "≈" in second
    assert 'title="No program counted this figure. Only loosely resembles a passage' in second
    assert ">Σ<" in third  # too short to be checked
    assert 'title="No program counted this figure."' in third
    assert page.index("#do-again-m.0") < page.index("Bicycles are insured.") < page.index("#do-again-m.1")
    assert "没有程序统计过这个数字。" in shown(supported, lang="zh", uncounted=(Uncounted(1, ENDS[0]),))
    assert "p-claim" not in shown(supported, uncounted=(Uncounted(), Uncounted(1, 0)))


@pytest.mark.parametrize(("lang", "said"), [("en", "The sentences were not checked"), ("zh", "句子未检查")])
def test_a_check_that_did_not_happen_is_told(lang: str, said: str) -> None:
    assert said in shown(lang=lang, hurried="none")
    assert said not in shown(lang=lang)


@pytest.mark.parametrize(
    ("lang", "said", "not_said"), [("en", "Checking sentences", "Writing"), ("zh", "正在检查句子", "正在书写")]
)
def test_after_the_last_word_the_line_says_that_sentences_are_checked(lang: str, said: str, not_said: str) -> None:
    page = shown(lang=lang, ended=0)
    assert said in page
    assert not_said not in page
