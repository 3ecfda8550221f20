"""The environment of child processes: the module search path, and nothing else of the parent's."""

from __future__ import annotations

import sys
from pathlib import Path

_PATH_MARK = ";" if sys.platform == "win32" else ":"


def environment() -> dict[str, str]:
    """Nothing of the parent's, no key and no token; only where modules are, in the parent's own order.

    So a child writes bytecode, whatever the parent was told: what is imported in children alone, such as PyMuPDF, would
    else be compiled for each document, which takes four times as long as to read a page.
    """
    home = str(Path(__file__).resolve().parents[__name__.count(".")])  # what holds the outermost package
    places = [place or str(Path.cwd()) for place in sys.path]
    if home not in places:
        places.append(home)
    found = {"PYTHONPATH": _PATH_MARK.join(places), "PYTHONUTF8": "1"}
    if sys.platform == "win32":
        import ctypes

        # Python on Windows finds its random numbers through this folder.
        folder = ctypes.create_unicode_buffer(260)
        ctypes.windll.kernel32.GetWindowsDirectoryW(folder, 260)
        found["SYSTEMROOT"] = folder.value
    return found
