"""The parts around the conversation: markup that is ours alone, whatever names and titles hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from core.readiness import Readiness
from core.storage.base import ConversationRecord, Folder
from tests.webui.lists import listed
from webui.panels.evidence import Lists, ShownPage, evidence_html
from webui.panels.history import history_html, states_of
from webui.panels.top import status_html, top_html
from webui.panels.welcome import STARTERS, greeting_html, starter
from webui.render.citations import passage_label
from webui.words import LANGUAGES, Words

EN, ZH = Words("en"), Words("zh")
EVIL = "<img src=x onerror=alert(1)>\n\n**x** `y` \"quoted\" 'too' {z}"
DAY = 86_400.0
NOW = 10 * DAY


def parsed(markup: str) -> LexborHTMLParser:
    assert "\n\n" not in markup, "a blank line would end the HTML block"
    return LexborHTMLParser(markup)


def one(tree: LexborHTMLParser, selector: str) -> LexborNode:
    found = tree.css(selector)
    assert len(found) == 1, f"{selector}: {len(found)}"
    return found[0]


def conversation(name: str, age: float = 0.0, title: str = "") -> ConversationRecord:
    return ConversationRecord(name, "o", title or f"About {name}", 0.0, NOW - age)


def history(*conversations: ConversationRecord, **options: Any) -> LexborHTMLParser:
    given = {"current": "", "words": EN, "now": NOW, **options}
    folders = tuple(given.pop("folders", ()))
    states = states_of(*(given.pop(name, ()) for name in ("running_ids", "unread", "asking")))
    return parsed(history_html(listed(conversations, folders), states=states, **given))


def test_conversations_stand_under_their_day_week_or_month() -> None:
    ages = {"a": 0, "b": 3600, "c": 1.5 * DAY, "d": 3 * DAY, "e": 40 * DAY, "f": 41 * DAY}
    tree = history(*(conversation(name, age) for name, age in ages.items()))
    month = datetime.fromtimestamp(NOW - 40 * DAY).astimezone().strftime("%B %Y")
    assert [heading.text() for heading in tree.css("h2")] == ["Today", "Yesterday", "Last week", month]
    assert [link.attributes["data-open"] for link in tree.css("a[data-open]")] == list(ages)


def test_a_guest_finds_the_way_to_sign_in_below_the_list_where_others_have_accounts() -> None:
    link = one(history(conversation("a"), signs_in=True), ".p-side-foot a.p-sign-in")
    assert (link.attributes["href"], link.text()) == ("./sign-in", "Sign in")
    assert history(conversation("a")).css("a.p-sign-in") == []


def test_who_may_not_add_services_is_not_led_to_them() -> None:
    shown = [parsed(top_html("Stamps", Readiness(), EN, may_add=may)).css(".p-open-models") for may in (True, False)]
    assert [len(buttons) for buttons in shown] == [1, 0]


def test_a_folded_folder_shows_how_many_are_in_it_and_the_most_urgent_of_their_marks() -> None:
    inside = [replace(conversation(name), folder_id="f") for name in ("a", "b", "c")]
    folder = Folder("f", "o", "Papers <b>", 1.0, {}, 0.0)
    given = {"running_ids": {"a", "b"}, "asking": {"b"}, "unread": {"c"}}
    tree = history(*inside, folders=[folder], **given)
    row = one(tree, ".p-folder > div")
    assert one(tree, "a[data-folder]").text() == "Papers <b>"
    assert [mark.attributes["aria-label"] for mark in row.css(".p-st")] == ["asks you"]
    assert one(tree, ".p-many").text() == "3"
    opened = history(*inside, folders=[replace(folder, settings={"open": True})], **given)
    assert not one(opened, ".p-folder > div").css(".p-st")
    assert len(opened.css(".p-folder ul .p-st")) == 3


def test_an_empty_folder_says_so() -> None:
    tree = history(folders=[Folder("f", "o", "Papers", 1.0, {"open": True}, 0.0)])
    assert one(tree, ".p-folder .p-none").text() == "Nothing in it yet"


def test_the_open_one_is_marked_and_the_others_show_what_happens_in_them() -> None:
    tree = history(
        conversation("a"), conversation("b"), conversation("c"), current="a", running_ids={"b"}, unread={"c"}
    )
    assert one(tree, "li.p-here a[aria-current=page]").attributes["data-open"] == "a"
    assert one(tree, "li .p-run").attributes["aria-label"] == "replying"
    assert one(tree, "li .p-ok").attributes["aria-label"] == "new reply"


def test_a_link_of_the_history_works_without_the_script_too() -> None:
    assert one(history(conversation("a-_b")), "a[data-open]").attributes["href"] == "./?c=a-_b"


def test_a_title_is_text_whatever_it_holds() -> None:
    tree = history(conversation("a", title=EVIL))
    assert not tree.css("img, strong, code")
    assert (one(tree, "a[data-open]").text() or "").startswith("<img src=x")
    assert "quoted" in (one(tree, ".p-menu").attributes["data-title"] or "")


def test_an_empty_history_says_what_it_is_for() -> None:
    assert "listed here" in one(history(), "nav .p-none").text()


def ready(state: Any, **changes: Any) -> Readiness:
    readiness = Readiness()
    readiness.mark("model", state, **changes)
    return readiness


def test_the_top_line_says_which_model_answers_and_whether_it_is_ready() -> None:
    tree = parsed(
        top_html("My <title>", ready("ready", label="Qwen2.5-Coder 0.5B, built in", in_process=True, built_in=True), EN)
    )
    assert one(tree, "[data-ready=ready] .p-said").text() == "Ready"
    assert one(tree, ".p-model").text() == "Qwen2.5-Coder 0.5B, built in"
    assert one(tree, ".p-title").text() == "My <title>"
    chinese = parsed(
        top_html("", ready("ready", label="Qwen2.5-Coder 0.5B, built in", in_process=True, built_in=True), ZH)
    )
    assert one(chinese, ".p-model").text() == "Qwen2.5-Coder 0.5B，内置"


def test_the_card_says_that_the_built_in_model_is_small_and_leads_to_another() -> None:
    tree = parsed(top_html("", ready("ready", label="Qwen 0.5B, built in", in_process=True, built_in=True), EN))
    assert "small model" in one(tree, ".p-card").text()
    assert one(tree, ".p-ready button[data-do=choose]").attributes["title"] == "Choose a model"
    assert one(tree, ".p-top > button[data-do=models]").attributes["aria-label"] == "Model settings"


def test_a_models_name_is_text_and_no_markup() -> None:
    tree = parsed(top_html("", ready("ready", label=EVIL, answered=True), EN))
    assert (one(tree, "[data-ready=ready] .p-model").text() or "").startswith("<img")


def test_the_card_of_a_remote_model_says_where_words_go() -> None:
    card = one(parsed(top_html("", ready("ready", label="big · api.example"), EN)), ".p-card").text()
    assert "sent to the service" in card


def test_a_model_in_this_process_is_ready_once_it_is_loaded_and_keeps_words_here() -> None:
    tree = parsed(top_html("", ready("ready", label="tiny, Transformers", in_process=True), EN))
    assert one(tree, ".p-said").text() == "Ready"
    assert "leaves this computer" in one(tree, ".p-card").text()


def test_a_service_that_nobody_asked_yet_is_said_to_be_untried_until_it_answers() -> None:
    tree = parsed(top_html("", ready("ready", label="big · api.example"), EN))
    assert one(tree, ".p-said").text() == "Not tried yet"
    assert tree.css_first(".p-ready .p-st.p-off") is not None, "a hollow circle, as in the menu"
    tree = parsed(top_html("", ready("ready", label="big · api.example"), Words("zh")))
    assert one(tree, ".p-said").text() == "尚未试用"
    tree = parsed(top_html("", ready("ready", label="big · api.example", answered=True), EN))
    assert one(tree, ".p-said").text() == "Ready"


def test_a_service_that_failed_the_last_reply_is_said_not_to_answer() -> None:
    failed = ready("failed", label="big · api.example", remedy_key="model_unreachable", details={"host": "api.example"})
    tree = parsed(top_html("", failed, EN))
    assert one(tree, "[data-ready=failed] .p-said").text() == "Error"
    assert one(tree, ".p-card .p-what").text() == "api.example cannot be reached"


def test_a_service_that_answered_with_an_error_is_said_to_answer() -> None:
    about = {"remedy_key": "model_unavailable", "details": {"code": "500"}}
    tree = parsed(top_html("", ready("failed", label="big · api.example", **about), EN))
    assert one(tree, "[data-ready=failed] .p-said").text() == "Returns errors"
    assert one(tree, ".p-card .p-what").text() == "The model service answered with an error (500)"


def test_a_service_loads_nothing_and_is_untried_while_it_is_set_up() -> None:
    tree = parsed(top_html("", ready("loading", label="big · api.example"), EN))
    assert one(tree, "[data-ready=loading] .p-said").text() == "Not tried yet"
    assert tree.css_first(".p-ready .p-st.p-off") is not None
    tree = parsed(top_html("", ready("loading", label="tiny, Transformers", in_process=True), EN))
    assert one(tree, "[data-ready=loading] .p-said").text() == "Loading"
    assert one(parsed(top_html("", ready("loading"), EN)), ".p-said").text() == "Loading", "nobody knows yet what it is"


def test_fetching_is_told_in_megabytes() -> None:
    tree = parsed(
        top_html(
            "",
            ready("loading", label="Q, built in", in_process=True, built_in=True, done=212_000_000, total=491_400_064),
            EN,
        )
    )
    assert one(tree, "[data-ready=loading] .p-said").text() == "Fetching, 212 of 491 MB"


def test_without_a_model_the_page_says_why_and_what_to_do() -> None:
    tree = parsed(
        top_html(
            "",
            ready("failed", label="Q, built in", in_process=True, built_in=True, remedy_key="weights_unreachable"),
            EN,
        )
    )
    assert one(tree, "[data-ready=failed] .p-said").text() == "No model"
    assert "no network" in one(tree, ".p-card .p-what").text()
    assert one(tree, "button[data-do=retry]").text() == "Try again"


def passage(number: int, top: float, text: str = "Words", page: int | None = 2, document: str = "d") -> dict[str, Any]:
    rectangles = [(70.0, top, 500.0, top + 14.0)] if page else []
    where = {"document": "po<b>licy.pdf", "document_id": document, "page": page, "rectangles": rectangles}
    return {"number": number, "text": text, **where}


PAGE = ShownPage("d", "po<b>licy.pdf", 2, 3, (595.0, 842.0), (72.0, 80.0, 523.0, 790.0))


def evidence(*passages: dict[str, Any], number: int | None = 1, page: ShownPage | None = PAGE) -> LexborHTMLParser:
    return parsed(evidence_html(passages, number, EN, message_id="m-1_x", page=page))


def style_of(node: LexborNode) -> dict[str, float]:
    pairs = (pair.split(":") for pair in (node.attributes["style"] or "").split(";") if pair.endswith("%"))
    return {name: float(value.rstrip("%")) for name, value in pairs}


def test_the_passage_is_marked_on_its_page_in_per_cent() -> None:
    tree = evidence(passage(1, 421.0), passage(2, 600.0))
    assert one(tree, ".p-sheet img").attributes["src"] == "./pages/d/2.png"
    place = style_of(one(tree, ".p-hl.p-on"))
    assert place["top"] == pytest.approx(50.0, abs=0.01)
    assert place["left"] == pytest.approx(70 / 595 * 100, abs=0.01)
    assert len(tree.css(".p-hl")) == 2


def test_the_page_is_zoomed_to_its_text_with_a_margin() -> None:
    assert PAGE.crop == (56.0, 64.0, 539.0, 806.0)
    sheet = style_of(one(evidence(passage(1, 100.0)), ".p-sheet"))
    assert sheet["width"] == pytest.approx(595 / 483 * 100, abs=0.01)
    assert sheet["left"] == pytest.approx(-56 / 483 * 100, abs=0.01)


@pytest.mark.parametrize("box", [None, (300.0, 400.0, 300.0, 400.0), (-50.0, -50.0, 900.0, 1200.0)])
def test_a_page_with_a_strange_text_box_is_shown_all_the_same(box: Any) -> None:
    left, top, right, bottom = ShownPage("d", "x", 1, 1, (595.0, 842.0), box).crop
    assert 0 <= left < right <= 595
    assert 0 <= top < bottom <= 842
    assert right - left >= 595 / 4


def test_tabs_of_neighbouring_passages_can_both_be_hit() -> None:
    tops = [
        style_of(tab)["--at"] for tab in evidence(passage(1, 100.0), passage(2, 102.0), passage(3, 104.0)).css(".p-tab")
    ]
    assert len(tops) == 3
    assert all(later - earlier > 5 for earlier, later in pairwise(tops))


def test_what_was_found_but_not_cited_marks_nothing_on_the_page_until_it_is_opened() -> None:
    passages = [passage(1, 421.0), passage(2, 600.0), passage(3, 700.0)]
    for opened, marked in ((1, 1), (3, 2)):
        lists = Lists(uncited=frozenset({2, 3}))
        tree = parsed(evidence_html(passages, opened, EN, message_id="m-1_x", page=PAGE, lists=lists))
        assert len(tree.css(".p-hl")) == marked
        assert len(tree.css(".p-tab")) == marked


def test_passages_of_other_pages_are_listed_but_not_marked() -> None:
    tree = evidence(passage(1, 100.0), passage(2, 100.0, page=3), passage(3, 100.0, document="other"))
    assert len(tree.css(".p-hl")) == 1
    assert len(tree.css(".p-quotes li")) == 3
    assert one(tree, ".p-quotes li[aria-current] .p-n").text() == "1"


def test_links_of_the_panel_name_the_reply_and_the_passage() -> None:
    assert {link.attributes["href"] for link in evidence(passage(1, 100.0)).css("a.cite")} == {"#cite-m-1_x-1"}


def test_the_turner_stops_at_both_ends() -> None:
    first = ShownPage("d", "x", 1, 3, (595.0, 842.0))
    tree = evidence(passage(1, 1.0), page=first)
    assert "disabled" in one(tree, ".p-before").attributes
    assert "disabled" not in one(tree, ".p-after").attributes
    assert one(tree, ".p-after").attributes["data-n"] == "2"
    assert one(tree, ".p-turner span").text() == "Page 1 of 3"


def test_a_document_that_cannot_be_shown_still_shows_its_words() -> None:
    tree = evidence(passage(1, 0.0, "From the notes.", page=None), page=None)
    assert "cannot be shown" in one(tree, ".p-none").text()
    assert one(tree, ".p-quote").text() == "From the notes."
    assert one(tree, ".p-where").text() == "po<b>licy.pdf"


def test_a_table_is_quoted_row_by_row_and_its_headings_bare() -> None:
    text = "Prices |  | \nCause | Deductible\nFire | 300\n | \n | 20 | 30\n <b>"
    quote = one(evidence(passage(1, 0.0, text, page=None), page=None), ".p-quote")
    lines = ["Prices", "Cause | Deductible", "Fire | 300", "| 20 | 30", "<b>"]
    assert (quote.inner_html or "").count("<br>") == len(lines) - 1
    assert quote.text() == " ".join(lines)


@pytest.mark.parametrize(
    ("name", "en", "zh"),
    [
        ("plan.PPTX", "plan.PPTX, slide 2", "plan.PPTX，第 2 张幻灯片"),
        ("sales.ods", "sales.ods, sheet 2", "sales.ods，第 2 个工作表"),
        ("policy.pdf", "policy.pdf, page 2", "policy.pdf，第 2 页"),
    ],
)
def test_a_slide_is_no_page_and_a_sheet_neither(name: str, en: str, zh: str) -> None:
    assert [passage_label({"document": name, "page": 2}, words) for words in (EN, ZH)] == [en, zh]


def test_quoted_text_and_names_are_text() -> None:
    tree = evidence(passage(1, 100.0, EVIL))
    assert not tree.css("b, strong, code, .p-quotes img")
    assert one(tree, ".p-file").text() == "po<b>licy.pdf"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_starter_has_its_question_and_its_file_is_there(lang: str) -> None:
    from webui.bundles import assets_folder

    words = Words(lang)
    tree = parsed(greeting_html(words))
    assert [link.attributes["href"] for link in tree.css("a.p-do.p-starter")] == [f"#do-starter-{n}" for n in STARTERS]
    samples = [starter(number, words)[1] for number in STARTERS]
    assert sum(sample is not None for sample in samples) == 2
    assert all((assets_folder() / "samples" / sample).is_file() for sample in samples if sample)


def test_there_is_no_starter_of_another_number() -> None:
    with pytest.raises(KeyError):
        starter(9, EN)


def test_the_state_is_in_attributes_and_said_in_words() -> None:
    tree = parsed(status_html("running", 'a"><script>', lang="zh"))
    status = one(tree, "[data-state=running]")
    assert status.attributes["data-conversation"] == 'a"><script>'
    assert status.attributes["data-room"] == "full"
    assert status.text() == "正在回答"
    for ended, said in (("error", "failed"), ("stopped", "stopped"), ("interrupted", "interrupted")):
        assert (one(parsed(status_html("idle", "c", ended=ended)), ".p-status").text() or "").endswith(said)
    assert one(parsed(status_html("idle", "c")), ".p-status").text() == "Reply complete"
    assert not tree.css("script")
