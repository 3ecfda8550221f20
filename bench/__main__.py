"""`python -m bench [name …]`: run the measurements, each in a process of its own, and keep `bench/RESULTS.md`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import Figure

NAMES = (
    "streaming",
    "dashscope_streaming",
    "calls",
    "preparing",
    "importing",
    "first_token",
    "threads",
    "doors",
    "parallel_tools",
    "agents",
    "mcp",
    "sandbox",
    "starting",
    "owners",
    "signing_in",
    "pages",
    "demos",
    "idle",
    "load",
    "frames",
    "server_frames",
    "reacting",
    "many_conversations",
    "long_conversation",
    "long_document",
    "search",
    "large_library",
    "near_vectors",
    "without_indices",
    "budget",
    "page_hits",
    "real_documents",
    "evidence",
    "claims",
    "scopes",
    "whole",
    "tables",
    "figures_and_forms",
    "second_question",
    "small_model",
    "agents_suite",
)
RESULTS = Path(__file__).with_name("RESULTS.md")
ROOT = Path(__file__).resolve().parent.parent


def run(name: str) -> list[Figure]:
    """One measurement; what it prints beside its figures is shown."""
    print(f"== {name}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        print(f"   failed with exit code {done.returncode}", flush=True)
        return [Figure(f"{name} (failed)", float("nan"), 0, "")]
    figures = [Figure(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    for figure in figures:
        print(f"   {figure.row()}", flush=True)
    return figures


def written(figures: list[Figure]) -> str:
    """The page of results."""
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return "\n".join(
        [
            "# Results",
            "",
            f"`make bench` on {datetime.now(UTC):%d %B %Y}: {machine}.",
            "The peer runs in turns with ours, on the same machine. Machines differ and so do runs: trust the ratios.",
            "",
            "| what | result | goal | met | beside |",
            "|---|---|---|---|---|",
            *(figure.row() for figure in figures),
            "",
        ]
    )


def main() -> int:
    """Run what was named, or everything; only a whole run is kept."""
    names = sys.argv[1:] or list(NAMES)
    figures = [figure for name in names for figure in run(name)]
    if not sys.argv[1:]:
        RESULTS.write_text(written(figures), encoding="utf-8")
        print(f"Written to {RESULTS.relative_to(ROOT)}")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
