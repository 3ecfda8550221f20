"""What a cell and its programs print comes whole, in order and with that cell, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

# Who reads what programs print, beside the cells, has no turn before the next cell begins.
_LATE = """
import os, select, threading
cells, wait, next_cell = threading.main_thread(), select.select, threading.Event()
def late(*descriptors):
    ready = wait(*descriptors)
    if threading.current_thread() is not cells:
        next_cell.wait(20)
    return ready
select.select = late
get_ipython().events.register("pre_run_cell", lambda *_: next_cell.set())
os.write(1, b"x")
"""


async def test_what_a_program_prints_last_comes_with_its_cell(driver: str, opened: Callable[..., Any]) -> None:
    async with opened(driver) as kernels:
        if kernels is None:
            return
        await kernels.run("a", _LATE)
        for also in ("", "import io, sys\nsys.stdout = io.StringIO()\n"):
            assert (await kernels.run("a", f"next_cell.clear()\n{also}!echo hello")).text == "hello"
            assert (await kernels.run("a", "next_cell.clear()\nos.write(1, b'bye')\nNone")).text == "bye"
            assert (await kernels.run("a", "1 + 1")).text == "2"


async def test_long_output_of_programs_is_whole_down_to_the_last_letter(opened: Callable[..., Any]) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        said = await kernels.run("a", "import os\nfor _ in range(4):\n    os.write(1, ('a' + '价' * 15_000).encode())")
        assert said.text == ("a" + "价" * 15_000) * 4


async def test_what_programs_say_between_two_lines_stands_between_them(opened: Callable[..., Any]) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        said = await kernels.run("a", "print('one')\n!echo two\nprint('three')\n!echo four >&2\nprint('five')")
        assert said.text.split() == ["one", "two", "three", "four", "five"]


async def test_complaints_of_programs_are_shown_however_many_there_were(opened: Callable[..., Any]) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        for _ in range(3):
            said = await kernels.run("a", "!head -c 100000 /dev/zero | tr '\\0' x >&2", timeout=30)
            assert (said.text, said.failed) == ("x" * 100_000, False)


async def test_a_cell_that_shows_thousands_of_values_loses_none_while_nobody_listens(
    opened: Callable[..., Any],
) -> None:
    async with opened("landlock") as kernels:
        if kernels is None:
            return
        show = "for i in range(4000):\n    display(i)\nopen('done', 'w').close()"

        def busy(line: str, *_: object) -> None:
            """The loop of whoever asked has something else to do until the cell is over."""
            end = time.monotonic() + 60
            while not (Path(line) / "done").exists() and time.monotonic() < end:
                time.sleep(0.02)  # between two looks

        said = await kernels.run("a", f"import os\nprint(os.getcwd(), flush=True)\n{show}", timeout=20, progress=busy)
        assert said.text.split()[1:] == [str(number) for number in range(4000)]
