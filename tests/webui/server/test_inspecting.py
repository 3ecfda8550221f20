"""The inspector and the meter over HTTP: for their owner alone, without keys, and calm about whatever is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.engine import Engine
from core.judging.suite import Suite
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.workspace.metering import Meter
from tests.webui.server.served_app import Served, served
from webui.handlers.metering import meter_data
from webui.words import Words

EN = Words("en")
PARTS: dict[str, Any] = {"room": 32_768, "reserved": 4_096, "instructions": 96, "tools": 2_370, "tool_count": 5}
METER = Meter(**PARTS, files=4_210, history=2_584, messages=11, draft=62, cost=0.0045, spent=0.031, paid=True)


def test_the_meter_names_its_parts_and_prices() -> None:
    told = meter_data(METER, EN)
    assert [(one["name"], one["tokens"]) for one in told["parts"]] == [
        ("instructions", 96), ("tools", 2_370), ("files", 4_210), ("history", 2_584), ("draft", 62),
    ]  # fmt: skip
    assert [one["note"] for one in told["parts"]] == ["", "5 on", "", "11 messages", ""]
    assert (told["taken"], told["next"], told["spent"]) == (
        9_322,
        [{"model": "", "cost": "about $0.0045"}],
        "$0.031",
    )


@pytest.mark.parametrize(
    ("change", "prices"),
    [
        ({"cost": None, "spent": None}, ("price unknown", "price unknown")),
        ({"free": True, "cost": 0.0}, ("free", "$0.031")),
        ({"free": True, "cost": 0.0, "paid": False}, (None, None)),
    ],
)
def test_no_money_is_shown_where_nothing_is_paid_and_an_unknown_price_is_said(
    change: dict[str, Any], prices: tuple[str | None, str | None]
) -> None:
    told = meter_data(replace(METER, **change), EN)
    next_ = told["next"][0]["cost"] if "next" in told else None
    assert (next_, told.get("spent")) == prices


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    settings = Settings(home=tmp_path, code="off", titles=False)  # type: ignore[call-arg]
    async with Engine(settings, model=ScriptedModel("It is eight.")) as engine, served(engine, settings) as app:
        yield app


async def replied(app: Served, owner: str) -> tuple[str, str]:
    """A conversation with a question and its reply; the ids of conversation and reply."""
    async with app.engine.workspaces.open(owner) as workspace:
        made = await workspace.conversations.create()
        run = await workspace.conversation(made.id).ask("What is twice 4?")
        await run.wait()
        return made.id, run.message_id


@pytest.mark.anyio
async def test_what_stands_behind_a_reply_is_a_file_for_its_owner_alone(app: Served) -> None:
    _, mine = await replied(app, "local")
    talk, theirs = await replied(app, "somebody")
    async with httpx.AsyncClient(base_url=app.address) as browser:
        answer = await browser.get(f"/inspect/{mine}.json")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].startswith("attachment")
        (call,) = answer.json()["calls"]
        assert (call["purpose"], call["outcome"]) == ("answer", "finished")
        assert "It is eight." in call["stages"]["parsed"][0]["body"]["texts"][0]
        for address in (f"/inspect/{theirs}.json", "/inspect/none.json", f"/inspect/{talk}.json"):
            refused = await browser.get(address)
            assert refused.status_code == 404
            assert "eight" not in refused.text


@pytest.mark.anyio
async def test_a_whole_reply_is_a_case_for_a_suite_in_yaml_and_json_and_what_is_none_says_so(
    app: Served, tmp_path: Path
) -> None:
    _, mine = await replied(app, "local")
    talk, theirs = await replied(app, "somebody")
    async with app.engine.workspaces.open("local") as workspace:
        question = (await workspace.conversations.message(mine)).parent_id
    async with httpx.AsyncClient(base_url=app.address) as browser:
        for form in ("yaml", "json"):
            answer = await browser.get(f"/inspect/{mine}/case.{form}", headers={"accept-language": "zh"})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-disposition"].endswith(f'.{form}"')
            assert answer.text.startswith("# 由一条正确的回答" if form == "yaml" else "{")
            file = tmp_path / f"suite.{form}"
            file.write_bytes(answer.content)
            (task,) = Suite.of(file).tasks
            assert task.question == "What is twice 4?"
            assert str(task.checks[-1].judged).endswith("It is eight.")
        for address in (theirs, talk, "none", question):
            refused = await browser.get(f"/inspect/{address}/case.yaml")
            assert refused.status_code == 404
            assert "eight" not in refused.text
        assert (await browser.get(f"/inspect/{mine}/case.toml")).status_code == 404


@pytest.mark.anyio
async def test_the_meter_is_calm_about_whatever_is_asked(app: Served) -> None:
    mine, _ = await replied(app, "local")
    theirs, _ = await replied(app, "somebody")
    async with httpx.AsyncClient(base_url=app.address) as browser:
        told = (await browser.post("/meter", json={"conversation": mine, "draft": "And twice that?"})).json()
        assert told["taken"] == sum(one["tokens"] for one in told["parts"])
        assert {one["name"] for one in told["parts"]} >= {"instructions", "history", "draft"}
        for asked in ({"conversation": theirs}, {"conversation": "none"}, {"conversation": ["x"], "draft": {"a": 1}}):
            answer = await browser.post("/meter", json=asked)
            assert answer.status_code == 200
            assert "history" not in {one["name"] for one in answer.json().get("parts", ())}
        assert (
            await browser.post("/meter", content=b"{", headers={"content-type": "application/json"})
        ).status_code == 200
        assert (await browser.get("/meter")).status_code in {404, 405}


@pytest.mark.anyio
async def test_a_saving_is_chosen_by_its_owner_alone_and_what_is_not_offered_is_left_aside(app: Served) -> None:
    words = "The harbour lies in the north. " * 150
    talks: dict[str, str] = {}
    for owner in ("local", "somebody"):
        async with app.engine.workspaces.open(owner) as workspace:
            talk = workspace.conversation((await workspace.conversations.create()).id)
            for number in range(3):
                await (await talk.ask(f"{number}: {words}")).wait()
            talks[owner] = talk.id
    async with httpx.AsyncClient(base_url=app.address) as browser:

        async def save(owner: str, key: object, on: object) -> dict[str, Any]:
            asked = {"conversation": talks[owner], "draft": "", "key": key, "on": on}
            answer = await browser.post("/meter/save", json=asked)
            assert answer.status_code == 200, answer.text
            return answer.json()

        before = (await browser.post("/meter", json={"conversation": talks["local"]})).json()
        (offer,) = before["savings"]
        assert offer["done"] is False
        for key, on in (("nothing", True), (["x"], True), (offer["key"], "yes")):
            assert (await save("local", key, on))["savings"] == [offer]
        after = await save("local", offer["key"], True)
        assert before["taken"] - after["taken"] == offer["tokens"]
        assert [one["done"] for one in after["savings"]] == [True]
        assert await save("somebody", offer["key"], True) == {}
        assert (await save("local", offer["key"], False))["savings"] == [offer]
