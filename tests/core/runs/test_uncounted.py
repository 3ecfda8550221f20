"""A reply with figures of several rows that no program counted is known as such, and no other one is."""

from __future__ import annotations

from typing import Any

import pytest

from core.messages.computed import Computed
from core.messages.events import CallStarted, MessageFinished, MessageStarted, SourceCited, TextDelta, ToolFinished
from core.messages.message import FUNCTION, Message
from core.runs.claim_check import ClaimChecker
from core.runs.log import ClaimsChecked, LoggedEvent, RunEvent, RunFinished, Uncounted
from core.runs.reply import Reply
from core.runs.rows import logged_of, rows_of

ROWS: dict[str, Any] = {
    "score": 1.0, "document": "orders.xlsx", "document_id": "d", "page": 1, "chunk_id": 0, "number": 1,
    "text": "Order | Region | Product | Units | Revenue | Returned\nA-1101 | East | Lamp | 18 | 9.0 | yes\n"
            "A-1102 | West | Chair | 2 | 40.0 | no\nA-1103 | East | Desk | 4 | 120.0 | yes",
}  # fmt: skip
PROSE = {**ROWS, "document": "report.pdf", "text": "In the East, 7 orders of 30 were returned in all.", "number": 2}
COUNTED = {**ROWS, "text": "Orders: 2 of 3 rows fulfil Returned = yes.", "computed": Computed("2"), "number": 2}
EAST = "What is the total revenue of the orders in the East region, and how many were returned there?"
HOW_MANY = "How many orders were returned?"


def replying(text: str, *passages: dict[str, Any], call: str = "") -> Reply:
    events: list[RunEvent] = [MessageStarted(), SourceCited(passages)]
    if call:
        events += [CallStarted("1", call), ToolFinished("1", Message(FUNCTION, "2", name=call))]
    events += [MessageStarted(), TextDelta(text), MessageFinished("stop"), RunFinished("complete")]
    return Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))


async def is_said(question: str, reply: Reply, *earlier: str) -> bool:
    no_record: Any = None  # which only a search of the documents takes
    history = [Message("user", one) for one in (*earlier, question)]
    found = await ClaimChecker(by_meaning=False)(reply, history, no_record)
    return Uncounted() in found


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "text"),
    [
        (EAST, "The total revenue of the orders in the East region was $9.0, with 2 returns [1]."),
        (HOW_MANY, "There was 1 order returned."),
        ("What is the revenue per product?", "18 units [1]"),
        ("Which order has the highest revenue?", "The order with the highest revenue is A-1102 [1]."),
        ("每个产品的平均销售额是多少?", "平均销售额是 9。"),
    ],
)
async def test_it_is_said_where_several_rows_were_wanted_and_no_program_counted(question: str, text: str) -> None:
    assert await is_said(question, replying(text, ROWS))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "earlier", "uncounted"),
    [
        ("and in the West?", ["How many orders are there in the East?"], True),
        ("What about the West?", ["How many orders are there in the East?", "and in the North?"], True),
        ("und im Westen?", ["How many orders are there in the East?"], True),
        ("那西部呢?", ["东区一共有多少订单？"], True),
        ("and in the West?", ["Who sells in the East?"], False),
        ("and in the West?", [], False),
        ("Who sells in the West?", ["How many orders are there in the East?"], False),
    ],
)
async def test_a_question_that_goes_on_wants_what_the_one_before_wanted(
    question: str, earlier: list[str], uncounted: bool
) -> None:
    assert await is_said(question, replying("There was 1 order.", ROWS), *earlier) is uncounted


@pytest.mark.anyio
@pytest.mark.parametrize("call", ["ask_documents", "retrieval"])
async def test_a_tool_that_only_finds_has_counted_nothing(call: str) -> None:
    assert await is_said(HOW_MANY, replying("There was 1 order returned.", ROWS, call=call))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("What does order A-1103 cost?", replying("Order A-1103 costs $120.0 [1].", ROWS)),
        ("What is the total of order A-1103?", replying("The total is 120.0 [1].", ROWS)),
        (HOW_MANY, replying("2 orders were returned.", ROWS, COUNTED)),
        (HOW_MANY, replying("2 orders were returned.", ROWS, call="code_interpreter")),
        (HOW_MANY, replying("2 orders were returned.", {**ROWS, "rows": "2, 4"})),
        (HOW_MANY, replying("7 orders were returned [2].", ROWS, PROSE)),
        (HOW_MANY, replying("Orders-12 does not tell that.", {**ROWS, "document": "orders-12.csv"})),
        (HOW_MANY, replying("7 orders were returned.", {**PROSE, "number": 1})),
        (HOW_MANY, replying("7 orders were returned.")),
    ],
    ids=["a cell", "a named row", "a count", "a program", "rows", "prose", "no figure", "prose alone", "no passage"],
)
async def test_it_is_not_said_where_a_cell_a_text_or_a_program_tells_it(question: str, reply: Reply) -> None:
    assert not await is_said(question, reply)


@pytest.mark.parametrize("uncounted", [True, False])
def test_the_table_keeps_it_and_has_nothing_of_it_for_other_replies(uncounted: bool) -> None:
    rows = rows_of([LoggedEvent(1, 0.0, ClaimsChecked((), "", uncounted))])
    assert ("uncounted" in rows[0].payload) is uncounted
    assert Reply(logged_of(rows)).uncounted is uncounted
