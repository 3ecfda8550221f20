"""A link shows what was in sight of a conversation when it was made, to whoever has it, until it ends or is revoked."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from core.errors import QuotaError
from core.storage import shares
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.sharing_engine import Sharing, sharing
from tests.webui.server.test_evidence import QUESTION, WATER, policy_pdf
from tests.webui.server.test_evidence import answer as documents_answer
from webui.handlers.sharing import LASTS

pytestmark = pytest.mark.anyio
HOSTILE = "<script>alert(1)</script> <img src=//evil.example/x> **bold**"


@pytest.fixture
async def here(tmp_path: Path, anyio_backend: str, request: pytest.FixtureRequest) -> AsyncIterator[Sharing]:
    given = {"answers": ("In the north.", HOSTILE, *("Yes." for _ in range(9))), **getattr(request, "param", {})}
    async with sharing(tmp_path, ScriptedModel(*given.pop("answers")), **given) as made:
        yield made


async def test_who_has_the_link_reads_what_was_in_sight_when_it_was_made(here: Sharing) -> None:
    view = await here.talk()
    made = await here.call("make", id=view.conversation_id, lasts="week")
    await here.say(view, "And the lighthouse?")
    answer = await here.opened(made["path"])
    assert answer.status_code == 200
    assert "Where is the harbour?" in answer.text
    assert "In the north." in answer.text
    assert "lighthouse" not in answer.text
    assert len(made["path"]) > 40


@pytest.mark.parametrize(("lang", "says"), [("en", "Shared from Parlour, 20"), ("zh", "由 Parlour 分享，20")])
async def test_who_has_the_link_hears_nothing_of_other_versions_and_of_exports(
    here: Sharing, lang: str, says: str
) -> None:
    view = await here.talk()
    thread = await here.engine.stores.of(here.owner).conversations.thread(view.conversation_id)
    await here.act(view, do="regenerate", id=thread[-1].id)
    await here.over(view)
    headers = {"accept-language": lang}
    page = (await here.client.get("/shares/preview", params={"id": view.conversation_id}, headers=headers)).text
    assert says in page
    assert not re.search("export|version|JSON|导出|版本", page.partition("<body")[2], re.IGNORECASE)


async def test_the_page_runs_nothing_is_no_document_of_the_site_and_is_not_to_be_listed(here: Sharing) -> None:
    view = await here.talk()
    await here.say(view, HOSTILE)
    made = await here.call("make", id=view.conversation_id, lasts="day")
    answer = await here.opened(made["path"])
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "allow-scripts" not in policy
    assert "allow-same-origin" not in policy
    assert "noindex" in answer.headers["x-robots-tag"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in answer.headers
    assert "<script" not in answer.text
    assert "evil.example/x>" not in re.sub(r"&lt;.*?&gt;", "", answer.text)


async def test_before_it_is_made_one_sees_what_it_would_hold_and_the_page_itself(here: Sharing, tmp_path: Path) -> None:
    note = tmp_path / "plan <b>.txt"
    note.write_text("The harbour is in the north.")
    view = here.tab()
    await here.say(view, "Where is it?", (note,))
    look = await here.call("look", id=view.conversation_id)
    assert look["holds"][0].startswith("2 messages")
    assert any("plan" in one for one in look["holds"])
    assert look["links"] == []
    preview = await here.client.get("/shares/preview", params={"id": view.conversation_id})
    made = await here.call("make", id=view.conversation_id, lasts="ever")
    shown = await here.opened(made["path"])
    at = r"\d{4}-\d\d-\d\d \d\d:\d\d"
    assert re.sub(at, "", preview.text) == re.sub(at, "", shown.text)
    assert "sandbox" in preview.headers["content-security-policy"]


async def test_a_link_that_was_revoked_leads_nowhere_and_says_so_in_the_readers_language(here: Sharing) -> None:
    view = await here.talk()
    first = await here.call("make", id=view.conversation_id, lasts="ever")
    second = await here.call("make", id=view.conversation_id, lasts="ever")
    assert len(second["links"]) == 2
    left = await here.call("revoke", id=view.conversation_id, share=first["links"][0]["share"])
    assert [one["share"] for one in left["links"]] != [first["links"][0]["share"]]
    gone = await here.opened(first["path"])
    assert gone.status_code == 404
    assert "This link leads nowhere any more" in gone.text
    assert "此链接已失效" in (await here.opened(first["path"], **{"accept-language": "zh"})).text
    assert (await here.opened(second["path"])).status_code == 200
    again = await here.call("revoke", id=view.conversation_id, share=first["links"][0]["share"])
    assert again["status"] == 404


async def test_a_folder_in_which_nothing_can_be_deleted_is_said_in_a_sentence(
    here: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await here.talk()
    made = await here.call("make", id=view.conversation_id, lasts="ever")

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    answer = await here.call("revoke", id=view.conversation_id, share=made["links"][0]["share"])
    assert answer["status"] == 503
    assert answer["failed"]


async def test_a_link_ends_when_its_time_is_up_and_its_page_is_deleted(
    here: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await here.talk()
    made = await here.call("make", id=view.conversation_id, lasts="day")
    seconds = LASTS["day"]
    assert seconds is not None
    ends = made["links"][0]["ends"]
    assert ends == pytest.approx(made["links"][0]["made"] + seconds, abs=5)
    monkeypatch.setattr(shares.time, "time", lambda: ends + 1)
    assert (await here.opened(made["path"])).status_code == 404
    assert (await here.call("look", id=view.conversation_id))["links"] == []
    assert list((here.engine.settings.home / "shares").rglob("*.*")) == []


async def test_with_its_conversation_a_link_goes(here: Sharing) -> None:
    view, other = await here.talk(), await here.talk("And the other?")
    path = (await here.call("make", id=view.conversation_id, lasts="ever"))["path"]
    stays = (await here.call("make", id=other.conversation_id, lasts="ever"))["path"]
    gone = view.conversation_id
    await here.act(view, do="delete", id=gone)
    assert (await here.opened(path)).status_code == 404
    assert (await here.opened(stays)).status_code == 200
    await here.act(view, do="keep", ids=[gone])
    assert (await here.opened(path)).status_code == 200, "it was taken back"
    await here.act(view, do="delete", id=gone)
    await here.desk.deletions.finish(here.engine)
    assert (await here.opened(path)).status_code == 404
    assert [one["id"] for one in await here.links()] == [other.conversation_id]


async def test_a_link_that_is_made_while_its_conversation_is_deleted_does_not_outlive_it(
    here: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await here.talk()
    kept: list[str] = []
    add = shares.ShareStore.add

    async def added_late(store: shares.ShareStore, *given: Any, **named: Any) -> Any:
        await here.act(view, do="delete", id=view.conversation_id)
        token, share = await add(store, *given, **named)
        kept.append(token)
        return token, share

    monkeypatch.setattr(shares.ShareStore, "add", added_late)
    assert (await here.call("make", id=view.conversation_id, lasts="ever"))["status"] == 404
    assert (await here.opened(f"/shared/{kept[0]}")).status_code == 404


async def test_nobody_shares_or_revokes_what_is_somebody_elses(here: Sharing) -> None:
    view = await here.talk()
    made = await here.call("make", id=view.conversation_id, lasts="ever")
    here.asks = "b-somebody"
    for act, body in (("look", {}), ("make", {"lasts": "ever"}), ("revoke", {"share": made["links"][0]["share"]})):
        assert (await here.call(act, id=view.conversation_id, **body))["status"] == 404
    assert (await here.client.get("/shares/preview", params={"id": view.conversation_id})).status_code == 404
    here.asks = None
    assert (await here.client.post("/shares/make", json={})).status_code == 401
    assert (await here.client.get("/shares/preview")).status_code == 401
    assert (await here.opened(made["path"])).status_code == 200


async def test_its_owner_finds_the_link_again_in_the_dialog_and_in_the_settings(here: Sharing) -> None:
    view, other = await here.talk(), await here.talk("And the other?")
    made = await here.call("make", id=view.conversation_id, lasts="week")
    await here.call("make", id=other.conversation_id, lasts="ever")
    look = await here.call("look", id=view.conversation_id)
    assert [one["path"] for one in look["links"]] == [made["path"]]
    newest, oldest = await here.links()
    assert (newest["title"], newest["ends"]) == ("And the other?", None)
    assert (oldest["path"], oldest["title"]) == (made["path"], "Where is the harbour?")
    assert oldest["holds"].startswith("2 messages · ")
    assert oldest["holds"].endswith(" kB")
    left = await here.call("revoke", share=newest["share"])
    assert [one["share"] for one in left["links"]] == [oldest["share"]]
    here.asks = "b-somebody"
    assert await here.links() == []


async def test_a_link_whose_address_cannot_be_opened_any_more_is_listed_without_it(here: Sharing) -> None:
    view = await here.talk()
    await here.call("make", id=view.conversation_id, lasts="ever")
    (about,) = (here.engine.settings.home / "shares").rglob("*.json")
    kept = json.loads(about.read_bytes())
    about.write_text(json.dumps({**kept, "sealed": kept["sealed"][:-4] + "AAAA"}))
    (link,) = await here.links()
    assert link["path"] == ""
    older = {name: kept[name] for name in ("id", "conversation_id", "title", "made_at", "ends_at")}
    about.write_text(json.dumps(older))
    (link,) = await here.links()
    assert (link["path"], link["holds"]) == ("", "")
    assert (await here.call("revoke", share=link["share"]))["links"] == []


@pytest.mark.parametrize("damage", ["", "[]", "7", '{"id": 1}', '{"held": {}}', '{"made_at": "x"}', '{"size": "x"}'])
async def test_what_is_known_of_a_link_and_was_damaged_hides_no_other(here: Sharing, damage: str) -> None:
    view = await here.talk()
    made = await here.call("make", id=view.conversation_id, lasts="ever")
    (about,) = (here.engine.settings.home / "shares").rglob("*.json")
    whole = json.loads(about.read_bytes())
    broken = json.loads(damage) if damage else None
    text = json.dumps({**whole, **broken}) if isinstance(broken, dict) else damage
    (about.parent / f"{'0' * 64}.json").write_text(text)
    assert [one["share"] for one in await here.links()] == [made["links"][0]["share"]]


async def test_what_links_take_is_told_in_the_settings(here: Sharing) -> None:
    view = await here.talk()
    assert "shared links" not in (await here.client.get("/preferences/page")).json()["markup"]
    await here.call("make", id=view.conversation_id, lasts="ever")
    taken = await here.engine.stores.of(here.owner).space.used()
    kept = sum(one.stat().st_size for one in (here.engine.settings.home / "shares").rglob("*.*"))
    assert taken.shares == kept > 1000
    assert "shared links" in (await here.client.get("/preferences/page")).json()["markup"]


@pytest.mark.parametrize("here", [{"files_mb": 1}], indirect=True)
async def test_links_count_as_files_and_one_for_which_there_is_no_room_is_refused_in_a_sentence(here: Sharing) -> None:
    here.owner = here.asks = "b-somebody"
    view = await here.talk()
    stores = here.engine.stores.of(here.owner)
    await stores.files.put("a.bin", b"x" * (1024 * 1024 - 20_000))
    made = await here.call("make", id=view.conversation_id, lasts="ever")
    assert made["status"] == 200
    while (last := await here.call("make", id=view.conversation_id, lasts="ever"))["status"] == 200:
        pass
    assert last["status"] == 507
    assert "no room left for this link" in last["failed"]
    assert "Revoke links" in last["failed"]
    with pytest.raises(QuotaError):
        await stores.files.put("b.bin", b"x" * 20_000)
    for one in await here.links():
        await here.call("revoke", share=one["share"])
    await stores.files.put("b.bin", b"x" * 15_000)


async def test_the_folder_alone_opens_no_link_and_is_its_owners_alone(here: Sharing) -> None:
    view = await here.talk()
    made = await here.call("make", id=view.conversation_id, lasts="ever")
    token = made["path"].rpartition("/")[2]
    kept = [one for one in (here.engine.settings.home / "shares").rglob("*") if one.is_file()]
    assert len(kept) == 2
    assert all(token not in one.name and token.encode() not in one.read_bytes() for one in kept)
    assert all(one.stat().st_mode & 0o077 == 0 for one in kept)
    assert (await here.opened(f"/shared/{kept[0].stem}")).status_code == 404


@pytest.mark.parametrize(
    "path", ["/shared/x", "/shared/..%2f..%2fsecret", "/shared/%00", "/shared/" + "a" * 5000, "/shared/*"]
)
async def test_what_is_no_link_leads_nowhere(here: Sharing, path: str) -> None:
    assert (await here.opened(path)).status_code == 404


@pytest.mark.parametrize("body", [{}, {"id": "x"}, {"id": 7, "lasts": "week"}, {"lasts": "a century"}])
async def test_what_the_page_would_never_ask_is_refused(here: Sharing, body: dict[str, Any]) -> None:
    assert (await here.call("make", **body))["status"] == 404


async def test_there_is_an_end_to_how_many_there_are(here: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_SHARES", 1)
    view = await here.talk()
    await here.call("make", id=view.conversation_id, lasts="ever")
    refused = await here.call("make", id=view.conversation_id, lasts="ever")
    assert refused["status"] == 409
    assert "There are 1 shared links already" in refused["failed"]


@pytest.mark.parametrize("here", [{"share": False}], indirect=True)
async def test_where_it_is_switched_off_nothing_is_shared_and_old_links_lead_nowhere(here: Sharing) -> None:
    view = await here.talk()
    refused = await here.call("make", id=view.conversation_id, lasts="ever")
    assert refused["status"] == 403
    assert "switched off" in refused["failed"]
    assert (await here.client.get("/shares/preview", params={"id": view.conversation_id})).status_code == 403
    token, _ = await here.engine.stores.of(here.owner).shares.add("c", "t", b"page", ends_at=None, held=shares.Held())
    assert (await here.opened(f"/shared/{token}")).status_code == 404


@pytest.mark.parametrize("here", [{"answers": (documents_answer, "Yes.")}], indirect=True)
async def test_of_documents_a_link_has_what_the_reply_cites_and_an_export_of_ones_own_all_that_was_found(
    here: Sharing, tmp_path: Path
) -> None:
    sales = tmp_path / "sales.csv"
    sales.write_text("town,deductible damage\nArdmore,981\nBunbeg,982\n")
    view = here.tab()
    await here.say(view, QUESTION, (policy_pdf(tmp_path), sales))
    made = await here.call("make", id=view.conversation_id, lasts="ever")
    page = (await here.opened(made["path"])).text
    preview = await here.client.get("/shares/preview", params={"id": view.conversation_id})
    _, kept = await here.engine.stores.shares.content(made["path"].rpartition("/")[2])
    with zipfile.ZipFile(BytesIO(kept)) as archive:
        bundle = "".join(archive.read(name).decode() for name in archive.namelist() if not name.endswith(".png"))
    for text in (page, preview.text, bundle):
        assert WATER in text, "it is cited"
        assert "Ardmore" not in text
        assert "Nothing of interest stands here." not in text
        assert "that the reply does not cite" in text
    async with here.engine.workspaces.open(here.owner) as workspace:
        for form in ("html", "json"):
            exported = await workspace.conversation(view.conversation_id).export(form)
            assert "Ardmore" in "".join([piece async for piece in exported.pieces])


async def test_ratings_are_named_only_where_a_reply_was_rated(here: Sharing) -> None:
    view = await here.talk()
    said = "2 messages, with what was thought and which tools were used"
    assert (await here.call("look", id=view.conversation_id))["holds"][0] == said
    thread = await here.engine.stores.of(here.owner).conversations.thread(view.conversation_id)
    async with here.engine.workspaces.open(here.owner) as workspace:
        await workspace.runs.rate(thread[-1], "down", "Too short")
    holds = (await here.call("look", id=view.conversation_id))["holds"]
    assert holds[0] == "2 messages, with what was thought, which tools were used, and how you rated replies and why"
