"""Replies that think in text: what they are cut into, whatever their format and however they arrive."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.agents.react_actions import read_action
from core.agents.react_parser import Action, Answer, Piece, StepParser, Thought, Unreadable

TOOLS = ("weather", "get_time", "code")
CALL = [Thought("It may rain."), Action("weather", '{"city": "Rome"}')]


def joined(pieces: list[Piece]) -> list[Piece]:
    """The pieces, neighbours of one kind as one."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, Thought | Answer) and type(last) is type(piece):
            found[-1] = type(piece)(last.text + piece.text)  # type: ignore[union-attr]
        else:
            found.append(piece)
    return found


def read(*chunks: str, tools: tuple[str, ...] = TOOLS, cut: bool = False) -> list[Piece]:
    parser = StepParser(tools)
    pieces = [piece for chunk in chunks for piece in parser.feed(chunk)]
    return joined(pieces + parser.close(cut=cut))


AS_TAUGHT = 'Thought: It may rain.\nAction: weather\nAction Input: {"city": "Rome"}'
MENDED = [
    AS_TAUGHT,
    AS_TAUGHT + "\nObservation: sun\nThought: It is sunny.\nFinal Answer: Sun.",
    AS_TAUGHT + "}\n```",
    AS_TAUGHT.replace(": It", ":\nIt").replace(": w", ":\nw").replace(": {", ":\n\n{"),
    AS_TAUGHT.replace(": It", "：It").replace(": w", "：w").replace(": {", "：{"),
    AS_TAUGHT.upper().replace("IT MAY RAIN.", "It may rain.").replace("WEATHER", "weather").replace('"CITY"', '"city"')
    .replace('"ROME"', '"Rome"'),
    'It may rain.\nAction: weather\nAction Input: {"city": "Rome"}',
    '**Thought:** It may rain.\n**Action:** `weather`\n**Action Input:** {"city": "Rome"}',
    '**Thought**: It may rain.\n**Action**: weather\n**Action Input**: {"city": "Rome"}',
    '### Thought: It may rain.\n- Action: [weather]\n- Action Input: {"city": "Rome"}',
    'Thought 1: It may rain.\nAction 1: weather\nAction Input 1: {"city": "Rome"}',
    '思考：It may rain.\n行动：weather\n行动输入：{"city": "Rome"}',
    'Thought: It may rain.\nAction: weather\nInput: {"city": "Rome"}',
    'Thought: It may rain.\nAction: weather\nAction_Input: {"city": "Rome"}',
    'Thought: It may rain.\nAction: weather Action Input: {"city": "Rome"}',
    'Thought: It may rain.\nAction: weather({"city": "Rome"})',
    'Thought: It may rain.\nAction: weather[{"city": "Rome"}]\nObservation: sun',
    'Thought: It may rain.\nAction: I call the tool weather.\nAction Input: {"city": "Rome"}',
    'Thought: It may rain.\nAction: Weather\nAction Input: {"city": "Rome"}',
    'Thought: It may rain.\nAction:\n```json\n{"action": "weather", "action_input": {"city": "Rome"}}\n```',
    'Thought: It may rain.\nAction: {"name": "weather", "arguments": {"city": "Rome"}}',
    'Thought: It may rain.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>',
    "Thought: It may rain.\nAction: [{'tool': 'weather', 'input': {'city': 'Rome'}}]\nObservation:",
]  # fmt: skip


@pytest.mark.parametrize("text", MENDED)
def test_a_step_is_read_in_every_format_that_models_write(text: str) -> None:
    assert read(text) == CALL


