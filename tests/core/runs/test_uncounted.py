"""Sentences that tell figures of several rows that no program counted are known as such, and no other ones are."""

from __future__ import annotations

from typing import Any

import pytest

from core.messages.computed import Computed
from core.messages.events import CallStarted, MessageFinished, MessageStarted, SourceCited, TextDelta, ToolFinished
from core.messages.message import FUNCTION, Message
from core.rag.attribution import placed_sentences
from core.runs.claim_check import ClaimChecker
from core.runs.log import ClaimsChecked, LoggedEvent, RunEvent, RunFinished, Uncounted
from core.runs.reply import Reply
from core.runs.rows import logged_of, rows_of
from core.storage.base import EventRow


def passage(document: str, text: str, **more: Any) -> dict[str, Any]:
    return {"score": 1.0, "document": document, "document_id": "d", "page": 1, "chunk_id": 1, "text": text, **more}


ORDERS = passage(
    "orders.xlsx",
    "Order | Region | Product | Units | Revenue | Returned\nA-1101 | East | Lamp | 18 | 9.0 | yes\n"
    "A-1102 | West | Chair | 2 | 40.0 | no\nA-1103 | East | Desk | 4 | 120.0 | yes\n"
    "A-1104 | West | Lamp | 14 | 7.5 | no",
)
TOTALS = {**ORDERS, "text": f"{ORDERS['text']}\nTotal | | | 38 | 176.5 |"}
STAFF = passage(
    "personal.csv",
    "Name | Stadt | Abteilung | Gehalt\nAnna Meyer | Berlin | Vertrieb | 4.200,50\n"
    "Jonas Kühn | Köln | Technik | 5.100,00\nEva Stein | Berlin | Technik | 3.900,00",
)
SALES = passage(
    "销售.xlsx",
    "订单号 | 地区 | 产品 | 数量 | 金额\nB-01 | 西部 | 台灯 | 12 | 360\nB-02 | 东部 | 椅子 | 3 | 900\n"
    "B-03 | 西部 | 书桌 | 5 | 4000",
)
CITIES = passage("atlas.pdf", "City | Country | Inhabitants\nOslo | Norway | 709,000\nBergen | Norway | 291,000")
PROSE = passage("report.pdf", "In the East, 7 orders of 30 were returned in all. The highest share had the West.")
WEST = passage("orders.xlsx", "Sheet Orders: 14 of 60 rows fulfil Region = West.", computed=Computed("14"), rows="2–15")
MOST = passage(
    "orders.xlsx",
    "Sheet Orders: the highest value of Revenue is 120, in row 4: A-1103, East, Desk.",
    computed=Computed("A-1103"),
)
EAST = "What is the total revenue of the orders in the East region, and how many were returned there?"
HOW_MANY = "How many orders were returned?"
OVERVIEW = "give me an overview of this sheet"


def replying(text: str, *passages: dict[str, Any], call: str = "", said: str = "2") -> Reply:
    numbered = tuple({**one, "number": number} for number, one in enumerate(passages, 1))
    events: list[RunEvent] = [MessageStarted(), SourceCited(numbered)]
    if call:
        events += [CallStarted("1", call), ToolFinished("1", Message(FUNCTION, said, name=call))]
    events += [MessageStarted(), TextDelta(text), MessageFinished("stop"), RunFinished("complete")]
    return Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))


