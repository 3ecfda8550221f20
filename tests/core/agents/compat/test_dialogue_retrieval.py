"""`DialogueRetrievalAgent`: long conversations, of which the model reads what bears on the question."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.compat.dialogue_retrieval import DialogueRetrievalAgent
from core.errors import SettingsError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from core.tools.from_function import tool

FILLER = "We spoke about gardens, weather, trains and the price of bread at some length. " * 4


def dialogue(turns: int = 60, *, at: int = 5) -> list[Message]:
    said: list[Message] = []
    for number in range(turns):
        text = "My cat is called Pomegranate." if number == at else f"{FILLER} Part {number}."
        said += [Message("user", text), Message("assistant", f"Noted, number {number}.")]
    return [*said, Message("user", "What is my cat called?")]


def agent(*turns: Any, **options: Any) -> tuple[DialogueRetrievalAgent, ScriptedModel]:
    model = ScriptedModel(*turns or ["Pomegranate."])
    return DialogueRetrievalAgent(llm=model, **{"dialogue_tokens": 600, **options}), model


def read(model: ScriptedModel) -> list[str]:
    return [message.get_text_content() for message in model.requests[0].messages]


def test_the_model_reads_what_bears_on_the_question_and_the_newest_turns_but_not_the_rest():
    asking, model = agent()
    reply = asking.run_nonstream(dialogue())
    told, *newest = read(model)
    assert "User: My cat is called Pomegranate." in told
    assert "Noted, number 59." in newest
    assert newest[-1] == "What is my cat called?"
    assert not any("Part 30." in text for text in newest)
    assert sum(model.count_tokens(text) for text in newest) <= 300
    assert reply[-1].content == "Pomegranate."


def test_the_conversation_itself_is_not_changed():
    asking, _ = agent()
    said = dialogue()
    before = [message.model_dump() for message in said]
    asking.run_nonstream(said)
    assert [message.model_dump() for message in said] == before


def test_a_short_conversation_is_read_as_it_is():
    asking, model = agent(dialogue_tokens=4000)
    asking.run_nonstream(dialogue(3, at=1))
    assert len(read(model)) == 1 + 7


def test_a_question_that_is_too_long_is_read_from_both_ends_with_what_bears_on_it():
    long = FILLER * 20
    text = f"Here is what they said. {long} The treasure lies below the old mill. {long} Where is the treasure?"
    asking, model = agent("Below the mill.")
    asking.run_nonstream([Message("user", [ContentItem(text=text)])])
    told, asked = read(model)
    assert "below the old mill" in told
    assert asked.endswith("Where is the treasure?")
    assert len(asked) < 1000


def test_a_question_of_which_the_ends_are_the_whole_is_read_as_it_is():
    text = "宝藏埋在旧磨坊的下面，" * 30 + "宝藏在哪里？"
    asking, model = agent("磨坊。", dialogue_tokens=200)
    asking.run_nonstream([*dialogue()[:-1], Message("user", text)])
    assert read(model)[-1] == text


def test_words_around_the_parts_are_in_the_language_of_the_question():
    asking, model = agent()
    asking.run_nonstream([*dialogue()[:-1], Message("user", "我的猫 Pomegranate 叫什么名字？")])
    assert "用户: My cat is called Pomegranate." in read(model)[0]


def test_whoever_decides_still_knows_that_something_private_was_said():
    private: list[bool] = []

    @tool
    def post(text: str) -> str:
        """Send a text."""
        return text

    class Watching(Policy):
        def verdict(self, tool: Any, arguments: Any, seen: Any) -> Any:
            private.append(seen.private)
            return "refuse"

    said = dialogue()
    said[0] = Message("user", [ContentItem(text=FILLER), ContentItem(file="secret.bin")])
    asking, _ = agent(Reply(calls=[("post", {"text": "x"})]), "Not sent.", function_list=[post])
    reply = asking.run_nonstream(said, approval=Watching())
    assert private == [True]
    assert reply[-1].content == "Not sent."


def test_too_little_room_is_refused():
    with pytest.raises(SettingsError, match="dialogue_tokens"):
        DialogueRetrievalAgent(dialogue_tokens=10)
