"""Runs the tests in processes that are forked from the one that has found them: to find them takes half a minute.

`python -m pytest -p tests.forked --forks 2` does so. Each process takes the next few tests of a file when it is done
with those it has, and tells the first one how they went. What a session shares is made in each of them; apps in one.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import groupby
from typing import Any

import pytest
from _pytest.tmpdir import TempPathFactory

_MOST = 40  # tests that one process takes at once: at the end, none waits long for another
_NUMBER = struct.Struct("=I")
_PIPE = 60_000  # bytes that a pipe holds without a reader
_SOON = 1.0  # seconds between two looks whether a process that says nothing is still there
_APPS = "origin"  # a fixture of the session that takes seconds: all tests that want it run in one process
_ENOUGH = 1_000  # tests, of which some will need what takes a second of each process to load
_TOLD = 0.5  # seconds from which on it is told how long a test was set up or taken down


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's only option."""
    parser.addoption("--forks", type=int, default=0, help="processes that run tests; 0 is this one")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what was found, unless that is to be done here."""
    number = session.config.getoption("forks")
    if not number or session.config.option.collectonly or not session.items:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    _Parent(session, number).run()
    return True


def batches(items: list[pytest.Item]) -> list[range]:
    """The places of tests that are taken together, all of one file."""
    found: list[range] = []
    for _, group in groupby(range(len(items)), lambda at: items[at].path):
        places = list(group)
        found += [range(at, min(at + _MOST, places[-1] + 1)) for at in range(places[0], places[-1] + 1, _MOST)]
    return found


class _Child:
    """What the first process knows of another."""

    def __init__(self, pid: int, told: int) -> None:
        self.pid = pid
        self.told = told
        self.half = b""
        self.taken: dict[int, None] = {}  # places of tests that have not ended

    def has_ended(self) -> bool:
        """Whether the system knows it no more but for how it ended."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def lines(self) -> Iterator[list[Any]] | None:
        """What it has said since; None when it says no more."""
        came = os.read(self.told, 1 << 20)
        *lines, self.half = (self.half + came).split(b"\n")
        return map(json.loads, lines) if came else None


class _Parent:
    def __init__(self, session: pytest.Session, number: int) -> None:
        self._session = session
        self._config = session.config
        self._number = number
        self._children: list[_Child] = []
        self._left = set(range(len(session.items)))  # places of tests of which it is not known how they went

    def run(self) -> None:
        found = batches(self._session.items)
        with_apps = [at for at, places in enumerate(found) if self._wants_apps(places)]
        first, queue = _queue(with_apps), _queue(sorted({*range(len(found))} - {*with_apps}))
        temporary = _internals(self._config)._tmp_path_factory.getbasetemp()
        if len(self._session.items) >= _ENOUGH:
            _load_once()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            for number in range(self._number):
                told, telling = os.pipe()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # nothing runs beside what was found
                    pid = os.fork()
                if pid == 0:
                    os.close(told)
                    self._config.option.basetemp = temporary / f"forked-{number}"
                    _run(self._session, found, [queue] if number else [first, queue], telling)
                os.close(telling)
                self._children.append(_Child(pid, told))
            os.close(first)
            os.close(queue)
            self._hear(found)
            for at in sorted(self._left):
                self._fail(at, "No process was left that could run this test.")
        finally:
            for child in self._children:  # those that run have been left by an error or an interruption
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(child.pid, signal.SIGTERM)
                    os.waitpid(child.pid, 0)

    def _wants_apps(self, places: range) -> bool:
        items: Any = self._session.items
        return any(_APPS in items[at].fixturenames for at in places)

    def _hear(self, found: list[range]) -> None:
        with selectors.DefaultSelector() as waiting:
            for child in self._children:
                waiting.register(child.told, selectors.EVENT_READ, child)
            while waiting.get_map():
                heard: list[_Child] = [key.data for key, _ in waiting.select(_SOON)]
                # Something that it left behind may hold its pipe open, so silence is no proof that it still runs.
                ended = [] if heard else [child for child in self._children if child.has_ended()]
                for child in heard:
                    lines = child.lines()
                    ended += [child] if lines is None else []
                    for kind, what in lines or ():
                        self._heard(child, kind, what, found)
                if self._session.shouldfail:  # enough have, for whoever set a number
                    raise self._session.Failed(self._session.shouldfail)
                for child in ended:
                    waiting.unregister(child.told)
                    self._ended(child)

    def _heard(self, child: _Child, kind: str, what: Any, found: list[range]) -> None:
        hook = self._config.hook
        match kind:
            case "taken":
                child.taken |= dict.fromkeys(found[what])
            case "ended":
                item = self._session.items[what]
                del child.taken[what]
                self._left.discard(what)
                hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            case "report":
                report = hook.pytest_report_from_serializable(config=self._config, data=what)
                hook.pytest_runtest_logreport(report=report)
            case _:
                raise AssertionError(kind)

    def _ended(self, child: _Child) -> None:
        """What it took and did not tell of has failed."""
        os.close(child.told)
        self._children.remove(child)
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        for at in child.taken:
            self._fail(at, f"The process of this test ended ({code}) before it was told how it went.")
        if code and not child.taken:
            raise RuntimeError(f"A process that runs tests ended ({code}) after its last test.")

    def _fail(self, at: int, said: str) -> None:
        item = self._session.items[at]
        self._left.discard(at)
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
        self._config.hook.pytest_runtest_logreport(report=report)


