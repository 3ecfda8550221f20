"""Marks lead to the page of any document, at once and after a restart; nothing is taken from the page on trust."""

from __future__ import annotations

import asyncio
import html
import json
import re
import threading
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import xlsxwriter
from selectolax.lexbor import LexborHTMLParser

from core.engine import Engine
from core.errors import NotFoundError
from core.rag.citations import cited_numbers
from core.runs.manager import OwnerRuns
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.storage.documents import DocumentStore
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation
from tests.core.rag.parsers.test_xfa import DATA, TEMPLATE, pdf
from tests.core.reading.held_reading import Gate, index_of, long_pdf
from tests.core.talks import libraries_of
from webui.handlers import evidence
from webui.handlers.act import act
from webui.handlers.desk import Desk
from webui.handlers.send import start
from webui.panels.evidence import evidence_html
from webui.render.documents import DocumentState, document_card
from webui.uploads import Uploads
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio

FIRE = "Fire damage has a deductible of three hundred euros."
WATER = "The deductible for water damage is four hundred and twenty euros."
QUESTION = "What is the deductible for water damage and for fire damage?"


def answer(request: Any) -> Reply:
    """Both sentences, with a mark each, that says the number of the passage where they stand."""
    asked = "\n".join(message.get_text_content() for message in request.messages)
    number = re.findall(r"\[(\d+)\] \(p\w+\.", asked[: asked.find(WATER)])[-1]
    return Reply(text=f"You asked about damage. {WATER} [{number}]\n\nAnd more: {FIRE} [{number}]")


@dataclass
class House:
    """An engine, and a tab that a question was asked in."""

    engine: Engine
    desk: Desk
    view: View
    reply: str = ""

    async def asks(self, *files: Path, question: str = QUESTION) -> None:
        """Hand over files with the question, and wait for the reply."""
        await start(self.desk, self.view, question, [(file, file.name) for file in files])
        async with asyncio.timeout(180):
            while not await self.ended():
                await asyncio.sleep(0.02)  # between two looks

    async def ended(self) -> bool:
        """Whether the last reply of the conversation has ended; it is `reply` from then on."""
        if self.engine.runs.live(self.view.conversation_id):
            return False
        thread = await self.engine.stores.of(self.view.owner).conversations.thread(self.view.conversation_id)
        last = thread[-1] if thread else None
        self.reply = last.id if last and last.role == "assistant" else ""
        return bool(self.reply)

    async def does(self, **asked: Any) -> LexborHTMLParser:
        """What the panel shows after the page's script asked for something."""
        return LexborHTMLParser(await act(self.desk, self.view, json.dumps(asked)))

    async def cites(self, at: int = 0) -> LexborHTMLParser:
        """What a mark of the reply opens: the first or the second."""
        message = await self.engine.stores.of(self.view.owner).conversations.message(self.reply)
        reply = await self.engine.runs.of(self.view.owner).reply(message)
        return await self.does(do="cite", message=self.reply, n=cited_numbers(reply.text)[0], at=at)


@asynccontextmanager
async def opened(
    home: Path, conversation_id: str = "", answering: Callable[[Any], Reply] = answer
) -> AsyncIterator[House]:
    model = ScriptedModel(answering)
    settings = Settings.load(home=home, retrieval="keyword")
    async with Engine(settings, model=model) as engine:
        views = Views(Words.of)
        headers = {"referer": f"http://127.0.0.1/?c={conversation_id}"}
        request: Any = SimpleNamespace(session_hash="one", username="alice", headers=headers)
        uploads = Uploads(home.parent / "tmp", 1_000_000)
        yield House(engine, Desk(engine, uploads, views), views.of(request))


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    async with opened(tmp_path / "home") as house:
        yield house


def policy_text(folder: Path) -> Path:
    path = folder / "policy.txt"
    path.write_text("\n\n".join([f"Clause {n} says little." for n in range(150)] + [f"{WATER}\n{FIRE}"]), "utf-8")
    return path


def policy_pdf(folder: Path) -> Path:
    import pymupdf

    document: Any = pymupdf.open()
    document.new_page().insert_text((72, 72), "Nothing of interest stands here.", fontsize=11)
    page = document.new_page()
    page.insert_text((72, 100), "This is the policy of one flat and of its cellar.", fontsize=11)
    page.insert_text((72, 116), WATER, fontsize=11)
    page.insert_text((72, 132), FIRE, fontsize=11)
    document.save(folder / "policy.pdf")
    return folder / "policy.pdf"


