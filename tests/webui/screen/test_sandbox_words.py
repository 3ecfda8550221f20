"""Why code cannot be run stands on the page in the reader's language, whatever the sandbox says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from core.errors import ToolError
from core.toolbox.code_interpreter import OwnerInterpreter
from core.toolbox.toolbox import CODE, ListedTool
from core.tools.sandbox import bubblewrap, docker, kernels, landlock, surroundings
from core.tools.sandbox.self_test import _UNHEARD, Choice, Verdict  # pyright: ignore[reportPrivateUsage]
from webui.panels.tools import tools_data
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
_WORD = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")  # English that somebody forgot


def lacking(monkeypatch: pytest.MonkeyPatch, machine: str) -> list[str]:
    monkeypatch.setattr(surroundings, "machine", lambda: machine)
    for module in (docker, bubblewrap):
        monkeypatch.setattr(module, "_program", lambda: None, raising=False)
    monkeypatch.setattr(docker.shutil, "which", lambda _: None)
    monkeypatch.setattr(landlock, "landlock_version", lambda: 0)
    drivers: list[Any] = [bubblewrap.Bubblewrap(), landlock.Landlock(), docker.Docker(), docker.Runsc()]
    return [f"{one.name}: {one.lacking()}" for one in drivers]


def test_every_reason_of_every_driver_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = [*lacking(monkeypatch, "x86_64"), *lacking(monkeypatch, "")]
    assert len(set(reasons)) == 8
    assert all(not reason.endswith(": ") for reason in reasons)
    monkeypatch.setattr(kernels, "find_spec", lambda _: None)
    reasons += [kernels._missing().partition("; run")[0] + "; run: pip install x"]  # pyright: ignore[reportPrivateUsage]
    reasons += [
        Choice("", ()).reason,
        Choice("", (Verdict("landlock", held=False, reason="it does not hold C1 (no)"),)).reason,
    ]
    for reason in [*reasons, "; ".join(reasons[:4])]:
        said = ZH.sandbox(reason)
        assert not said.isascii(), reason
        assert not _WORD.search(said), said
        assert EN.sandbox(f"{reason}.") == reason


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("bubblewrap: it does not start here (No permissions)", "bubblewrap：在这里无法启动（No permissions）"),
        ("auto: it cannot be tried ([Errno 28] No space; left)", "无法测试（[Errno 28] No space; left）"),
        (
            "landlock: it does not start here (nothing was heard within 60 seconds)",
            "landlock：在这里无法启动（60 秒内没有响应）",
        ),
        (
            f"runsc: it does not start here ({_UNHEARD})",
            "runsc：在这里无法启动（外面看不到它创建的套接字；gVisor 需要选项 --host-uds=create）",
        ),
        ("something new", "something new"),
    ],
)
def test_what_the_system_said_stays_as_it_is(reason: str, said: str) -> None:
    assert ZH.sandbox(reason) == said


def test_the_dialog_and_the_error_say_it_in_the_readers_language() -> None:
    lacking = "the program bwrap is not installed (on Debian and Ubuntu: bubblewrap)"
    why = f"bubblewrap: {lacking}; landlock: it needs Linux on x86_64 or aarch64"
    told = tools_data([ListedTool(None, CODE, on=True)], OwnerInterpreter(None, "", why), ZH)[0]["noted"]
    first = "bubblewrap：未安装程序 bwrap（Debian 和 Ubuntu 中的软件包是 bubblewrap）"
    assert told == f"已关闭：{first}；landlock：需要 x86_64 或 aarch64 上的 Linux。"
    error = ToolError("off", key="sandbox_off", reason=why)
    assert "未安装程序 bwrap" in ZH.error(error)
    assert "is not installed" in EN.error(error)