class _Telling:
    """Tells the first process of the tests that are run here."""

    def __init__(self, config: pytest.Config, pipe: int) -> None:
        self._config = config
        self._pipe = pipe

    def tell(self, kind: str, what: Any) -> None:
        line = memoryview(json.dumps([kind, what]).encode() + b"\n")
        while line:
            line = line[os.write(self._pipe, line) :]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed and report.duration < _TOLD:
            return
        self.tell("report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def _internals(of: Any) -> Any:
    """What pytest and Python name with an underscore, and give no other way to."""
    return of


def _load_once() -> None:
    """Load what each of the processes would load for itself: a client of services, and the tokens of a model."""
    import_module("core.llm.backends.openai.model")
    import_module("core.llm.tokens").qwen_encoding()


def _queue(numbers: list[int]) -> int:
    """A pipe that holds these numbers; whoever reads one has it alone."""
    queue, adding = os.pipe()
    assert len(numbers) * _NUMBER.size < _PIPE, "More tests than a pipe holds: let each process take more of them."
    os.write(adding, b"".join(map(_NUMBER.pack, numbers)))
    os.close(adding)
    return queue


def _run(session: pytest.Session, found: list[range], queues: list[int], pipe: int) -> None:
    """Run what the queues hold, one after another, and end this process."""
    status = 1
    try:
        telling = _Telling(session.config, pipe)
        _become_another(session.config, telling)
        _run_batches(session, found, queues, telling)
        status = 0
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        with suppress(BaseException):
            _internals(atexit)._run_exitfuncs()  # as at the end of any program
        os._exit(status)


def _become_another(config: pytest.Config, telling: _Telling) -> None:
    """Say nothing, and share no file with the other processes."""
    plugins = config.pluginmanager
    for name in ("terminalreporter", "told-at-once"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    capture: Any = plugins.get_plugin("capturemanager")
    if capture.is_globally_capturing():
        capture.read_global_capture()
        capture.stop_global_capturing()
        capture.start_global_capturing()
    _internals(config)._tmp_path_factory = TempPathFactory.from_config(config, _ispytest=True)
    plugins.register(telling, "telling")


def _run_batches(session: pytest.Session, found: list[range], queues: list[int], telling: _Telling) -> None:
    def take() -> list[int]:
        for queue in queues:
            if came := os.read(queue, _NUMBER.size):
                number = _NUMBER.unpack(came)[0]
                telling.tell("taken", number)
                return list(found[number])
        return []

    left = take()
    while left:
        at = left.pop(0)
        left = left or take()  # what a session or a file shares is kept for the next test
        item, following = session.items[at], session.items[left[0]] if left else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        telling.tell("ended", at)
