"""The programs of `docs/coming-from`, each written for a peer and for Parlour: that both run, and how long they are.

`BENCH_PEERS=FOLDER python -m bench.beside [PAGE …]` runs the peers' programs in the environments of that folder, one
for each page by its name (`FOLDER/pydantic-ai/bin/python`), over a scripted server that speaks OpenAI's protocol. Ours
are run by `tests/test_docs_snippets.py`. Without the folder only lines are counted.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.figures import Figure, report
from core.testing.model_server import ModelServer
from core.testing.script import reply_from

PAGES = Path(__file__).resolve().parent.parent / "docs" / "coming-from"
FENCE = re.compile(r"^<!-- model: ([^\n]*) -->\n```(py|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# By default it speaks a protocol of OpenAI's alone, and sends its traces there.
OVER_CHAT = "import agents\nagents.set_default_openai_api('chat_completions')\nagents.set_tracing_disabled(True)\n"
BEFORE = {"openai-agents": OVER_CHAT}


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a page.

    Args:
        page: The peer's name.
        title: What it does.
        is_ours: Whether it is written for Parlour.
        code: The program.
        said: What the model says to it.
    """

    page: str
    title: str
    is_ours: bool
    code: str
    said: tuple[dict[str, Any], ...]

    @property
    def lines(self) -> int:
        """Its lines of code: without blank ones."""
        return sum(1 for line in self.code.splitlines() if line.strip())


def programs(page: str) -> list[Program]:
    """Those of one page, in its order."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found: list[Program] = []
    for title, body in re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        for said, kind, code in FENCE.findall(body):
            found.append(Program(page, title, kind == "python", code, tuple(json.loads(said))))
            ast.parse(code)
    return found


def wrong(program: Program, python: Path) -> str:
    """What is wrong with a peer's program; "" where it runs and says something."""
    with TemporaryDirectory() as folder, ModelServer([reply_from(one) for one in program.said]) as server:
        here = {
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_BASE": server.base_url,
            "OPENAI_API_KEY": "any",
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
        }
        file = Path(folder) / "program.py"  # some read their own source
        file.write_text(BEFORE.get(program.page, "") + program.code, encoding="utf-8")
        done = subprocess.run([python, file], capture_output=True, text=True, check=False, env=here, timeout=120)
        asked = len(server.requests)
    if done.returncode != 0:
        return done.stderr.strip()[-1500:]
    if not done.stdout.strip():
        return "It says nothing."
    left = len(program.said) - asked
    return f"The model was asked {asked} times, not {len(program.said)}." if left > 0 else ""


def main() -> None:
    """Run what can be run, and count."""
    pages = sys.argv[1:] or [path.stem for path in sorted(PAGES.glob("*.md")) if programs(path.stem)]
    folder = os.environ.get("BENCH_PEERS")
    figures: list[Figure] = []
    for page in pages:
        both = programs(page)
        theirs, ours = (sum(one.lines for one in both if one.is_ours is is_ours) for is_ours in (False, True))
        ran = "not run"
        if folder:
            found = [(one.title, wrong(one, Path(folder) / page / "bin" / "python")) for one in both if not one.is_ours]
            for title, what in found:
                if what:
                    sys.stderr.write(f"{page}: {title}: {what}\n")
            ran = f"{sum(not what for _, what in found)} of {len(found)} of theirs ran"
        figures.append(
            Figure(f"{len(both) // 2} programs beside {page}, lines", ours, theirs, "", f"{page} {theirs}; {ran}")
        )
    report(figures)


if __name__ == "__main__":
    main()
