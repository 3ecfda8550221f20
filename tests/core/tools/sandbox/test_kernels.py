"""Kernels: what a cell may do and bring, what stops it, and that nothing stays behind. The numbers are of the list."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import xlsxwriter

from core.errors import ToolError
from core.tools.sandbox.box import Limits
from core.tools.sandbox.kernels import Kernels
from tests.core.tools.sandbox.below import kernels_below, named_below

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n"


async def test_variables_stay_and_values_tables_files_and_pictures_come_back(
    driver: str, opened: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "opaque").write_text("name,price\ntea,3.5\ncake,4\n", encoding="utf-8")
    given = {"价格: prices?.csv": tmp_path / "opaque"}
    async with opened(driver) as kernels:
        if kernels is None:
            return
        told: list[str] = []
        first = await kernels.run("a", "print('one')\nx = 41", progress=lambda line, *_: told.append(line))
        assert (first.text, first.failed, told) == ("one", False, ["one"])
        assert (await kernels.run("a", "x + 1")).text == "42"
        table = await kernels.run("a", "import pandas as pd\npd.read_csv('价格: prices?.csv')", files=given)
        assert table.text.splitlines() == [
            "|  | name | price |",
            "| --- | --- | --- |",
            "| 0 | tea | 3.5 |",
            "| 1 | cake | 4 |",
        ]
        assert not table.files
        plot = await kernels.run(
            "a",
            "import matplotlib.pyplot as plt, os\nplt.plot([1, 2])\nplt.title('销售额')\nplt.show()\n"
            "os.mkdir('out')\nopen('out/表.csv', 'w').write('a')\nplt.plot([3])\nNone",
        )
        assert [one.media_type for one in plot.pictures] == ["image/png", "image/png"], plot.text
        assert plot.pictures[0].data.startswith(PNG)
        assert [(one.name, one.data) for one in plot.files] == [("表.csv", b"a")]
        assert "Glyph" not in plot.text, "a font for Chinese is missing"


async def test_spreadsheets_are_read_and_written_and_nothing_strays_into_the_folder(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    sheet = tmp_path / "opaque"
    with xlsxwriter.Workbook(sheet) as book:
        page = book.add_worksheet("Prices")
        page.write_row(0, 0, ["name", "price"])
        page.write_row(1, 0, ["tea", 3.5])
    async with opened("auto") as kernels:
        if kernels is None:
            return
        quiet = await kernels.run("a", "import sys\n'pandas' in sys.modules")
        assert quiet.text == "False", "a kernel starts without pandas"
        code = "import os, pandas as pd\ntable = pd.read_excel('prices.xlsx')\nprint(table.to_csv(index=False))"
        read = await kernels.run("a", code, files={"prices.xlsx": sheet})
        assert (read.text, read.failed) == ("name,price\ntea,3.5", False)
        written = await kernels.run("a", "table.to_excel('more.xlsx')\npd.read_excel('more.xlsx').shape")
        assert (written.text, [one.name for one in written.files]) == ("(1, 3)", ["more.xlsx"])
        cache = "os.makedirs(os.environ['XDG_CACHE_HOME'])\nsorted(os.listdir())"
        assert (await kernels.run("a", cache)).text == "['more.xlsx', 'prices.xlsx']"
        missing = await kernels.run("a", "import openpyxl")
        assert "DataFrame.to_csv writes" in missing.text


async def test_an_error_shows_the_lines_of_the_cell_alone(opened: Callable[..., Any]) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        result = await kernels.run("a", "import pandas as pd\ndef f():\n    pd.DataFrame()['none']\nf()")
        assert result.failed
        assert result.text.startswith(
            'Traceback (most recent call last):\n  File "cell 1", line 4, in <module>\n    f()'
        )
        assert result.text.endswith("KeyError: 'none'")
        assert "site-packages" not in result.text
        wrong = await kernels.run("a", "1 +")
        assert wrong.text.endswith("SyntaxError: invalid syntax")
        unknown = await kernels.run("a", "import nosuchpackage")
        assert "numpy, pandas and matplotlib" in unknown.text


async def test_c20_c21_c22_the_folder_memory_and_processes_have_an_end(
    driver: str, opened: Callable[..., Any], small: Limits
) -> None:
    async with opened(driver, limits=small) as kernels:
        if kernels is None:
            return
        memory = await kernels.run("a", "x = 1\nb = bytearray(6 << 30)")
        assert memory.text.endswith("MemoryError")
        bomb = await kernels.run(
            "a",
            "import os, signal\nmade = []\ntry:\n    for _ in range(300):\n        child = os.fork()\n"
            "        if not child:\n            signal.pause()\n        made.append(child)\nexcept OSError as error:\n"
            "    print(error.strerror, x)\nfinally:\n"
            "    [(os.kill(one, 9), os.waitpid(one, 0)) for one in made]\nassert len(made) < 128",
        )
        assert (bomb.text, bomb.failed) == ("Resource temporarily unavailable 1", False)
        large = await kernels.run("a", "open('a', 'wb').write(bytes(17 << 20))")
        assert large.text.endswith(("File too large", "No space left on device"))
        many = await kernels.run(
            "a", "import time\nfor i in range(4):\n    open(f'{i}.bin', 'wb').write(bytes(12 << 20))\ntime.sleep(20)"
        )
        assert "No space left on device" in many.text or "its files took more than 24 MB" in many.text


async def test_c20_entries_without_end_are_ended_and_gone_soon(opened: Callable[..., Any]) -> None:
    async with opened("landlock") as kernels:
        if kernels is None:
            return
        await kernels.run("a", "1")
        bomb = "import os\nnumber = 0\nwhile True:\n    number += 1\n    open(f'{number % 50}x{number}', 'w').close()"
        began = time.monotonic()
        result = await kernels.run("a", bomb, timeout=60)
        assert "it made more than 20,000 files and folders" in result.text
        assert result.lost
        await kernels.forget("a")
        assert time.monotonic() - began < 30


async def test_no_capability_is_left_to_any_program_where_that_can_be_seen_to(
    driver: str, opened: Callable[..., Any]
) -> None:
    async with opened(driver) as kernels:
        if kernels is None:
            return
        result = await kernels.run(
            "a", "import ctypes\nsum(ctypes.CDLL(None).prctl(23, one, 0, 0, 0) == 1 for one in range(64))"
        )
        # Whoever is not root may not lower the bound; without new privileges it is of no use to anybody.
        assert result.text == "0" or os.geteuid() != 0


async def test_c21_processes_share_one_limit_of_memory(opened: Callable[..., Any]) -> None:
    async with opened("auto", limits=Limits(memory=1 << 30)) as kernels:
        if kernels is None:
            return
        hungry = "import os, time\nfor _ in range(3):\n    os.fork()\nx = bytearray(b'x' * (180 << 20))\ntime.sleep(60)"
        result = await kernels.run("a", hungry)
        assert "it used more than 1 GB of memory" in result.text


async def test_c23_endless_output_is_cut_and_takes_no_memory(driver: str, opened: Callable[..., Any]) -> None:
    async with opened(driver) as kernels:
        if kernels is None:
            return
        await kernels.run("a", "1")
        before = psutil.Process().memory_info().rss
        result = await kernels.run(
            "a", "for _ in range(1024): print('x' * (1 << 20))\nimport os\nos.write(1, b'y' * 999)"
        )
        assert 256_000 < len(result.text) < 264_000
        assert "the output is longer than 256 kB" in result.text
        assert psutil.Process().memory_info().rss - before < 64 << 20
        assert (await kernels.run("a", "print('next')")).text == "next"


async def test_c24_html_and_scripts_are_not_passed_on(opened: Callable[..., Any]) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        shows = "from IPython.display import HTML, Javascript, display\ndisplay(HTML('<script>1</script>'))\n"
        result = await kernels.run("a", f"{shows}Javascript('alert(1)')")
        assert "<script" not in result.text
        assert "alert" not in result.text
        raw = "display({'text/html': '<b>', 'image/png': 'bm8gcGljdHVyZQ=='}, raw=True)\nprint('\\x1b[31mred\\x07')"
        told = await kernels.run("a", raw)
        assert (told.text, told.pictures) == ("red", ())


async def test_c25_installing_and_the_network_say_why_they_fail(driver: str, opened: Callable[..., Any]) -> None:
    async with opened(driver) as kernels:
        if kernels is None:
            return
        for code in ("!pip install requests", "%pip install requests", "get_ipython().system('pip install requests')"):
            assert "this sandbox has no network" in (await kernels.run("a", code)).text
        fetched = await kernels.run("a", "import urllib.request as u\nu.urlopen('http://example.com')")
        assert fetched.text.endswith("(This sandbox has no network.)")
        assert (await kernels.run("a", "!echo hello")).text == "hello"


async def test_c27_conversations_see_nothing_of_each_other(driver: str, opened: Callable[..., Any]) -> None:
    async with opened(driver) as kernels:
        if kernels is None:
            return
        place = await kernels.run(
            "alice", "import os\nsecret = 'hers'\nopen('hers.txt', 'w').write('x')\nos.getcwd(), os.getuid()"
        )
        folder, user = eval(place.text)
        looked = await kernels.run(
            "bob",
            f"import os, glob\nprint('secret' in globals(), os.path.exists('hers.txt'), os.getuid() == {user})\n"
            f"print(glob.glob({str(Path(folder).parent.parent)!r} + '/*/job/*.txt'))",
        )
        alone = os.geteuid() != 0
        assert looked.text == f"False False {alone}\n[]"


async def test_c28_when_it_closes_no_process_and_no_folder_is_left(
    driver: str, opened: Callable[..., Any], of_others: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", place)
        async with opened(driver, ahead=True) as kernels:
            if kernels is not None:
                await kernels.run("a", "import subprocess\np = subprocess.Popen(['sleep', '1000'])")
                assert kernels_below(of_others)
        assert not kernels_below(of_others)
        assert not named_below({"sleep", "bwrap"}, of_others)
        assert not list(Path(place).iterdir())


async def test_c6_l1_no_key_of_parlours_is_seen_anywhere_inside(
    driver: str, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-CANARY")
    async with opened(driver) as kernels:
        if kernels is None:
            return
        looked = await kernels.run(
            "a",
            "import os, glob\nseen = [str(dict(os.environ))]\nfor name in glob.glob('/proc/[0-9]*/environ'):\n"
            "    try:\n        seen.append(open(name, errors='replace').read())\n    except OSError:\n        pass\n"
            "print('CANARY' in str(seen))",
        )
        assert looked.text.strip() == "False"


async def test_a_kernel_that_answers_nonsense_is_ended(opened: Callable[..., Any]) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        result = await kernels.run("a", _NONSENSE)
        assert "what it answered cannot be read" in result.text
        assert (await kernels.run("a", "1 + 1")).text.endswith("2")


async def test_c28_an_unused_kernel_is_closed_and_the_next_call_is_told(
    opened: Callable[..., Any], of_others: set[int]
) -> None:
    async with opened("auto", idle=0.4) as kernels:
        if kernels is None:
            return
        await kernels.run("a", "x = 1")
        (kernel,) = kernels_below(of_others)
        await asyncio.to_thread(psutil.wait_procs, [kernel], 60)
        assert not kernels_below(of_others)
        result = await kernels.run("a", "'x' in globals()")
        assert result.text == "(This is a fresh interpreter: variables of earlier calls are gone.)\nFalse"


async def test_of_too_many_kernels_the_longest_unused_goes(opened: Callable[..., Any]) -> None:
    async with opened("auto", most=2) as kernels:
        if kernels is None:
            return
        for key in ("a", "b", "c"):
            await kernels.run(key, f"x = {key!r}")
        assert "fresh" not in (await kernels.run("b", "x")).text
        working = [asyncio.create_task(kernels.run(key, "import time; time.sleep(30)")) for key in ("b", "c")]
        while not all(
            one.done() or kernels._kernels[key].result().busy for key, one in zip("bc", working, strict=True)
        ):
            await asyncio.sleep(0)
        with pytest.raises(ToolError, match="All 2 code interpreters are busy"):
            await kernels.run("a", "x")
        for one in working:
            one.cancel()
        await asyncio.wait(working)
        assert (await kernels.run("b", "x")).text == "'b'"


async def test_an_owners_own_kernel_makes_room_and_never_anothers(opened: Callable[..., Any]) -> None:
    async with opened("auto", most=3, most_of=lambda owner: 1) as kernels:
        if kernels is None:
            return
        await kernels.run("b", "x = 'kept'", owner="bob")
        for key in ("a1", "a2", "a3"):
            await kernels.run(key, "x = 1", owner="alice")
            assert [one for one in kernels._kernels if one.startswith("a")] == [key]
        working = asyncio.create_task(kernels.run("a3", "import time; time.sleep(30)", owner="alice"))
        while not working.done() and not kernels._kernels["a3"].result().busy:
            await asyncio.sleep(0)
        with pytest.raises(ToolError, match="at work in another conversation"):
            await kernels.run("a4", "x", owner="alice")
        await kernels.run("c", "x = 2", owner="carol")
        with pytest.raises(ToolError, match="All 3 code interpreters are busy"):  # idle ones of others are left alone
            await kernels.run("d", "x", owner="dave")
        assert (await kernels.run("b", "x", owner="bob")).text == "'kept'"
        working.cancel()
        await asyncio.wait({working})


_BROUGHT = """
import os, shutil, struct, sys
shutil.copyfile(sys.executable, "brought")
os.chmod("brought", 0o755)
head = open(sys.executable, "rb").read(4096)
loader = next(one for one in head.split(b"\\0") if b"/ld-" in one).decode()
def ran(*words):
    child = os.fork()
    if not child:
        try:
            os.execve(words[0], words, {"PYTHONHOME": sys.base_prefix})
        except OSError:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
