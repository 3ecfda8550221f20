"""The kernel, inside the sandbox: IPython as it comes, less what would reach out, and with short answers.

Run as `python -I -B kernel.py settings.json FOLDER…`; the folders are those of the packages.
"""

from __future__ import annotations

import builtins
import codecs
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_CELL = "cell "
_LARGEST = 12 << 20  # bytes of a part of a message
_PIPE = 1 << 20  # bytes that wait in a pipe at most
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "uv", "apt", "apt-get", "npm")
_NO_INSTALLING = (
    "Nothing can be installed here: this sandbox has no network.\nThere are the standard library, {packages}."
)
_TABLES_READ = ("xlsx", "xlsm", "xlsb", "xls", "ods")


class Tables:
    """On the way of imports: pandas, once somebody wants it, reads tables with what is here."""

    def find_spec(self, name: str, path: Any = None, _: Any = None) -> Any:
        """That of pandas alone: its own, less the choice of readers."""
        spec = PathFinder.find_spec(name, path) if name == "pandas" else None
        if spec is None or spec.loader is None:
            return None
        load: Any = spec.loader.exec_module

        def loaded(module: Any) -> None:
            load(module)
            if hasattr(module, "set_option") and find_spec("python_calamine"):  # else it is a file of that name
                for kind in _TABLES_READ:
                    module.set_option(f"io.excel.{kind}.reader", "calamine")

        vars(spec.loader)["exec_module"] = loaded
        return spec


class Room:
    """How much one cell may print: a cell that prints for ever must fill nobody's memory."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def renew(self, *_: object) -> None:
        """A new cell begins."""
        self._left = self._most

    def fitting(self, text: str) -> str:
        """What of `text` may still be printed; the first that does not fit ends with a notice."""
        if self._left < 0:
            return ""
        cost = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        self._left -= cost
        if self._left >= 0:
            return text
        kept = text.encode("utf-8", "replace")[: self._left + cost].decode("utf-8", "ignore")
        return f"{kept}\n[… the output is longer than {self._most // 1024} kB; the rest is left out …]\n"


class Descriptor:
    """What programs write to a descriptor, on its way into the cell that started them.

    ipykernel leaves that to a thread, and ends a cell without it: what the thread had not read yet was lost. Here
    whoever flushes the stream reads it first.

    Args:
        stream: The kernel's stream for it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._file = stream._fid  # noqa: SLF001 - ipykernel has no other name for it
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # The kernel's own complaints go where they went before: they are why it does not start.
        self._before = stream._original_stdstream_copy  # noqa: SLF001
        self._turn = threading.Lock()
        self._process = os.getpid()
        os.set_blocking(self._file, False)

    def watch(self) -> None:
        """Hand on what comes while the cell does something else."""
        while True:
            select.select([self._file], [], [])
            if not self.take():
                return

    def take(self) -> bool:
        """Hand on what was written until now; whether more can come."""
        if os.getpid() != self._process:  # a forked process has no output here to take, and a lock nobody opens
            return False
        with self._turn:
            left = _PIPE
            while left > 0:  # no more than was there when this began: somebody may write for ever
                try:
                    data = os.read(self._file, _PIPE)
                except BlockingIOError:
                    return True
                if not data:
                    return False
                left -= len(data)
                with suppress(OSError):  # nobody may read there
                    os.write(self._before, data)
                self._stream.write(self._decoder.decode(data))
        return True


def _whole(stream: Any, app: Any, room: Room) -> None:
    """Let no cell end before what it printed has been sent.

    Args:
        stream: The class of the kernel's streams.
        app: The class of the kernel's program.
        room: How much a cell may print.
    """
    write, flush, open_channel = stream.write, stream.flush, app.init_iopub

    def bounded(self: Any, string: str) -> int:
        fits = room.fitting(string)
        return write(self, fits) if fits else 0

    def watch(self: Any) -> Any:
        self.descriptor = Descriptor(self)
        return self.descriptor.watch

    def flush_all(self: Any) -> None:
        if hasattr(self, "descriptor"):
            self.descriptor.take()
        flush(self)

    def without_end(self: Any, context: Any) -> None:
        context.sndhwm = 0  # else what is shown is dropped while nobody takes it, and so is the end of the cell
        open_channel(self, context)

    stream.write, stream.flush, stream._watch_pipe_fd = bounded, flush_all, property(watch)  # noqa: SLF001
    app.init_iopub = without_end


