"""A server that is told to stop ends within the time that it names, whatever is held open and whatever hangs."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request
from tests.e2e.app_process import ROOT, AppProcess
from webui.server import LAST

HANGS = """
import asyncio, ctypes, os, signal, sys, threading, time
from webui.server import Server, bind

async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    print("closing", flush=True)
    if sys.argv[1] == "loop":
        time.sleep(600)
    if sys.argv[1] == "interpreter":
        ctypes.PyDLL(None).sleep(600)
    if sys.argv[1] == "log":
        os.set_blocking(2, False)
        try:
            while True:
                os.write(2, bytes(4096))
        except BlockingIOError:
            os.set_blocking(2, True)
    if sys.argv[1] == "task":
        await asyncio.Event().wait()
    await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)

server = Server(app, lambda: None, last=float(sys.argv[2]), slow=lambda: print("it takes a while", flush=True))
threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGTERM)).start()
server.run(sockets=[bind("127.0.0.1", 0)])
"""


def test_what_hangs_while_it_closes_keeps_no_process_alive_and_is_named() -> None:
    for how in ("loop", "task", "thread"):
        command = [sys.executable, "-c", HANGS, how, "1"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (1, "closing\n"), done.stderr
        assert "was not closed after 1 seconds" in done.stderr
        assert "most recent call first" in done.stderr, "where it hung"


def test_whoever_waits_for_an_end_of_some_seconds_hears_that_it_comes() -> None:
    command = [sys.executable, "-c", HANGS, "task", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "closing\nit takes a while\n", done.stderr


def test_neither_who_holds_the_interpreter_nor_a_log_that_nobody_takes_keeps_it_alive() -> None:
    for how in ("interpreter", "log"):
        command = [sys.executable, "-c", HANGS, how, "1"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as hung:
            try:
                assert hung.wait(15) == 1
            finally:
                hung.kill()


GOES_ON = """
import asyncio, signal, sys, time
from contextlib import asynccontextmanager
from core import BasicAgent
from webui import server, serving, web_ui

how = sys.argv[1]
web_ui.LAST = 1.0

@asynccontextmanager
async def open_app(*_, **__):
    asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
    yield None
    print("closing", flush=True)
    if how == "hangs":
        time.sleep(600)

serving.open_app = open_app
web_ui.WebUI(BasicAgent(llm={"model_type": "llama_cpp"})).run(server_port=0)
time.sleep(3.0)  # longer than the server may take to close: this is the program's own time
print("went on", flush=True)
"""


@pytest.mark.parametrize(("how", "code", "said"), [("hangs", 1, "closing\n"), ("closes", 0, "closing\nwent on\n")])
def test_a_page_in_a_program_ends_it_only_where_closing_hangs_and_else_lets_it_go_on(
    tmp_path: Path, how: str, code: int, said: str
) -> None:
    command, given = [sys.executable, "-c", GOES_ON, how], {**os.environ, "PARLOUR_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout.partition("closing")[1:]) == (code, ("closing", said.removeprefix("closing")))
    assert ("was not closed after 1 seconds" in done.stderr) is (how == "hangs"), done.stderr


BREAKS = """
import asyncio, signal, time
from contextlib import asynccontextmanager
from core import BasicAgent
from webui import server, serving, web_ui

web_ui.LAST = 1.0

@asynccontextmanager
async def open_app(*_, **__):
    asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
    yield None

async def shutdown(*_, **__):
    raise RuntimeError("broken")

serving.open_app = open_app
server.Server.shutdown = shutdown
try:
    web_ui.WebUI(BasicAgent(llm={"model_type": "llama_cpp"})).run(server_port=0)
except RuntimeError as error:
    time.sleep(3.0)  # longer than the server may take to close: this is the program's own time
    print(f"went on: {error}", flush=True)
"""


def test_a_program_that_catches_what_breaks_while_its_page_closes_goes_on(tmp_path: Path) -> None:
    given = {**os.environ, "PARLOUR_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", BREAKS]
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["went on: broken"]), done.stderr


def endless(request: Request) -> Reply:
    """Answers at leisure, so that it is in the midst whenever it is told to stop."""
    del request
    return Reply(text="word " * 10_000, pace=0.05)


def held(app: AppProcess, key: str, body: dict[str, Any], begun: threading.Semaphore) -> None:
    """Read a stream until it is cut."""
    try:
        asked = {"model": "installed", "stream": True, **body}
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.stream("POST", f"{app.url}/v1/chat/completions", json=asked, headers=headers, timeout=60) as answer:
            begun.release()
            for _ in answer.iter_raw():
                pass
    except httpx.HTTPError:
        begun.release()


@pytest.mark.slow
def test_with_replies_streams_a_socket_and_a_document_in_the_midst_it_ends_in_time(tmp_path: Path) -> None:
    with ExitStack() as open_now, ModelServer(endless) as model:
        app = AppProcess(tmp_path / "home", model, {"REPLIES_AT_ONCE": "9"}).start()
        open_now.callback(app.stop)
        made = subprocess.run(
            [sys.executable, "-m", "webui", "keys", "create", "test", "--home", str(app.home)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        key = made.stdout.split()[-1]
        text = base64.b64encode("\n\n".join(f"Line {n} of very many lines." for n in range(150_000)).encode()).decode()
        document = {"type": "file", "file": {"filename": "long.txt", "file_data": f"data:text/plain;base64,{text}"}}
        hello, begun = [{"role": "user", "content": "Hello."}], threading.Semaphore(0)
        asked: list[dict[str, Any]] = [{"messages": hello}, {"messages": hello}]
        asked.append({"messages": [{"role": "user", "content": [{"type": "text", "text": "What?"}, document]}]})
        readers = [threading.Thread(target=held, args=(app, key, body, begun)) for body in asked]
        for reader in readers:
            reader.start()
        for _ in readers[:2]:
            begun.acquire(timeout=60)
        headers = {"Authorization": f"Bearer {key}"}
        socket = open_now.enter_context(
            connect(f"ws://127.0.0.1:{app.port}/v1/responses", additional_headers=headers, close_timeout=1)
        )
        socket.send(json.dumps({"type": "response.create", "model": "installed", "input": "Hello."}))
        assert "response.created" in str(socket.recv(timeout=60))
        process = app.process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert process.wait(LAST + 5) == 0, "it closed by itself, and nothing had to be left"
        assert time.monotonic() - began < LAST
        for reader in readers:
            reader.join(60)
            assert not reader.is_alive()
        assert "Traceback" not in app.log.read_text("utf-8")