ran("./brought", "-c", "pass"), ran(loader, "./brought", "-I", "-S", "-c", "raise SystemExit(7)")
"""


async def test_c19_what_is_said_of_a_program_that_code_brings_along_is_what_happens(
    driver: str, opened: Callable[..., Any]
) -> None:
    async with opened(driver) as kernels:
        if kernels is None:
            return
        said = (await kernels.chosen()).reason
        alone, by_loader = (int(one) for one in (await kernels.run("a", _BROUGHT)).text.strip("()").split(", "))
        assert alone == 99
        assert ("it runs, with no more rights than Python's own code" in said) == (by_loader == 7)
        assert ("does not run" in said or "nor does" in said) == (by_loader != 7)


async def test_an_owner_gives_up_an_own_kernel_though_anothers_is_older(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tools.sandbox.kernels._SPARED", -1.0)  # whatever is idle could be taken
    async with opened("auto", most=2, most_of=lambda owner: 2) as kernels:
        if kernels is None:
            return
        await kernels.run("b", "x = 'older'", owner="bob")
        await kernels.run("a1", "x = 1", owner="alice")
        await kernels.run("a2", "x = 2", owner="alice")
        assert set(kernels._kernels) == {"b", "a2"}
        assert (await kernels.run("b", "x", owner="bob")).text == "'older'"
        await kernels.run("c", "x = 3", owner="carol")  # who has none is given the one that is idle for longest
        assert set(kernels._kernels) == {"b", "c"}


async def test_c29_an_endless_cell_is_interrupted_and_the_next_works(driver: str, opened: Callable[..., Any]) -> None:
    async with opened(driver) as kernels:
        if kernels is None:
            return
        await kernels.run("a", "x = 1")
        began = time.monotonic()
        result = await kernels.run("a", "while True: pass", timeout=0.5)
        assert time.monotonic() - began < 60
        assert result.text.endswith(
            "KeyboardInterrupt\nStopped: it was not done within 0.5 seconds. Variables are kept."
        )
        assert (await kernels.run("a", "x")).text == "1"


async def test_c29_a_cell_that_does_not_listen_is_ended(
    driver: str, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tools.sandbox.kernel._INTERRUPT", 0.5)
    async with opened(driver) as kernels:
        if kernels is None:
            return
        await kernels.run("a", "x = 1")
        began = time.monotonic()
        deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    pass"
        result = await kernels.run("a", deaf, timeout=0.5)
        assert time.monotonic() - began < 60
        assert result.lost
        assert "did not stop when asked. All variables are lost" in result.text
        assert (await kernels.run("a", "2 + 2")).text.endswith("gone.)\n4")


async def test_stopping_the_reply_interrupts_the_cell(opened: Callable[..., Any]) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        await kernels.run("a", "x = 1")
        begun = asyncio.Event()
        code = "print('begun')\nimport time\ntime.sleep(100)"
        running = asyncio.create_task(kernels.run("a", code, progress=lambda *_: begun.set()))
        await asyncio.wait_for(begun.wait(), 20)
        running.cancel()
        began = time.monotonic()
        await asyncio.wait({running}, timeout=60)
        assert running.cancelled()
        assert (await kernels.run("a", "x")).text == "1"
        assert time.monotonic() - began < 60  # and not after its hundred seconds


@pytest.mark.parametrize("end", ["os._exit(1)", "os.kill(os.getpid(), 9)"])
async def test_fault_24_a_dead_kernel_is_said_and_replaced(opened: Callable[..., Any], end: str) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        result = await kernels.run("a", f"x = 1\nprint('so far', flush=True)\nimport os\n{end}")
        assert result.lost
        assert result.failed
        assert "All variables are lost; the next call begins with a fresh interpreter." in result.text
        fresh = await kernels.run("a", "'x' in globals()")
        assert fresh.text.endswith("False")


async def test_a_self_test_that_fails_in_an_unforeseen_way_turns_the_tool_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("core.tools.sandbox.kernels.choose", fails)
    kernels = Kernels()
    assert "unforeseen" in (await kernels.chosen()).reason
    with pytest.raises(ToolError, match="unforeseen"):
        await kernels.run("a", "1")
    kernels.warm()
    await kernels.aclose()


async def test_no_kernel_is_made_ready_once_closing_began(
    driver: str, opened: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(driver, ahead=True) as kernels:
        if kernels is None:
            return
        await kernels.run("a", "1")
        await kernels.warmed()
        closing = asyncio.create_task(kernels.aclose())
        while kernels.keys:
            await asyncio.sleep(0)
        kernels.warm()
        await closing
        await kernels.warmed()
        assert caplog.records == []


async def test_a_plain_user_has_kernels_too(as_plain_user: Callable[..., Any], driver: str) -> None:
    told = as_plain_user(_AS_PLAIN_USER.replace("DRIVER", driver))
    assert told["driver"] == driver or (not told["driver"] and told["reason"])
    if told["driver"]:
        assert told["texts"] == ["41", "42", "KeyboardInterrupt"]
        assert told["files"] == ["out.txt"]
    assert told["left"] == []


_NONSENSE = """
from ipykernel.kernelapp import IPKernelApp
session = IPKernelApp.instance().session
def nested(what, pack=session.pack):
    return b"[" * 100_000 + b"]" * 100_000 if what.get("text") == "hello\\n" else pack(what)
session.pack = nested
print("hello", flush=True)
"""

_AS_PLAIN_USER = """
import asyncio, glob, json, os, tempfile
from core.tools.sandbox.kernels import Kernels

async def main():
    kernels = Kernels(wanted="DRIVER")
    choice = await kernels.chosen()
    told = {"driver": choice.driver, "reason": choice.reason}
    if choice.driver:
        one = await kernels.run("a", "x = 41; print(x); open('out.txt', 'w').close()")
        two = await kernels.run("a", "x + 1")
        three = await kernels.run("a", "while True: pass", timeout=0.3)
        told["texts"] = [one.text, two.text, three.text.splitlines()[-2]]
        told["files"] = [made.name for made in one.files]
    await kernels.aclose()
    left = glob.glob(tempfile.gettempdir() + "/parlour-code-*")
    told["left"] = [name for name in left if os.stat(name).st_uid == os.getuid()]
    print(json.dumps(told))

asyncio.run(main())
"""
