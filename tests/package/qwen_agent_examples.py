"""Runs the examples of Qwen-Agent's repository with nothing changed but their imports, and prints what came of each.

    python -m tests.package.qwen_agent_examples CHECKOUT [NAME …]

CHECKOUT is a checkout of that repository. Its models are played by a server of this machine, which has one answer;
nothing else is reached. What an example imports itself (`json5`, `requests`) must be installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import defaultdict
from pathlib import Path
from typing import cast

from core.testing.behaviour import text_of
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 120.0  # seconds for an example
RUNS = "runs"
_IMPORT = re.compile(r"^(\s*(?:from|import) )qwen_agent\b", re.MULTILINE)
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_NOT_TRIED = {
    "not tried: its MCP servers are fetched when they start": re.compile(r"['\"](?:uvx|npx)['\"]"),
    "not tried: it names an address of another machine": re.compile(
        r"['\"](?:file|base_url|model_server)['\"]: ['\"]https?:|files=\[['\"]https?:"
    ),
}
KNOWN = {
    "No module named 'json5'": "runs once `json5` is installed, which it imports itself",
    "gui.gradio_dep'": "does not run: it draws a page of its own from inner parts of theirs",
    "The schema of the tool 'image_gen'": "does not run: a tool's parameters are one parameter where a schema belongs",
}
"""By what the last line of its error has."""
# A file whose last lines call `test` is run as it is; of one that would open a page `test` is called, or, where there
# is none, what it makes its agents with.
_CHILD = """
import runpy, sys
path = sys.argv[1]
if "--whole" in sys.argv:
    runpy.run_path(path, run_name="__main__")
else:
    made = runpy.run_path(path, run_name="example")
    made.get("test", made.get("init_agent_service"))()
"""


def answer(request: Request) -> Reply:
    """What the examples' model says: an answer that agents which write their steps understand, too."""
    messages = cast("list[dict[str, object]]", request.get("messages") or [{}])
    plays = text_of(messages[-1]) == "开始"  # a game, which wants a list
    return Reply(text='["1+1=3"]' if plays else "Final Answer: It is so.")


def tried(example: Path, folder: Path, server: ModelServer) -> str:
    """What came of one example."""
    said = _COMMENT.sub("", example.read_text("utf-8"))
    for reason, sign in _NOT_TRIED.items():
        if sign.search(said):
            return reason
    program = folder / "examples" / example.name
    program.write_text(_IMPORT.sub(r"\1parlour.compat.qwen_agent", example.read_text("utf-8")), "utf-8")
    calls_itself = re.search(r"^\s+test\(", said.partition("__main__")[2], re.MULTILINE)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "DASHSCOPE_API_KEY": "any",
        "DASHSCOPE_HTTP_BASE_URL": server.dashscope_url,
        "PARLOUR_HOME": str(folder / "home"),
    }
    command = [sys.executable, "-c", _CHILD, str(program), *(["--whole"] if calls_itself else [])]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"does not run: it has not ended after {LONGEST:.0f} s"
    if done.returncode == 0:
        return RUNS
    last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return next((reason for sign, reason in KNOWN.items() if sign in last), f"does not run: {last}")


def main() -> int:
    """Print the table; 1 where an example does not run, and not for a reason that is known."""
    parser = ArgumentParser(prog="python -m tests.package.qwen_agent_examples", description="Do its examples run?")
    parser.add_argument("checkout", type=Path, help="of Qwen-Agent's repository")
    parser.add_argument("names", nargs="*", help="examples to run; all where none is named")
    asked = parser.parse_args()
    examples = sorted((asked.checkout / "examples").glob("[!_]*.py"))
    found: defaultdict[str, list[str]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as made, ModelServer(answer) as server:
        shutil.copytree(asked.checkout / "examples", Path(made) / "examples", ignore=shutil.ignore_patterns("*.py"))
        for example in examples:
            if not asked.names or example.stem in asked.names:
                result = tried(example, Path(made), server)
                found[result].append(example.stem)
                print(f"   {example.stem}: {result}", file=sys.stderr, flush=True)
    print("| | examples |\n|---|---|")
    for result, names in sorted(found.items(), key=lambda one: one[0] != RUNS):
        print(f"| {result} | {len(names)}: {', '.join(f'`{name}`' for name in names)} |")
    explained = {RUNS, *_NOT_TRIED, *KNOWN.values()}
    return 0 if found.keys() <= explained else 1


if __name__ == "__main__":
    sys.exit(main())
