"""Thoughts in tags become reasoning, wherever the text was cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.layers.reply import thought_scanner
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel


def split(chunks, *, inside=False):
    scanner = thought_scanner(inside=inside)
    pieces = [piece for chunk in chunks for piece in scanner.feed(chunk)]
    pieces += scanner.close()
    thought = "".join(piece.text for piece in pieces if piece.mode == "thought")
    return thought, "".join(piece.text for piece in pieces if piece.mode == "text")


CASES = [
    ("<think>hm</think>\n\nanswer", "hm", "answer"),
    ("\n <think>\nhm < 3 </thin </think> answer </think>", "hm < 3 </thin ", "answer </think>"),
    ("answer with <think> inside </think>", "", "answer with <think> inside </think>"),
    ("<thing> is no thought", "", "<thing> is no thought"),
    ("<think>never ends </th", "never ends </th", ""),
    ("<thi", "", "<thi"),
    ("<think></think>", "", ""),
    ("  spaces stay", "", "  spaces stay"),
    ("", "", ""),
]


@pytest.mark.parametrize(("reply", "thought", "text"), CASES)
def test_only_a_thought_at_the_start_is_taken_out(reply, thought, text):
    assert split([reply]) == (thought, text)


@given(st.sampled_from(CASES), st.lists(st.integers(0, 60), max_size=10))
def test_any_cut_gives_the_same(case, cuts):
    reply, thought, text = case
    edges = [0, *sorted(min(cut, len(reply)) for cut in cuts), len(reply)]
    assert split(reply[start:end] for start, end in pairwise(edges)) == (thought, text)


def test_a_reply_may_begin_inside_its_thought():
    assert split(["hm</thi", "nk>answer"], inside=True) == ("hm", "answer")
    assert split(["\n<thi", "nk>\nhm</think>answer"], inside=True) == ("hm", "answer")


def test_every_model_has_its_thoughts_told_apart():
    model = ScriptedModel(Reply(text="<think>\nhm\n</think>\n\nanswer"))
    said = model.chat([{"role": "user", "content": "q"}], stream=False)
    assert [message.get("reasoning_content") or message["content"] for message in said] == ["hm\n", "answer"]
    begun = ScriptedModel("hm</think>answer").chat(
        [{"role": "user", "content": "q"}], stream=False, extra_generate_cfg={"thought_in_content": True}
    )
    assert [message.get("reasoning_content") or message["content"] for message in begun] == ["hm", "answer"]


@pytest.mark.parametrize(
    ("begun", "said"),
    [("<think>\nSo ", "hm</think>answer"), (" <think>", "<think>hm</think>answer"), ("<THINK", "hm</think>answer")],
    ids=["open", "opened twice", "no tag"],
)
def test_a_thought_that_the_asker_began_is_gone_on_with(begun, said):
    asked = [{"role": "user", "content": "q"}, {"role": "assistant", "content": begun}]
    reply = ScriptedModel(said).chat(asked, stream=False)
    parts = [(bool(part.get("reasoning_content")), part.get("reasoning_content") or part["content"]) for part in reply]
    assert parts == ([(False, said)] if begun == "<THINK" else [(True, "hm"), (False, "answer")])


def test_a_thought_that_the_asker_ended_is_over():
    asked = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "<think>hm</think>"}]
    assert [part["content"] for part in ScriptedModel("answer").chat(asked, stream=False)] == ["answer"]


def answered(reply: Reply, **generate):
    model = ScriptedModel(reply)
    return model.chat(
        [{"role": "user", "content": "?"}], stream=False, extra_generate_cfg={"thought_in_content": True, **generate}
    )


@pytest.mark.parametrize("text", ["42", "\nTwo\n\nlines ", "a < b", "<b>bold</b>"])
def test_a_reply_that_ends_without_closing_its_thought_is_the_answer_and_no_thought(text):
    assert answered(Reply(text=text)) == [{"role": "assistant", "content": text.lstrip("\n")}]


def test_while_it_comes_it_may_be_a_thought_and_the_last_snapshot_has_the_answer_alone():
    model = ScriptedModel(Reply(text="one two three", pace=0.03))
    shown = list(
        model.chat([{"role": "user", "content": "?"}], extra_generate_cfg={"thought_in_content": True}),
    )
    assert shown[-1] == [{"role": "assistant", "content": "one two three"}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hm</think>yes", [{"reasoning_content": "hm", "content": ""}, {"content": "yes"}]),
        ("<think>hm</think>yes", [{"reasoning_content": "hm", "content": ""}, {"content": "yes"}]),
        ("<think>hm", [{"reasoning_content": "hm", "content": ""}]),
        ("hm</think>", [{"reasoning_content": "hm", "content": ""}]),
    ],
)
def test_a_thought_that_was_opened_or_closed_stays_one(text, said):
    assert answered(Reply(text=text)) == [{"role": "assistant", **one} for one in said]
