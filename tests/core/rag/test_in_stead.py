"""What stands in a message for a file that has no text is no part of the question."""

from __future__ import annotations

import pytest

from core.agents.assistant import last_question
from core.agents.search_query import with_earlier_questions
from core.languages import LANGS, Lang
from core.messages.message import ContentItem, Message
from core.rag.in_stead import NoText, Sense, is_told_without, told_without


@pytest.mark.parametrize("lang", LANGS)
def test_a_search_asks_for_what_the_person_asked_and_not_for_what_is_said_of_files(lang: Lang) -> None:
    senses: list[Sense] = ["picture", "sound", "video"]
    steads: list[NoText] = ["nothing", "coming", "unread"]
    told = [told_without("a {name}].png", sense, stead, lang) for sense in senses for stead in steads]
    assert all(map(is_told_without, told))
    items = [
        ContentItem(text="What is in [these]?"),
        *(ContentItem(text=one) for one in told),
        ContentItem(file="a.pdf"),
    ]
    assert last_question([Message("user", items)]) == "What is in [these]?"
    joined = Message("user", "\n".join(["What is in [these]?", *told]))  # as a model gets it that takes text alone
    assert last_question([joined]) == "What is in [these]?"
    assert with_earlier_questions([joined, Message("user", "\n".join(["And why?", *told]))]) == [
        "What is in [these]?",
        "And why?",
    ]
    assert last_question([Message("user", "\n".join(told))]) == ""
    for asked in ("[picture of a cat]", "What is [picture a.png: you do not see it", ""):
        assert not is_told_without(asked)
        assert last_question([Message("user", asked)]) == asked
