"""A port is found, and its address said."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import ModelUnavailableError, SettingsError
from core.readiness import Readiness
from core.settings import Settings
from webui.server import address_of, bind
from webui.terminal import Terminal


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with bind("127.0.0.1", 0) as sock:
        yield sock


def test_a_taken_port_gives_way_to_the_next_free_one_where_nobody_counts_on_it(taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    with bind("127.0.0.1", port, next_free=True) as found:
        assert found.getsockname()[1] > port


def test_a_port_that_was_asked_for_and_is_taken_is_an_error_and_never_another_port(taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    with pytest.raises(SettingsError, match=f"Port {port} is taken"):
        bind("127.0.0.1", port)


@pytest.mark.parametrize(
    ("given", "may"),
    [({}, True), ({"port": 7860}, False), ({"host": "0.0.0.0"}, False), ({"host": "::1"}, True), ({"port": 0}, False)],
)
def test_only_the_usual_port_of_this_machine_alone_may_move(given: dict[str, Any], may: bool) -> None:
    assert Settings.load(**given).may_move_port is may


def test_a_port_from_a_variable_is_one_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLOUR_PORT", "7860")
    assert not Settings.load().may_move_port


def test_connections_are_taken_before_anything_is_loaded(taken: socket.socket) -> None:
    with socket.create_connection(taken.getsockname(), timeout=5):
        pass


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7", "a b"])
def test_an_address_that_is_not_this_machines_is_refused_in_a_sentence(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    if not host[0].isdigit():
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(SettingsError, match="--host"):
        bind(host, 7860)


@pytest.mark.parametrize(("host", "start"), [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:")])
def test_the_address_can_be_opened_on_this_machine(host: str, start: str, taken: socket.socket) -> None:
    assert address_of(host, taken) == f"{start}{taken.getsockname()[1]}"


def test_an_address_of_the_newer_kind_stands_in_brackets(taken: socket.socket) -> None:
    assert address_of("::1", taken).startswith("http://[::1]:")
    assert address_of("::", taken).startswith("http://[::1]:")


def test_the_terminal_says_each_thing_once() -> None:
    out = io.StringIO()
    terminal, readiness = Terminal("http://127.0.0.1:7861", out), Readiness()
    terminal.opening(instead_of=7860)
    for done in range(0, 500, 5):
        readiness.mark("model", "loading", label="Small, built in", done=done * 1_000_000, total=500_000_000)
        terminal.tell(readiness)
    readiness.mark("database", "ready")
    readiness.mark("page", "ready")
    readiness.mark("model", "ready", label="Small, built in", in_process=True)
    terminal.tell(readiness)
    terminal.tell(readiness)
    lines = out.getvalue().splitlines()
    assert lines[:2] == [
        "Port 7860 is taken, so Parlour uses the next free one.",
        "Parlour is opening at http://127.0.0.1:7861",
    ]
    assert sum(line.startswith("Fetching Small, built in:") for line in lines) == 10
    assert lines[-2:] == ["Parlour is ready at http://127.0.0.1:7861", "Small, built in, is ready."]


class Screen(io.StringIO):
    """A terminal on which a line can be rewritten."""

    def isatty(self) -> bool:
        return True

    def shown(self) -> list[str]:
        """What a reader sees: of each line what was written over it last."""
        rows: list[str] = []
        for line in self.getvalue().split("\n"):
            row = ""
            for part in line.split("\r"):
                row = part + row[len(part) :]
            rows.append(row.rstrip())
        return rows


def fetched(out: io.StringIO) -> None:
    """The page is ready while the weights of the model are still being fetched."""
    terminal, readiness = Terminal("http://127.0.0.1:7860", out), Readiness()
    terminal.opening()
    for done in range(0, 500, 5):
        readiness.mark("model", "loading", label="Small, built in", done=done * 1_000_000, total=500_000_000)
        if done == 200:
            readiness.mark("database", "ready")
            readiness.mark("page", "ready")
        terminal.tell(readiness)
    if not isinstance(out, Screen):
        readiness.mark("model", "ready", label="Small, built in", in_process=True)
        terminal.tell(readiness)


def test_on_a_screen_the_address_stands_by_itself_above_what_is_being_fetched() -> None:
    fetched(screen := Screen())
    assert screen.shown() == [
        "Parlour is opening at http://127.0.0.1:7860",
        "",
        "Parlour is ready at http://127.0.0.1:7860",
        "",
        "Fetching Small, built in: 495 of 500 MB",
    ]


def test_in_a_log_the_address_stands_last_once_the_model_is_fetched() -> None:
    fetched(log := io.StringIO())
    assert log.getvalue().splitlines()[-2:] == [
        "Small, built in, is ready.",
        "Open it at http://127.0.0.1:7860",
    ]


def test_a_worker_says_where_probes_find_it_and_never_that_it_could_be_opened() -> None:
    out = io.StringIO()
    terminal, readiness = Terminal("http://127.0.0.1:7861", out, pages=False), Readiness()
    terminal.opening()
    readiness.mark("database", "ready")
    readiness.mark("page", "ready")
    terminal.tell(readiness)
    readiness.mark("model", "loading", label="Small", done=1_000_000, total=2_000_000)
    terminal.tell(readiness)
    readiness.mark("model", "ready", label="Small", in_process=True)
    terminal.tell(readiness)
    assert out.getvalue().splitlines() == [
        "Parlour is opening at http://127.0.0.1:7861",
        "Parlour writes replies, and answers /readyz and /metrics at http://127.0.0.1:7861",
        "Fetching Small: 1 of 2 MB",
        "Small is ready.",
    ]


def test_the_terminal_says_what_to_do_without_a_model() -> None:
    out = io.StringIO()
    readiness = Readiness()
    readiness.fail("model", ModelUnavailableError("No network.", key="weights_unreachable"))
    Terminal("http://127.0.0.1:7860", out).tell(readiness)
    assert "PARLOUR_BASE_URL" in out.getvalue()


def test_the_terminal_says_where_the_first_owner_makes_an_account() -> None:
    out = io.StringIO()
    Terminal("http://127.0.0.1:7860/?token=x", out).first_owner("once")
    assert out.getvalue().endswith("http://127.0.0.1:7860/link/once\n")