ENDS = [
    ("Final Answer: 3", [Answer("3")]),
    ("Thought: I know.\n\nFinal Answer:  3\n\n4 \n", [Thought("I know."), Answer("3\n\n4")]),
    ("Thought: I know.\n**Final Answer:** **42**", [Thought("I know."), Answer("**42**")]),
    ("Thought: I know.\nAnswer: 3", [Thought("I know."), Answer("3")]),
    ("思考：我知道。\n最终答案：三", [Thought("我知道。"), Answer("三")]),
    ("Thought: I know.\nAction: Final Answer\nAction Input: It is 3.", [Thought("I know."), Answer("It is 3.")]),
    ("Thought: I know.\nAction: Finish[3]", [Thought("I know."), Answer("3")]),
    ("Thought: I know.\nAction: None\nAction Input: None\nFinal Answer: 3", [Thought("I know."), Answer("3")]),
    ("Thought: I know.\nAction: N/A\nFinal Answer: 3", [Thought("I know."), Answer("3")]),
    ("Thought: a\nThought: b\nFinal Answer: c", [Thought("a\nb"), Answer("c")]),
    ("Thought: a\nAction: think harder\nThought: b\nFinal Answer: c", [Thought("a\nthink harder\nb"), Answer("c")]),
    ("Observation: made up\nThought: a\nFinal Answer: c", [Thought("a"), Answer("c")]),
    ("Paris.", [Answer("Paris.")]),
    ("Thought: Paris, of course.", [Thought("Paris, of course."), Answer("Paris, of course.")]),
    ("", []),
    (" \n", []),
]


@pytest.mark.parametrize(("text", "pieces"), ENDS)
def test_an_answer_is_found_in_every_format_that_models_write(text: str, pieces: list[Piece]) -> None:
    assert read(text) == pieces


WORDS = "Notes\nObservation: it is wet.\nAction: buy an umbrella.\nThought: none.\nInput: rain"


BARE = '{"name": "weather", "arguments": {"city": "Rome"}}'


@pytest.mark.parametrize(
    "text", [BARE, f"```json\n{BARE}\n```", f"<tool_call>\n{BARE}\n</tool_call>", BARE + " " * 300]
)
def test_a_reply_that_is_nothing_but_a_call_is_one_if_its_tool_is_known(text: str) -> None:
    assert read(text) == CALL[1:]


def test_json_that_names_no_tool_is_an_answer_but_in_a_tag_it_was_meant() -> None:
    unknown = BARE.replace("weather", "forecast")
    assert read(unknown) == [Answer(unknown)]
    assert read(f"<tool_call>{unknown}</tool_call>") == [Action("forecast", '{"city": "Rome"}')]


def test_json_that_is_no_call_is_an_answer() -> None:
    for text in ('{"a": 1}', '```json\n{"a": 1}\n```', '{"name": "Ada"', BARE + " is how to call it."):
        assert read(text) == [Answer(text)]


def test_in_an_answer_labels_are_words() -> None:
    assert read(f"Final Answer: {WORDS}") == [Answer(WORDS)]
    long = "So it is. " * 30 + "\nObservation: it is wet.\nAction: buy an umbrella.\nThat is all."
    assert read(long) == [Answer(long)]


def test_an_answer_without_a_label_is_shown_while_it_comes() -> None:
    parser = StepParser()
    assert parser.feed("So it is. " * 10) == []
    assert parser.feed("So it is. " * 20) == [Answer(("So it is. " * 30).rstrip())]
    assert parser.feed("Yes.") == [Answer(" Yes.")]


def test_thoughts_and_answers_are_shown_while_they_come_but_never_half_a_label() -> None:
    parser = StepParser()
    assert parser.feed("Thought: It may") == [Thought("It may")]
    assert parser.feed(" rain.\nFinal") == [Thought(" rain.")]
    assert parser.feed("ly dry.\nFinal Ans") == [Thought("\nFinally dry.")]
    assert parser.feed("wer: Sun") == [Answer("Sun")]
    assert parser.feed("ny.\n") == [Answer("ny.")]


def test_an_input_that_is_json_is_whole_at_its_last_brace() -> None:
    parser = StepParser(TOOLS)
    assert parser.feed('Action: weather\nAction Input: {"a": "}\\"}", "b": {"c": [1]}') == []
    assert parser.feed("}") == [Action("weather", '{"a": "}\\"}", "b": {"c": [1]}}')]
    assert parser.feed("\nThought: and so on\nFinal Answer: no") == []
    assert parser.close() == []


