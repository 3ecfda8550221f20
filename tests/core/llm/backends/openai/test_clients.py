"""The first of many questions at once pays for nothing on the loop."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import openai
import pytest

from core.bridge.sync import run
from core.errors import ModelServiceError
from core.llm.backends.http_clients import HttpPool
from core.llm.backends.openai.service import MOST_CLIENTS, ClientPool
from core.llm.open_model import get_chat_model
from core.testing.script import Reply

pytestmark = pytest.mark.anyio


@pytest.fixture
def loaded_by(monkeypatch) -> list[str]:
    """The threads in which the list of trusted certificates was read, by name."""
    threads: list[str] = []
    read = httpx2.create_ssl_context

    def told(*args, **more):
        threads.append(threading.current_thread().name)
        return read(*args, **more)

    monkeypatch.setattr(httpx2, "create_ssl_context", told)
    return threads


def made(http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="any", base_url="http://127.0.0.1:9/v1", http_client=http)


async def test_certificates_are_read_once_and_beside_the_loop(loaded_by):
    pool = ClientPool(HttpPool())
    clients = await asyncio.gather(*(pool.client(user, "service", made) for user in map(str, range(30))))
    assert len(set(map(id, clients))) == 1
    assert len(loaded_by) == 1
    assert loaded_by[0] != threading.current_thread().name
    for user in map(str, range(30)):
        await pool.release(user)


async def test_services_have_clients_of_their_own_and_share_connections(loaded_by):
    pool = ClientPool(HttpPool())
    connections: list[httpx2.AsyncClient] = []

    def noted(http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        connections.append(http)
        return made(http)

    assert await pool.client("user", "one", noted) is not await pool.client("user", "other", noted)
    assert connections[0] is connections[1]
    await pool.release("user")
    assert connections[0].is_closed
    await pool.client("user", "one", noted)
    assert not connections[2].is_closed
    await pool.release("user")
    assert len(loaded_by) == 1


async def test_a_client_that_cannot_be_made_leaves_nothing_behind():
    pool = ClientPool(HttpPool())

    def failing(http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        raise openai.OpenAIError("no key")

    with pytest.raises(openai.OpenAIError):
        await pool.client("user", "service", failing)
    assert (await pool.client("user", "service", made)).api_key == "any"
    await pool.release("user")


async def test_fifty_first_questions_at_once_are_answered(server, opened):
    server.add(*(Reply(text="a") for _ in range(50)))
    model = opened()
    await model.prepare()
    replies = await asyncio.gather(*(model.achat([{"role": "user", "content": "q"}]) for _ in range(50)))
    await model.aclose()
    assert [reply[0].content for reply in replies] == ["a"] * 50


def test_after_preparing_the_first_question_imports_nothing():
    script = """
import asyncio, sys
from core.llm.open_model import get_chat_model
from core.testing.model_server import ModelServer
from core.llm.open_model import get_chat_model
from core.testing.script import Reply

async def main():
    with ModelServer(Reply(text="a")) as server:
        model = get_chat_model({"model": "m", "base_url": server.base_url, "api_key": "any"})
        await model.prepare()
        known = set(sys.modules)
        await model.achat([{"role": "user", "content": "q"}])
        await model.aclose()
    print(sorted(name for name in set(sys.modules) - known if name.split(".")[0] != "encodings"))

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_keys_without_end_do_not_fill_the_memory():
    pool = ClientPool(HttpPool())
    first = await pool.client("user", "first", made)
    gone = weakref.ref(first)
    del first
    for number in range(MOST_CLIENTS):
        await pool.client("user", number, made)
    gc.collect()
    assert gone() is None
    again = await pool.client("user", "first", made)
    assert again is await pool.client("user", "first", made)
    await pool.release("user")


@pytest.mark.parametrize("meant", [True, False])
def test_the_vendors_key_goes_where_its_variables_say_and_to_no_stranger(server, monkeypatch, meant):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-0123")
    if meant:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    server.add(Reply(text="fine"))
    model = get_chat_model({"model": "m", "model_type": "openai", "base_url": server.base_url})
    assert model.quick_chat("q") == "fine"
    assert (server.requests[0].key == "sk-of-openai-0123") is meant
    run(model.aclose())


def test_a_key_does_not_follow_a_service_that_points_elsewhere(server):
    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(307)
            self.send_header("location", f"{server.base_url}/chat/completions")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format, *args): ...

    other = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=other.serve_forever, args=(0.01,))
    thread.start()
    address = f"http://127.0.0.1:{other.server_port}/v1"
    model = get_chat_model({"model": "m", "model_type": "openai", "base_url": address, "api_key": "sk-0123"})
    with pytest.raises(ModelServiceError, match="another address") as caught:
        model.quick_chat("q")
    other.shutdown()
    other.server_close()
    thread.join()
    assert server.base_url in caught.value.hint
    assert caught.value.details["place"] == server.base_url
    assert server.requests == []
    run(model.aclose())
