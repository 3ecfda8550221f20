"""What the page shows as the proof of a sentence is never marked as unproved beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from core.runs.log import Checked
from core.testing.script import Reply
from tests.webui.server.test_evidence import FIRE, WATER, House, opened, policy_pdf, policy_text
from webui.render.citations import claim_notes, claims_summary
from webui.words import Words

pytestmark = pytest.mark.anyio

WRONG = "The deductible for water damage is 900 euros in the cellar"


def says(*texts: str) -> Any:
    """An answer of these texts; `{n}` in them becomes the number of the passage about water damage."""

    def answering(request: Any) -> Reply:
        asked = "\n".join(message.get_text_content() for message in request.messages)
        number = re.findall(r"\[(\d+)\] \(policy", asked[: asked.find(WATER)])[-1]
        return Reply(text="\n\n".join(texts).replace("{n}", number))

    return answering


def highlights(panel: LexborHTMLParser) -> list[str]:
    """What the panel marks as the proof: on a picture of the page, in its text, in the list of passages."""
    return [mark.html or "" for mark in panel.css(".p-hl.p-strong, .p-desk mark.p-m3, tr.p-m3, .p-quotes mark")]


async def claims_of_reply(house: House) -> tuple[Checked, ...]:
    return (await shown_reply(house)).claims


async def shown_reply(house: House) -> Any:
    message = await house.engine.stores.of(house.view.owner).conversations.message(house.reply)
    return await house.engine.runs.of(house.view.owner).reply(message)


async def signs(house: House) -> int:
    """How many signs of doubt the reply shows."""
    reply = await shown_reply(house)
    at = max(index for index, _ in enumerate(reply.blocks))
    notes = claim_notes(reply, at, reply.blocks[at].text, Words.of("en"), house.reply, lambda numbers: "")
    return sum("p-claim" in note for _, note in notes)


FORMS = {
    "plain": f"{WRONG}. [{{n}}]",
    "before the full stop": f"{WRONG} [{{n}}].",
    "in the middle": "The deductible for water damage [{n}] is 900 euros in the cellar.",
    "bold": f"**{WRONG}.** [{{n}}]",
    "bullet": f"Rules:\n\n- {WRONG}. [{{n}}]",
    "numbered": f"Rules:\n\n2. {WRONG}. [{{n}}]",
    "quoted": f"> {WRONG}. [{{n}}]",
    "with code": f"`rule 7` {WRONG}. [{{n}}]",
    "after another": f"{FIRE} [{{n}}] {WRONG}. [{{n}}]",
}


@pytest.mark.parametrize(("form", "document"), [("plain", policy_pdf), *((form, policy_text) for form in FORMS)])
async def test_nothing_is_highlighted_for_a_sentence_that_is_marked_as_unproved(
    tmp_path: Path, anyio_backend: str, form: str, document: Any
) -> None:
    async with opened(tmp_path / "home", answering=says(FORMS[form])) as house:
        await house.asks(document(tmp_path))
        claims = await claims_of_reply(house)
        assert claims[-1].verdict == "unsupported"
        panel = await house.cites(at=1 if form == "after another" else 0)
        assert panel.css(".p-quotes .p-here"), "the passage is open"
        assert highlights(panel) == []
        if form == "after another":
            assert highlights(await house.cites(at=0))


FACTS = [
    "The orchard behind the mill was planted by Brother Anselm.",
    "Every lantern of the harbour is lit by a retired sailor.",
    "Our bakery sells walnut bread before sunrise only.",
    "The library lends violins to pupils of the music school.",
    "A ferry crosses the northern lake twice on market days.",
    "The clock of the town hall strikes eleven at midnight.",
    "Beekeepers gather at the chapel on the first of May.",
    "The old tannery houses a museum of wooden toys.",
    "Swimmers share the quarry with herons and kingfishers.",
]


def history_text(folder: Path) -> Path:
    path = folder / "history.txt"
    path.write_text("\n\n".join(f"{fact}\n\n" + "Nothing else is told here. " * 60 for fact in FACTS), "utf-8")
    return path


async def test_a_click_that_proves_a_sentence_takes_its_sign_away_for_good(tmp_path: Path, anyio_backend: str) -> None:
    said = " ".join([f"{WATER} [{{n}}]", *FACTS, FACTS[-1]])
    async with opened(tmp_path / "home", answering=says(said)) as house:
        await house.asks(policy_text(tmp_path), history_text(tmp_path))
        claims = await claims_of_reply(house)
        doubted = [at for at, one in enumerate(claims) if one.verdict != "supported"]
        assert doubted == [9, 10], "only so many sentences are searched for, before one is clicked"
        assert await signs(house) == 2
        panel = await house.does(do="cite", message=f"{house.reply}.9", n=1)
        assert "these passages resemble it" in (panel.css(".p-sought")[0].text() or "")
        assert highlights(panel)
        assert await signs(house) == 0, "the same sentence said twice is proved twice"
        assert "11 of 11" in claims_summary(await shown_reply(house), Words.of("en"))
    async with opened(tmp_path / "home", house.view.conversation_id) as again:
        again.reply = house.reply
        assert await signs(again) == 0


async def test_a_click_that_proves_nothing_leaves_the_sign_and_highlights_nothing(
    tmp_path: Path, anyio_backend: str
) -> None:
    async with opened(tmp_path / "home", answering=says(f"{FIRE} [{{n}}] {WRONG}.")) as house:
        await house.asks(policy_text(tmp_path))
        panel = await house.does(do="cite", message=f"{house.reply}.1", n=1)
        assert "no passage clearly says it" in (panel.css(".p-sought")[0].text() or "")
        assert highlights(panel) == []
        assert await signs(house) == 1
