"""Code of conversations runs in a process of its own, without secrets, pages or any file but those that it is given."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from core.engine import Engine
from core.errors import ToolError
from core.messages.message import FUNCTION
from core.settings import Settings
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.sandbox import remote, wire
from core.tools.sandbox.remote import RemoteKernels
from core.tools.sandbox.results import FRESH, CodeResult
from tests.core.talks import talk_of
from tests.e2e.app_process import AppProcess
from tests.ports import free_port
from webui.__main__ import main
from webui.panels.tools import tools_data
from webui.sandbox_role import given as given_here
from webui.sandbox_role.given import GivenHere, WrongFileError
from webui.words import Words

pytestmark = pytest.mark.anyio

SECRET = "only between Parlours and sandboxes"
METRICS = "who may read what is measured"
TALK = "alice\n1"


def made(home: Path, **more: str) -> AppProcess:
    settings = {"ROLE": "sandbox", "SANDBOX_SECRET": SECRET, "CODE": "auto", "METRICS_TOKEN": METRICS, **more}
    return AppProcess(home, None, settings)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """A process with the role `sandbox`, for all tests of this module."""
    process = made(tmp_path_factory.mktemp("sandbox") / "home").start()
    yield process
    process.stop()


def key_of(secret: str = SECRET) -> bytes:
    return Settings.load(sandbox_secret=secret).sandbox_key


@asynccontextmanager
async def kernels(*addresses: str, key: bytes = key_of(), **more: Any) -> AsyncIterator[RemoteKernels]:
    opened = RemoteKernels(addresses, key, **more)
    try:
        yield opened
    finally:
        await opened.aclose()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files go along with each question."""
    counted: list[int] = []
    body = remote._body  # pyright: ignore[reportPrivateUsage]

    def counting(raw: bytes, manifest: wire.Manifest, paths: Any) -> AsyncIterator[bytes]:
        counted.append(len(manifest.sends))
        return body(raw, manifest, paths)

    monkeypatch.setattr(remote, "_body", counting)
    return counted


PLOT = """
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
open("out.csv", "w").write("a,b")
None
"""


async def test_a_cell_runs_there_remembers_variables_and_files_go_there_once_and_come_back(
    sandbox: AppProcess, tmp_path: Path, sent: list[int]
) -> None:
    (tmp_path / "opaque").write_bytes(b"1\n2\n" * 200_000)
    given = {"价格: prices?.csv": tmp_path / "opaque", "again": tmp_path / "opaque"}
    async with kernels(sandbox.url) as there:
        told: list[str] = []
        code = "print('begun')\nrows = open('价格: prices?.csv').read().split()"
        first = await there.run(TALK, code, files=given, progress=lambda line, *_: told.append(line))
        assert (first.text, first.failed, first.fresh, told) == ("begun", False, True, ["begun"])
        assert [one for one in sent if one] == [1], "one file under two names goes over once"
        second = await there.run(TALK, "len(rows), open('again').read(1)", files=given)
        assert (second.text, second.fresh) == ("(400000, '1')", False)
        plot = await there.run(TALK, PLOT, files=given)
        assert [one for one in sent if one] == [1], "it is there"
        assert [(one.name, one.media_type) for one in plot.pictures] == [("picture-1.png", "image/png")]
        assert plot.pictures[0].data.startswith(b"\x89PNG\r\n")
        assert [(one.name, one.media_type, one.data) for one in plot.files] == [("out.csv", "text/csv", b"a,b")]
        (tmp_path / "opaque").write_bytes(b"new")
        assert (await there.run(TALK, "open('again').read() + '\ud800'", files=given)).text == "'new?'"
        await there.forget(TALK)
        after = await there.run(TALK, "import os\n'rows' in globals(), sorted(os.listdir())", files=given)
        assert after.text == "(False, ['again', '价格: prices?.csv'])"
        assert [one for one in sent if one] == [1, 1, 1], "with a conversation goes all that was given to it"