async def found_in(question: str, reply: Reply, *earlier: str) -> list[Uncounted]:
    no_record: Any = None  # which only a search of the documents takes
    history = [Message("user", one) for one in (*earlier, question)]
    found = await ClaimChecker(by_meaning=False)(reply, history, no_record)
    return [one for one in found if isinstance(one, Uncounted)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "text", "passages"),
    [
        # counts
        ("and for Berlin?", "There are 14 orders from the West.", [ORDERS]),
        ("and for Berlin?", "There are 2 orders from the West.", [ORDERS]),
        (HOW_MANY, "There was 1 order returned.", [ORDERS]),
        (HOW_MANY, "2 [1]", [ORDERS]),
        ("Hw mny ordrs frm the West?", "**14** orders came from the West [1].", [ORDERS]),
        (OVERVIEW, "The sheet has 60 orders of lamps, chairs and desks.", [ORDERS]),
        (OVERVIEW, "Twelve of the orders were returned.", [ORDERS]),
        ("What can you say about returns?", "Of these, 23 orders were returned.", [ORDERS]),
        (HOW_MANY, "| Region | Orders |\n|---|---|\n| West | 31 |", [ORDERS]),
        (OVERVIEW, "- West: 31\n- East: 29", [ORDERS]),
        ("und in Berlin?", "Es gibt 17 Mitarbeiter in Berlin.", [STAFF]),
        ("Wer arbeitet in Berlin?", "In Berlin arbeiten insgesamt 2 Personen.", [STAFF]),
        ("西部呢？", "西部有14个订单。", [SALES]),
        ("说说西部", "西部的订单共有 5 笔。", [SALES]),
        # sums
        ("what can you say about sales in the west?", "In total 5,300 was sold.", [ORDERS]),
        ("what can you say about sales in the west?", "In total, 40.0 was sold in the West.", [ORDERS]),
        (EAST, "The total revenue of the orders in the East region was $9.0, with 2 returns [1].", [ORDERS]),
        (EAST, "The revenue of the East is 129.0.", [ORDERS]),
        ("What about A-1101 and A-1103?", "A-1101 and A-1103 together brought 129.0.", [ORDERS]),
        ("What is the revenue per product?", "18 units [1]", [ORDERS]),
        ("Was kosten die Leute in Berlin?", "Zusammen verdienen sie 8.100,50 Euro.", [STAFF]),
        ("Was kosten die Leute in Berlin?", "Die Gehälter in Berlin betragen 8.100 €.", [STAFF]),
        ("介绍一下这张表", "西部的总金额是4360元。", [SALES]),
        ("How many people live there?", "Norway's cities have 1,000,000 inhabitants in total [1].", [CITIES]),
        # averages and shares
        ("Tell me about the salaries.", "Das Durchschnittsgehalt liegt bei 4.400,17 Euro.", [STAFF]),
        ("每个产品的平均销售额是多少?", "平均销售额是 900。", [SALES]),
        (OVERVIEW, "On average an order brings 44.1.", [ORDERS]),
        (OVERVIEW, "About 52 % of the orders were returned.", [ORDERS]),
        ("哪里卖得好？", "西部占全部订单的 67%。", [SALES]),
        # extremes
        ("Which order has the highest revenue?", "The order with the highest revenue is A-1102 [1].", [ORDERS]),
        ("Which order has the highest revenue?", "A-1102 [1]", [ORDERS]),
        (OVERVIEW, "Most orders come from the West.", [ORDERS]),
        (OVERVIEW, "Revenue ranges from 7.5 to 120.0.", [ORDERS]),
        ("Wer verdient gut?", "Am meisten verdient Jonas Kühn.", [STAFF]),
        ("Wer verdient gut?", "Das höchste Gehalt hat Jonas Kühn mit 5.100 Euro.", [STAFF]),
        ("哪个订单？", "金额最高的订单是 B-03。", [SALES]),
        ("What about Norway?", "The largest city there is Oslo.", [CITIES]),
        # what a program counted is something else
        (HOW_MANY, "In the East, 23 orders were returned.", [ORDERS, WEST]),
        (OVERVIEW, "The West has the most orders, 14.", [ORDERS, WEST]),
        ("Which is the highest?", "The highest revenue has A-1102.", [ORDERS, MOST]),
        (OVERVIEW, "The 14 orders from the West brought 812.5 in total.", [ORDERS, WEST]),
        # texts besides tell something else
        (HOW_MANY, "9 orders were returned in the East [1].", [ORDERS, PROSE]),
    ],
)  # fmt: skip
async def test_what_several_rows_give_is_said_to_be_uncounted_however_it_was_asked_for(
    question: str, text: str, passages: list[dict[str, Any]]
) -> None:
    assert await found_in(question, replying(text, *passages))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "text", "passages"),
    [
        # what one row says, also where the question is worded like a count
        ("What does order A-1103 cost?", "Order A-1103 costs $120.0 [1].", [ORDERS]),
        ("What is the total of order A-1103?", "The total is 120.0 [1].", [ORDERS]),
        ("How many units has A-1101?", "A-1101 has 18 units.", [ORDERS]),
        ("How many units has A-1101?", "18 units", [ORDERS]),
        ("How many chairs did the West order?", "The West ordered chairs for 40.0, in A-1102.", [ORDERS]),
        (OVERVIEW, "Order A-1101 is about a lamp, order A-1103 about a desk for 120.0.", [ORDERS]),
        (OVERVIEW, "- A-1101: 18 units, 9.0\n- A-1102: 2 units, 40.0", [ORDERS]),
        (OVERVIEW, "| Order | Units |\n|---|---|\n| A-1101 | 18 |\n| A-1102 | 2 |", [ORDERS]),
        ("What was each unit of A-1101?", "A-1101 brought 9.0 for 18 units, so 0.5 each.", [ORDERS]),
        ("What is the total revenue?", "The total revenue is 176.5.", [TOTALS]),
        ("Wie hoch ist das Gehalt von Anna Meyer?", "Anna Meyer verdient 4.200,50 Euro.", [STAFF]),
        ("Wie viel verdient Jonas Kühn insgesamt?", "Jonas Kühn verdient insgesamt 5.100 Euro.", [STAFF]),
        ("B-02 一共卖了多少？", "B-02 一共卖了 900 元。", [SALES]),
        ("B-01 怎么样？", "B-01 是西部的订单，数量为 12，金额 360。", [SALES]),
        ("How many inhabitants does Bergen have?", "Bergen has about 290,000 inhabitants.", [CITIES]),
        # nothing is told
        (HOW_MANY, "The passages do not say how many orders were returned.", [ORDERS]),
        (HOW_MANY, "I cannot tell how many orders were returned.", [ORDERS]),
        (HOW_MANY, "No orders were returned.", [ORDERS]),
        (HOW_MANY, "Orders-12 does not tell that.", [{**ORDERS, "document": "orders-12.csv"}]),
        ("Wie viele kommen aus Bonn?", "Das steht nicht in der Tabelle.", [STAFF]),
        ("有多少？", "表中没有提到退货数量。", [SALES]),
        # neither counted nor of rows
        (OVERVIEW, "The sheet lists orders of 2024 with their region, product and revenue.", [ORDERS]),
        (OVERVIEW, "Each order has a region and a product.", [ORDERS]),
        (OVERVIEW, "See row 17 of the sheet, dated 5 March 2024.", [ORDERS]),
        (OVERVIEW, "Here are 3 ways to go on.", [ORDERS]),
        ("When was the West over 1,000?", "Orders over 1,000 were not found in the West.", [ORDERS]),
        # a program counted it
        ("and for the West?", "There are 14 orders from the West.", [ORDERS, WEST]),
        ("and for the West?", "14 of the 60 orders fulfil the condition, such as A-1102.", [ORDERS, WEST]),
        ("und im Westen?", "Im Westen gibt es 14 Bestellungen.", [ORDERS, WEST]),
        ("西部呢？", "西部共有14个订单。", [ORDERS, WEST]),
        ("Which is the highest?", "The highest revenue, 120, has A-1103 in the East.", [ORDERS, MOST]),
        (HOW_MANY, "2 orders were returned.", [{**ORDERS, "rows": "2, 4"}]),
        # a text says it
        (HOW_MANY, "7 orders were returned [2].", [ORDERS, PROSE]),
        (HOW_MANY, "7 of the 30 orders were returned.", [ORDERS, PROSE]),
        (OVERVIEW, "The highest share had the West.", [ORDERS, PROSE]),
        (HOW_MANY, "9 orders were returned in all.", [PROSE]),
        (HOW_MANY, "There are 9 orders.", []),
    ],
)  # fmt: skip
async def test_what_a_row_a_text_or_a_program_tells_and_what_is_denied_is_not(
    question: str, text: str, passages: list[dict[str, Any]]
) -> None:
    assert not await found_in(question, replying(text, *passages))