def main(settings: dict[str, Any]) -> None:
    """Run the kernel until the process is ended."""
    sys.path.extend(sys.argv[2:])
    finders: list[Any] = sys.meta_path
    finders.insert(0, Tables())
    _prepare_plots(settings)
    from ipykernel import iostream
    from ipykernel import kernelapp as untyped
    from traitlets.config import Config

    room = Room(settings["output_limit"])

    class Thread(iostream.IOPubThread):
        """Without the pipe over TCP for forked processes: here is no TCP."""

        def __init__(self, socket: Any, session: Any = None, **_: Any) -> None:
            super().__init__(socket, pipe=False, session=session)

    kernelapp: Any = untyped
    _whole(iostream.OutStream, kernelapp.IPKernelApp, room)
    kernelapp.IOPubThread = Thread
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.cache_size = 100
    app = kernelapp.IPKernelApp.instance(config=config, connection_file=settings["connection"])
    app.initialize([])
    _change(app.shell, room, settings["packages"])
    pack = app.session.pack

    def fitting(what: Any) -> bytes:
        packed = pack(what)
        return packed if len(packed) <= _LARGEST else pack(_cut(what, settings["output_limit"]))

    app.session.pack = fitting
    app.start()


def _cut(what: Any, most: int) -> Any:
    """The same with long texts cut: a message that is too large would take the connection with it."""
    if isinstance(what, str) and len(what) > most:
        return f"{what[:most]}\n[… {len(what) - most} more characters …]"
    inside: Any = what
    if isinstance(what, dict):
        return {name: _cut(value, most) for name, value in inside.items()}
    if isinstance(what, list | tuple):
        return [_cut(value, most) for value in inside[:1000]]
    return what


def _prepare_plots(settings: dict[str, Any]) -> None:
    """Fonts for Chinese labels, and the list of fonts that an earlier kernel made, which takes a second to make."""
    folder = Path(settings["plots"])
    folder.mkdir(exist_ok=True)
    (folder / "matplotlibrc").write_text(settings["plots_rc"], encoding="utf-8")
    for known in Path(settings["share"]).glob("fontlist-*.json"):
        shutil.copyfile(known, folder / known.name)


def _change(shell: Any, room: Room, packages: str) -> None:
    shell.events.register("pre_run_cell", room.renew)
    shell.display_formatter.active_types = ["text/plain", "text/markdown", "image/png", "image/jpeg"]
    markdown = shell.display_formatter.formatters["text/markdown"]
    markdown.for_type_by_name("pandas.core.frame", "DataFrame", _table)
    markdown.for_type_by_name("pandas", "DataFrame", _table)

    def name(_: str, __: str, number: int) -> str:
        return f"{_CELL}{number}"

    def short(kind: Any, error: BaseException, _: object) -> None:
        shown(kind, error, _short(kind, error))

    def system(command: str) -> None:
        _system(shell, command, packages)
        flush()  # what it said stands before what the cell says next

    def flush() -> None:
        for stream in streams:
            stream.flush()

    def begin() -> None:
        for stream in streams:
            stream.set_parent(shell.get_parent())

    # The kernel tells whatever stands in their place by then, which may be a file of the cell's.
    streams: list[Any] = [sys.stdout, sys.stderr]
    shell.events.register("pre_execute", begin)
    shell.events.register("post_execute", flush)

    shell.compile.get_code_name = name
    shown = shell._showtraceback  # noqa: SLF001 - IPython's own way to say it otherwise
    shell._showtraceback = short  # noqa: SLF001
    shell.system = system
    for leave in ("exit", "quit"):
        shell.user_ns.pop(leave, None)
        setattr(builtins, leave, sys.exit)
    os.register_at_fork(after_in_child=_plain_output)


def _plain_output() -> None:
    """A forked process prints through the descriptors, which the kernel reads; its channels belong to the parent."""
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)


def _table(frame: Any) -> str | None:
    """A small table as Markdown; a larger one has pandas' own words, which leave out the middle."""
    if frame.shape[0] > 30 or frame.shape[1] > 12 or frame.columns.nlevels > 1:
        return None
    named = frame.reset_index() if frame.index.name or frame.index.nlevels > 1 else frame
    heads = [str(one) for one in named.columns]
    rows = [[_cell(value) for value in row] for row in named.itertuples(index=False, name=None)]
    if named is frame:
        heads = ["", *heads]
        rows = [[_cell(name), *row] for name, row in zip(frame.index, rows, strict=True)]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(text.split())[:200]


def _short(kind: Any, error: BaseException) -> list[str]:
    """The traceback of the user's own lines."""
    told = traceback.TracebackException(kind, error, error.__traceback__)
    seen: set[int] = set()
    waiting: list[traceback.TracebackException | None] = [told]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack = traceback.StackSummary.from_list([frame for frame in one.stack if frame.filename.startswith(_CELL)])
        waiting += [one.__cause__, one.__context__]
    return "".join(told.format()).rstrip().split("\n")[-60:]


def _system(shell: Any, command: str, packages: str) -> None:
    """Run a command and print what it says."""
    words = [Path(word).name for word in shell.var_expand(command, depth=1).split()[:3]]
    if any(word in _INSTALLERS for word in words):
        print(_NO_INSTALLING.format(packages=packages))  # noqa: T201 - this is what the cell prints
        return
    expanded = shell.var_expand(command, depth=1)
    done = subprocess.run(expanded, shell=True, stdin=subprocess.DEVNULL, check=False)  # noqa: S602 - what was asked
    shell.user_ns["_exit_code"] = done.returncode


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
