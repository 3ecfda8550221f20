"""Which questions may ask about the files themselves: a small model is told of them for these alone."""

from __future__ import annotations

import pytest

from core.agents.retrieval import is_of_files

ASKED = """
what's in here?
What did I upload?
What have I sent you?
Which sources do you have?
What is this?
What can you see?
On which page is it?
How many spreadsheets are there?
哪些资料
我给了你什么？
我发了什么
这是什么？
里面有什么？
你有哪些文件？
第3页写了什么
""".strip().splitlines()
NOT_ASKED = """
Within how many days must damage be reported, and how?
When will the water be off?
What is insured?
Turn these notes into a short letter to the tenants.
出险后要在多少天内用什么方式通知？
什么时候停水？
保险包括什么？
谁给了折扣？
""".strip().splitlines()


@pytest.mark.parametrize("question", ASKED)
def test_what_may_be_of_files_is_known(question: str) -> None:
    assert is_of_files(question)


@pytest.mark.parametrize("question", NOT_ASKED)
def test_what_is_of_what_they_say_costs_no_list_of_files(question: str) -> None:
    assert not is_of_files(question)
