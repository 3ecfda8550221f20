"""What a stranger may make this machine call: the open internet, and nothing that only looks like it."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from openai import AsyncOpenAI

from core.errors import ModelUnavailableError, SettingsError
from core.llm.backends import http_clients
from core.llm.backends.http_clients import PublicTransport, is_public, public_address
from core.llm.backends.openai.service import Heads, offered_models
from core.llm.backends.openai.variants import public_pool
from core.llm.open_model import get_chat_model
from core.testing.model_server import ModelServer
from core.testing.script import Reply

pytestmark = pytest.mark.anyio

HERE = """
    127.0.0.1 127.1.2.3 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 100.100.100.200 224.0.0.1
    255.255.255.255 ::1 :: ::ffff:127.0.0.1 ::ffff:a9fe:a9fe 64:ff9b::7f00:1 2002:7f00:1:: fe80::1 fe80::1%eth0 fc00::1
    fec0::1 ff02::1 240.0.0.1 198.18.0.1
"""
FORMS = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "017700000001",
    "::1",
    "localhost",
    "localhost.",
    "0",
    "①②⑦.0.0.1",
]


@pytest.mark.parametrize("address", HERE.split())
async def test_addresses_of_this_machine_its_network_and_its_cloud_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101"])
async def test_addresses_of_the_open_internet_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", FORMS)
async def test_this_machine_is_refused_in_whatever_form_it_is_written(host: str) -> None:
    with pytest.raises((SettingsError, ModelUnavailableError)):
        await public_address(host, 443)


async def test_one_private_address_among_several_is_enough_to_refuse() -> None:
    async def two(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    with pytest.raises(SettingsError) as caught:
        await public_address("two.example", 443, two)
    assert caught.value.words_key == "address_private"


async def test_the_ports_of_other_services_are_refused() -> None:
    async def fine(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    assert await public_address("a.example", 8443, fine) == "93.184.216.34"
    with pytest.raises(SettingsError):
        await public_address("a.example", 22, fine)


async def test_a_name_nobody_knows_cannot_be_reached() -> None:
    async def none(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(ModelUnavailableError) as caught:
        await public_address("nowhere.example", 443, none)
    assert (caught.value.words_key, caught.value.details["host"]) == ("model_unreachable", "nowhere.example")


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(http_clients, "is_public", lambda address: address == "127.0.0.1")
    with ModelServer(Reply(text="Hello!"), models=["one"]) as server:
        monkeypatch.setattr(http_clients, "PORTS", {server.port})
        async with httpx2.AsyncClient(transport=PublicTransport(resolve)) as client:
            answer = await client.get(f"http://service.example:{server.port}/v1/models")
    assert answer.json()["data"][0]["id"] == "one"
    assert asked == ["service.example"]  # once: a name that changes its mind in between gains nothing


async def test_every_question_asks_for_the_name_anew_and_the_certificate_is_the_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    known: list[object] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    class Looking(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            known.append((request.url.host, request.extensions["sni_hostname"], request.headers["host"]))
            return httpx2.Response(200, json={"choices": []})

    monkeypatch.setattr(http_clients, "is_public", lambda address: address == "127.0.0.1")
    transport = PublicTransport(resolve)
    monkeypatch.setattr(transport, "_inner", Looking())
    heads = Heads()
    async with httpx2.AsyncClient(transport=transport) as http:
        client = AsyncOpenAI(base_url="https://service.example/v1", api_key="k", http_client=http)
        first = await client.post("/chat/completions", cast_to=httpx2.Response, body={})
        heads.note(client, "", first.request)
        second = heads.request(client, http, "", {})
        assert second is not None
        await http.send(second)
    assert asked == ["service.example", "service.example"]
    assert known == [("127.0.0.1", "service.example", "service.example")] * 2


async def test_a_model_at_a_private_address_is_refused_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(Reply(text="Hello!")) as server:
        monkeypatch.setattr(http_clients, "PORTS", {server.port})
        model = get_chat_model(
            {"model_type": "openai_public", "model": "m", "base_url": server.base_url, "api_key": "k"}
        )
        with pytest.raises(SettingsError) as caught:
            await model.achat([{"role": "user", "content": "Hi"}])
        assert caught.value.words_key == "address_private"
        assert await offered_models(server.base_url, "k", public_only=True) == []
        assert server.connections == 0


async def test_a_redirect_is_not_followed() -> None:
    client = http_clients.public_client()
    assert not client.follow_redirects
    await client.aclose()


async def test_a_service_tells_its_models_and_silence_is_no_error() -> None:
    with ModelServer(Reply(text="Hello!"), models=["b", "A", "a\n", "x" * 201]) as server:
        assert await offered_models(server.base_url, "k") == ["A", "b"]
        gone = server.base_url
    assert await offered_models(gone, "k") == []
    assert await offered_models("http://[", "k") == []


def test_a_model_at_a_public_address_answers_on_every_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_clients, "is_public", lambda address: address == "127.0.0.1")
    with ModelServer(Reply(text="Hello!")) as server:
        monkeypatch.setattr(http_clients, "PORTS", {server.port})
        model = get_chat_model(
            {"model_type": "openai_public", "model": "m", "base_url": server.base_url, "api_key": "k"}
        )
        for _ in range(3):  # a loop of its own each time
            (said,) = asyncio.run(model.achat([{"role": "user", "content": "Hi"}]))
            assert said.content == "Hello!"

        async def asked_and_closed() -> None:
            await model.achat([{"role": "user", "content": "Hi"}])
            connections: list[httpx2.AsyncClient] = []

            def noted(http: httpx2.AsyncClient) -> AsyncOpenAI:
                connections.append(http)
                return AsyncOpenAI(api_key="k", http_client=http)

            await public_pool().client(model, "looking", noted)
            await model.aclose()
            assert connections[0].is_closed

        asyncio.run(asked_and_closed())


@pytest.mark.parametrize("key", ["", None])
async def test_the_key_of_this_machine_never_goes_to_an_address_that_a_stranger_typed(
    monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-machine")
    monkeypatch.setattr(http_clients, "is_public", lambda address: address == "127.0.0.1")
    with ModelServer(Reply(text="Hello!")) as server:
        monkeypatch.setattr(http_clients, "PORTS", {server.port})
        model = get_chat_model(
            {"model_type": "openai_public", "model": "m", "base_url": server.base_url, "api_key": key}
        )
        await model.achat([{"role": "user", "content": "Hi"}])
        await model.aclose()
        assert [exchange.key for exchange in server.requests] == ["EMPTY"]
