"""`python -m bench [name …]`: run measurements, each in a process of its own, and keep them in `bench/RESULTS.md`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = (
    "streaming",
    "dashscope_streaming",
    "calls",
    "preparing",
    "importing",
    "ingesting",
    "bringing_in",
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
    "signing_in_beside",
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
    "database",
    "large_library",
    "near_vectors",
    "shelf",
    "without_indices",
    "budget",
    "page_hits",
    "real_documents",
    "meaning_ready",
    "evidence",
    "marks_in_documents",
    "claims",
    "scopes",
    "whole",
    "tables",
    "tables_in_words",
    "tables_daily",
    "figures_and_forms",
    "second_question",
    "blobs",
    "replicas",
    "small_model",
    "answering",
    "starters",
    "schemas",
    "agents_suite",
)
RESULTS = Path(__file__).with_name("RESULTS.md")
KEPT = Path(__file__).with_name("kept")
ROOT = Path(__file__).resolve().parent.parent
_BEGIN, _END = "<!-- written by python -m bench -->", "<!-- end -->"


def run(name: str) -> list[Figure]:
    """One measurement; what it prints beside its figures is shown."""
    print(f"== {name}", flush=True)
    busy = _busy()
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        print(f"   failed with exit code {done.returncode}", flush=True)
        return [Figure(f"{name} (failed)", float("nan"), 0, "")]
    figures = [Figure(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    for figure in figures:
        print(f"   {figure.row()}", flush=True)
    keep(name, figures, busy)
    return figures


def keep(name: str, figures: list[Figure], busy: float) -> None:
    """Keep the last figures of a measurement, with the day and how many processes wanted the machine before it."""
    KEPT.mkdir(exist_ok=True)
    rows = [asdict(figure) for figure in figures]
    kept = {"day": f"{datetime.now(UTC):%d %B %Y}", "machine": _machine(), "busy": busy, "figures": rows}
    text = json.dumps(kept, ensure_ascii=False, indent=1)
    (KEPT / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def written(page: str) -> str:
    """The page of results with the part between its two marks written anew from what is kept."""
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return "\n".join([f"{before}{_BEGIN}", "", *_parts(), f"{_END}{after}"])


def _parts() -> Iterator[str]:
    for name in NAMES:
        path = KEPT / f"{name}.json"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            yield f"### {name}"
            yield ""
            yield f"{kept['day']}, {kept['machine']}; before it began, {kept['busy']:.1f} others wanted a core."
            yield ""
            yield "| what | result | goal | met | beside |"
            yield "|---|---|---|---|---|"
            yield from (Figure(**row).row() for row in kept["figures"])
            yield ""


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _busy() -> float:
    """How many processes wanted a core in the last minute; 0 where the system does not tell."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0


def main() -> int:
    """Run what was named, or everything, and keep what came out."""
    figures = [figure for name in sys.argv[1:] or NAMES for figure in run(name)]
    RESULTS.write_text(written(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Written to {RESULTS.relative_to(ROOT)}")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
