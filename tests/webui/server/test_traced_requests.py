"""A question of the page and a request of a program are spans of their own: all that is done for them lies in them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import text
from starlette.types import Message

from core import observing
from core.engine import Engine
from core.export.traces import trace_in, trace_to
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.collected_spans import collected, own, parent
from tests.doors.house import House, house_in
from webui.context import WebContext
from webui.handlers.wiring import Handlers
from webui.requests import TracedRequest, asked_on_page
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{CALLER}-01"
JOIN = "POST /gradio_api/queue/join"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    with collected(monkeypatch) as exporter:
        yield exporter


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("traced") / "home") as house:
        yield house


def named(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = (one for one in spans.get_finished_spans() if one.name == name)
    return found


def told(one: ReadableSpan) -> dict[str, Any]:
    return dict(one.attributes or {})


def tab(**headers: str) -> Any:
    given = {"referer": "http://127.0.0.1/", **headers}
    return SimpleNamespace(session_hash="one", username="alice", headers=given)


async def asked(engine: Engine, folder: Path, text: str, request: Any) -> None:
    """Send a question from the page, and follow its reply to the end."""
    handlers = Handlers(WebContext(engine, engine.settings, Words.of), Uploads(folder / "tmp", 1000))
    with anyio.fail_after(30):
        await handlers.opened(request)
        await handlers.send({"text": text, "files": []}, request)
        async for _ in handlers.follow(request):
            pass
        view = handlers.views.of(request)
        while (run := engine.runs.live(view.conversation_id)) is not None:
            await run.wait()


async def test_the_pages_question_its_run_and_the_calls_of_its_model_are_one_trace_that_the_browser_named(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", code="off", titles=False)
    async with Engine(settings, model=ScriptedModel("A plum pudding.")) as engine:
        await asked(engine, tmp_path, "What is it?", tab(traceparent=CONTEXT))
    request, run, call = named(spans, JOIN), named(spans, "invoke_agent parlour"), named(spans, "chat scripted")
    assert request.kind is trace.SpanKind.SERVER
    assert (f"{own(request).trace_id:032x}", f"{parent(request):016x}") == (TRACE, CALLER)
    assert (parent(run), parent(call)) == (own(request).span_id, own(run).span_id)
    assert told(request) == {
        "http.request.method": "POST",
        "http.route": "/gradio_api/queue/join",
        "url.path": "/gradio_api/queue/join",
        "url.scheme": "http",
        "http.response.status_code": 200,
    }


async def test_a_reply_that_another_process_writes_lies_in_the_request_that_asked_for_it_as_its_wait_does(
    tmp_path: Path, postgres: str, spans: InMemorySpanExporter
) -> None:
    given: Any = {"database": postgres, "retrieval": "keyword", "code": "off", "secret": "x" * 20, "titles": False}
    async with AsyncExitStack() as opened:
        web, _ = [
            await opened.enter_async_context(
                Engine(Settings.load(home=tmp_path / role, role=role, **given), model=ScriptedModel("Said."))
            )
            for role in ("web", "worker")
        ]
        await asked(web, tmp_path, "Who writes?", tab(traceparent=CONTEXT))
        with anyio.fail_after(20):
            while not any(one.name == "invoke_agent parlour" for one in spans.get_finished_spans()):
                await asyncio.sleep(0.01)  # between two looks
    request, run = named(spans, JOIN), named(spans, "invoke_agent parlour")
    wait, call = named(spans, "queue"), named(spans, "chat scripted")
    assert {f"{own(one).trace_id:032x}" for one in (request, run, wait, call)} == {TRACE}
    assert (parent(run), parent(wait), parent(call)) == (*[own(request).span_id] * 2, own(run).span_id)
    assert told(wait)["parlour.queue"] == "processes"
    assert (wait.start_time or 0) <= (wait.end_time or 0) <= (run.end_time or 0)


async def test_a_third_reply_tells_how_long_it_waited_for_the_owners_others(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off", titles=False, replies_at_once=1)
    async with Engine(settings, model=ScriptedModel(Reply("word " * 40, pace=0.01), "Second.")) as engine:
        handlers = Handlers(WebContext(engine, engine.settings, Words.of), Uploads(tmp_path / "tmp", 1000))
        runs: list[Any] = []
        for number in range(2):
            request = tab()
            request.session_hash = str(number)
            await handlers.opened(request)
            await handlers.send({"text": "Write.", "files": []}, request)
            runs.append(engine.runs.live(handlers.views.of(request).conversation_id))
        for run in runs:
            assert await run.wait() == "complete"
    wait = named(spans, "queue")
    (second,) = (
        one for one in spans.get_finished_spans() if told(one).get("parlour.run_id") == runs[1].id and one is not wait
    )
    assert (parent(wait), told(wait)["parlour.queue"]) == (own(second).span_id, "replies at once")


def test_a_programs_request_is_a_span_until_the_last_of_its_stream_and_its_calls_lie_in_it(
    doors: House, spans: InMemorySpanExporter
) -> None:
    doors.says(Reply(text="It is forty-two."))
    headers = {"authorization": f"Bearer {doors.key('spans')}", "traceparent": CONTEXT}
    asked = {"model": "parlour", "stream": True, "messages": [{"role": "user", "content": "plum pudding"}]}
    with httpx.Client(base_url=doors.base_url, headers=headers, timeout=30) as client:
        answer = client.post("/chat/completions", json=asked)
        assert "forty-two" in answer.text
        assert client.get("/files/file-0123456789abcdef").status_code == 404
    whole = named(spans, "POST /v1/chat/completions")
    assert (f"{own(whole).trace_id:032x}", f"{parent(whole):016x}") == (TRACE, CALLER)
    assert (whole.kind, told(whole)["http.response.status_code"]) == (trace.SpanKind.SERVER, 200)
    calls = [one for one in spans.get_finished_spans() if one.name.startswith("chat ")]
    assert calls
    inside = {own(one).span_id: one for one in spans.get_finished_spans()}
    for call in calls:
        at = call
        while at is not whole:
            at = inside[parent(at)]
        assert (whole.end_time or 0) >= (call.end_time or 0)
    file = named(spans, "GET /v1/files/{file_id}")
    assert told(file)["http.response.status_code"] == 404
    assert file.status.status_code is trace.StatusCode.UNSET, "what its caller does wrong is no error of the server"
    said = " ".join(one.to_json() for one in spans.get_finished_spans())
    assert not any(word in said for word in ("pudding", "Bearer", "forty-two"))


async def sent(*messages: Message) -> list[Message]:
    """What such an answer becomes behind a span."""
    seen: list[Message] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for one in messages:
            await send(one)
        if not messages:
            raise RuntimeError("secret")

    async def take(message: Message) -> None:
        seen.append(message)

    scope = {"type": "http", "method": "GET", "path": "/v1/x", "scheme": "https", "headers": []}
    await TracedRequest(app, "/v1/x")(scope, None, take)  # type: ignore[arg-type] - nothing is read
    return seen


async def test_what_fails_at_the_server_is_a_failed_span_and_the_answer_is_as_it_was(
    spans: InMemorySpanExporter,
) -> None:
    start = {"type": "http.response.start", "status": 503, "headers": []}
    assert await sent(start) == [start]
    with pytest.raises(RuntimeError):
        await sent()
    failed, broken = spans.get_finished_spans()
    assert [one.status.status_code for one in (failed, broken)] == [trace.StatusCode.ERROR] * 2
    assert [told(one)["error.type"] for one in (failed, broken)] == ["503", "RuntimeError"]
    assert "secret" not in failed.to_json() + broken.to_json()


@pytest.mark.parametrize(
    ("context", "is_honoured"),
    [
        (CONTEXT, True),
        (f"01-{TRACE}-{CALLER}-01-more", True),
        (f"ff-{TRACE}-{CALLER}-01", False),
        (f"00-{'0' * 32}-{CALLER}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{CALLER}-01", False),
        ("00-" + "a" * 100_000, False),
        ("", False),
    ],
)
async def test_only_what_the_standard_allows_names_the_trace_of_a_request(
    spans: InMemorySpanExporter, context: str, is_honoured: bool
) -> None:
    with asked_on_page(tab(traceparent=context)):
        pass
    (request,) = spans.get_finished_spans()
    assert (f"{own(request).trace_id:032x}" == TRACE) is is_honoured


async def test_a_caller_that_does_not_keep_its_trace_has_none_kept_here(spans: InMemorySpanExporter) -> None:
    with asked_on_page(tab(traceparent=CONTEXT[:-1] + "0")):
        pass
    assert spans.get_finished_spans() == ()


async def test_what_is_only_looked_at_is_no_span_and_an_act_that_asks_is_one(spans: InMemorySpanExporter) -> None:
    for message in ('{"do": "look"}', "nothing", "[]", '{"do": ["edit"]}'):
        with asked_on_page(tab(), message):
            pass
    assert spans.get_finished_spans() == ()
    with asked_on_page(tab(), '{"do": "regenerate", "id": "x"}'):
        pass
    assert len(spans.get_finished_spans()) == 1


async def test_where_nobody_is_told_nothing_is_spent_and_nothing_stands_in_the_rows(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> Any:
        raise AssertionError("A span was begun.")

    for place in ("core.observing", "webui.requests", "webui.handlers.wiring", "core.runs.taking", "core.runs.ledger"):
        monkeypatch.setattr(f"{place}.is_traced", lambda: False)
    monkeypatch.setattr("webui.requests.begun", never)
    settings = Settings.load(
        home=tmp_path / "home", database=postgres, retrieval="keyword", code="off", secret="x" * 20, titles=False
    )
    async with Engine(settings, model=ScriptedModel("Said.")) as engine:
        await asked(engine, tmp_path, "Who?", tab(traceparent=CONTEXT))
        query = "SELECT kind FROM run_events"
        kinds = await engine.stores.database.read(lambda c: {str(row[0]) for row in c.execute(text(query))})
    assert "asked_for" in kinds
    assert "traced_within" not in kinds
    await sent({"type": "http.response.start", "status": 200, "headers": []})


async def test_a_trace_that_is_kept_in_a_file_has_the_request_that_it_was_done_for(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", code="off", titles=False)
    with trace_to(tmp_path / "traces.jsonl"):
        async with Engine(settings, model=ScriptedModel("Said.")) as engine:
            await asked(engine, tmp_path, "What is it?", tab(traceparent=CONTEXT))
    found = trace_in(tmp_path / "traces.jsonl", TRACE)
    (request,) = found.roots
    (run,) = request.inside
    assert (found.name, request.name, run.name) == ("parlour", JOIN, "parlour")
    assert [one.kind for one in run.inside] == ["model"]
    assert observing.context_now() == ""