def policy_sheet(folder: Path) -> Path:
    path = folder / "policy.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("Empty words").write_row(0, 0, ["Nothing", "of interest"])
        sheet = book.add_worksheet("Damage")
        sheet.write_row(0, 0, ["Kind", "Rule"])
        for number in range(400):
            sheet.write_row(number + 1, 0, [f"Clause {number}", "says little"])
        sheet.write_row(401, 0, ["Water", WATER])
        sheet.write_row(402, 0, ["Fire", FIRE])
    return path


def policy_slides(folder: Path) -> Path:
    from pptx import Presentation
    from pptx.util import Pt

    deck: Any = Presentation()
    for text in ("Nothing of interest.", f"Our policy\n{WATER}\n{FIRE}"):
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        slide.shapes.add_textbox(Pt(100), Pt(50), Pt(500), Pt(200)).text_frame.text = text
    deck.save(folder / "policy.pptx")
    return folder / "policy.pptx"


def strongest(panel: LexborHTMLParser) -> list[str]:
    return [mark.text() or "" for mark in panel.css(".p-desk mark.p-m3")]


async def test_a_text_opens_at_the_sentence_that_the_mark_stands_for(house: House, tmp_path: Path) -> None:
    await house.asks(policy_text(tmp_path))
    panel = await house.cites(at=0)
    assert strongest(panel) == [WATER]
    assert [mark.text() for mark in panel.css(".p-quotes .p-here mark")] == [WATER]
    assert strongest(await house.cites(at=1)) == [FIRE]
    assert strongest(await house.cites(at=99)) == [WATER]
    before = await house.does(do="page", document=panel_document(panel), n=0, part=1)
    assert before.css(".p-line .p-no")[0].text() == "1"
    assert not strongest(before)


async def test_a_form_that_no_picture_shows_is_shown_by_its_fields_and_said_to_be_so(tmp_path: Path) -> None:
    def answering(request: Any) -> Reply:
        asked = "\n".join(message.get_text_content() for message in request.messages)
        number = re.findall(r"\[(\d+)\] \(form", asked[: asked.find("Family name: Weber")])[-1]
        return Reply(text=f"The family name is Weber. [{number}]")

    async with opened(tmp_path / "home", answering=answering) as house:
        form = pdf(tmp_path / "form.pdf", template=TEMPLATE, datasets=DATA)
        await house.asks(form, question="What is the family name in the form?")
        panel = await house.cites()
        assert "Only Adobe's programs draw this form" in (panel.css(".p-read-from")[0].text() or "")
        assert not panel.css(".p-page img"), "what the picture shows is a request to wait"
        rows = [tuple(cell.text() for cell in row.css("td")) for row in panel.css(".p-desk tr")]
        assert ("Family name:", "Weber") in rows
        assert ("Name of the ship:", "Gull") in rows
        marked = [tuple(cell.text() for cell in row.css("td")) for row in panel.css(".p-desk tr.p-m3")]
        assert ("Family name:", "Weber") in marked
        assert not panel.css("[data-do=whole]")


def panel_document(panel: LexborHTMLParser) -> str:
    return panel.css("[data-do=page]")[0].attributes["data-document"] or ""


async def test_on_a_picture_the_sentence_is_marked_stronger_than_the_passage(house: House, tmp_path: Path) -> None:
    await house.asks(policy_pdf(tmp_path))

    def tops(panel: LexborHTMLParser) -> list[float]:
        styles = [mark.attributes["style"] or "" for mark in panel.css(".p-hl.p-strong")]
        return [float(style.split("top:")[1].split("%")[0]) for style in styles]

    (water,), (fire,) = tops(await house.cites(at=0)), tops(await house.cites(at=1))
    assert fire - water == pytest.approx(16 / 842 * 100, abs=0.2)
    panel = await house.cites()
    assert panel.css(".p-hl.p-on")
    assert panel.css(".p-sheet img")[0].attributes["src"] == f"./pages/{panel_document(panel)}/2.png"


async def test_a_sheet_opens_at_the_cited_row_and_leads_to_earlier_ones(house: House, tmp_path: Path) -> None:
    await house.asks(policy_sheet(tmp_path))
    panel = await house.cites()
    row = panel.css("tr.p-m3")[0]
    assert (row.css("th")[0].text(), row.css("td")[1].text()) == ("402", WATER)
    assert panel.css(".p-name")[0].text() == "Damage"
    earlier = panel.css(".p-rows")[0].attributes
    asked = {
        "document": earlier["data-document"],
        "n": int(earlier["data-n"] or 0),
        "part": int(earlier["data-part"] or 0),
    }
    rows = [int(head.text()[:3]) for head in (await house.does(do="page", **asked)).css("tbody th")]
    assert rows
    assert max(rows) < 402
    other = await house.does(do="page", document=earlier["data-document"], n=1)
    assert other.css(".p-name")[0].text() == "Empty words"


