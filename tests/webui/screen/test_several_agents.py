"""Several agents: who speaks is told by name and picture, and what one does for another stands in the call."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from core.messages.events import MessageStarted, TextDelta
from core.runs.log import RunFinished
from tests.webui.screen.agents_scenes import CAST, ask, group, inside, nested, nested_done
from tests.webui.screen.calls_scenes import Scene, call, came, reply_of, turns
from webui.bundles import assets_folder
from webui.page_look import Look
from webui.render.conversation import conversation_entries
from webui.render.entries import Entry, face, face_class, initials
from webui.words import Words

EN, ZH = Words("en"), Words("zh")


def entries(scene: Scene, cast: tuple[str, ...] = CAST, words: Words = EN) -> list[Entry]:
    return conversation_entries(*scene, words=words, cast=cast)[0][1:]


def plain(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def text(entry: Entry) -> str:
    return plain(entry["content"][0]["text"])


def title(entry: Entry) -> str:
    return plain(entry.get("metadata", {}).get("title", ""))


def tree(found: list[Entry]) -> list[str]:
    """Titles and words, indented as they are nested."""
    deep: dict[str, int] = {}
    lines: list[str] = []
    for entry in found:
        about = entry.get("metadata", {})
        level = deep[about["parent_id"]] + 1 if "parent_id" in about else 0
        if "id" in about:
            deep[about["id"]] = level
        lines.append("  " * level + (title(entry) or text(entry)))
    return lines


def speakers(found: list[Entry]) -> list[str]:
    return [text(one) for one in found if "p-speaker" in one["content"][0]["text"]]


# ---- who speaks


def test_each_of_several_speakers_has_a_line_where_its_turn_begins() -> None:
    found = entries(group())
    assert speakers(found) == ["P Planner", "DA Data Analyst", "研 研究员", "P Planner"]
    order = [title(one) or text(one) for one in found]
    at = order.index("DA Data Analyst")
    assert order[at + 1].startswith("Thought"), "the name comes before what is thought and called, too"


def test_a_reply_of_several_models_says_which_agent_has_which() -> None:
    thread, replies = group()
    reply = next(iter(replies.values()))
    end = [plain(entry["content"][0]["text"]) for entry in entries((thread, replies))][-1]
    assert "big" not in end
    reply.model, reply.writers = "big-1 + big-2", {"Planner": "big-1", "研究员": "big-2"}
    assert "Planner: big-1; 研究员: big-2" in text(entries((thread, replies))[-1])
    assert "Planner：big-1" in text(entries((thread, replies), words=ZH)[-1])
    reply.writers = {"Planner": "big-2"}
    assert "big-2" in text(entries((thread, replies))[-1])
    assert "big-1" not in text(entries((thread, replies))[-1])
    reply.writers = {}
    assert "big-1 + big-2" in text(entries((thread, replies))[-1]), "where the log is pruned"


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("@Nobody count", True),
        ("@Planner count", False),
        ("@Helper count", False),
        ("Ask @Nobody", False),
        ("me@here", False),
    ],
)
def test_a_question_to_somebody_who_is_not_there_says_who_is(question: str, told: bool) -> None:
    thread, replies = turns(question, reply_of((0, TextDelta("It is 4.")), (1, RunFinished("complete"))))
    made = conversation_entries(thread, replies, words=EN, cast=(*CAST, "Helper"), mentions=("Planner", "Poet"))[0]
    said = "Nobody here is called Nobody. Write @ and one of: Planner, Poet."
    assert (said in text(made[0])) == told
    assert said not in text(conversation_entries(thread, replies, words=EN, cast=CAST)[0][0]), "an @ turns to nobody"


def test_one_speaker_looks_as_ever() -> None:
    reply = reply_of((0, MessageStarted("Ann")), (0.1, TextDelta("Yes.")), (1, RunFinished("complete")))
    [first, *_] = entries(turns("Well?", reply), cast=("Ann",))
    assert first["content"][0]["text"] == '<p class="p-speaker">Ann</p>\n\nYes.'
    unnamed = reply_of((0, MessageStarted()), (0.1, TextDelta("Yes.")), (1, RunFinished("complete")))
    assert "p-speaker" not in str(entries(turns("Well?", unnamed), cast=()))


def test_a_conversation_that_is_opened_again_without_its_program_tells_who_spoke() -> None:
    assert speakers(entries(group(), cast=())) == speakers(entries(group()))


def test_who_has_said_nothing_has_no_line() -> None:
    events = [(0, MessageStarted("Ann")), (0.1, TextDelta(" \n")), (0.2, MessageStarted("Bob")), (0.3, TextDelta("I."))]
    assert speakers(entries(turns("Well?", reply_of(*events)), cast=("Ann", "Bob"))) == ["B Bob"]


def test_calls_of_two_speakers_are_not_one_line() -> None:
    reply = reply_of(
        (0, MessageStarted("Ann")), *call("a", "one", 0), came("a", 1),
        (2, MessageStarted("Bob")), *call("b", "two", 2), came("b", 3),
    )  # fmt: skip
    assert speakers(entries(turns("Well?", reply), cast=("Ann", "Bob"))) == ["A Ann", "B Bob"]


@pytest.mark.parametrize(
    ("name", "signs"),
    [
        ("Ann", "A"), ("Data Analyst", "DA"), ("web_reader", "WR"), ("研究员", "研"), ("研究员 Bot", "研"),
        ("ann of the north", "AO"), ("🦉", "🦉"), ("", "?"), ("42", "4"), ("Bob 研", "B"), ("ßen", "SS"),
    ],
)  # fmt: skip
def test_initials_stand_for_a_name(name: str, signs: str) -> None:
    assert initials(name) == signs


def test_the_picture_follows_from_the_name_alone_and_holds_nothing_of_its_markup() -> None:
    assert face("Ann") == face("Ann")
    assert face_class("Ann") == face_class(" ann ") != face_class("Anne")
    hostile = '"><img src=x onerror=alert(1)> *x*'
    assert "<img" not in face(hostile)
    assert re.fullmatch(r'<span class="[\w -]+" aria-hidden="true">[^<>]*</span>', face(hostile))


def test_initials_can_be_read_on_every_tint_in_light_and_dark() -> None:
    style = (assets_folder() / "css" / "tokens.css").read_text("utf-8")
    grounds = re.findall(r"--p-tint-\d: (#\w{6}); --p-tint-ink-\d: (#\w{6});", style)
    assert len(grounds) == 16

    def light(colour: str) -> float:
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for ground, ink in grounds:
        low, high = sorted((light(ground), light(ink)))
        assert (high + 0.05) / (low + 0.05) >= 7, (ground, ink)


def test_a_program_gives_its_agents_pictures_of_their_own(tmp_path: Any) -> None:
    picture = tmp_path / "ann.png"
    picture.write_bytes(b"\x89PNG")
    one, each = Look.of({"agent.avatar": str(picture)}), Look.of({"agent.avatar": {"Ann": picture, "Bob": None}})
    assert ".p-face.p-face { background-image" in one.style()
    assert f".{face_class('Ann')} {{ background-image" in each.style()
    assert face_class("Bob") not in each.style()


# ---- who asks whom


def test_what_an_agent_does_stands_in_the_call_that_asked_it() -> None:
    lines = [line.split(" “")[0] for line in tree(entries(nested_done()))]
    assert [re.sub(r" [\d.]+ s done$", "", line) for line in lines[:-2]] == [
        "P Planner",
        "I ask our analyst.",
        "DA Data Analyst",
        "  Thought",
        "  Revenue grew by 40 %. Let me see what is usual.",
        "  WR web_reader",
        "    The sector grew by about 12 %; I keep the table that says so.",
        "    write_file",
        "  40 %, three times the sector.",
        "  Ask again with another question",
        "研 研究员 0.9 s failed took too long",
        "  Failed ``` The service did not answer. ``` Ask again with another question",
    ]


def test_an_agent_at_work_is_open_and_closes_when_it_is_done() -> None:
    def states(scene: Scene) -> list[tuple[str, str]]:
        asked = [one for one in entries(scene) if "p-asked" in str(one.get("metadata"))]
        return [(title(one).split(" ")[0], one["metadata"]["status"]) for one in asked]

    assert states(nested()) == [("DA", "pending"), ("WR", "pending")]
    assert states(nested_done()) == [("DA", "done"), ("WR", "done"), ("研", "done")]


def test_where_an_inner_agent_asks_the_reader_the_whole_way_down_says_so_and_nothing_seems_to_work() -> None:
    titles = [one["metadata"]["title"] for one in entries(nested()) if "p-st " in str(one.get("metadata"))]
    assert [re.findall(r"p-st (p-\w+)", one)[0] for one in titles] == ["p-ask", "p-ask", "p-ask"]


def test_an_agent_is_known_as_one_before_it_has_said_a_word() -> None:
    [bubble] = [
        one for one in entries(turns("Well?", reply_of(*ask("a", "web_reader", "What?", 0)))) if "metadata" in one
    ]
    assert title(bubble).startswith("WR web_reader")
    assert "What?" in text(bubble)


def test_why_an_agent_failed_is_told_in_its_bubble_and_its_last_words_are_told_once() -> None:
    found = entries(nested_done())
    assert any("The service did not answer." in text(one) for one in found)
    assert sum("three times the sector" in text(one) for one in found) == 1


def test_only_the_outermost_call_can_be_made_again() -> None:
    links = re.findall(r"#do-rerun-([\w&#;-]+)", str(entries(nested_done())))
    assert [unescape(one) for one in links] == ["r-1.a", "r-1.d"]


def test_of_a_group_that_is_asked_each_voice_is_named_inside() -> None:
    reply = reply_of(
        *ask("a", "Group", "Well?", 0),
        *inside(("a",), (1, MessageStarted("Ann")), (1, TextDelta("Yes."))),
        *inside(("a",), (2, MessageStarted("Bob")), (2, TextDelta("No."))),
    )
    assert tree(entries(turns("Well?", reply), cast=("Chief", "Group")))[1:5] == [
        "  A Ann",
        "  Yes.",
        "  B Bob",
        "  No.",
    ]


def test_every_entry_comes_after_the_bubble_that_it_is_in() -> None:
    seen: set[str] = set()
    for entry in entries(nested_done()) + entries(nested()):
        about = entry.get("metadata", {})
        assert "parent_id" not in about or about["parent_id"] in seen
        seen |= {about["id"]} if "id" in about else set()


def test_both_languages_say_what_was_asked() -> None:
    assert "问题" in str(entries(nested(), words=ZH))
    assert "Asked" in str(entries(nested()))
