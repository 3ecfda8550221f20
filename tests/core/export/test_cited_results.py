"""Of what tools found in documents, a turn that is shared keeps what its reply cites; all else is counted, not told."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.export import cited_results
from core.export.redaction import Redaction
from core.export.schema import ExportedClaim, ExportedDoubt, ExportedReason, ExportedTurn
from core.export.sharing import _Making  # pyright: ignore[reportPrivateUsage]
from core.export.turns import turn_of
from core.languages import Lang
from core.messages.content import ContentItem
from core.messages.events import MessageFinished, ToolFinished
from core.messages.message import Message
from core.runs.log import LoggedEvent, NestedEvent
from core.runs.rows import rows_of
from core.storage.base import StoredMessage
from core.storage.whole_conversations import WholeTurn
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool

SECRET = "The ledger of the widow."


def passage(number: int, text: str, **more: Any) -> dict[str, Any]:
    about = {"score": 1, "document": "d.pdf", "document_id": "x", "page": 2, "heading": "Water", "chunk_id": number}
    return {"text": text, **about, "number": number, **more}


def turn(
    name: str, passages: list[dict[str, Any]], said: str, within: tuple[Any, ...] = (), thought: str | None = None
) -> ExportedTurn:
    call: Any = {"name": name, "arguments": "{}"}
    text = "\n\n".join(f"[{one['number']}] {one['text']}" for one in passages) or SECRET
    extra = {"function_id": "a", **({"passages": passages} if passages else {})}
    parts = (
        Message("assistant", "", function_call=call, extra={"function_id": "a"}),
        Message("function", [ContentItem(text=text), ContentItem(image="/files/1")], name=name, extra=extra),
        Message("assistant", said, reasoning_content=thought),
    )
    stored = StoredMessage("m", "c", None, "assistant", parts, None, "complete", 1.0)
    log = [LoggedEvent(seq, 0.1, NestedEvent(("a",), event)) for seq, event in enumerate(within, start=1)]
    return turn_of(WholeTurn(stored, within=tuple(rows_of(log))), Redaction(), shown=True)


def only_cited(turn: ExportedTurn, lang: Lang) -> ExportedTurn:
    return cited_results.only_cited(turn, lang, thoughts=not cited_results.shows_documents(turn))


def result(of: ExportedTurn) -> str:
    return of.messages[1].get_text_content()


@pytest.mark.parametrize(
    ("lang", "place", "left"),
    [
        ("en", "(d.pdf, page 2)", "2 passages that the reply does not cite were left out."),
        ("zh", "(d.pdf，第 2 页)", "回答未引用的 2 个段落已略去。"),
    ],
)
def test_a_result_keeps_the_passages_that_are_cited_and_says_how_many_it_lacks(
    lang: Lang, place: str, left: str
) -> None:
    found = [passage(1, SECRET), passage(2, "Water is insured."), passage(3, SECRET)]
    kept = only_cited(turn("ask_documents", found, "It is [2]."), lang)
    assert result(kept) == f"[2] {place}\nWater\nWater is insured.\n\n{left}"
    assert [item.type for item in kept.messages[1].items] == ["text", "image"]
    assert SECRET not in kept.model_dump_json()
    assert [one.number for one in kept.citations] == [1, 2, 3], "marks lead where they led"


@pytest.mark.parametrize("found", [[passage(1, "Rain.")], []])
def test_what_a_model_thought_of_documents_is_left_out_for_it_quotes_them(found: list[dict[str, Any]]) -> None:
    kept = only_cited(turn("retrieval", found, "It rains [1].", thought=f"I see: {SECRET}"), "en")
    assert SECRET not in kept.model_dump_json()
    assert kept.messages[-1].get_text_content() == "It rains [1]."


def test_nor_is_what_it_thought_of_them_in_later_turns_or_of_a_file_that_it_was_given() -> None:
    plain = turn("web_search", [passage(1, "x", url="https://a.example/")], "So [1].", thought=f"I see: {SECRET}")
    given = Message("user", [ContentItem(text="What is it?"), ContentItem(file="/files/2")])
    stored = StoredMessage("m", "c", None, "user", (given,), None, "complete", 1.0)
    asked = turn_of(WholeTurn(stored), Redaction(), shown=True)
    for before in (turn("retrieval", [passage(1, "Rain.")], "It rains [1]."), asked):
        page = _Making("en")
        assert SECRET in page.turns([plain])
        assert SECRET not in page.turns([before, plain])
        assert SECRET not in page.turns([plain])


def test_what_a_model_thought_without_documents_stays() -> None:
    kept = only_cited(turn("web_search", [passage(1, "x", url="https://a.example/")], "So [1].", thought="Hm."), "en")
    assert kept.messages[-1].reasoning_content == "Hm."


def test_of_a_sentence_that_was_checked_the_reason_stays_that_the_page_tells() -> None:
    absent, differs = ExportedReason(kind="name", words="Bo"), ExportedReason(kind="amount", words="5", instead="7")
    secret = ExportedReason(kind="amount", words="6", instead=SECRET)
    claims = (
        ExportedClaim(text="Bo pays 5 of 6.", verdict="unsupported", reasons=(absent, differs, secret)),
        ExportedClaim(text="It rains.", verdict="supported", reasons=(secret,), judged=True),
    )
    doubted = (ExportedDoubt(text="Bo pays 5 of 6.", verdict="unsupported", words="5", instead="7"),)
    given = turn("retrieval", [passage(1, "Rain.")], "It rains [1].")
    kept = only_cited(given.model_copy(update={"claims": claims, "doubted": doubted}), "en")
    assert [(one.verdict, one.reasons) for one in kept.claims] == [("unsupported", (differs,)), ("supported", ())]


def test_one_that_is_cited_nowhere_is_spoken_of_in_the_singular() -> None:
    kept = only_cited(turn("ask_tables", [passage(1, SECRET)], "Nothing."), "en")
    assert result(kept) == "1 passage that the reply does not cite was left out."


@pytest.mark.parametrize(
    "name", ["retrieval", "doc_parser", "simple_doc_parser", "hybrid_search", "extract_doc_vocabulary"]
)
def test_tools_that_read_documents_without_passages_keep_nothing_of_them(name: str) -> None:
    kept = only_cited(turn(name, [], "I read it."), "en")
    assert result(kept) == "What was read in documents was left out."
    assert SECRET not in kept.model_dump_json()


class Ledger(BaseTool):
    """A tool that a program adds."""

    name = "ledger_of_the_program"
    description = "Reads the ledger."
    of_documents = True

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return SECRET


def test_a_new_tool_that_says_so_keeps_nothing_of_documents_whether_or_not_its_name_is_known() -> None:
    agent = FnCallAgent([Ledger()], ScriptedModel(Said(calls=[("ledger_of_the_program", {})]), "Done."))
    parts = tuple(agent.ask("?").messages)
    assert SECRET in str(parts)
    stored = StoredMessage("m", "c", None, "assistant", parts, None, "complete", 1.0)
    kept = only_cited(turn_of(WholeTurn(stored), Redaction(), shown=True), "en")
    assert SECRET not in kept.model_dump_json()
    assert "What was read in documents was left out." in kept.model_dump_json()


def test_what_came_from_the_web_or_from_other_tools_stays_as_it_was() -> None:
    web = turn("web_search", [passage(1, "A page.", url="https://a.example/"), passage(2, "B.", url="x")], "So [1].")
    for one in (web, turn("calculator", [], "So.")):
        kept = only_cited(one, "en")
        assert (kept.messages, kept.citations) == (one.messages, one.citations)


def test_what_an_agent_found_that_was_called_is_left_out_as_well() -> None:
    found = Message("function", f"[1] {SECRET}", name="ask_documents", extra={"passages": [passage(1, SECRET)]})
    within = (ToolFinished("b", found), MessageFinished("stop"))
    whole = turn("agent", [], "Done.", within)
    kept = only_cited(whole, "en").inner
    assert SECRET in str(whole.inner)
    assert kept
    assert SECRET not in str(kept)
