"""Ten programs, each written for Parlour and for its peers: that they run, and how many lines of code they take.

`BENCH_PEERS=FOLDER python -m bench.ten_programs [PEER …]` runs those of `bench/ten` over a scripted server that speaks
OpenAI's protocol, each in the environment of its peer (`FOLDER/<peer>/bin/python`); without the folder ours alone. A
program counts where it ends well, prints what is expected and has asked the model. What a peer has no way for it has no
program for; one that does by hand what its peer does not do begins with `# by hand`.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request, refusal

ROOT: Final = Path(__file__).resolve().parent.parent
PROGRAMS: Final = ROOT / "bench" / "ten"
PEERS: Final = ("parlour", "pydantic-ai", "openai-agents", "smolagents", "langchain", "qwen-agent")
NOT_CODE: Final = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def _words(request: Request) -> str:
    return json.dumps(request.get("messages"), ensure_ascii=False)


def _given(request: Request) -> list[str]:
    """The results that tools have given in this conversation."""
    return [
        str(one.get("content"))
        for one in request["messages"]
        if one.get("role") in {"tool", "function", "tool-response"}
    ]


def _ends(request: Request, text: str) -> Reply:
    """An answer: as a call where smolagents wants one."""
    names = [one["function"]["name"] for one in request.get("tools") or []]
    return Reply(calls=[("final_answer", {"answer": text})]) if "final_answer" in names else Reply(text=text)


def _results(request: Request) -> int:
    """How often a tool has answered; smolagents tells results as words of the user."""
    return len(_given(request)) or _words(request).count("Observation:")


def pages(request: Request) -> Reply:
    del request
    return Reply(text=json.dumps({"deductible": {"value": 300, "sources": [1]}}))


def approval(request: Request) -> Reply:
    if _results(request) or "refunded" in _words(request).split("Order 17")[-1]:
        return _ends(request, "It is refunded.")
    return Reply(calls=[("refund", {"order": 17})])


def session(request: Request) -> Reply:
    return _ends(
        request, "You are Ann." if "I am Ann" in _words(request) and "Who am I" in _words(request) else "Hello."
    )


def handoff(request: Request) -> Reply:
    if "Call: ..." in _words(request):  # Qwen-Agent's router asks in words
        return Reply(text="Call: refunds\nReply:")
    names = [one["function"]["name"] for one in request.get("tools") or []]
    to = next((one for one in names if "refunds" in one or one == "final_result"), "")
    if "You refund." in _words(request).split("My money")[0] or not to or _results(request):
        return _ends(request, "It is refunded.")
    argument = {"task": "My money back."} if to == "refunds" else {}
    return Reply(calls=[(to, argument)])


def parallel(request: Request) -> Reply:
    return _ends(request, "A view.")


def retries(request: Request) -> Reply:
    if "is 2.50" in _words(request):
        return _ends(request, "Tea is 2.50.")
    return Reply(calls=[("price", {"name": "gold" if not _results(request) else "tea"})])


def partial(request: Request) -> Reply:
    names = [one["function"]["name"] for one in request.get("tools") or []]
    value = '{"name": "tea", "total": 4.5, "paid": true}'
    return (
        Reply(calls=[(names[0], value)], argument_size=4)
        if names
        else Reply(text=re.findall(r".{1,6}", value), pace=0.06)
    )


def limits(request: Request) -> Reply:
    return Reply(calls=[("again", {"number": len(request["messages"])})])


def fallback(request: Request) -> Reply:
    return refusal(503, "Overloaded.") if request["model"] == "first" else _ends(request, "From the second.")


def evaluation(request: Request) -> Reply:
    return _ends(request, "40.8")


TASKS: Final[Mapping[str, tuple[str, Callable[[Request], Reply], str]]] = {
    "pages": ("a value from a PDF, with its page", pages, "300 1"),
    "approval": ("a call that waits for somebody in another program", approval, "refunded"),
    "session": ("a conversation that outlives its program", session, "You are Ann."),
    "handoff": ("another agent takes over", handoff, "refunded"),
    "parallel": ("three agents at once", parallel, "A view. A view. A view."),
    "retries": ("a tool that sends its model back", retries, "Tea is 2.50."),
    "partial": ("a typed value while it is written", partial, "4.5"),
    "limits": ("a reply that ends at three model calls", limits, "limit"),
    "fallback": ("another model where the first fails", fallback, "From the second."),
    "evaluation": ("a suite of tasks with a check", evaluation, "1"),
}


def programs(peer: str) -> dict[str, str]:
    """The programs of one side, by their tasks."""
    text = (PROGRAMS / f"{peer}.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\w+)\n\n```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def lines_of(code: str) -> int:
    """Lines with code: without blank ones and comments."""
    read = tokenize.generate_tokens(io.StringIO(code).readline)
    return len({at for one in read if one.type not in NOT_CODE for at in range(one.start[0], one.end[0] + 1)})


def wrong(code: str, task: str, python: Path) -> str:
    """What is wrong with a program; "" where it runs and says what is expected."""
    _, says, expected = TASKS[task]
    with TemporaryDirectory() as folder, ModelServer(says) as server:
        shutil.copy(ROOT / "assets" / "samples" / "policy.pdf", folder)
        file = Path(folder) / "program.py"
        file.write_text(code, encoding="utf-8")  # some read their own source
        here = {
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_BASE": server.base_url,
            "OPENAI_API_KEY": "any",
            "PATH": os.environ["PATH"],
            "HOME": folder,
            **({"PYTHONPATH": str(ROOT)} if str(python) == sys.executable else {}),
        }
        done = subprocess.run(
            [python, file], capture_output=True, text=True, check=False, env=here, cwd=folder, timeout=240
        )
        asked = len(server.requests)
    if done.returncode != 0:
        return done.stderr.strip()[-1500:]
    if expected not in done.stdout:
        return f"It says {done.stdout[-300:]!r}, without {expected!r}. {done.stderr[-300:]}"
    return "" if asked else "The model was not asked."


def main() -> None:
    """Run what can be run, and count."""
    chosen = sys.argv[1:] or list(PEERS)
    folder = os.environ.get("BENCH_PEERS")
    table: dict[str, dict[str, str]] = {task: {} for task in TASKS}
    for peer in chosen:
        python = Path(sys.executable) if peer == "parlour" else Path(folder or "") / peer / "bin" / "python"
        written = programs(peer)
        for task in TASKS:
            code = written.get(task)
            if code is None:
                table[task][peer] = "–"
                continue
            found = wrong(code, task, python) if peer == "parlour" or folder else "it was not run"
            if found:
                sys.stderr.write(f"{peer}: {task}: {found}\n")
            by_hand = " by hand" if code.startswith("# by hand") else ""
            table[task][peer] = "did not run" if found else f"{lines_of(code)}{by_hand}"
            print(peer, task, table[task][peer], flush=True)
    print("| |", " | ".join(chosen), "|")
    print("|---|" + "---:|" * len(chosen))
    for task, cells in table.items():
        print(f"| {TASKS[task][0]} |", " | ".join(cells[peer] for peer in chosen), "|")


if __name__ == "__main__":
    main()