async def test_a_slide_is_shown_with_the_sentence_marked(house: House, tmp_path: Path) -> None:
    await house.asks(policy_slides(tmp_path))
    panel = await house.cites()
    assert strongest(panel) == [WATER]
    assert panel.css(".p-turner span")[0].text() == "Slide 2 of 2"
    assert "policy.pptx, slide 2" in html.unescape(panel.css(".p-here .p-where")[0].text() or "")


async def test_any_passage_of_the_document_can_be_looked_at(house: House, tmp_path: Path) -> None:
    await house.asks(policy_pdf(tmp_path))
    panel = await house.cites(at=1)
    assert panel.css(".p-all [data-do=passages]")
    listed = await house.does(do="passages", n=0)
    chunks = listed.css(".p-chunk button")
    assert len(chunks) == 2
    assert listed.css(".p-hl.p-strong"), "what was open stays open"
    shown = await house.does(do="chunk", n=int(chunks[0].attributes["data-n"] or 0))
    assert shown.css(".p-turner span")[0].text() == "Page 1 of 2"
    assert shown.css(".p-hl.p-on")
    assert shown.css(".p-chunk.p-here")
    assert not shown.css(".p-quotes .p-here")
    assert (await house.cites()).css(".p-chunk"), "the list stays unfolded"
    assert not (await house.does(do="passages", n=-1)).css(".p-chunk")


async def test_a_document_that_is_gone_says_so_and_leaves_what_was_read(house: House, tmp_path: Path) -> None:
    await house.asks(policy_pdf(tmp_path))
    library = await index_of(house.engine, house.view.owner)
    library.remove(panel_document(await house.cites()))
    panel = await house.cites()
    assert "reading it was cancelled" in panel.css(".p-none")[0].text()
    assert panel.css(".p-quotes .p-here")
    assert not panel.css(".p-page")


async def test_a_mark_on_a_page_that_was_not_read_yet_says_so_and_one_that_is_read_in_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    (tmp_path / "long.pdf").write_bytes(long_pdf())
    async with opened(tmp_path / "home", answering=lambda _: Reply(text="It covers one flat. [1]")) as house:
        await house.asks(tmp_path / "long.pdf", question="Section 58?")
        first = await house.cites()
        talk = house.engine.stores.of(house.view.owner)
        (record,) = await talk.documents.list(house.view.conversation_id)
        message = await talk.conversations.message(house.reply)
        found = (await house.engine.runs.of(house.view.owner).reply(message)).passages
        late = max(found, key=lambda one: one["page"] or 0)
        assert late["page"] > 20
        library = await index_of(house.engine, house.view.owner)
        gate = Gate(library)
        library.remove(panel_document(first))  # as an index is that was lost
        async with house.engine.workspaces.open(house.view.owner) as workspace:
            await workspace.intake.renew(record.id)
        await asyncio.to_thread(gate.held.wait, 20)
        monkeypatch.setattr(evidence, "_READ_WITHIN", 0.0)
        panel = await house.does(do="cite", message=house.reply, n=late["number"])
        assert "still being read" in panel.css(".p-none")[0].text()
        assert panel.css(".p-quotes .p-here")
        await house.does(do="again")
        monkeypatch.setattr(evidence, "_READ_WITHIN", 60.0)
        asked, is_being_read = asyncio.Event(), DocumentStore.is_being_read

        async def told(store: DocumentStore, digest: str) -> bool:
            asked.set()
            return await is_being_read(store, digest)

        monkeypatch.setattr(DocumentStore, "is_being_read", told)
        clicked = asyncio.create_task(house.does(do="cite", message=house.reply, n=late["number"]))
        await asked.wait()
        await house.does(do="again")  # takes nothing from what was clicked
        assert not clicked.done()
        gate.opened.set()
        assert (await clicked).css(".p-page")


