"""The panel behind a reply: its model calls as rows, what each was given, sent, received, and made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from core.export.inspecting import InspectedCall, Piece, Stage, compared, total
from core.export.traces import Traced
from core.messages.message import Usage
from core.runs.log import ModelCalled
from webui.panels.inspector import inspector_html
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
EVIL = "<img src=x onerror=alert(1)>\n\n**x** `y` $z$"


def usage(asked: int, answered: int, cost: float | None = 0.0011, *, estimated: bool = False) -> Usage:
    both = asked + answered
    given = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": both}
    return Usage(**given, cost=cost, estimated=estimated)


ANSWER = ModelCalled("answer", "Qwen3 30B · api.groq.com", usage(2_961, 412), 4.1, "c2", first=0.9, retries=1)
TITLE = ModelCalled("title", "Coder 1.5B, built in", usage(640, 7, None, estimated=True), 0.9, "c3", here=True)


def body(value: object) -> Piece:
    return Piece((json.dumps(value, ensure_ascii=False),))


def opened(line: ModelCalled = ANSWER) -> InspectedCall:
    asked = [{"role": "user", "content": "Does table 1 bear that out?"}]
    told = [{"role": "system", "content": "Today is Sunday."}, *asked]
    sent = {"model": "qwen3", "messages": told, "temperature": 0.6, "stream": True}
    head = ("POST https://api.groq.com/v1/chat/completions", "authorization: …")
    stages = {
        "given": [Stage(body({"messages": asked, "tools": [], "settings": {"temperature": 0.6}}))],
        "sent": [Stage(body(sent), head, 200)],
        "received": [Stage(Piece((f"data: {EVIL}", "[DONE]"), 1_234), ("HTTP 200",), 3_000)],
        "parsed": [
            Stage(body([{"role": "assistant", "content": "", "reasoning_content": "Hm."}, {"content": "Nearly."}]))
        ],
    }
    return InspectedCall(line, stages)


def panel(lines: Sequence[ModelCalled], words: Words = EN, **more: object) -> LexborHTMLParser:
    markup = inspector_html("m1", lines, words, **more)  # pyright: ignore[reportArgumentType]
    assert "\n" not in markup, "a blank line would end the HTML block"
    return LexborHTMLParser(markup)


def texts(tree: LexborHTMLParser, selector: str) -> list[str]:
    return [" ".join(one.text().split()) for one in tree.css(selector)]


def test_each_call_is_a_row_with_its_purpose_model_time_tokens_and_cost() -> None:
    tree = panel([ANSWER, TITLE])
    assert texts(tree, ".p-calls li > button") == [
        "finished:Answertry 2Qwen3 30B4.1 s2,961, 412$0.0011",
        "finished:TitleCoder 1.5B, built in0.9 s≈ 640, 7free",
    ]
    assert texts(tree, "header .p-file") == ["2 calls, 5.0 s, $0.0011"]


@pytest.mark.parametrize(
    ("line", "cost"),
    [
        (replace(ANSWER, usage=usage(1, 1, None)), "price unknown"),
        (replace(ANSWER, cached=True, usage=usage(1, 1, 0.0)), "$0"),
        (replace(ANSWER, usage=usage(1, 1, 0.00002)), "< $0.0001"),
        (replace(ANSWER, here=True), "free"),
        (replace(ANSWER, usage=None), ""),
    ],
)
def test_an_unknown_price_is_never_nothing(line: ModelCalled, cost: str) -> None:
    assert texts(panel([line]), ".p-calls li > button > :last-child") == [cost]


def test_the_sum_is_unknown_where_one_price_is() -> None:
    assert total([ANSWER, replace(ANSWER, usage=usage(1, 1, None))]).cost is None
    assert total([ANSWER, TITLE]).cost == 0.0011


def test_the_request_is_shown_as_what_parlour_added_to_what_was_given() -> None:
    tree = panel([ANSWER], opened=opened())
    assert texts(tree, "[role=tab]") == ["Asked", "Sent2,961", "Received412", "Parsed"]
    assert texts(tree, ".p-diff .p-added span") == ["system", "Today is Sunday.", "stream: true"]
    assert texts(tree, ".p-diff .p-same span") == ["user", "Does table 1 bear that out?", "temperature: 0.6"]
    assert texts(tree, ".p-wire pre")[0].startswith("POST https://api.groq.com/v1/chat/completions")
    assert texts(tree, ".p-times") == ["first word after 0.9 s · 129 tokens a second"]


def test_one_token_a_second_is_told_in_the_singular() -> None:
    slow = replace(ANSWER, seconds=412.9)
    tree = panel([slow], opened=opened(slow))
    assert texts(tree, ".p-times") == ["first word after 0.9 s · 1 token a second"]


def test_what_was_received_says_where_it_was_cut_and_is_never_markup() -> None:
    tree = panel([ANSWER], opened=opened(), stage="received")
    assert not tree.css("img, strong")
    assert texts(tree, ".p-cut") == ["1,234 bytes are left out here: so much is not kept of one call."]
    assert "onerror" in texts(tree, "pre")[1]


def test_what_was_made_of_it_is_told_part_by_part() -> None:
    tree = panel([ANSWER], opened=opened(), stage="parsed")
    assert texts(tree, ".p-part") == ["Thought", "Text"]
    assert texts(tree, ".p-stage pre") == ["Hm.", "Nearly."]


def test_a_failed_call_shows_what_the_service_said() -> None:
    line = replace(ANSWER, outcome="failed", usage=None, said="Rate limit reached for qwen3 in org_1.")
    tree = panel([line], opened=opened(line))
    assert tree.css(".p-st.p-bad")
    assert texts(tree, ".p-failed-said") == ["Rate limit reached for qwen3 in org_1."]


def test_a_call_whose_bytes_are_gone_says_so_in_both_languages() -> None:
    assert "no longer kept" in texts(panel([ANSWER], opened=InspectedCall(ANSWER)), ".p-stages")[0]
    assert "已不再保留" in texts(panel([ANSWER], ZH, opened=InspectedCall(ANSWER)), ".p-stages")[0]
    assert "took all the room" in texts(panel([ANSWER], opened=InspectedCall(ANSWER, left_out=True)), ".p-stages")[0]
    assert texts(panel([]), ".p-none") == ["Nothing is kept of model calls for this reply."]


def test_a_body_that_is_no_json_is_not_compared() -> None:
    assert compared(Stage(Piece(("{broken",))), Stage(Piece(("<html>",)))) == []
    assert compared(Stage(Piece(("{}",))), Stage(Piece(('{"messages": []', "]}"), 5))) == []


def test_long_runs_of_equal_lines_are_folded() -> None:
    told = "\n".join(f"Line {n}." for n in range(40))
    given = {"messages": [{"role": "user", "content": told}]}
    sent = {"messages": [{"role": "user", "content": f"{told}\nAdded."}]}
    call = InspectedCall(ANSWER, {**opened().stages, "given": [Stage(body(given))], "sent": [Stage(body(sent))]})
    tree = panel([ANSWER], opened=call)
    assert texts(tree, ".p-diff summary") == ["39 more lines, as given"]
    assert texts(tree, ".p-diff > .p-same span") == ["Line 38.", "Line 39."]


def traced(**more: Any) -> Traced:
    asked = Traced("a", "model", "Qwen3 30B · api.groq.com", 10.0, 2.0, usage=usage(2_961, 412), purpose="step")
    helper = Traced("d", "model", "Coder 1.5B, built in", 12.5, 0.5, purpose="agent")
    called = Traced("b", "tool", "ask_helper", 12.0, 2.0, arguments={"question": EVIL}, inside=(helper,))
    beside = Traced("c", "tool", "look\u202eup", 12.0, 1.0, error="ValueError", said="no such word")
    return Traced("r", "agent", "Desk", 10.0, 4.0, inside=(asked, called, replace(beside, **more)))


def test_what_ran_when_is_a_folded_tree_with_times_tokens_and_places_on_a_line() -> None:
    tree = panel([ANSWER], trace=[traced()])
    (fold,) = tree.css(".p-behind > details.p-trace")
    assert "open" not in fold.attributes
    assert texts(tree, ".p-trace > summary") == ["What ran when4.0 s in all · 1 agent · 2 model calls · 2 tool calls"]
    assert texts(tree, ".p-span-time") == ["4.0 s", "2.0 s", "2.0 s", "0.5 s", "1.0 s"]
    assert texts(tree, ".p-span-tokens")[1] == "2,961 + 412 tokens · $0.0011"
    assert [one.attributes["style"] for one in tree.css(".p-span-line i")] == [
        "left:0.00%;width:100.00%",
        "left:0.00%;width:50.00%",
        "left:50.00%;width:50.00%",
        "left:62.50%;width:12.50%",
        "left:50.00%;width:25.00%",
    ]
    assert len(tree.css(".p-trace details[open] > summary")) == 2, "what has something in it can be folded"
    assert "failed: tool" in texts(tree, ".p-span-name")[-1]
    assert texts(tree, ".p-wrong-said") == ["no such word"]


def test_what_a_model_wrote_is_neither_markup_nor_hidden_in_the_tree() -> None:
    tree = panel([ANSWER], trace=[traced()])
    assert not tree.css("img, strong")
    assert "onerror" in texts(tree, ".p-span-name small")[1]
    assert texts(tree, ".p-span-name b") == ["ask_helper", "look\\u202eup"]


def test_a_tree_without_any_length_and_a_very_large_one_are_drawn() -> None:
    moment = Traced("a", "tool", "now", 5.0, 0.0)
    assert panel([ANSWER], trace=[moment]).css(".p-span-line i")[0].attributes["style"] == "left:0.00%;width:100.00%"
    many = panel([ANSWER], ZH, trace=[replace(moment, id=str(n)) for n in range(1_000)])
    assert len(many.css(".p-span")) == 400
    assert "另有 600 项在文件中。" in texts(many, ".p-trace > .p-none")
    assert not panel([ANSWER]).css(".p-trace")


def test_of_a_whole_reply_a_case_is_offered_in_both_forms_and_languages() -> None:
    tree = panel([ANSWER], has_case=True)
    links = {one.attributes["href"]: one.attributes["aria-label"] for one in tree.css(".p-case a[download]")}
    assert links == {
        "./inspect/m1/case.yaml": "Make a case for a suite of this reply, as YAML",
        "./inspect/m1/case.json": "Make a case for a suite of this reply, as JSON",
    }
    assert "做成测试用例：" in texts(panel([ANSWER], ZH, has_case=True), ".p-case")[0]
    assert not panel([ANSWER]).css(".p-case")
