"""Whoever has conversations here goes on in a copy of a shared one, which holds what its page shows and no more."""

from __future__ import annotations

import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from core.errors import NotFoundError
from core.runs.claim_check import claimed_sentences
from core.runs.log import Edited
from core.storage import shares
from core.storage.base import StoredMessage
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.taking import Taking
from tests.webui.server.sharing_engine import Sharing, sharing
from tests.webui.server.test_evidence import QUESTION, WATER, answer, policy_pdf
from webui.handlers.act import act
from webui.views import View

pytestmark = pytest.mark.anyio
OTHER = "b-somebody"


@pytest.fixture
async def here(tmp_path: Path, anyio_backend: str, request: pytest.FixtureRequest) -> AsyncIterator[Sharing]:
    replies = getattr(request, "param", ("In the north.", "On the pier.", *("Yes." for _ in range(9))))
    async with sharing(tmp_path, ScriptedModel(*replies), files_mb=1) as made:
        yield made


async def shared(of: Sharing, view: View) -> str:
    """The token of a new link."""
    made = await of.call("make", id=view.conversation_id, lasts="ever")
    return made["path"].rpartition("/")[2]


async def copied(of: Sharing, token: str, owner: str = OTHER) -> dict[str, Any]:
    """What comes of it when somebody wants a copy."""
    of.asks = owner
    answer = await of.call("copy", link=token)
    of.asks = of.owner
    return answer


async def thread(of: Sharing, owner: str, conversation: str) -> list[StoredMessage]:
    return await of.engine.stores.of(owner).conversations.thread(conversation)


def said(turns: list[StoredMessage]) -> list[str]:
    return [part.get_text_content() for turn in turns for part in turn.parts]


async def test_another_owner_goes_on_in_a_copy_and_the_first_one_sees_nothing_of_it(here: Sharing) -> None:
    view = await here.talk()
    token = await shared(here, view)
    made = await copied(here, token)
    assert made["status"] == 200
    assert made["open"] != view.conversation_id
    there = here.tab("two", OTHER, made["open"])
    await here.say(there, "And the lighthouse?")
    turns = await thread(here, OTHER, made["open"])
    assert said(turns) == ["Where is the harbour?", "In the north.", "And the lighthouse?", "On the pier."]
    assert len(await thread(here, here.owner, view.conversation_id)) == 2
    assert len(await here.engine.stores.of(here.owner).conversations.list()) == 1
    assert "lighthouse" not in (await here.opened(f"/shared/{token}")).text


async def test_the_one_who_shared_it_and_the_same_reader_again_get_conversations_of_their_own(here: Sharing) -> None:
    token = await shared(here, await here.talk())
    made = [(await copied(here, token, owner))["open"] for owner in (here.owner, OTHER, OTHER)]
    assert len({*made}) == 3
    (newest, *_) = await here.engine.stores.of(here.owner).conversations.list()
    assert newest.id == made[0]


async def test_the_page_leads_to_the_copy_for_owners_alone(here: Sharing) -> None:
    token = await shared(here, await here.talk())
    assert "copy" not in (await here.opened(f"/shared/{token}")).text
    here.asks = OTHER
    page = await here.client.get(f"/shared/{token}")
    assert f'<a href="../?copy={token}">Continue as a copy</a>' in page.text
    assert "allow-forms" not in page.headers["content-security-policy"]
    chinese = await here.client.get(f"/shared/{token}", headers={"accept-language": "zh"})
    assert "以副本继续" in chinese.text


async def test_the_page_says_when_it_ends(here: Sharing) -> None:
    view = await here.talk()
    week, ever = [await here.call("make", id=view.conversation_id, lasts=lasts) for lasts in ("week", "ever")]
    ends = next(one["ends"] for one in ever["links"] if one["ends"])
    said = f"This link ends on {datetime.fromtimestamp(ends, UTC):%Y-%m-%d %H:%M} UTC."
    assert said in (await here.opened(week["path"])).text
    assert "This link ends" not in (await here.opened(ever["path"])).text
    assert "此链接于" in (await here.opened(week["path"], **{"accept-language": "zh"})).text


async def test_a_stranger_gets_no_copy_and_neither_does_a_form_of_another_site(here: Sharing) -> None:
    token = await shared(here, await here.talk())
    here.asks = None
    for act_ in ("held", "copy"):
        assert (await here.client.post(f"/shares/{act_}", json={"link": token})).status_code == 401
    here.asks = OTHER
    assert (await here.client.post("/shares/copy", data={"link": token})).status_code == 404
    assert (await here.client.post("/shares/copy", content=f'{{"link": "{token}"}}')).status_code == 404
    assert (await here.client.get("/shares/copy", params={"link": token})).status_code == 405
    assert await here.engine.stores.of(OTHER).conversations.list() == []


async def test_before_one_copies_one_is_told_what_it_would_hold(here: Sharing) -> None:
    token = await shared(here, await here.talk())
    here.asks = OTHER
    held = await here.call("held", link=token)
    assert held["title"] == "Where is the harbour?"
    assert held["holds"] == ["2 messages, with what was thought and which tools were used"]