@pytest.mark.anyio
async def test_only_the_sentences_that_tell_such_a_figure_are_named() -> None:
    text = "A-1103 costs 120.0 [1]. There are 31 orders from the West [1]. A-1102 is one of them."
    _, (_, _, end), _ = placed_sentences(text)
    assert await found_in(OVERVIEW, replying(text, ORDERS)) == [Uncounted(0, end)]


@pytest.mark.anyio
@pytest.mark.parametrize("call", ["ask_documents", "retrieval"])
async def test_a_tool_that_only_finds_has_counted_nothing(call: str) -> None:
    assert await found_in(HOW_MANY, replying("There was 1 order returned.", ORDERS, call=call, said="1 passage"))


@pytest.mark.anyio
async def test_what_a_tool_gave_that_may_count_is_counted_and_no_other_figure_is() -> None:
    reply = replying("2 orders were returned.", ORDERS, call="code_interpreter")
    assert not await found_in(HOW_MANY, reply)
    assert await found_in(HOW_MANY, replying("31 orders were returned.", ORDERS, call="code_interpreter"))


@pytest.mark.anyio
async def test_a_question_that_goes_on_wants_what_the_one_before_wanted() -> None:
    short = replying("2.", ORDERS)
    assert await found_in("and in the West?", short, "How many orders are there in the East?", "and in the North?")
    assert not await found_in("and in the West?", short, "Who sells in the East?")


@pytest.mark.parametrize("places", [(Uncounted(2, 17), Uncounted(2, 0)), ()])
def test_the_table_keeps_the_places_and_has_nothing_of_them_for_other_replies(places: tuple[Uncounted, ...]) -> None:
    rows = rows_of([LoggedEvent(1, 0.0, ClaimsChecked((), "", places))])
    assert ("uncounted" in rows[0].payload) is bool(places)
    assert Reply(logged_of(rows)).uncounted == places


def test_a_row_of_an_earlier_version_tells_no_place() -> None:
    row = EventRow(1, 0.0, "claims_checked", {"claims": [], "uncounted": True})
    assert Reply(logged_of([row])).uncounted == (Uncounted(),)
