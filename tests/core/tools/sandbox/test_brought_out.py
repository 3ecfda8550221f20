"""What comes out of a sandbox, and what a killed Parlour leaves: nothing of others, nothing that is run, nothing."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.tools.sandbox.kernels import Kernels

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[4]


async def test_f4_f5_links_and_wild_names_bring_nothing_from_outside(
    driver: str, opened: Callable[..., Any], tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("private", encoding="utf-8")
    async with opened(driver) as kernels:
        if kernels is None:
            return
        result = await kernels.run(
            "a",
            f"import os\nos.symlink({str(secret)!r}, 'report.png')\nos.symlink('/etc', 'folder')\n"
            "open('plain.txt', 'w').write('mine')\nos.link('plain.txt', 'twice.txt')\n"
            "try:\n    os.mkfifo('pipe.txt')\nexcept OSError:\n    pass\n"
            "open('a\\\\..\\\\x.py', 'w').write('y')\nopen('a\\nb<c>.txt', 'w').write('z')\n"
            "os.symlink('plain.txt', 'data.csv')",
        )
        assert not result.failed, result.text
        assert {one.name: one.data for one in result.files} == {"x.py": b"y", "a_b_c_.txt": b"z"}
        # A file that is put where the code has laid a link does not go through the link.
        put = await kernels.run(
            "a", "print(os.path.islink('data.csv'), open('data.csv').read())", files={"data.csv": secret}
        )
        assert put.text == "False private"
        assert (await kernels.run("a", "open('plain.txt').read()")).text == "'mine'"


async def test_c26_what_comes_out_is_bytes_and_is_never_unpacked(opened: Callable[..., Any], tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    bait = (
        f"import os, pickle\nclass Bait:\n    def __reduce__(self):\n        return os.mkdir, ({str(mark)!r},)\n"
        "pickle.dump(Bait(), open('table.pkl', 'wb'))"
    )
    async with opened("auto") as kernels:
        if kernels is None:
            return
        (made,) = (await kernels.run("a", bait)).files
        assert made.data.startswith(b"\x80")
        assert made.media_type == "application/octet-stream"
        assert not mark.exists()


async def test_a_killed_parlour_takes_its_kernels_along(driver: str, known: Path) -> None:
    program = f"""
import asyncio, os
from pathlib import Path
from core.tools.sandbox.kernels import Kernels

async def main():
    kernels = Kernels(wanted={driver!r}, known=Path({str(known / driver)!r}), ahead=False)
    choice = await kernels.chosen()
    if choice.driver:
        await kernels.run("a", "1")
    print([one.result().process.pid for one in kernels._kernels.values()], flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT)
    for pid in eval(done.stdout):
        with contextlib.suppress(psutil.NoSuchProcess):
            await asyncio.to_thread(psutil.Process(pid).wait, 20)
        assert not psutil.pid_exists(pid)


async def test_folders_that_a_killed_process_left_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        left, other = Path(place, "parlour-code-left"), Path(place, "parlour-code-being-made")
        for folder in (left, other):
            (folder / "job").mkdir(parents=True)
        (left / "in-use").touch()
        kernels = Kernels()
        await kernels.chosen()
        assert not left.exists()
        assert other.exists()
        await kernels.aclose()
        assert [path.name for path in Path(place).iterdir()] == ["parlour-code-being-made"]