@pytest.mark.parametrize(
    ("given", "input_"),
    [
        ("Rome", "Rome"),
        ("```py\nprint(1)\nprint(2)\n```", "```py\nprint(1)\nprint(2)\n```"),
        ('{"city": "Rome"', '{"city": "Rome"'),
        ("{'city': 'Rome'}", "{'city': 'Rome'}"),
        ("", ""),
    ],
)
def test_any_other_input_is_kept_as_it_is_written(given: str, input_: str) -> None:
    assert read(f"Action: weather\nAction Input: {given}\nObservation: sun") == [Action("weather", input_)]


def test_a_tool_without_input_is_called_only_where_its_name_is_known() -> None:
    assert read("Thought: a\nAction: get_time") == [Thought("a"), Action("get_time", "{}")]
    assert read("Action: get_time()\nObservation:") == [Action("get_time", "{}")]
    assert read("Action: get_time", tools=()) == [Unreadable("Action: get_time")]


def test_a_name_that_nobody_knows_is_left_for_the_one_who_runs_it() -> None:
    assert read("Action: forecast\nAction Input: {}") == [Action("forecast", "{}")]


@pytest.mark.parametrize("text", ["Action: look it up", "Action:", "Action Input: {}", "Action: f(1)"])
def test_what_is_no_action_is_said_to_be_none(text: str) -> None:
    (piece,) = read(f"Thought: a\n{text}")[1:]
    assert isinstance(piece, Unreadable)
    assert piece.text.split() == text.split()


def test_of_a_reply_that_was_cut_off_no_action_is_mended() -> None:
    assert read("Action: get_time", cut=True) == [Unreadable("Action: get_time")]
    cut = 'Action: weather\nAction Input: {"city": "Ro'
    assert read(cut, cut=True) == [Unreadable(cut)]
    assert read(AS_TAUGHT, cut=True) == CALL
    assert read("Thought: It may ra", cut=True) == [Thought("It may ra"), Answer("It may ra")]


PARTS = st.lists(
    st.sampled_from(
        [
            *(
                "Thought:",
                "Action:",
                "Action Input:",
                "Observation:",
                "Final Answer:",
                "Answer:",
                "Input:",
                "**Action:**",
            ),
            *(
                "**Thought**:",
                "思考：",
                "行动输入：",
                "\n",
                "\n\n",
                " ",
                "weather",
                "None",
                "Finish",
                '{"a": 1}',
                '{"a": "',
                "}",
            ),
            *(
                "*",
                "**",
                "```",
                "f(x)",
                "<tool_call>",
                "</tool_call>",
                '{"name": "weather"}',
                "```json\n",
                "So it is. " * 21,
                "Act",
                "Final",
                "- ",
                "1. ",
                "It rains",
                " " * 50,
            ),
        ]
    ),
    max_size=14,
)


@given(PARTS, st.data())
@example(["**Final Answer:", "**", "**42**"], None)
def test_any_split_of_a_reply_gives_the_same(parts: list[str], data: st.DataObject | None) -> None:
    text = "".join(parts)
    whole = read(text)
    assert read(*text) == whole
    if data is not None:
        places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
        assert read(*(text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True))) == whole


@pytest.mark.parametrize("looping", ["_", "*", " ", "weather_", "a("])
def test_an_action_without_end_takes_no_time_without_end(looping: str) -> None:
    assert read_action("x" + looping * 100_000 + "?", None, TOOLS) is None


@pytest.mark.parametrize("action", ["weather **Action Input:** x", "__weather(x)__", "weather__ToolInput: x"])
def test_decoration_around_an_action_is_no_part_of_it(action: str) -> None:
    said = read_action(action, None, TOOLS)
    assert said is not None
    assert said.name == "weather"


@given(st.text(max_size=300))
def test_any_text_is_read_without_a_failure_and_an_answer_loses_nothing(text: str) -> None:
    assert read(*text) == read(text)
    assert read("Final Answer: " + text) == ([Answer(text.strip())] if text.strip() else [])