async def test_a_page_that_is_being_read_is_asked_for_no_more_once_its_conversation_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    monkeypatch.setattr(evidence, "_READ_WITHIN", 0.0)
    (tmp_path / "long.pdf").write_bytes(long_pdf())
    async with opened(tmp_path / "home", answering=lambda _: Reply(text="It covers one flat. [1]")) as house:
        await house.asks(tmp_path / "long.pdf", question="Section 58?")
        first = await house.cites()
        library = await index_of(house.engine, house.view.owner)
        gate = Gate(library, early=True)
        library.remove(panel_document(first))
        async with house.engine.workspaces.open(house.view.owner) as workspace:
            (record,) = await workspace.documents.list(house.view.conversation_id)
            await workspace.intake.renew(record.id)
            assert (await house.cites()).css("[data-unread]")
            await asyncio.to_thread(gate.held.wait, 20)
            await workspace.conversation(house.view.conversation_id).delete()
        panel = await house.does(do="again")
        assert panel.css(".p-none")
        assert not panel.css("[data-unread]")


async def test_what_a_tried_question_finds_opens_on_its_page_and_can_be_turned(house: House, tmp_path: Path) -> None:
    engine, owner = house.engine, house.view.owner
    await engine.stores.of(owner).conversations.ensure_owner()
    shelf = (await libraries_of(engine, owner).create("Policies")).id
    record = await libraries_of(engine, owner).add(shelf, policy_pdf(tmp_path), "policy.pdf")
    async with asyncio.timeout(180):
        while (await engine.stores.of(owner).documents.get(record.id)).status == "reading":
            await asyncio.sleep(0.02)  # between two looks
    panel = await house.does(do="tried", id=shelf, question="Which deductible for water damage?", n=1)
    assert panel.css(".p-sought")[0].text() == "Tried in a library: Which deductible for water damage?"
    assert panel.css(".p-sheet img")[0].attributes["src"] == f"./pages/{panel_document(panel)}/2.png"
    assert panel.css(".p-hl.p-on")
    before = await house.does(do="page", document=panel_document(panel), n=1)
    assert before.css(".p-turner span")[0].text() == "Page 1 of 2"
    back = before.css(".p-quotes a")[0].attributes["href"] or ""
    again = await house.does(do="cite", message=back.removeprefix("#cite-").rpartition("-")[0], n=1)
    assert again.css(".p-turner span")[0].text() == "Page 2 of 2"
    house.view.close_evidence()
    for asked in ({"do": "cite", "message": f"try.{shelf}"}, {"do": "tried", "id": "other", "question": WATER}):
        with pytest.raises(NotFoundError):
            await house.does(**asked, n=1)
    with pytest.raises(NotFoundError):
        await house.does(do="tried", id=shelf, question=WATER, n=99)


async def test_what_the_palette_finds_in_a_document_opens_on_its_page_and_nobody_elses_does(
    house: House, tmp_path: Path
) -> None:
    await house.asks(policy_pdf(tmp_path))
    async with house.engine.workspaces.open(house.view.owner) as workspace:
        (one, *_) = (await workspace.document_search.find("water dama")).passages
    asked = {"do": "found", "document": one.passage.document_id, "n": one.passage.chunk_id, "text": "water dama"}
    panel = await house.does(**asked)
    assert panel.css(".p-sought")[0].text() == "Looked for: water dama"
    assert panel.css(".p-sheet img")[0].attributes["src"] == f"./pages/{one.passage.document_id}/{one.passage.page}.png"
    assert panel.css(".p-hl.p-on")
    assert (await house.does(do="page", document=one.passage.document_id, n=1)).css(".p-turner")
    for wrong in ({"document": "other"}, {"n": 10**6}):
        with pytest.raises(NotFoundError):
            await house.does(**{**asked, **wrong})