async def test_files_lie_there_no_longer_than_there_is_a_kernel_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_here, "_SPARED", 0.0)
    files = GivenHere(tmp_path)
    sought = [wire.SentFile(name="a", digest=sha256(b"ab").hexdigest(), size=2)]

    async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    for key in ("ended", "alive", "begins"):
        await files.take(key, sought[0].digest, pieces(b"a", b"b"))
        assert files.lacking(key, sought) == []
    with files.used("begins", [sought[0].digest]):
        await files.tidy({"alive"})
        assert [key for key in ("ended", "alive", "begins") if files.lacking(key, sought)] == ["ended"]
    with pytest.raises(WrongFileError):
        await files.take("other", sought[0].digest, pieces(b"b", b"a"))
    assert list((tmp_path / "other").iterdir()) == []


async def test_stop_interrupts_what_runs_and_variables_stay(sandbox: AppProcess) -> None:
    async with kernels(sandbox.url) as there:
        begun = asyncio.Event()
        code = "import time\nx = 41\nprint('begun')\nwhile True:\n    time.sleep(0.01)"
        running = asyncio.create_task(there.run(TALK, code, progress=lambda *_: begun.set()))
        async with asyncio.timeout(120):
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            after = await there.run(TALK, "x + 1")
        assert (after.text, after.fresh) == ("42", False)


LOOK = """
import glob, os
seen = [str(dict(os.environ))]
for path in glob.glob("/proc/*/environ") + glob.glob("/tmp/*/*/*"):
    try:
        seen.append(open(path, errors="replace").read())
    except OSError:
        pass
print("\\n".join(seen))
"""


