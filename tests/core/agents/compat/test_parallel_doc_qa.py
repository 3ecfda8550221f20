"""`ParallelDocQA`: every part of the documents is read for the question, at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.agents.compat.parallel_doc_qa import ParallelDocQA
from core.agents.limits import Budget
from core.errors import ModelServiceError, SettingsError
from core.llm.request import ChatRequest, Stream
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message, Usage
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy

CITIES = ("Lund", "Oslo", "Turku", "Riga", "Ghent")
ASKED = [Message("user", "Which towns have a harbour?")]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths: list[str] = []
    for city in CITIES:
        path = tmp_path / f"{city}.txt"
        path.write_text(f"{city} is a town. " + f"People of {city} like long walks in the evening. " * 20)
        paths.append(str(path))
    return paths


def is_part(request: ChatRequest) -> bool:
    return "NOTHING" in request.messages[0].get_text_content()


def reads(says: dict[str, Any], answer: str = "Those are all.") -> Any:
    """A model that says of each part what is given for its city, and nothing of the others."""

    def turn(request: ChatRequest) -> Any:
        if not is_part(request):
            return answer
        text = request.messages[-1].get_text_content()
        return next((said for city, said in says.items() if f"{city} is a town" in text), "NOTHING.")

    return turn


def asked(files: list[str], says: dict[str, Any], **options: Any) -> tuple[list[Message], ScriptedModel]:
    model = ScriptedModel(*[reads(says)] * 20)
    agent = ParallelDocQA(llm=model, files=files, part_tokens=200, name="Reader", **options)
    return agent.run_nonstream(ASKED), model


def test_every_part_is_read_and_what_was_found_goes_to_the_model_once_more(files: list[str]):
    reply, model = asked(files, {"Lund": "Lund has one [1].", "Riga": "Riga has one [1]."})
    assert sum(is_part(request) for request in model.requests) == len(CITIES)
    call, result, answer = reply
    assert call.function_call is not None
    assert call.function_call.name == "ask_documents"
    assert "Lund has one [1]." in result.content
    assert "Riga has one [2]." in result.content
    assert "NOTHING" not in result.content
    assert [row["document"] for row in (result.extra or {})["passages"]] == ["Lund.txt", "Riga.txt"]
    assert [row["number"] for row in (result.extra or {})["passages"]] == [1, 2]
    assert answer.get_text_content().startswith("Those are all.")
    assert model.requests[-1].messages[-1].get_text_content() == result.content


def test_a_part_that_fails_costs_that_part_alone_and_the_model_is_told(files: list[str]):
    failing = ModelServiceError(code="500", message="The service is tired.")
    reply, model = asked(files, {"Lund": "Lund has one [1].", "Oslo": failing})
    assert "Lund has one [1]." in reply[1].content
    assert "1 of the 5 parts could not be read" in model.requests[-1].messages[-1].get_text_content()


def test_no_more_parts_are_read_than_the_reply_may_cost_and_the_model_is_told(files: list[str]):
    part = [MessageStarted(), TextDelta("NOTHING."), MessageFinished("stop", Usage(total_tokens=1, cost=1.0))]
    model = ScriptedModel(*[lambda request: part if is_part(request) else "That is all."] * 20)
    agent = ParallelDocQA(llm=model, files=files, part_tokens=200, at_once=1)
    reply = agent.run_nonstream(ASKED, budget=Budget(2.0))
    assert sum(is_part(request) for request in model.requests) == 2
    assert "3 of the 5 parts could not be read" in reply[1].get_text_content()
    assert reply[-1].content == "That is all."


def test_where_nothing_is_found_the_model_is_told_so_and_no_passage_is_shown(files: list[str]):
    reply, _ = asked(files, {})
    assert (reply[1].extra or {})["nothing_found"] is True
    assert "none says anything" in reply[1].content


def test_a_number_that_no_passage_has_is_left_out(files: list[str]):
    reply, _ = asked(files, {"Lund": "Lund has one [99] [1]."})
    assert "Lund has one  [1]." in reply[1].content


def test_where_all_parts_fail_the_error_is_the_result(files: list[str]):
    failing = ModelServiceError(code="500", message="The service is tired.")
    reply, _ = asked(files, dict.fromkeys(CITIES, failing))
    assert "tired" in reply[1].content
    assert (reply[1].extra or {})["failed"]


def test_reading_that_is_forbidden_is_not_done(files: list[str]):
    model = ScriptedModel(*[reads({"Lund": "Lund has one [1]."})] * 20)
    agent = ParallelDocQA(llm=model, files=files, part_tokens=200)
    agent.run_nonstream(ASKED, approval=Policy(deny=("ask_documents",)))
    assert not any(is_part(request) for request in model.requests)


def test_no_more_parts_than_wished_are_read_at_the_same_time(files: list[str]):
    working = most = 0

    class Counting(ScriptedModel):
        async def _stream(self, request: ChatRequest) -> Stream:
            nonlocal working, most
            working += is_part(request)
            most = max(most, working)
            async for event in super()._stream(request):
                yield event
            working -= is_part(request)

    model = Counting(*[reads({"Lund": "Yes [1]."})] * 20)
    ParallelDocQA(llm=model, files=files, part_tokens=200, at_once=2).run_nonstream(ASKED)
    assert most == 2


@pytest.mark.parametrize("options", [{"part_tokens": 10}, {"at_once": 0}])
def test_numbers_that_make_no_sense_are_refused(options: dict[str, int]):
    with pytest.raises(SettingsError):
        ParallelDocQA(**options)