async def test_what_is_in_an_archive_is_listed_by_a_click_on_its_card_and_each_file_opens(
    house: House, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "papers.zip", "w") as archive:
        archive.writestr("policy.txt", f"{WATER}\n{FIRE}")
        archive.writestr("letters/frog.txt", "The frog sings at dusk.")
        archive.writestr("tool.exe", b"MZ\0\0")
    await house.asks(tmp_path / "papers.zip")
    documents = house.engine.stores.of(house.view.owner).documents
    (record,) = await documents.list(house.view.conversation_id)
    card = LexborHTMLParser(document_card(DocumentState(record), "./file/x", Words("en")))
    (link,) = card.css("a.p-do")
    assert (link.text(), link.attributes["href"]) == ("Look inside", f"#do-inside-{record.id}")
    panel = await house.does(do="inside", id=record.id)
    assert panel.css(".p-sought")[0].text() == "What was read of the files in papers.zip: 3"
    listed = panel.css(".p-quotes")[0].text()
    assert all(name in listed for name in ("policy.txt", "letters/frog.txt", "tool.exe"))
    assert "Not read: files of this kind are not read." in listed
    house.view.words = Words("zh")
    listed = (await house.does(do="cite", message=f"inside.{record.library_id}", n=2)).css(".p-quotes")[0].text()
    assert "未读取：不支持这种格式。" in listed
    assert "Not read" not in listed
    house.view.words = Words("en")
    second = await house.does(do="cite", message=f"inside.{record.library_id}", n=2)
    assert [one.css(".p-where")[0].text() for one in second.css(".p-quotes .p-here")] == ["policy.txt"]
    assert second.css(".p-file")[0].text() == "papers.zip"
    assert [one.text() for one in second.css("a.p-at.p-on")] == ["2"]
    with pytest.raises(NotFoundError):
        await house.does(do="inside", id="other")
    await house.does(do="new")
    with pytest.raises(NotFoundError):
        await house.does(do="inside", id=record.id)


def test_a_card_of_what_holds_no_files_has_no_way_into_it() -> None:
    record = DocumentRecord("a", "alice", "c", "f", "policy.pdf", "l", "ready", None, 2, 0.0)
    assert "#do-inside" not in document_card(DocumentState(record), "./file/x", Words("en"))
    unread = replace(record, name="letter.eml", error={"key": "document_parts_unread", "details": {}})
    assert "#do-inside-a" in document_card(DocumentState(unread), "./file/x", Words("en"))


@pytest.mark.parametrize("turn", ["open", "close", "cite"])
async def test_evidence_that_comes_too_late_is_not_shown(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: str
) -> None:
    await house.asks(policy_text(tmp_path))
    began, may_end = asyncio.Event(), asyncio.Event()
    reply_of = OwnerRuns.reply
    message = await house.engine.stores.of(house.view.owner).conversations.message(house.reply)
    number = cited_numbers((await reply_of(house.engine.runs.of(house.view.owner), message)).text)[0]

    async def slow(*asked: Any) -> Any:
        if not began.is_set():
            began.set()
            await may_end.wait()
        return await reply_of(*asked)

    monkeypatch.setattr(OwnerRuns, "reply", slow)
    first = asyncio.create_task(house.does(do="cite", message=house.reply, n=number, at=0))
    await began.wait()
    asked = {"open": {"id": ""}, "close": {}, "cite": {"message": house.reply, "n": number, "at": 1}}[turn]
    shown = (await house.does(do=turn, **asked)).html
    may_end.set()
    assert (await first).html == shown
    assert strongest(LexborHTMLParser(house.view.evidence)) == ([FIRE] if turn == "cite" else [])
    assert (house.view.place is None) == (turn != "cite")


async def test_closing_a_panel_brings_back_the_one_that_it_stood_over_as_it_was(house: House, tmp_path: Path) -> None:
    await house.asks(policy_pdf(tmp_path))
    evidence = await house.cites()
    turned = await house.does(do="page", document=panel_document(evidence), n=1)
    assert not turned.css(".p-former")
    steering = await house.does(do="steering")
    assert steering.css(".p-steer")
    assert steering.css(".p-former")
    await house.does(do="inspect", message=house.reply)
    calls = await house.does(do="inspect", message=house.reply)  # the same kind once more: nothing more to close
    assert calls.css(".p-inspect")
    await house.does(do="steer", change={"instructions": "Be brief."}, quiet=True)
    back = await house.does(do="close")
    assert "Be brief." in (back.css(".p-steer")[0].html or "")  # drawn anew, by what holds now
    assert back.css(".p-former")
    assert house.view.side == "steering"
    again = await house.does(do="close")
    assert again.css(".p-evidence")[0].attributes == turned.css(".p-evidence")[0].attributes
    assert not again.css(".p-former")
    page = await house.does(do="page", document=panel_document(evidence), n=2)  # and it can be turned on
    assert page.css(".p-turner span")[0].text().startswith("Page 2")
    assert not (await house.does(do="close")).css(".p-evidence")


async def test_a_panel_comes_back_once_and_not_in_another_conversation(house: House, tmp_path: Path) -> None:
    await house.asks(policy_text(tmp_path))
    await house.cites()
    await house.does(do="steering")
    await house.cites()  # over steering, in the place of the evidence before
    assert (await house.does(do="close")).css(".p-steer")
    assert not (await house.does(do="close")).css(".p-evidence")
    await house.cites()
    await house.does(do="steering")
    assert (await house.does(do="new")).css(".p-steer")
    assert not (await house.does(do="close")).css(".p-evidence")


