"""The code interpreter of an installation: its files, its pictures, and what `/readyz` says of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from core.engine import Engine
from core.messages.message import FUNCTION
from core.runs.reply import CallBlock
from core.settings import Settings
from core.storage.base import FILE_ADDRESS
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The self-test does not wait for whatever else begins."""
    monkeypatch.setattr("core.toolbox.code_interpreter._PATIENCE", 0.0)


CODE = """
import matplotlib.pyplot as plt
rows = open("sales.csv").read().split()
plt.plot([1, 2])
plt.show()
open("sum.csv", "w").write("7")
len(rows)
"""


async def known(engine: Engine) -> dict[str, str]:
    """What `/readyz` says, once it is known."""
    changed = asyncio.Event()
    leave = engine.on_change(lambda *_: changed.set())
    async with asyncio.timeout(180):
        while "code_interpreter" not in (told := engine.readiness.as_dict()):
            await changed.wait()
            changed.clear()
    leave()
    return told["code_interpreter"]


async def test_a_plot_and_a_file_come_into_the_conversation(tmp_path: Path) -> None:
    call = Say(calls=(("code_interpreter", json.dumps({"code": CODE})),))
    home = tmp_path / "home"
    async with Engine(Settings.load(home=home, code="auto"), model=ScriptedModel(call, "Here it is.")) as engine:
        told = await known(engine)
        assert told["state"] in {"ready", "off"}
        assert told["reason"]
        talk = await engine.stores.of("alice").conversations.create()
        names = [tool.name for tool in await engine.toolbox.of("alice").for_model(talk.id)]
        assert ("code_interpreter" in names) == (told["state"] == "ready")
        if told["state"] == "off":
            return
        file = await engine.stores.of("alice").files.put("sales.csv", b"a,1\nb,2\n")
        await engine.stores.of("alice").settings.change("approval", lambda _: {"mode": "never"})
        run = await talk_of(engine, "alice", talk.id).ask("Plot it.", [file.id])
        assert await run.wait() == "complete", run.error
        reply = (await engine.stores.of("alice").conversations.thread(talk.id))[-1]
        (result,) = [part for part in reply.parts if part.role == FUNCTION and part.name == "code_interpreter"]
        assert result.get_text_content().startswith("2\n[1 picture, shown to the user]")
        assert [item.type for item in result.items if item.type != "text"] == ["image", "file"]
        assert all(str(item.value).startswith(FILE_ADDRESS) for item in result.items if item.type != "text")
        await talk_of(engine, "alice", talk.id).delete()
    kept = json.loads((home / "sandbox.json").read_text("utf-8"))
    assert kept["driver"] == told["driver"]


LEAVES = """
secret = "canary-of-alice"
open("canary.txt", "w").write(secret)
open("/tmp/canary.txt", "w").write(secret)
print(len(secret))
"""
LOOKS = """
import os
print(globals().get("secret"), sorted(os.listdir(".")))
for folder, _, names in os.walk("/"):
    if folder.startswith(("/sys", "/proc", "/usr")):
        continue
    for name in names:
        if name == "canary.txt":
            try:
                print(folder, open(os.path.join(folder, name)).read())
            except OSError as error:
                print("refused")
for one in filter(str.isdigit, os.listdir("/proc")):
    try:
        print("canary" in open(f"/proc/{one}/environ").read(), end="")
    except OSError:
        pass
"""


async def test_c27_what_one_person_leaves_in_a_kernel_is_out_of_anothers_reach(tmp_path: Path) -> None:
    said = [Say(calls=(("code_interpreter", json.dumps({"code": code})),)) for code in (LEAVES, LOOKS)]
    model = ScriptedModel(said[0], "Kept.", said[1], "Nothing.")
    async with Engine(Settings.load(home=tmp_path / "home", code="auto"), model=model) as engine:
        if (await known(engine))["state"] == "off":
            return
        results: list[str] = []
        for person, question in (("alice", "Keep it."), ("bob", "Look.")):
            await engine.stores.of(person).settings.change("approval", lambda _: {"mode": "never"})
            talk = await engine.stores.of(person).conversations.create()
            run = await talk_of(engine, person, talk.id).ask(question)
            assert await run.wait() == "complete", run.error
            (call,) = [one for one in run.reply().blocks if isinstance(one, CallBlock)]
            assert call.result is not None
            results.append(call.result.get_text_content())
    assert results[0].startswith("15")
    assert results[1].startswith("None []"), results[1]
    assert "canary-of-alice" not in results[1]
    assert "True" not in results[1]


async def test_switched_off_it_is_no_tool_and_readyz_says_so(tmp_path: Path) -> None:
    async with Engine(Settings.load(home=tmp_path / "home", code="off"), model=ScriptedModel()) as engine:
        told = await known(engine)
        assert told == {"state": "off", "driver": "", "reason": "it is switched off by the settings"}
        assert "code_interpreter" not in [tool.name for tool in await engine.toolbox.of("alice").for_model("any")]