async def test_a_link_that_is_revoked_in_between_gives_no_copy_and_says_so(
    here: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await here.talk()
    token = await shared(here, view)
    bring_in = Taking.bring_in

    async def late(taking: Taking, *given: Any, **named: Any) -> Any:
        await here.engine.stores.of(here.owner).shares.remove_of(view.conversation_id)
        return await bring_in(taking, *given, **named)

    monkeypatch.setattr(Taking, "bring_in", late)
    for answer_ in (await copied(here, token), await copied(here, token)):
        assert (answer_["status"], answer_["failed"]) == (404, "This link leads nowhere any more.")
    assert await here.engine.stores.of(OTHER).conversations.list() == []


@pytest.mark.parametrize("way", ["deleted", "over", "off"])
async def test_of_a_link_that_leads_nowhere_there_is_no_copy(
    here: Sharing, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    view = await here.talk()
    made = await here.call("make", id=view.conversation_id, lasts="day")
    token = made["path"].rpartition("/")[2]
    if way == "deleted":
        await here.act(view, do="delete", id=view.conversation_id)
    elif way == "over":
        monkeypatch.setattr(shares.time, "time", lambda: made["links"][0]["ends"] + 1)
    else:
        token = "x" * 43
    for act_ in ("held", "copy"):
        here.asks = OTHER
        answer_ = await here.call(act_, link=token)
        assert (answer_["status"], answer_["failed"]) == (404, "This link leads nowhere any more.")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
async def test_a_damaged_snapshot_is_said_in_a_sentence_and_nothing_comes_of_it(here: Sharing, damage: str) -> None:
    token = await shared(here, await here.talk())
    (path,) = (here.engine.settings.home / "shares").rglob("*.zip")
    if damage == "changed":
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("index2.html", "x")
    else:
        path.write_bytes(path.read_bytes()[: 100 if damage == "cut" else 0])
    answer_ = await copied(here, token)
    assert answer_["status"] == 503
    assert answer_["failed"] == "This shared conversation is damaged. Whoever shared it can make a new link."
    if damage == "cut":
        page = await here.opened(f"/shared/{token}")
        assert (page.status_code, "This shared conversation is damaged" in page.text) == (503, True)
    assert await here.engine.stores.of(OTHER).conversations.list() == []


async def test_a_link_from_before_shows_its_page_and_says_that_there_is_no_copy(here: Sharing) -> None:
    token = await shared(here, await here.talk())
    (path,) = (here.engine.settings.home / "shares").rglob("*.zip")
    path.unlink()
    path.with_suffix(".html").write_bytes(b"<html><body>\n<p>An old page.</p>")
    here.asks = OTHER
    page = await here.client.get(f"/shared/{token}")
    assert page.text == "<html><body>\n<p>An old page.</p>"
    answer_ = await copied(here, token)
    assert answer_["status"] == 409
    assert "made before conversations could be continued" in answer_["failed"]


@pytest.mark.parametrize("here", [(answer, "Yes.", "Yes.")], indirect=True)
async def test_the_copy_has_the_pages_that_were_cited_and_no_document(here: Sharing, tmp_path: Path) -> None:
    view = here.tab()
    await here.say(view, QUESTION, (policy_pdf(tmp_path),))
    token = await shared(here, view)
    here.asks = OTHER
    page = await here.client.get(f"/shared/{token}")
    assert page.text.count('<img src="data:image/png;base64,') == 1
    held = await here.call("held", link=token)
    assert any("names of files: policy.pdf" in one for one in held["holds"])
    made = await copied(here, token)
    theirs = here.engine.stores.of(OTHER)
    outline = await theirs.whole.outline(made["open"])
    assert [one.media_type for one in outline.files] == ["image/png"]
    assert outline.documents == ()
    turns = await thread(here, OTHER, made["open"])
    assert said(turns)[0] == f"{QUESTION}\n\n[policy.pdf]"
    there = here.tab("two", OTHER, made["open"])
    mark = next(n for n in range(1, 9) if f"[{n}]" in said(turns)[-1])
    panel = unescape(await act(here.desk, there, f'{{"do": "cite", "message": "{turns[-1].id}", "n": {mark}}}'))
    assert f'<img src="./files/{outline.files[0].id}"' in panel
    assert 'class="p-hl' in panel
    assert WATER in LexborHTMLParser(panel).text()
    assert 'data-do="page"' not in panel
    assert (await theirs.space.used()).files == outline.files[0].size
    await here.act(view, do="delete", id=view.conversation_id)
    await here.desk.deletions.finish(here.engine)
    panel = await act(here.desk, there, f'{{"do": "cite", "message": "{turns[-1].id}", "n": {mark}}}')
    assert f"./files/{outline.files[0].id}" in unescape(panel)


def doubtful(request: Any) -> Reply:
    """Two sentences of the policy with a mark, and one that nothing in it says."""
    return Reply(text=f"{answer(request).text} The fee is 99 dollars.")


@pytest.mark.parametrize("here", [(doubtful, "Yes.", "Yes.")], indirect=True)
async def test_the_copy_says_of_its_sentences_what_was_found_of_them(here: Sharing, tmp_path: Path) -> None:
    view = here.tab()
    await here.say(view, QUESTION, (policy_pdf(tmp_path),))

    async def found(owner: str, conversation: str) -> list[tuple[str, str, tuple[Any, ...]]]:
        last = (await thread(here, owner, conversation))[-1]
        async with here.engine.workspaces.open(owner) as workspace:
            reply = await workspace.runs.reply(last)
        sentences = claimed_sentences(reply)
        return [(said, one.verdict, one.reasons) for said, one in zip(sentences, reply.claims, strict=True)]

    before = await found(here.owner, view.conversation_id)
    assert {verdict for _, verdict, _ in before} == {"supported", "unsupported"}
    made = await copied(here, await shared(here, view))
    assert await found(OTHER, made["open"]) == before
    here.asks = OTHER
    path = (await here.call("make", id=made["open"], lasts="ever"))["path"]
    again = await copied(here, path.rpartition("/")[2], "b-third")
    assert await found("b-third", again["open"]) == before


@pytest.mark.parametrize("here", [(answer, "Yes.", "Yes.")], indirect=True)
async def test_a_copy_is_shared_and_copied_again_with_its_pages(here: Sharing, tmp_path: Path) -> None:
    view = here.tab()
    await here.say(view, QUESTION, (policy_pdf(tmp_path),))
    made = await copied(here, await shared(here, view))
    here.asks = OTHER
    again = (await here.call("make", id=made["open"], lasts="ever"))["path"]
    assert (await here.client.get(again)).text.count('<img src="data:image/png;base64,') == 1
    third = await copied(here, again.rpartition("/")[2], "b-third")
    assert [one.media_type for one in (await here.engine.stores.of("b-third").whole.outline(third["open"])).files] == [
        "image/png"
    ]
    theirs = here.engine.stores.of(OTHER)
    await here.act(here.tab("two", OTHER, made["open"]), do="delete", id=made["open"])
    await here.desk.deletions.finish(here.engine)
    with pytest.raises(NotFoundError):
        await theirs.whole.outline(made["open"])
    assert (await theirs.space.used()).files == 0


@pytest.mark.parametrize("here", [(answer, "Yes.", "Yes.")], indirect=True)
async def test_a_copy_for_which_its_reader_has_no_room_is_refused_and_leaves_nothing(
    here: Sharing, tmp_path: Path
) -> None:
    view = here.tab()
    await here.say(view, QUESTION, (policy_pdf(tmp_path),))
    token = await shared(here, view)
    theirs = here.engine.stores.of(OTHER)
    await theirs.files.put("a.bin", b"x" * (1024 * 1024 - 500))
    answer_ = await copied(here, token)
    assert answer_["status"] == 507
    assert "used up their storage" in answer_["failed"]
    assert await theirs.conversations.list() == []
    assert (await theirs.space.used()).files == 1024 * 1024 - 500


CALLING = (
    Reply(reasoning="A thought.", calls=(("calculator", {"expression": "6*7"}),)),
    "It is 42.",
    *("Yes." for _ in range(4)),
)


@pytest.mark.parametrize("here", [CALLING], indirect=True)
async def test_the_copy_has_thoughts_and_calls_as_the_page_shows_them_and_nothing_that_it_left_out(
    here: Sharing,
) -> None:
    view = await here.talk("How much is it?")
    await here.say(view, "A second question that another version replaces")
    turns = await thread(here, here.owner, view.conversation_id)
    async with here.engine.workspaces.open(here.owner) as workspace:
        talk = workspace.conversation(view.conversation_id)
        changed = await talk.edit_reply(turns[1].id, "It is forty-two.")
        await workspace.runs.rate(changed, "down", "Too short")
    token = await shared(here, view)
    made = await copied(here, token)
    theirs = await thread(here, OTHER, made["open"])
    with zipfile.ZipFile(next((here.engine.settings.home / "shares").rglob("*.zip"))) as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist() if name.startswith("conversations/"))
    for left_out in (b"second question", b"Too short", b"call_stages", view.conversation_id.encode(), b"It is 42."):
        assert left_out not in whole
    assert said(theirs)[-1] == "It is forty-two."
    assert theirs[1].parts[0].reasoning_content == "A thought."
    calls = [part.function_call for part in theirs[1].parts if part.function_call is not None]
    assert [(one.name, one.arguments) for one in calls] == [("calculator", '{"expression": "6*7"}')]
    events = await here.engine.stores.of(OTHER).runs.events(str(theirs[1].run_id))
    assert [one.kind for one in events] == [Edited().kind]
    async with here.engine.workspaces.open(OTHER) as workspace:
        reply = await workspace.runs.reply(theirs[1])
    assert (reply.edited, reply.rating, reply.text) == (True, "", "It is forty-two.")
