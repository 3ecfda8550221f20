"""One agent for other programs: OpenAI's protocol, MCP and A2A, each with the client that programs use."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx
import httpx2
import openai
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from core import Agent, Assistant, FnCallAgent, Message, Policy, tool
from core.errors import ModelUnavailableError, SettingsError
from core.languages import Lang
from core.llm.request import ChatRequest, Stream
from core.messages.events import MessageStarted
from core.messages.message import USER
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from webui.agent_doors import a2a_task, app
from webui.agent_doors.a2a import agent_card
from webui.agent_doors.answering import Host
from webui.agent_doors.app import AgentDoors, serve_agent
from webui.server import Server, address_of, bind

TOKEN = "a-long-token-of-this-test"
WAIT = 120  # seconds: a busy machine takes its time, and 5 are the clients' own
WRITTEN: list[str] = []
ALL: dict[str, Any] = {"mcp": True, "openai": True, "a2a": True}

Opened = Callable[..., AbstractContextManager[str]]


@tool
def write_note(text: str) -> str:
    """Write a note."""
    WRITTEN.append(text)
    return "written"


write_note.writes = True  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def nothing_written() -> None:
    WRITTEN.clear()


@contextmanager
def opened(agent: Agent, token: str = TOKEN, **doors: Any) -> Iterator[str]:
    """The agent behind a real server; yields its address."""
    sock = bind("127.0.0.1", 0)
    server = Server(AgentDoors(agent, token=token, **(doors or ALL)), lambda: None)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield address_of("127.0.0.1", sock)
    finally:
        server.should_exit = True
        thread.join()


def heron(*turns: Any) -> FnCallAgent:
    return FnCallAgent([write_note], ScriptedModel(*turns), name="Heron", description="Knows herons.")


def echo(request: ChatRequest) -> Reply:
    return Reply(text=" / ".join(one.get_text_content() for one in request.messages if one.role == USER))


def shown() -> dict[str, str]:
    return {"authorization": f"Bearer {TOKEN}"}


# ---- OpenAI's protocol


def test_the_openai_client_lists_asks_and_streams():
    with opened(heron("They fish.", "With patience.")) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0)
        assert [one.id for one in client.models.list()] == ["Heron"]
        assert client.models.retrieve("Heron").owned_by == "parlour"
        question: Any = [{"role": "user", "content": "What do herons do?"}]
        whole = client.chat.completions.create(model="Heron", messages=question)
        assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("They fish.", "stop")
        assert whole.usage is not None
        assert whole.usage.total_tokens > 0
        pieces = list(client.chat.completions.create(model="Heron", messages=question, stream=True))
        assert "".join(one.choices[0].delta.content or "" for one in pieces) == "With patience."
        with pytest.raises(openai.APIStatusError, match=r"There is no model 'Gull' here\. Ask for 'Heron'\."):
            client.chat.completions.create(model="Gull", messages=question)
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="Heron", input="x")
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{address}/v1", api_key="another-key-1234", max_retries=0).models.list()


def test_what_needs_consent_is_not_done_unless_the_policy_allows_it():
    question: Any = [{"role": "user", "content": "Note it."}]
    turns = (Reply(calls=[("write_note", {"text": "x"})]), "Done.")
    with opened(heron(*turns)) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0)
        said = client.chat.completions.create(model="Heron", messages=question).choices[0].message.content
        assert WRITTEN == []
        assert "Not run: write_note" in (said or "")
    with opened(heron(*turns), **ALL, policy=Policy(allow=("write_note",))) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0)
        assert client.chat.completions.create(model="Heron", messages=question).choices[0].message.content == "Done."
    assert WRITTEN == ["x"]


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "image_url", "image_url": {"url": "/etc/passwd"}}],
        [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}],
        [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}}],
        [{"type": "file", "file": {"file_data": "data:text/plain;base64,aGk=", "filename": "x.txt"}}],
    ],
)
def test_nothing_of_this_machine_or_the_net_is_read_for_a_stranger(content: Any):
    with opened(heron("Never.")) as address:
        body = {"model": "Heron", "messages": [{"role": "user", "content": content}]}
        answer = httpx.post(f"{address}/v1/chat/completions", json=body, headers=shown(), timeout=WAIT)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_a_model_that_fails_is_an_error_with_its_status_and_tools_of_the_program_are_refused():
    broken = FnCallAgent([], ScriptedModel(*[ModelUnavailableError(None, "503", "busy")] * 9), name="Broken")
    with opened(broken) as address:
        body: dict[str, Any] = {"model": "Broken", "messages": [{"role": "user", "content": "?"}]}
        assert httpx.post(f"{address}/v1/chat/completions", json=body, headers=shown(), timeout=WAIT).status_code == 503
        tools = [{"type": "function", "function": {"name": "x"}}]
        answer = httpx.post(
            f"{address}/v1/chat/completions", json={**body, "tools": tools}, headers=shown(), timeout=WAIT
        )
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tools")


# ---- MCP


@pytest.mark.anyio
async def test_the_mcp_client_finds_the_agent_as_a_tool_and_asks_it():
    with opened(heron("They fish.", ModelUnavailableError(None, "503", "busy"))) as address:
        async with (
            httpx2.AsyncClient(headers=shown(), timeout=WAIT) as http,
            streamable_http_client(f"{address}/mcp", http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            assert (await session.initialize()).instructions == "Knows herons."
            (found,) = (await session.list_tools()).tools
            assert (found.name, found.title, found.description) == ("ask", "Heron", "Knows herons.")
            said = await session.call_tool("ask", {"question": "What do herons do?"})
            assert [getattr(one, "text", None) for one in said.content] == ["They fish."]
            assert (await session.call_tool("ask", {"question": 7})).is_error
            assert (await session.call_tool("other", {})).is_error


@pytest.mark.anyio
async def test_who_asks_over_mcp_and_wants_to_know_is_told_what_the_agent_does():
    told: list[tuple[float, float | None, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    with opened(heron(Reply(calls=[("write_note", {"text": "x"})]), "Far.")) as address:
        async with (
            httpx2.AsyncClient(headers=shown(), timeout=WAIT) as http,
            streamable_http_client(f"{address}/mcp", http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            said = await session.call_tool("ask", {"question": "How far?"}, progress_callback=heard)
    assert getattr(said.content[0], "text", "").startswith("Far.")
    assert told == [(1.0, None, "The tool write_note is called."), (2.0, None, "The tool write_note failed.")]


# ---- A2A


def rpc(address: str, method: str, params: Any, name: object = 1) -> Any:
    body = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
    answer = httpx.post(f"{address}/a2a", json=body, headers=shown(), timeout=WAIT)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["jsonrpc"], told["id"]) == ("2.0", name)
    return told.get("result") or told["error"]


def older(text: str, **more: Any) -> Any:
    return {
        "message": {
            "kind": "message",
            "role": "user",
            "messageId": "m",
            "parts": [{"kind": "text", "text": text}],
            **more,
        }
    }


def newer(text: str, **more: Any) -> Any:
    return {"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": text}], **more}}


def test_anybody_reads_the_card_and_only_the_token_opens_the_agent():
    with opened(heron("Yes.")) as address:
        card = httpx.get(f"{address}/.well-known/agent-card.json", timeout=WAIT).json()
        assert (card["name"], card["description"], card["url"]) == ("Heron", "Knows herons.", f"{address}/a2a")
        assert [one["protocolVersion"] for one in card["supportedInterfaces"]] == ["1.0", "0.3"]
        assert card["security"] == [{"bearer": []}]
        for path in ("/a2a", "/v1/models", "/mcp"):
            for headers in ({}, {"authorization": "Bearer wrong-token-here"}, {"authorization": TOKEN}):
                assert httpx.post(f"{address}{path}", json={}, headers=headers, timeout=WAIT).status_code == 401
        assert httpx.get(f"{address}/other", headers=shown(), timeout=WAIT).status_code == 404
    assert "security" not in agent_card(Host(heron(), Policy()), "http://127.0.0.1", token=False)


def test_a_message_of_version_0_3_gives_a_task_and_the_conversation_goes_on():
    with opened(FnCallAgent([], ScriptedModel(echo, echo, echo), name="Echo")) as address:
        task = rpc(address, "message/send", older("One"))
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "One"}]
        assert task["history"][0]["parts"][0]["text"] == "One"
        again = rpc(address, "message/send", older("Two", contextId=task["contextId"]))
        assert again["artifacts"][0]["parts"][0]["text"] == "One / Two"
        third = rpc(address, "message/send", older("Three", taskId=again["id"]))
        assert third["contextId"] == task["contextId"]
        assert rpc(address, "tasks/get", {"id": task["id"]}) == task
        assert rpc(address, "tasks/cancel", {"id": task["id"]})["code"] == -32002
        assert rpc(address, "tasks/get", {"id": "gone"})["code"] == -32001


def test_a_message_of_version_1_0_has_its_own_words():
    with opened(heron("They fish.")) as address:
        task = rpc(address, "SendMessage", newer("What do herons do?"))["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert task["artifacts"][0]["parts"] == [{"text": "They fish."}]
        assert rpc(address, "GetTask", {"id": task["id"]}) == task


@pytest.mark.parametrize(("method", "params"), [("message/stream", older("Q?")), ("SendStreamingMessage", newer("Q?"))])
def test_a_stream_tells_the_task_its_words_and_its_end(method: str, params: Any):
    with opened(heron("They fish with patience.")) as address:
        body = {"jsonrpc": "2.0", "id": "s", "method": method, "params": params}
        with httpx.stream("POST", f"{address}/a2a", json=body, headers=shown(), timeout=WAIT) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            told = [json.loads(line[6:])["result"] for line in answer.iter_lines() if line.startswith("data: ")]
    is_new = method == "SendStreamingMessage"
    assert told[0]["task"]["id"] if is_new else told[0]["kind"] == "task"
    more = [one["artifactUpdate"] if is_new else one for one in told[1:-1]]
    assert "".join(one["artifact"]["parts"][0]["text"] for one in more) == "They fish with patience."
    assert [one["append"] for one in more] == [False, *[True] * (len(more) - 1)]
    state = told[-1]["statusUpdate"]["status"]["state"] if is_new else told[-1]["status"]["state"]
    assert state == ("TASK_STATE_COMPLETED" if is_new else "completed")
    assert is_new or told[-1]["final"] is True


def test_a_task_that_works_is_cancelled_and_one_that_fails_says_why():
    begun, forever = threading.Event(), asyncio.Event()

    class Slow(Agent):
        async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
            del messages, lang, kwargs
            begun.set()
            await forever.wait()
            yield MessageStarted()

    with opened(Slow(name="Slow")) as address:
        task = rpc(address, "message/send", {**older("Q?"), "configuration": {"blocking": False}})
        assert begun.wait(WAIT)
        assert rpc(address, "tasks/get", {"id": task["id"]})["status"]["state"] == "working"
        assert rpc(address, "message/send", older("More", taskId=task["id"]))["code"] == -32602
        assert rpc(address, "tasks/cancel", {"id": task["id"]})["status"]["state"] == "canceled"
    with opened(heron(*[ModelUnavailableError(None, "503", "busy")] * 9)) as address:
        task = rpc(address, "message/send", older("Q?"))
        assert task["status"]["state"] == "failed"
        assert "busy" in task["status"]["message"]["parts"][0]["text"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32700),
        (b"{}", -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "agent/x"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "message/send"}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"parts": []}}}', -32602),
        (b'{"jsonrpc": "2.0", "method": "message/send", "params": {"message": {"parts": [{"text": " "}]}}}', -32602),
        (b'{"jsonrpc": "2.0", "method": "message/send", "params": {"message": {"parts": [{"url": "x"}]}}}', -32005),
        (b'{"jsonrpc": "2.0", "method": "message/send", "params": {"message": {"parts": [7]}}}', -32005),
    ],
)
def test_what_is_no_request_is_refused_with_the_protocols_own_code(body: bytes, code: int):
    with opened(heron("Never."), a2a=True) as address:
        answer = httpx.post(f"{address}/a2a", content=body, headers=shown(), timeout=WAIT)
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"parts": [{"data": "[NESTED]"}]}, -32602),
        ({"parts": [{"text": "Q?"}], "metadata": {"x": "[NESTED]"}}, -32602),
        ({"parts": [{"text": "Q?"}], "metadata": {"x": "x" * 300_000}}, -32602),
        ({"parts": [{"text": "Q?", "metadata": {"x": "x" * 300_000}}]}, -32602),
    ],
)
def test_what_comes_with_a_message_is_bounded_too_for_it_is_kept(more: Any, code: int):
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"role": "user", **more}}}
    deep = 900
    raw = json.dumps(body).replace('"[NESTED]"', "[" * deep + "]" * deep)
    with opened(heron("Never."), a2a=True) as address:
        answer = httpx.post(f"{address}/a2a", content=raw, headers=shown(), timeout=WAIT)
    assert answer.json()["error"]["code"] == code


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/a2a", "/v1/chat/completions"])
async def test_a_request_that_breaks_off_is_no_error_of_the_server(path: str):
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        del message

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    await AgentDoors(heron("Never."), a2a=True, openai=True, token=TOKEN)(scope, receive, send)


@pytest.mark.anyio
async def test_no_more_than_so_many_tasks_wait_at_once(monkeypatch: pytest.MonkeyPatch):
    forever = asyncio.Event()

    class Slow(Agent):
        async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
            del messages, lang, kwargs
            await forever.wait()
            yield MessageStarted()

    monkeypatch.setattr(a2a_task, "_MOST_TASKS", 2)
    doors = AgentDoors(Slow(name="Slow"), a2a=True, token=TOKEN)
    asked = {**older("Q?"), "configuration": {"blocking": False}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": asked}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(doors), base_url="http://localhost") as client:
        told = [(await client.post("/a2a", json=body, headers=shown())).json() for _ in range(3)]
    await doors.aclose()
    assert ["result" in one for one in told] == [True, True, False]
    assert told[2]["error"] == {"code": -32603, "message": "Too many tasks are under way; ask again later."}


# ---- who may come in


def test_without_a_token_only_programs_of_this_machine_are_answered():
    with opened(heron("Yes."), token="off", openai=True) as address:
        assert httpx.get(f"{address}/v1/models", timeout=WAIT).status_code == 200
        for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            assert httpx.get(f"{address}/v1/models", headers=headers, timeout=WAIT).status_code == 403


def test_what_makes_no_sense_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    agent = heron("Never.")
    for wrong, said in (
        ({"token": "short", "openai": True}, "token must be a text of at least 8"),
        ({"token": TOKEN}, "No door is open"),
        ({"token": TOKEN, "openai": True, "at_once": 0}, "at_once must be a whole number from 1, not 0"),
        ({"token": TOKEN, "openai": True, "policy": "never"}, "approval must be a Policy, not str"),
    ):
        with pytest.raises(SettingsError, match=said):
            AgentDoors(agent, **wrong)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="agent must be an Agent, not str"):
        AgentDoors("Heron", token=TOKEN, openai=True)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="Nothing is to be served"):
        agent.serve(page=False)
    with pytest.raises(SettingsError, match=r"Others can reach 0\.0\.0\.0, so the agent needs a token"):
        agent.serve(openai=True, host="0.0.0.0", token="off")
    monkeypatch.setenv("PARLOUR_TOKEN", "off")
    with pytest.raises(SettingsError, match="so the agent needs a token"):
        serve_agent(agent, a2a=True, host="0.0.0.0")


def test_an_assistant_without_a_name_is_called_by_its_kind():
    assert Host(Assistant([], ScriptedModel()), Policy()).name == "Assistant"


# ---- the page beside them


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://127.0.0.1:7860", "Heron is served at:\n  http://127.0.0.1:7860/v1\nToken: secret\n"),
        ("", "Heron is served to programs, below the address of the page, at:\n  /v1\nToken for programs: secret\n"),
    ],
)
def test_the_terminal_tells_which_token_is_for_what(address: str, told: str, capsys: pytest.CaptureFixture[str]):
    vars(app)["_say"](AgentDoors(heron("They fish."), token=TOKEN, openai=True), address, "secret")
    assert capsys.readouterr().err == told


@pytest.mark.anyio
async def test_before_a_page_each_request_goes_to_one_of_both_and_both_end_together(monkeypatch: pytest.MonkeyPatch):
    ended: list[str] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            ended.append((await receive())["type"])
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"the page"})

    doors = AgentDoors(heron("They fish."), token=TOKEN, openai=True, a2a=True)
    monkeypatch.setattr(doors, "aclose", closing(ended, doors.aclose))
    front: Any = vars(app)["_Front"](doors, page)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://127.0.0.1") as client:
        assert (await client.get("/")).text == (await client.get("/v1more")).text == "the page"
        assert (await client.get("/v1/models")).status_code == 401
        assert (await client.get("/v1/models", headers=shown())).json()["data"][0]["id"] == "Heron"
        assert (await client.get("/.well-known/agent-card.json")).json()["name"] == "Heron"
        assert (await client.get("/mcp")).text == "the page"  # that door is not open

    async def shutdown() -> dict[str, Any]:
        return {"type": "lifespan.shutdown"}

    async def nobody(message: Any) -> None:
        raise AssertionError(message)

    await front({"type": "lifespan"}, shutdown, nobody)
    assert ended == ["the doors", "lifespan.shutdown"]


def closing(ended: list[str], close: Callable[[], Any]) -> Callable[[], Any]:
    async def closed() -> None:
        ended.append("the doors")
        await close()

    return closed