async def test_code_there_finds_no_secret_and_no_file_of_another_conversation(
    sandbox: AppProcess, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("what alice gave", encoding="utf-8")
    async with kernels(sandbox.url) as there:
        await there.run(TALK, "word = 'hers'", files={"mine": tmp_path / "mine"}, owner="alice")
        seen = await there.run("bob\n1", LOOK, owner="bob")
        assert "HOME" in seen.text
        assert not [one for one in (SECRET, METRICS, "PARLOUR_", "what alice gave") if one in seen.text]
        other = await there.run("bob\n1", "word", owner="bob")
        assert "NameError" in other.text, "a conversation's name of another owner opens nothing"
        await there.forget("bob\n1")


async def test_who_has_another_secret_is_refused_and_both_sides_say_so(
    sandbox: AppProcess, caplog: pytest.LogCaptureFixture
) -> None:
    changed = asyncio.Event()
    async with kernels(sandbox.url, key=key_of("another secret of that length"), changed=changed.set) as there:
        with pytest.raises(ToolError) as refused:
            await there.run(TALK, "1")
        assert refused.value.words_key == "sandbox_refuses"
        there.start()
        await asyncio.wait_for(changed.wait(), 120)
        assert there.choice is not None
        reason = there.choice.reason
        assert (there.choice.driver, reason) == ("", "the sandbox 127.0.0.1 refuses this Parlour")
        assert Words("zh").sandbox(reason) == "沙箱 127.0.0.1 拒绝了这个 Parlour"
    assert "PARLOUR_SANDBOX_SECRET (or PARLOUR_SECRET) differs" in caplog.text
    assert "PARLOUR_SANDBOX_SECRET (or PARLOUR_SECRET) of that Parlour is another one" in sandbox.log.read_text("utf-8")


def ranked(addresses: list[str], mark: str) -> list[str]:
    return RemoteKernels(addresses, b"")._ranked(mark)  # pyright: ignore[reportPrivateUsage]


async def test_of_two_sandboxes_the_one_that_is_there_runs_what_the_other_would(
    sandbox: AppProcess, caplog: pytest.LogCaptureFixture
) -> None:
    mark = wire.mark_of(key_of(), "conversation", TALK)
    while ranked([away := f"http://127.0.0.1:{free_port()}", sandbox.url], mark)[0] != away:
        pass
    marks = [wire.mark_of(key_of(), "conversation", f"alice\n{number}") for number in range(100)]
    assert 20 < sum(ranked([away, sandbox.url], one)[0] == away for one in marks) < 80, "each has its share"
    assert ranked([away, sandbox.url], mark) == ranked([sandbox.url, away], mark)
    async with kernels(away, sandbox.url) as there:
        assert (await there.run(TALK, "1 + 1")).text == "2"
        assert "is away" in caplog.text
        there._ran[mark] = away  # pyright: ignore[reportPrivateUsage] - as if it had run there before
        result = await there.run(TALK, "1 + 1")
        assert result.text.endswith("variables of calls there are gone.)\n2")


async def test_where_no_sandbox_answers_the_call_and_the_page_say_so(caplog: pytest.LogCaptureFixture) -> None:
    changed = asyncio.Event()
    async with kernels(f"http://127.0.0.1:{free_port()}", changed=changed.set) as there:
        with pytest.raises(ToolError, match="No sandbox answers") as away:
            await there.run(TALK, "1")
        assert "没有响应" in Words("zh").error(away.value)
        there.start()
        await asyncio.wait_for(changed.wait(), 120)
        assert there.choice is not None
        assert there.choice.reason == "no sandbox answers (127.0.0.1)"
        assert Words("zh").sandbox(there.choice.reason) == "没有沙箱响应（127.0.0.1）"
        await there.forget(TALK)
    assert "No code can be run" in caplog.text


async def test_what_is_too_large_is_left_out_and_said_and_never_taken_in(
    sandbox: AppProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LARGEST_FILES", 10)
    (tmp_path / "small").write_bytes(b"12345")
    (tmp_path / "large").write_bytes(b"12345678901")
    given = {"small": tmp_path / "small", "large": tmp_path / "large", "gone": tmp_path / "gone"}
    async with kernels(sandbox.url) as there:
        result = await there.run(TALK, "import glob\nglob.glob('s*ll') + glob.glob('large')", files=given)
        assert result.text.splitlines() == [
            "['small']",
            "The file large could not be put into the folder: there is no room for it.",
            "The file gone could not be put into the folder: No such file or directory.",
        ]
        assert result.failed
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        endless = (wire.LARGEST_MANIFEST + 1).to_bytes(wire.LENGTH, "big")
        assert (await client.post(wire.CELL, content=endless)).status_code == 413


async def question(client: httpx.AsyncClient, boot: str, said: bytes, path: str = wire.CELL) -> httpx.Response:
    header, _ = wire.asking(key_of(), path, boot, said)
    body = len(said).to_bytes(wire.LENGTH, "big") + said
    return await client.post(path, content=body, headers={"authorization": header})


async def test_questions_that_are_made_up_are_refused_and_change_nothing(sandbox: AppProcess) -> None:
    async with httpx.AsyncClient(base_url=sandbox.url, timeout=60) as client:
        first = await question(client, "", b"{}")
        assert first.status_code == 409
        boot = first.text
        wrong: list[dict[str, Any]] = [
            {"key": "../../etc", "code": "1"},
            {"key": "a" * 64, "code": "1", "within": 1e9},
            {"key": "a" * 64, "files": [{"name": "a", "digest": "../x", "size": 1}]},
            {"key": "a" * 64, "files": [{"name": "a", "digest": "a" * 64, "size": 1}], "sends": ["a" * 64]},
        ]
        for one in wrong:
            assert (await question(client, boot, json.dumps(one).encode())).status_code in {400, 413}, one
        lied = json.dumps({**wrong[3], "sends": ["b" * 64]}).encode()
        assert (await question(client, boot, lied)).status_code == 413
        for path in ("/", "/metrics", "/v1/models", "/sandbox/cell"):
            assert (await client.get(path)).status_code in {401, 404}, path
        measured = await client.get("/metrics", headers={"authorization": f"Bearer {METRICS}"})
        assert "parlour_sandbox_kernels" in measured.text
    assert sandbox.get("/healthz") == (200, "ok")
    assert sandbox.get("/readyz") == (200, {"ready": True})


def kernels_below(process: psutil.Process) -> set[int]:
    """The ids of the interpreters' processes below one."""
    found: set[int] = set()
    for one in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            if "kernel.py" in " ".join(one.cmdline()):
                found.add(one.pid)
    return found


async def test_a_reply_has_its_code_run_there_and_starts_no_kernel_here(sandbox: AppProcess, tmp_path: Path) -> None:
    call = Say(calls=(("code_interpreter", json.dumps({"code": PLOT})),))
    settings = Settings.load(home=tmp_path / "home", sandbox=sandbox.url, sandbox_secret=SECRET, code="auto")
    before = kernels_below(psutil.Process())  # of other tests of this process
    async with Engine(settings, model=ScriptedModel(call, "Here it is.")) as engine:
        changed = asyncio.Event()
        leave = engine.on_change(lambda *_: changed.set())
        async with asyncio.timeout(120):
            while "code_interpreter" not in engine.readiness.as_dict():
                await changed.wait()
                changed.clear()
        leave()
        told = engine.readiness.as_dict()["code_interpreter"]
        assert (told["state"], told["hosts"]) == ("ready", ["127.0.0.1"])
        talk = await engine.stores.of("alice").conversations.create()
        await engine.stores.of("alice").settings.change("approval", lambda _: {"mode": "never"})
        run = await talk_of(engine, "alice", talk.id).ask("Plot it.")
        assert await run.wait() == "complete", run.error
        reply = (await engine.stores.of("alice").conversations.thread(talk.id))[-1]
        (result,) = [part for part in reply.parts if part.role == FUNCTION and part.name == "code_interpreter"]
        assert [item.type for item in result.items if item.type != "text"] == ["image", "file"]
        assert sandbox.process is not None
        of_sandbox = kernels_below(psutil.Process(sandbox.process.pid))
        assert of_sandbox
        assert kernels_below(psutil.Process()) <= before | of_sandbox
        toolbox = engine.toolbox.of("alice")
        listed = tools_data(await toolbox.listed(), toolbox.interpreter(), Words("en"))
        noted = next(one["noted"] for one in listed if one["name"] == "code_interpreter")
        assert noted == f"Runs on 127.0.0.1, in {told['driver']}."
        await talk_of(engine, "alice", talk.id).delete()


async def begun(there: RemoteKernels) -> asyncio.Task[CodeResult]:
    """A cell that runs without end, and has begun."""
    said = asyncio.Event()
    code = "print('begun')\nwhile True:\n    pass"
    running = asyncio.create_task(there.run(TALK, code, progress=lambda *_: said.set()))
    await asyncio.wait_for(said.wait(), 120)
    return running


async def test_a_sandbox_that_is_killed_costs_what_ran_and_its_variables_and_both_are_said(tmp_path: Path) -> None:
    process = made(tmp_path / "home").start()
    try:
        async with kernels(process.url) as there:
            await there.run(TALK, "x = 1")
            running = await begun(there)
            await asyncio.to_thread(process.kill)
            result = await asyncio.wait_for(running, 120)
            assert (result.lost, result.failed) == (True, True)
            assert result.text.startswith("The sandbox was lost while this ran")
            await asyncio.to_thread(process.start)
            after = await there.run(TALK, "'x' in globals()")
            assert after.text == f"{FRESH}\nFalse"
            children = psutil.Process(process.process.pid if process.process else 0).children(recursive=True)
            running = await begun(there)
            await asyncio.to_thread(process.stop)
            assert (await asyncio.wait_for(running, 120)).lost
            _, left = psutil.wait_procs(children, timeout=20)
            assert not left, "SIGTERM leaves nothing behind"
    finally:
        process.stop()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "PARLOUR_SANDBOX_SECRET is not set"),
        ({"SANDBOX_SECRET": "short"}, "(PARLOUR_SANDBOX_SECRET) must be at least 16"),
        (
            {"SANDBOX_SECRET": SECRET, "CODE": "off", "HOST": "127.0.0.1"},
            "No code can be run on this machine: it is switched off",
        ),
        ({"SANDBOX": "http://127.0.0.1:1", "ROLE": "all"}, "(PARLOUR_SANDBOX) needs PARLOUR_SANDBOX_SECRET or"),
        ({"SANDBOX": "sandbox:1", "SECRET": SECRET}, "(PARLOUR_SANDBOX) must be addresses of servers"),
    ],
)
def test_a_process_that_cannot_be_a_sandbox_says_why_and_ends(
    given: dict[str, str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    restored_signals: Callable[[], None],
) -> None:
    del restored_signals
    for name, value in {"ROLE": "sandbox", "PORT": "0", "HOME": str(tmp_path / "home"), **given}.items():
        monkeypatch.setenv(f"PARLOUR_{name}", value)
    assert main([]) == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


@pytest.fixture
def restored_signals() -> Iterator[Callable[[], None]]:
    """A server that ends in this process leaves its log as it was."""
    log = logging.getLogger("uvicorn.error")
    before = log.disabled
    yield lambda: None
    log.disabled = before
