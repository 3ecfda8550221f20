"""What the terminal says while Parlour opens: where it is, how far the model has come, what to do if it fails."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from core.readiness import WAITS
from webui.words import Words

if TYPE_CHECKING:
    from typing import TextIO

    from core.readiness import Part, Readiness

_MB = 1_000_000
_OPEN_TO_ALL = (
    "PARLOUR_TOKEN=off: whoever reaches this port is its owner, reads everything and can start programs; that is every "
    "account of this machine, and everybody that a proxy or tunnel lets in."
)
_STEP = 10  # per cent between two lines, where lines cannot be rewritten


class Terminal:
    """Tells each thing once; the progress of a download rewrites its line on a screen, and is rare in a file.

    Args:
        address: Where Parlour can be opened.
        pages: Whether it can be opened there; a worker answers nothing but probes.
    """

    def __init__(self, address: str, out: TextIO | None = None, *, pages: bool = True) -> None:
        self._address, self._pages = address, pages
        self._out = out or sys.stdout
        self._words = Words("en")
        self._rewrites = self._out.isatty()
        self._told: set[str] = set()
        self._open_line = ""  # may still be rewritten
        self._buried = False  # the address, under what was told of the model since

    def opening(self, *, instead_of: int = 0, beside: str = "", open_to_all: bool = False) -> None:
        """Parlour opens.

        Args:
            instead_of: The port that was asked for and is taken.
            beside: Where another process is open on the same data.
            open_to_all: Nobody is asked for a token, on an address that has one owner.
        """
        if beside:
            self._line(f"Parlour is already open at {beside}; this is a second one on the same data.")
        if instead_of:
            self._line(f"Port {instead_of} is taken, so Parlour uses the next free one.")
        if open_to_all:
            self._line(_OPEN_TO_ALL)
        self._line(f"Parlour is opening at {self._address}")

    def first_owner(self, token: str) -> None:
        """Say where the first owner makes an account; whoever reads the terminal keeps the machine."""
        where = f"{self._address.partition('/?')[0]}/link/{token}"
        self._line(f"Nobody has an account yet. Make the owner's, once, within seven days: {where}")

    def ending(self) -> None:
        """Say that it takes some seconds to end."""
        self._line("Parlour is ending, which may take some seconds. What was written so far is kept.")

    def tell(self, readiness: Readiness) -> None:
        """Say what is new."""
        if readiness.ready and "ready" not in self._told:
            # By itself: what is being fetched goes on below it.
            space = "\n" if self._open_line else ""
            told = "is ready" if self._pages else "writes replies, and answers /readyz and /metrics"
            self._once("ready", f"{space}Parlour {told} at {self._address}{space}")
        if behind := readiness.notes.get("database_behind"):
            self._once("behind", self._words("ready.behind", **behind))
        if elsewhere := readiness.notes.get("files_elsewhere"):
            self._once("elsewhere", self._words("ready.files_elsewhere", **elsewhere))
        model = readiness["model"]
        if model.state == "loading" and model.total:
            self._progress(model)
        elif model.state == "ready" and WAITS not in readiness.notes:
            self._once(f"model {model.label}", f"{_named(model.label)} is {_state(model)}.")
            if self._buried:
                self._buried = False
                self._line(f"Open it at {self._address}")
        elif model.state == "failed":
            error = {"key": model.remedy_key, "details": model.details or {}}
            self._once(f"failed {model.remedy_key}", self._words.error(error))

    def _progress(self, model: Part) -> None:
        per_cent = 100 * model.done // model.total
        line = f"Fetching {model.label or 'the model'}: {model.done // _MB} of {model.total // _MB} MB"
        if self._rewrites:
            self._out.write(f"\r{line}")
            self._out.flush()
            self._open_line = line
        else:
            self._once(f"{model.label} {per_cent // _STEP}", line)
            self._buried = self._pages and "ready" in self._told

    def _once(self, what: str, line: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._line(line)

    def _line(self, line: str) -> None:
        wiped = f"\r{' ' * len(self._open_line)}\r" if self._open_line else ""
        self._open_line = ""
        self._out.write(f"{wiped}{line}\n")
        self._out.flush()


def _state(model: Part) -> str:
    """A service that nobody asked yet is set up, and may not be there."""
    service = model.label and not model.answered and not model.in_process
    return "set up" if service else "ready"


def _named(label: str) -> str:
    """The label as it stands in a sentence: `Qwen 0.5B, built in,` and so on."""
    return f"{label}," if "," in label else label or "The model"
