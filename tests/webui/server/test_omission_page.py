"""What passages say beside an answer, or a program counted, is told below it and opens at its place."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError
from core.testing.script import Reply
from tests.webui.server.test_evidence import House, opened
from webui.render.citations import beyond_html, claims_summary, computed_html
from webui.words import Words

pytestmark = pytest.mark.anyio

POLICY = Path("assets/samples/policy.pdf")
STORM = "For damage by storm or hail the deductible is 750 dollars."


async def reply_of(house: House) -> Any:
    message = await house.engine.stores.of(house.view.owner).conversations.message(house.reply)
    return await house.engine.runs.of(house.view.owner).reply(message)


def says(text: str) -> Any:
    return lambda request: Reply(text=text)


async def test_the_other_deductibles_of_the_sample_are_told_and_open_on_their_page(
    tmp_path: Path, anyio_backend: str
) -> None:
    async with opened(tmp_path / "home", answering=says("The deductible is 300 dollars for each claim. [1]")) as house:
        await house.asks(POLICY.resolve(), question="What is the deductible?")
        reply = await reply_of(house)
        storm = next(at for at, one in enumerate(reply.left_out) if STORM in one.sentence)
        line = unescape(beyond_html(reply, Words.of("en"), house.reply))
        assert f'href="#cite-{house.reply}.beside{storm}-' in line
        assert "The passage says more:" in line
        panel = await house.does(do="cite", message=f"{house.reply}.beside{storm}", n=reply.left_out[storm].passage)
        shown = " ".join(mark.text() for mark in panel.css(".p-quotes mark"))
        assert "750 dollars" in shown
        assert "300 dollars for each" not in shown
    async with opened(tmp_path / "home", house.view.conversation_id) as again:
        again.reply = house.reply
        assert (await reply_of(again)).left_out == reply.left_out


async def test_a_sentence_that_is_not_told_has_no_place(tmp_path: Path, anyio_backend: str) -> None:
    async with opened(
        tmp_path / "home", answering=says("Tell us within 14 days, by telephone or letter. [1]")
    ) as house:
        await house.asks(POLICY.resolve(), question="Within how many days must damage be reported, and how?")
        reply = await reply_of(house)
        assert reply.left_out == ()
        assert beyond_html(reply, Words.of("en"), house.reply) == ""
        for wrong in ("0", "99999999999", "-1", "x"):
            with pytest.raises(NotFoundError):
                await house.does(do="cite", message=f"{house.reply}.beside{wrong}", n=1)


ORDERS = "order,status\n" + "".join(f"{n},{'open' if n % 4 == 0 else 'paid'}\n" for n in range(40))
HOW_MANY = "How many rows have status open?"


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ("Two orders are open. [1]", True),
        ("I do not know.", True),
        ("40 rows have status open. [1]", True),
        ("In orders-10.csv, 40 rows have status open. [1]", True),
        ("In Orders-10, 40 of 40 rows have status open [10]. [1]", True),
        ("In orders-10.csv, 10 of 40 rows have status open. [1]", False),
        ("There are 10. [1]", False),
        ("Ten rows.", False),
        ("10 [1]", False),
        ("| Status | Rows |\n| --- | --- |\n| open | 10 [1] |", False),
        ("10 of the 40 rows have status open, which is 25%. [1]", False),
    ],
)
async def test_what_a_program_counted_stands_below_a_reply_that_says_it_otherwise(
    said: str, is_told: bool, tmp_path: Path, anyio_backend: str
) -> None:
    orders = tmp_path / "orders-10.csv"
    orders.write_text(ORDERS)
    async with opened(tmp_path / "home", answering=says(said)) as house:
        await house.asks(orders, question=HOW_MANY)
        reply = await reply_of(house)
        (number,) = [one["number"] for one in reply.passages if one.get("computed") == "10"]
        line = unescape(computed_html(reply, Words.of("en"), house.reply))
        assert bool(line) is is_told
        summary = claims_summary(reply, Words.of("en"))
        assert ("a figure that a program computed is not in the reply" in summary) is (is_told and bool(reply.claims))
        if is_told:
            assert "p-doubt" in summary or not reply.claims
            assert "Counted by program:" in line
            assert "10 of 40 rows" in line
            assert f'href="#cite-{house.reply}.computed-{number}"' in line


async def test_what_a_program_counted_opens_as_its_own_proof_and_not_as_that_of_a_wrong_sentence(
    tmp_path: Path, anyio_backend: str
) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text(ORDERS)
    async with opened(tmp_path / "home", answering=says("40 rows have status paid. [1]")) as house:
        await house.asks(orders, question=HOW_MANY)
        (number,) = [one["number"] for one in (await reply_of(house)).passages if one.get("computed")]
        await house.does(do="cite", message=f"{house.reply}.computed", n=number)
        assert house.view.place is not None
        assert house.view.place.message_id == f"{house.reply}.computed"
        panel = await house.does(do="cite", message=f"{house.reply}.computed", n=number)
        assert "10 of 40 rows" in " ".join(mark.text() for mark in panel.css(".p-quotes mark"))


async def test_a_reply_that_tells_what_was_counted_has_no_place_for_it(tmp_path: Path, anyio_backend: str) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text(ORDERS)
    async with opened(tmp_path / "home", answering=says("10 rows. [1]")) as house:
        await house.asks(orders, question=HOW_MANY)
        with pytest.raises(NotFoundError):
            await house.does(do="cite", message=f"{house.reply}.computed", n=1)


async def test_below_a_reply_without_counts_nothing_of_them_stands(tmp_path: Path, anyio_backend: str) -> None:
    async with opened(tmp_path / "home", answering=says("The deductible is 300 dollars. [1]")) as house:
        await house.asks(POLICY.resolve(), question="What is the deductible?")
        assert computed_html(await reply_of(house), Words.of("en"), house.reply) == ""
