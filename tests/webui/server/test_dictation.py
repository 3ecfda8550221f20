"""Dictation over HTTP: what would happen is told first, a recording becomes text, and each call has its line."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.engine import Engine
from core.errors import StorageError
from core.llm.transcription import Recording
from core.models.own_models import Draft
from core.runs.call_stages import unpacked
from core.runs.log import CallStages, ModelCalled
from core.runs.rows import logged_of
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.workspace.clearing import delete_everything
from core.workspace.dictation import OwnerDictation, Way
from tests.core.llm.test_sound_parts import hours_of
from tests.transcription_server import TranscriptionServer
from tests.webui.server.served_app import Served, served
from webui.words import Words

pytestmark = pytest.mark.anyio

SOUND = b"\x1aE\xdf\xa3" + b"A_OPUS" * 300
WEBM = {"content-type": "audio/webm"}
LABEL = "OpenAI-compatible"


@pytest.fixture
def service() -> Iterator[TranscriptionServer]:
    with TranscriptionServer() as server:
        yield server


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    settings = Settings(home=tmp_path, code="off", weights_dir=tmp_path / "weights")  # type: ignore[call-arg]
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine, served(engine, settings) as app:
        yield app


@pytest.fixture
async def browser(app: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=app.address, timeout=60) as client:
        yield client


async def chosen(app: Served, service: TranscriptionServer, model: str = "", key: str | None = None) -> None:
    """Set the service up, and choose it for dictation."""
    async with app.engine.workspaces.open("local") as workspace:
        given = service.key if key is None else key
        await workspace.models.save(Draft("compatible", service.base_url, "chat", given), use=False)
        await workspace.preferences.change("dictation", "compatible")
        await workspace.preferences.change("dictation_model", model)


async def way(browser: httpx.AsyncClient, lang: str = "en") -> dict[str, Any]:
    answer = await browser.get("/dictation/way", headers={"accept-language": lang})
    assert answer.headers["cache-control"] == "no-store"
    return dict(answer.json())


async def dictated(browser: httpx.AsyncClient, announced: str, sound: bytes = SOUND, **more: Any) -> dict[str, Any]:
    asked = {"as": announced, "seconds": "3.5", **more}
    return dict((await browser.post("/dictation/text", params=asked, content=sound, headers=WEBM)).json())


async def test_without_a_choice_it_is_the_browsers_and_nothing_else(browser: httpx.AsyncClient) -> None:
    assert await way(browser) == {"browser": True, "longest": 300}


async def test_what_happens_to_a_recording_is_told_before_there_is_one(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service, "whisper-large")
    told = await way(browser)
    host = service.base_url.removeprefix("http://").removesuffix("/v1")
    assert told["browser"] is False
    assert told["way"]["title"].startswith("Dictate. What you say is recorded and goes to")
    assert host in told["way"]["title"]
    assert host in told["way"]["first"]
    assert "whisper-large turns it into text: free" in told["way"]["first"]
    assert "whisper-large" in (await way(browser, "zh"))["way"]["first"]
    assert "转成文字（免费）" in (await way(browser, "zh"))["way"]["first"]
    assert not service.sent


async def test_a_recording_becomes_text_by_the_openai_protocol(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    service.answer = {"text": " hello there \n"}
    announced = (await way(browser))["way"]["as"]
    assert await dictated(browser, announced) == {"text": "hello there"}
    (sent,) = service.sent
    assert (sent.sound, sent.name, sent.media_type) == (SOUND, "recording.webm", "audio/webm")
    assert sent.form == {"model": "whisper-1", "response_format": "json"}
    assert sent.key == service.key


async def test_nothing_is_sent_but_where_it_was_announced(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    announced = (await way(browser))["way"]["as"]
    await chosen(app, service, "another-model")
    told = await dictated(browser, announced)
    assert told["changed"]
    assert told["failed"].startswith("Something else is chosen for dictation by now")
    async with app.engine.workspaces.open("local") as workspace:
        await workspace.preferences.change("dictation", "browser")
    assert (await dictated(browser, announced))["changed"]
    assert not service.sent


async def test_what_is_no_recording_is_refused_in_a_sentence(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    announced = (await way(browser))["way"]["as"]
    for sound, status, said in (
        (b"", 400, "The recording is empty"),
        (b"RIFF1234AVI " + b"\0" * 99, 400, "This is no recording that can be read"),
        (b"<html>", 400, "This is no recording that can be read"),
        (SOUND + b"\0" * (16 * 1024 * 1024), 413, "The recording is too long. Up to 5 minutes"),
    ):
        answer = await browser.post("/dictation/text", params={"as": announced}, content=sound, headers=WEBM)
        assert (answer.status_code, answer.json()["failed"][: len(said)]) == (status, said)
    assert not service.sent


async def test_a_recording_of_hours_is_refused_and_odd_lengths_count_as_none(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    announced = (await way(browser))["way"]["as"]
    assert (await dictated(browser, announced, seconds="4000"))["failed"].startswith("The recording is too long")
    for odd in ("nan", "inf", "-1", "x", ""):
        assert (await dictated(browser, announced, seconds=odd))["text"] == "hello there"


async def test_a_form_of_another_site_is_no_recording(browser: httpx.AsyncClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = await browser.post("/dictation/text", content=SOUND, headers={"content-type": kind})
        assert answer.status_code == 400


async def test_whoever_has_no_workspace_is_told_nothing(app: Served) -> None:
    async with httpx.AsyncClient(base_url=app.address, headers={"host": "evil.example"}) as stranger:
        assert (await stranger.get("/dictation/way")).status_code in {401, 403, 421}
        assert (await stranger.post("/dictation/text", content=SOUND, headers=WEBM)).status_code in {401, 403, 421}


async def test_what_the_service_refuses_is_told_in_a_sentence_and_asked_no_second_time(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    announced = (await way(browser))["way"]["as"]
    cases: list[tuple[int, Any, str]] = [
        (400, {"error": {"message": "Audio file is too short"}}, "Audio file is too short"),
        (413, {"error": {"message": "large"}}, "The recording is too long"),
        (429, {"error": {"message": "slow down"}}, "127.0.0.1"),
        (503, {"error": {"message": "down"}}, "127.0.0.1"),
        (200, {"segments": []}, "answered something that is not a reply"),
        (200, b"not json", "answered something that is not a reply"),
        (200, {"text": "  "}, "Nothing was heard in the recording"),
        (404, {"error": {"message": "no model"}}, "knows no model named whisper-1"),
    ]
    for service.status, service.answer, said in cases:
        assert said in (await dictated(browser, announced))["failed"]
    assert len(service.sent) == len(cases)


async def test_a_wrong_key_is_told_and_never_shown(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service, key="sk-wrong-CANARY-key")
    told = await dictated(browser, (await way(browser))["way"]["as"])
    assert "does not accept the API key" in told["failed"]
    assert "CANARY" not in str(told)
    async with app.engine.workspaces.open("local") as workspace:
        assert [one.outcome for one in await workspace.dictation.waiting()] == ["failed"]
        assert "CANARY" not in str(await workspace.settings.get("dictated"))


async def test_a_service_that_is_gone_is_told_and_no_other_takes_its_place(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    announced = (await way(browser))["way"]["as"]
    async with app.engine.workspaces.open("local") as workspace:
        await workspace.models.remove("compatible")
    told = await way(browser)
    assert "way" not in told
    assert told["problem"]
    assert "failed" in await dictated(browser, announced)
    assert not service.sent


async def test_a_vendor_with_a_key_is_asked_where_the_browser_cannot_and_says_its_price(
    app: Served, browser: httpx.AsyncClient
) -> None:
    async with app.engine.workspaces.open("local") as workspace:
        await workspace.models.save(Draft("anthropic", "", "claude", "sk-ant-some-key"), use=False)
        assert "way" not in await way(browser)  # it turns no speech into text
        await workspace.models.save(Draft("openai", "", "gpt-5-mini", ""), use=False)
        assert "way" not in await way(browser)  # it has no key
        await workspace.models.save(Draft("openai", "", "gpt-5-mini", "sk-some-key-of-openai"), use=False)
    told = await way(browser)
    assert told["browser"] is True
    assert "OpenAI (api.openai.com)" in told["way"]["title"]
    assert "a minute costs about $0.0029" in told["way"]["first"]


async def test_one_recording_at_a_time(app: Served, browser: httpx.AsyncClient, service: TranscriptionServer) -> None:
    await chosen(app, service)
    announced = (await way(browser))["way"]["as"]
    service.holding.clear()
    first = asyncio.create_task(dictated(browser, announced))
    while not service.sent:
        await asyncio.sleep(0.01)
    assert "Another recording" in (await dictated(browser, announced))["failed"]
    service.holding.set()
    assert await first == {"text": "hello there"}
    assert await dictated(browser, announced) == {"text": "hello there"}


async def test_each_call_has_its_line_in_the_account_of_the_next_reply_and_no_other(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    announced = (await way(browser))["way"]["as"]
    async with app.engine.workspaces.open("local") as workspace:
        talk = await workspace.conversations.create("Talk")
        other = await workspace.conversations.create("Other")
        await dictated(browser, announced, talk=talk.id)
        service.status = 500
        await dictated(browser, announced, talk=talk.id)
        service.status = 200
        await dictated(browser, announced, talk=other.id)
        assert len(await workspace.dictation.waiting()) == 3
        run = await workspace.conversation(talk.id).ask("hello there")
        await run.wait()

        async def lines() -> list[ModelCalled]:
            rows = logged_of(await workspace.stores.runs.account(talk.id))
            return [one.event for one in rows if isinstance(one.event, ModelCalled)]

        while len(found := [one for one in await lines() if one.purpose == "transcription"]) < 2:
            await asyncio.sleep(0.01)
        assert [(one.outcome, one.requests, one.here) for one in found] == [
            ("finished", 1, True),
            ("failed", 1, True),
        ]
        assert found[0].model == "whisper-1 · 127.0.0.1"
        assert len(await workspace.dictation.waiting()) == 1
        markup = unescape((await browser.get("/preferences/page")).json()["markup"])
        assert "1 transcription is in no message yet: free" in markup
        await delete_everything(workspace)
        assert await workspace.dictation.waiting() == []


async def test_the_stages_hold_what_went_over_the_wire_without_key_and_sound(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service)
    await dictated(browser, (await way(browser))["way"]["as"])
    async with app.engine.workspaces.open("local") as workspace:
        (kept,) = await workspace.settings.get("dictated")
    packed = next(one["of"]["packed"] for one in kept["rows"] if one["kind"] == CallStages("", "").kind)
    stages = unpacked(packed)
    (sent,), (received,) = stages["sent"], stages["received"]
    assert sent["address"] == f"{service.base_url}/audio/transcriptions"
    assert f"recording.webm ({len(SOUND)} bytes of audio/webm)" in sent["body"]["text"][0]
    assert received["status"] == 200
    assert received["body"]["text"] == ['{"text": "hello there"}']
    assert "CANARY" not in str(stages)
    assert "hello there" in str(stages["parsed"])


async def test_the_settings_offer_what_can_be_chosen_and_another_service_forgets_the_model(
    app: Served, browser: httpx.AsyncClient, service: TranscriptionServer
) -> None:
    await chosen(app, service, "whisper-large")
    markup = unescape((await browser.get("/preferences/page")).json()["markup"])
    assert 'value="compatible" selected' in markup
    assert 'value="whisper-large"' in markup
    changed = await browser.post("/preferences/change", json={"name": "dictation", "value": ""})
    assert changed.json() == {"said": "kept"}
    markup = unescape((await browser.get("/preferences/page")).json()["markup"])
    assert 'data-set="dictation_model"' not in markup
    kept = await app.engine.stores.of("local").preferences.get()
    assert (kept.dictation, kept.dictation_model) == ("", "")
    for bad in ("a b", "x" * 300, "a\nb", 7, None):
        told = await browser.post("/preferences/change", json={"name": "dictation", "value": bad})
        assert "failed" in told.json(), bad


@pytest.mark.parametrize(
    ("minutes", "name", "minute", "key"),
    [
        (62, "board.mp3", 0.006, "recording_price"),
        (62, "board.mp3", None, "recording_long"),
        (0, "board.ogg", 0.006, "recording_large"),
    ],
)
async def test_what_a_long_recording_costs_is_told_before_it_is_sent_and_whoever_goes_on_has_it_read(
    app: Served,
    service: TranscriptionServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    minutes: int,
    name: str,
    minute: float | None,
    key: str,
) -> None:
    await chosen(app, service, "whisper-1")
    service.answer = {"text": "We agreed.", "segments": [{"start": 0.0, "end": 2.0, "text": "We agreed."}]}
    host = service.base_url.removeprefix("http://").removesuffix("/v1")
    path = tmp_path / name
    if minutes:
        hours_of(path, minutes / 60)
    else:
        path.write_bytes(b"OggS" + bytes(6_000_000))
    paid = Way("service", "compatible", service.base_url, "whisper-1", minute=minute)

    async def way_of(_: OwnerDictation) -> Way:
        return paid

    monkeypatch.setattr(OwnerDictation, "file_way", way_of)
    async with app.engine.workspaces.open("local") as workspace:
        await workspace.conversations.ensure_owner()
        talk = await workspace.conversations.create()
        file = await workspace.files.put(name, path)
        record = await workspace.intake.add(talk.id, file)
        [read] = await workspace.intake.wait(talk.id, [record.id], 60)
        assert (read.status, (read.error or {}).get("key")) == ("failed", key)
        assert not service.sent
        for lang, shown in (("en", "Try again"), ("zh", "重试")):
            said = Words.of(lang).error(read.error or {})
            assert shown in said
            assert host in said
            assert ("62" in said) == bool(minutes)
            assert ("$0.37" in said) == (key == "recording_price")
        [again] = await workspace.intake.wait(talk.id, [(await workspace.intake.add(talk.id, file)).id], 60)
        assert (again.status, service.sent) == ("failed", []), "to attach it once more is no word on its price"
        await workspace.read_again(record.id, "en")
        [read] = await workspace.intake.wait(talk.id, [record.id], 60)
        assert read.status == "ready"
        assert len(service.sent) == max(1, -(-minutes // 10))


async def test_whoever_has_agreed_to_the_price_is_not_asked_again_where_the_service_failed(
    app: Served, service: TranscriptionServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.workspace.dictation.is_near", lambda _: False)
    await chosen(app, service, "whisper-1")
    path = tmp_path / "board.ogg"
    path.write_bytes(b"OggS" + bytes(6_000_000))
    async with app.engine.workspaces.open("local") as workspace:
        await workspace.conversations.ensure_owner()
        talk = await workspace.conversations.create()
        record = await workspace.intake.add(talk.id, await workspace.files.put("board.ogg", path))
        keys: list[str] = []
        for status in (500, 200):
            [read] = await workspace.intake.wait(talk.id, [record.id], 60)
            keys.append((read.error or {}).get("key", ""))
            service.status = status
            await workspace.read_again(record.id, "en")
        [read] = await workspace.intake.wait(talk.id, [record.id], 60)
    assert (keys[0], read.status, read.error) == ("recording_large", "ready", None)
    assert len(service.sent) == 2


async def test_a_recording_of_ten_minutes_is_read_at_once(
    app: Served, service: TranscriptionServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.workspace.dictation.is_near", lambda _: False)
    await chosen(app, service, "whisper-1")
    path = hours_of(tmp_path / "short.mp3", 9 / 60)
    async with app.engine.workspaces.open("local") as workspace:
        heard, _ = await workspace.services.dictation.hear(
            await workspace.files.put("short.mp3", path), path, "", lambda *_: None
        )
    assert heard.startswith(b"WEBVTT")
    assert len(service.sent) == 1


async def test_a_question_about_a_long_recording_is_answered_once_its_owner_has_it_sent(
    app: Served, service: TranscriptionServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.workspace.dictation.is_near", lambda _: False)
    await chosen(app, service, "whisper-1")
    service.answer = {"text": "We agreed.", "segments": [{"start": 0.0, "end": 2.0, "text": "We agreed."}]}
    path = hours_of(tmp_path / "board.mp3", 11 / 60)
    async with app.engine.workspaces.open("local") as workspace:
        await workspace.conversations.ensure_owner()
        talk = workspace.conversation((await workspace.conversations.create()).id)
        file = await workspace.files.put("board.mp3", path)
        run = await talk.ask("What was agreed?", [file.id], "en")
        assert await run.wait() == "complete"  # without it, which is told
        [record] = await workspace.stores.documents.list(talk.id)
        assert (record.error or {})["key"] == "recording_long"
        assert not service.sent
        await workspace.read_again(record.id, "en")
        again = workspace.runs.live(talk.id)
        assert again is not None
        assert await again.wait() == "complete"
        assert len(service.sent) == 2


async def test_whoever_leaves_while_a_call_is_noted_leaves_nothing_behind_where_that_fails(
    app: Served, service: TranscriptionServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
    await chosen(app, service)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def fails_late(*_: Any) -> None:
        begun.set()
        await go_on.wait()
        raise StorageError("The database is closed.")

    monkeypatch.setattr(OwnerDictation, "_keep", fails_late)
    path = tmp_path / "board.ogg"
    path.write_bytes(b"OggS" + bytes(600))
    async with app.engine.workspaces.open("local") as workspace:
        dictation = workspace.services.dictation
        way, file = await dictation.way(), await workspace.files.put("board.ogg", path)
        assert way is not None
        for work in (
            dictation.hear(file, path, "", lambda *_: None),
            dictation.transcribe(Recording(SOUND, "audio/webm", 1.0), way.name, ""),
        ):
            begun.clear()
            go_on.clear()
            leaving = asyncio.create_task(work)  # type: ignore[var-annotated, arg-type]
            await begun.wait()
            leaving.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
            assert not leaving.done()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await leaving
    gc.collect()
    assert reported == []