async def test_what_was_searched_for_again_is_looked_at_without_another_search(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.asks(policy_pdf(tmp_path))
    searched: list[str] = []
    find = Conversation.find

    async def counted(conversation: Conversation, sentence: str) -> Any:
        searched.append(sentence)
        return await find(conversation, sentence)

    monkeypatch.setattr(Conversation, "find", counted)
    monkeypatch.setattr("webui.handlers.evidence.claimed_sentences", lambda reply: [WATER, FIRE])
    panel = await house.does(do="cite", message=f"{house.reply}.0", n=1)
    await house.does(do="page", document=panel_document(panel), n=1)
    chunks = (await house.does(do="passages", n=0)).css(".p-chunk button")
    await house.does(do="chunk", n=int(chunks[0].attributes["data-n"] or 0))
    assert (await house.does(do="cite", message=f"{house.reply}.0", n=1)).css(".p-hl.p-strong")
    assert searched == [WATER]
    await house.does(do="cite", message=f"{house.reply}.1", n=1)
    assert searched == [WATER, FIRE]
    await house.does(do="close")
    await house.does(do="cite", message=f"{house.reply}.1", n=1)
    assert searched == [WATER, FIRE, FIRE]


async def test_what_a_click_on_a_sign_finds_is_weighed_with_the_question_of_its_reply(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.asks(policy_pdf(tmp_path))
    weighed: list[tuple[str, str]] = []

    async def supports(sentence: str, passages: Any, asked: str = "") -> bool:
        weighed.append((sentence, asked))
        return False

    monkeypatch.setattr(house.engine.services.checking, "supports", supports)
    monkeypatch.setattr("webui.handlers.evidence.claimed_sentences", lambda reply: [WATER, FIRE])
    await house.does(do="cite", message=f"{house.reply}.0", n=1)
    assert weighed == [(WATER, QUESTION)]


async def test_the_panel_is_drawn_beside_the_server(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.asks(policy_text(tmp_path))
    threads: list[threading.Thread] = []

    def drawn(*given: Any, **more: Any) -> str:
        threads.append(threading.current_thread())
        return evidence_html(*given, **more)

    monkeypatch.setattr("webui.handlers.evidence_drawn.evidence_html", drawn)
    assert strongest(await house.cites()) == [WATER]
    (thread,) = threads
    assert thread is not threading.current_thread()


async def test_a_mark_leads_to_its_page_after_a_restart(tmp_path: Path, anyio_backend: str) -> None:
    async with opened(tmp_path / "home") as first:
        await first.asks(policy_slides(tmp_path), policy_pdf(tmp_path))
        before = (await first.cites(at=1)).html
    async with opened(tmp_path / "home", first.view.conversation_id) as second:
        second.reply = first.reply
        assert (await second.cites(at=1)).html == before


async def test_a_document_that_is_gone_leaves_its_words(house: House, tmp_path: Path) -> None:
    await house.asks(policy_text(tmp_path))
    panel = await house.cites()
    library = await index_of(house.engine, house.view.owner)
    library.remove(panel.css("[data-document]")[0].attributes["data-document"] or "")
    gone = await house.cites()
    assert "cannot be shown" in (gone.css(".p-none")[0].text() or "")
    assert WATER in " ".join((gone.css(".p-here .p-quote")[0].text() or "").split())


@pytest.mark.parametrize(
    "asked",
    [
        {"do": "chunk", "n": 1},
        {"do": "passages", "n": 0},
        {"do": "page", "document": "x", "n": 1},
        {"do": "cite", "message": "x", "n": 1},
    ],
)
async def test_where_nothing_is_open_nothing_can_be_asked_for(house: House, asked: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError):
        await house.does(**asked)


async def test_only_what_belongs_to_the_reply_is_shown(house: House, tmp_path: Path) -> None:
    await house.asks(policy_pdf(tmp_path))
    library = await index_of(house.engine, house.view.owner)
    other = library.add_text("Somebody's other text.", name="other.txt")
    await house.cites()
    for asked in (
        {"do": "page", "document": other.id, "n": 1},
        {"do": "chunk", "n": library.pages.chunks(other.id)[0].chunk_id},
        {"do": "cite", "message": house.reply, "n": 9},
        {"do": "cite", "message": house.reply, "n": -1},
    ):
        with pytest.raises(NotFoundError):
            await house.does(**asked)
