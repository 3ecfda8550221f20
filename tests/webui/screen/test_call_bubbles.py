"""A call's bubble: the state in shape and words, what went in and came back, and nothing cut without a way to all."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest

from core.messages.content import ContentItem
from core.messages.events import CallDelta, CallStarted, TextDelta, ToolStarted
from core.runs.log import ApprovalGiven, RunFinished, ToolProgress
from core.runs.reply import Reply
from tests.webui.screen.calls_scenes import FILE, asked, call, came, paused, plot, reply_of, turns
from webui.render.calls import adjacent_calls
from webui.render.conversation import conversation_entries
from webui.render.entries import Entry
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
OVER = (9.0, RunFinished("complete"))


def bubbles(reply: Reply, words: Words = EN) -> list[Entry]:
    thread, replies = turns("Why?", reply)
    return [entry for entry in conversation_entries(thread, replies, words=words)[0] if "metadata" in entry]


def inside(entry: Entry) -> str:
    return entry["content"][0]["text"]


def title(entry: Entry) -> str:
    return unescape(re.sub(r"<[^>]*>", "", entry["metadata"]["title"]))


def shape(entry: Entry) -> str:
    found = re.search(r'class="p-st (p-\w+)"', entry["metadata"]["title"])
    return found[1] if found else ""


def asked_reply(*more: tuple[float, Any]) -> Reply:
    return reply_of(*call("c", "write_file", 0, **FILE), asked("c", "write_file", 0.1, **FILE), *more)


def test_a_call_that_asks_says_so_in_shape_and_words() -> None:
    [bubble] = bubbles(asked_reply())
    assert (shape(bubble), bubble["metadata"]["status"]) == ("p-ask", "done")
    assert "asks you" in title(bubble)
    assert "等你确认" in title(bubbles(asked_reply(), ZH)[0])


def test_where_the_reader_is_asked_nothing_claims_to_be_at_work() -> None:
    reply = asked_reply(*call("d", "calculator", 0.2, expression="1"), (0.2, ToolStarted("d")), came("d", 0.3))
    thread, replies = turns("Why?", reply)
    assert "p-wait" not in str(conversation_entries(thread, replies, words=EN))


@pytest.mark.parametrize(
    ("failed", "said", "chinese"),
    [
        ("refused", "you did not allow it", "你没有允许"),
        ("refused_rule", "a rule forbids it", "规则禁止"),
        ("refused_timeout", "nobody answered in time", "没有等到回答"),
        ("refused_unattended", "nobody was there to ask", "没有人可以询问"),
        (
            "refused_compared",
            "it would have to ask you, which two models side by side do not",
            "需要先询问您，而两个模型并排回答时不会询问",
        ),
    ],
)
def test_a_refusal_folds_into_the_title_with_its_reason(failed: str, said: str, chinese: str) -> None:
    reply = asked_reply((1, ApprovalGiven("c", False, None, "user")), came("c", 1, "", failed=failed))
    [bubble] = bubbles(reply)
    assert shape(bubble) == "p-not"
    assert "not allowed" in title(bubble)
    assert said in title(bubble)
    assert chinese in title(bubbles(reply, ZH)[0])


def test_an_allowed_call_says_that_and_shows_what_was_changed_beside_what_was_written() -> None:
    given = ApprovalGiven("c", True, {**FILE, "path": "other.csv"}, "user")
    [bubble] = bubbles(asked_reply((1, given), (1, ToolStarted("c")), came("c", 2), OVER))
    assert shape(bubble) == "p-ok"
    assert "you changed it" in title(bubble)
    assert "“other.csv”" in title(bubble)
    text = inside(bubble)
    assert text.index("as you changed them") < text.index("other.csv") < text.index("the model had written")
    assert text.index("the model had written") < text.index("speed-up.csv")
    untouched = asked_reply((1, ApprovalGiven("c", True, None, "user")), (1, ToolStarted("c")), came("c", 2), OVER)
    assert "you allowed it" in title(bubbles(untouched)[0])


def test_a_call_that_was_stopped_is_not_called_a_failure() -> None:
    thread, replies = paused()
    [bubble] = [one for one in conversation_entries(thread, replies, words=EN)[0] if "metadata" in one]
    assert shape(bubble) == "p-halt"
    assert title(bubble).count("stopped") == 1


def test_a_built_in_tool_has_its_plain_name_beside_the_other() -> None:
    reply = reply_of(*call("a", "code_interpreter", 0, code="1"), *call("b", "somebody-elses", 0))
    titles = [title(bubble) for bubble in bubbles(reply)[1:]]
    assert titles[0].startswith("code_interpreter Run Python")
    assert titles[1].startswith("somebody-elses running") or titles[1].startswith("somebody-elses waiting")


def test_progress_is_told_in_words_and_as_a_bar_where_the_whole_is_known() -> None:
    begun = [*call("a", "web_search", 0, query="x"), (0.1, ToolStarted("a"))]
    [bubble] = bubbles(reply_of(*begun, (0.2, ToolProgress("a", "3 of 12 pages", 3, 12))))
    assert "3 of 12 pages" in title(bubble)
    assert "p-bar p-b25" in inside(bubble)
    [bubble] = bubbles(reply_of(*begun, (0.2, ToolProgress("a", "Looking"))))
    assert "Looking" in inside(bubble)
    assert "p-bar" not in inside(bubble)
    done = reply_of(*begun, (0.2, ToolProgress("a", "Looking")), came("a", 1))
    assert "Looking" not in str(bubbles(done))


def test_code_is_shown_as_python_and_text_of_several_lines_as_text() -> None:
    [bubble] = bubbles(reply_of(*call("a", "code_interpreter", 0, code="a = 1\nprint(a)")))
    assert "```python\na = 1\nprint(a)\n```" in inside(bubble)
    [bubble] = bubbles(reply_of(*call("a", "write_file", 0, **FILE)))
    assert '```json\n{"path": "speed-up.csv"}\n```' in inside(bubble)
    assert "```\nlayers,otsl" in inside(bubble)


@pytest.mark.parametrize("cut", range(1, 34))
def test_code_is_shown_as_python_while_it_is_being_written(cut: int) -> None:
    whole = json.dumps({"code": 'print("ü\n", "\\")\nx = 1'})
    reply = reply_of((0, CallStarted("a", "code_interpreter")), (0, CallDelta("a", whole[: len(whole) - cut])))
    text = inside(bubbles(reply)[0])
    assert re.search(r"```python\npri", text)
    assert "json" not in text


PICTURE = r'<a class="p-pic"[^>]*><img src="[^"]*calls[^"]*item[^"]*" alt="Picture 1">'


def test_a_plot_stands_in_the_answer_once_and_its_bubble_is_closed() -> None:
    drawn = [ContentItem(text="1\n[1 picture, shown to the user]"), ContentItem(image=plot())]
    one = [*call("a", "code_interpreter", 0, code="1"), (0.1, ToolStarted("a")), came("a", 1, drawn)]
    reply = reply_of(*one, *call("b", "calculator", 2), came("b", 3), (4, TextDelta("So.")), OVER)
    entries = conversation_entries(turns("?", reply)[0], {"r-1": reply}, words=EN)[0]
    [head] = [entry for entry in entries if "metadata" in entry and "Used 2 tools" in title(entry)]
    assert head["metadata"]["status"] == "done"
    holds = [at for at, entry in enumerate(entries) if re.search(PICTURE, unescape(inside(entry)))]
    said = next(at for at, entry in enumerate(entries) if inside(entry).startswith("So."))
    assert len(holds) == 1
    assert entries.index(head) < holds[0] < said
    assert "metadata" not in entries[holds[0]]
    assert "shown to the user" not in "".join(map(inside, entries))
    assert "base64" not in "".join(map(inside, entries))


def test_a_plot_without_words_leaves_a_line_that_says_where_it_is() -> None:
    drawn = [ContentItem(text="[1 picture, shown to the user]"), ContentItem(image=plot())]
    reply = reply_of(*call("a", "code_interpreter", 0, code="1"), came("a", 1, drawn), OVER)
    [bubble] = bubbles(reply)
    assert bubble["metadata"]["status"] == "done"
    assert "Its output is in the answer" in unescape(inside(bubble))


def test_a_file_that_code_made_stands_in_the_answer_and_not_in_the_closed_bubble() -> None:
    made = [ContentItem(text="[1 file, handed to the user: table.csv]"), ContentItem(file="/files/f1")]
    about = [{"id": "f1", "name": "table.csv", "media_type": "text/csv", "size": 4}]
    reply = reply_of(*call("a", "code_interpreter", 0, code="1"), came("a", 1, made, files=about), OVER)
    entries = conversation_entries(turns("?", reply)[0], {"r-1": reply}, words=EN)[0]
    chips = [entry for entry in entries if './files/f1?download=1"' in inside(entry)]
    assert len(chips) == 1
    assert "metadata" not in chips[0]


def test_a_picture_that_a_tool_only_looked_at_stands_in_its_open_bubble() -> None:
    seen = [ContentItem(text="Seen."), ContentItem(image=plot())]
    [bubble] = bubbles(reply_of(*call("a", "browser-screenshot", 0), came("a", 1, seen), OVER))
    assert bubble["metadata"]["status"] == "pending"
    assert re.search(PICTURE, unescape(inside(bubble)))


def test_files_of_a_result_are_chips_by_their_names() -> None:
    made = [ContentItem(text="Made."), ContentItem(file="/files/f1")]
    about = [{"id": "f1", "name": "table.csv", "media_type": "text/csv", "size": 4}]
    [bubble] = bubbles(reply_of(*call("a", "t", 0, x=1), came("a", 1, made, files=about), OVER))
    assert './files/f1?download=1"><span class="p-name">table&#46;csv</span>' in inside(bubble)


@pytest.mark.parametrize("what", ["given", "result"])
def test_what_is_too_long_for_its_bubble_can_be_seen_whole(what: str) -> None:
    long = "x" * 7_000
    arguments, content = ({"query": long}, "short") if what == "given" else ({"query": "short"}, long)
    [bubble] = bubbles(reply_of(*call("a.b", "t", 0, **arguments), came("a.b", 1, content), OVER))
    assert f'href="#do-whole-r-1.a.b.{what}"' in unescape(inside(bubble))
    assert len(inside(bubble)) < 9_000
    [bubble] = bubbles(reply_of(*call("a.b", "t", 0, query="short"), came("a.b", 1, "short"), OVER))
    assert "do-whole" not in inside(bubble)


def test_what_the_model_was_not_shown_is_said_and_can_be_seen() -> None:
    content = [ContentItem(text="begin … end"), ContentItem(file="/files/w")]
    about = {"cut_from": 200_000, "whole": "/files/w", "files": [{"id": "w", "name": "t.txt"}]}
    [bubble] = bubbles(reply_of(*call("a", "t", 0, x=1), came("a", 1, content, **about), OVER))
    assert "beginning and the end of 200 kB" in unescape(inside(bubble))
    assert "do-whole" in inside(bubble)
    assert "./files/w" not in inside(bubble)


def test_a_call_can_be_made_again_once_its_reply_is_over() -> None:
    begun = [*call("a", "t", 0, x=1), came("a", 1)]
    assert "#do-rerun-" not in inside(bubbles(reply_of(*begun))[0])
    assert 'href="#do-rerun-r-1.a"' in unescape(inside(bubbles(reply_of(*begun, OVER))[0]))
    nothing = reply_of(*call("a", "t", 0), came("a", 1), OVER)
    assert "#do-rerun-" not in inside(bubbles(nothing)[0])


def test_calls_are_gathered_until_something_is_said() -> None:
    reply = reply_of(*call("a", "t", 0), came("a", 1), *call("b", "t", 1), (2, TextDelta("So.")), *call("c", "t", 3))
    found, after = adjacent_calls(reply.blocks, 0)
    assert ([one.call_id for one in found if one.kind == "call"], after) == (["a", "b"], 2)


@pytest.mark.parametrize("limit", ["call_limit", "time_limit", "length_limit", "cost_limit", "anything"])
@pytest.mark.parametrize("words", [EN, ZH])
def test_a_paused_reply_says_what_was_reached_and_can_go_on(limit: str, words: Words) -> None:
    thread, replies = paused()
    replies["r-1"].error = {
        "key": limit,
        "details": {"calls": 20, "minutes": 10, "cost": 2.5, "limit": 2.0, "characters": "9"},
    }
    text = "".join(map(inside, conversation_entries(thread, replies, words=words)[0]))
    details = replies["r-1"].error["details"]
    said = words("paused.other") if limit == "anything" else words(f"error.{limit}", **details)
    assert said in unescape(text)
    assert 'href="#do-continue-r&#45;1"' in text
    assert "p-error" not in text


def test_a_name_or_argument_of_a_tool_is_never_markup() -> None:
    evil = '"><img src=x onerror=alert(1)>'
    reply = reply_of(*call(evil, evil, 0, **{evil: evil + "\n" + evil}), came(evil, 1, evil), OVER)
    [bubble] = bubbles(reply)
    outside = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", inside(bubble))
    assert "<img" not in bubble["metadata"]["title"] + outside
    assert json.dumps(evil)[1:-1] in inside(bubble) or evil in inside(bubble)
