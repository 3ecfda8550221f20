"""Programs ask for responses over one WebSocket, turn by turn, and go on from what is not stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from core.engine import Engine
from core.testing.script import Reply, refusal
from tests.doors.house import OWNER, House, house_in
from webui.doors import socket
from webui.doors.socket import MOST_OPEN


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("sockets") / "home") as house:
        yield house


@pytest.fixture(scope="module")
def key(house: House) -> str:
    return house.key("tests")


@pytest.fixture(scope="module")
def client(house: House, key: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
        yield client


def opened(house: House, key: str, **headers: str) -> ClientConnection:
    address = house.base_url.replace("http", "ws") + "/responses"
    return connect(address, additional_headers={"Authorization": f"Bearer {key}", **headers})


def turn(over: ClientConnection, **asked: Any) -> list[dict[str, Any]]:
    """The events of one turn."""
    over.send(json.dumps({"type": "response.create", "model": "installed", **asked}))
    return told(over)


def told(over: ClientConnection) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] not in {"response.completed", "response.failed", "error"}:
        events.append(json.loads(over.recv(timeout=20)))
    return events


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # how the package uses another one
@pytest.mark.parametrize("model", ["installed", "parlour"])
def test_the_openai_package_asks_turn_by_turn_and_goes_on_from_what_is_not_stored(
    client: OpenAI, house: House, model: str
) -> None:
    house.says("Hello, world.", "Again.")
    with client.responses.connect() as over:
        over.response.create(model=model, input="Hello?", store=False, stream_id="main")
        events: list[Any] = []
        while not events or events[-1].type != "response.completed":
            events.append(over.recv())
        assert [one.type for one in events][:2] == ["response.created", "response.in_progress"]
        assert [getattr(one, "sequence_number", None) for one in events] == list(range(len(events)))
        assert {getattr(one, "stream_id", None) for one in events} == {"main"}
        first: Any = events[-1]
        assert first.response.output_text == "Hello, world."
        over.response.create(model=model, input="And?", store=False, previous_response_id=first.response.id)
        while (last := over.recv()).type != "response.completed":
            assert last.type != "error"
    assert [one["role"] for one in house.model.requests[-1].body["messages"]][-3:] == ["user", "assistant", "user"]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.response.id)


def test_a_question_about_a_call_is_answered_over_the_connection_that_remembers_it(house: House, key: str) -> None:
    rules = house.engine.toolbox.of(OWNER).rules
    house.do(lambda _: rules.change(mode="always"))
    house.says(Reply(calls=[("calculator", {"expression": "17 * 23"})]), "Done.")
    try:
        with opened(house, key) as over:
            made = turn(over, model="parlour", input="17 * 23?", store=False)[-1]["response"]
            answer = {"type": "mcp_approval_response", "approval_request_id": made["output"][0]["id"], "approve": True}
            asked = {"model": "parlour", "input": [answer], "store": False, "previous_response_id": made["id"]}
            after = turn(over, **asked)[-1]["response"]
            assert "391" in after["output"][0]["output"]
            assert (
                turn(over, **asked)[-1]["error"]["code"] == "previous_response_not_found"
            )  # a newer one is remembered
    finally:
        house.do(lambda _: rules.change(mode="writes"))


def test_one_that_failed_is_not_gone_on_from_and_another_connection_remembers_nothing(house: House, key: str) -> None:
    house.says("One.", refusal(400, "No."), "Two.")
    with opened(house, key) as over:
        first = turn(over, input="1", store=False)[-1]["response"]["id"]
        failed = turn(over, input="2", store=False, previous_response_id=first)[-1]
        assert (failed["type"], failed["status"]) == ("error", 400)
        gone = turn(over, input="3", store=False, previous_response_id=first)[-1]
        assert (gone["status"], gone["error"]["code"]) == (400, "previous_response_not_found")
        second = turn(over, input="4", store=False)[-1]["response"]["id"]
        result = {"type": "function_call_output", "call_id": "call_nobody", "output": "Sun."}
        failed = turn(over, input=[result], store=False, previous_response_id=second)[-1]
        assert (failed["status"], failed["error"]["param"]) == (400, "input[0].call_id")
    with opened(house, key) as over:
        gone = turn(over, input="5", store=False, previous_response_id=second)[-1]
        assert (gone["status"], gone["error"]["code"]) == (400, "previous_response_not_found")
        assert gone["error"]["param"] == "previous_response_id"


def test_messages_are_answered_in_turn_and_a_connection_outlives_what_it_cannot_read(house: House, key: str) -> None:
    house.says("One.", "Two.")
    with opened(house, key) as over:
        for wrong in ("no JSON", "[1]", '{"type": "response.steer"}', '{"type": "response.create", "generate": false}'):
            over.send(wrong)
            (error,) = told(over)
            assert (error["status"], error["error"]["type"]) == (400, "invalid_request_error")
        over.send(b"\x00")
        assert told(over)[-1]["error"]["code"] == "invalid_json"
        for number in "12":
            asked = {"type": "response.create", "model": "installed", "input": number, "stream_id": number}
            over.send(json.dumps({**asked, "stream": False, "background": True, "stream_options": {}}))
        first, second = told(over), told(over)
    assert [{one["stream_id"] for one in first}, {one["stream_id"] for one in second}] == [{"1"}, {"2"}]
    assert [one[-1]["response"]["output"][-1]["content"][0]["text"] for one in (first, second)] == ["One.", "Two."]


def test_what_waits_in_a_connection_is_no_longer_together_than_one_message_may_be(house: House, key: str) -> None:
    house.says(Reply(text=["Slowly. "] * 3, pace=0.2), "Second.")
    long = json.dumps({"type": "response.create", "model": "installed", "input": "Hello?", "padding": "a" * 6_000_000})
    with opened(house, key) as over:
        over.send(json.dumps({"type": "response.create", "model": "installed", "input": "Hello?"}))
        assert json.loads(over.recv(timeout=20))["type"] == "response.created"
        over.send(long)
        over.send(long)
        events = told(over)
        assert (events[-1]["status"], events[-1]["error"]["code"]) == (429, "too_many_messages")
        assert told(over)[-1]["type"] == "response.completed"
        assert told(over)[-1]["type"] == "response.completed", "what waited is answered"


def test_who_may_not_ask_is_refused_before_there_is_a_connection(house: House, key: str) -> None:
    for shown, headers, status in (
        ("sk-nobody", {}, 401),
        (house.key("files", scopes=["files"]), {}, 403),
        (key, {"Origin": "https://elsewhere.example"}, 403),
    ):
        with pytest.raises(InvalidStatus) as caught, opened(house, shown, **headers):
            pass
        assert caught.value.response.status_code == status
        assert b'"error"' in (caught.value.response.body or b"")


def test_a_key_that_is_revoked_meanwhile_asks_no_more(house: House) -> None:
    shown = house.key("short")

    async def revoke(engine: Engine) -> None:
        keys = engine.stores.of(OWNER).api_keys
        await keys.revoke(next(one.id for one in await keys.list() if one.name == "short"))

    with opened(house, shown) as over:
        house.do(revoke)
        assert turn(over, input="1")[-1]["status"] == 401


def test_a_connection_ends_after_an_hour_and_a_key_has_so_many(
    house: House, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(socket, "LONGEST", 0.01)
        with opened(house, key) as over:
            error = json.loads(over.recv(timeout=20))
            assert (error["status"], error["error"]["code"]) == (400, "websocket_connection_limit_reached")
            assert not list(over)
    assert MOST_OPEN == 64
    monkeypatch.setattr(socket, "MOST_OPEN", 1)
    with opened(house, key):
        with pytest.raises(InvalidStatus) as caught, opened(house, key):
            pass
        assert caught.value.response.status_code == 429
