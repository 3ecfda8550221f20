"""What is set by a variable reaches what it limits, and serving does what it promises before the first visitor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from webui import serving
from webui.app import open_app
from webui.server import bind

Given = tuple[tuple[Any, ...], dict[str, Any]]

# The variable, its value, whose making is looked at, and what of it must be so.
REACHES: list[tuple[str, str, str, Callable[[tuple[Any, ...], dict[str, Any]], bool]]] = [
    ("REPLIES_AT_ONCE", "7", "core.workspace.answering.Slots", lambda given, _: given == (7,)),
    ("REDIS", "redis://127.0.0.1:1/0", "core.workspace.answering.SharedSlots", lambda given, _: given[1] == 2),
    ("KEEP_EVENTS_DAYS", "3.5", "core.workspace.answering.Runs", lambda _, more: more["keep_events"] == 3.5 * 86_400),
    ("KEEP_EVENTS_DAYS", "0", "core.workspace.answering.Runs", lambda _, more: more["keep_events"] is None),
    ("CHECK_CLAIMS", "false", "core.workspace.answering.Runs", lambda _, more: more["check"] is None),
    ("FILES_MB", "9", "core.engine.Stores", lambda _, more: more["quota"] == 9 * 2**20),
    ("FILES_MB", "0", "core.engine.Stores", lambda _, more: more["quota"] is None),
    ("SUMMARISE", "false", "core.workspace.answering.HistorySummarizer", lambda _, more: more["on"] is False),
    (
        "CODE_KERNELS",
        "4",
        "core.toolbox.code_interpreter.Kernels",
        lambda _, more: more["most_of"]("somebody") == 4 and more["most_of"]("local") > 4,
    ),
    ("UPLOADS_PER_HOUR", "11", "core.limits.TokenBuckets", lambda given, _: given == (11, 3600.0)),
    ("UPLOADS_PER_HOUR", "0", "core.limits.TokenBuckets", lambda given, _: given == (None, 3600.0)),
    ("MAX_UPLOAD_MB", "6", "webui.app.Uploads", lambda given, _: given[1] == 6 * 2**20),
    ("NEW_OWNERS_PER_MINUTE", "13", "core.limits.TokenBuckets", lambda given, _: given == (13, 60.0)),
    ("WRITE_SECONDS", "17", "webui.serving.Server", lambda _, more: more["write_seconds"] == 17),
]


def engine_of(settings: Settings) -> Engine:
    return Engine(settings, model=ScriptedModel())


def watched_making(path: str, made: list[Given], monkeypatch: pytest.MonkeyPatch) -> None:
    """Note with what `path` is made; it is made all the same."""
    module, _, name = path.rpartition(".")
    make = getattr(import_module(module), name)

    def noted(*given: Any, **more: Any) -> Any:
        made.append((given, more))
        return make(*given, **more)

    monkeypatch.setattr(path, noted)


async def engine_opened(settings: Settings) -> None:
    async with engine_of(settings):
        pass


class OpenedError(Exception):
    """The app has come to where it makes its engine."""


async def app_begun(settings: Settings) -> None:
    def no_engine(_: Settings) -> Engine:
        raise OpenedError

    with pytest.raises(OpenedError):
        async with app_of(settings, no_engine):
            pass


def app_of(settings: Settings, engine: Callable[[Settings], Engine] = engine_of) -> AbstractAsyncContextManager[object]:
    return open_app(settings, lambda _: None, lambda _: None, engine=engine)


@pytest.mark.parametrize(("name", "value", "path", "is_so"), REACHES, ids=[f"{row[0]}={row[1]}" for row in REACHES])
def test_what_a_variable_says_reaches_what_it_limits(
    name: str,
    value: str,
    path: str,
    is_so: Callable[[tuple[Any, ...], dict[str, Any]], bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"PARLOUR_{name}", value)
    made: list[Given] = []
    watched_making(path, made, monkeypatch)
    settings = Settings.load(home=tmp_path / "home")
    if path.startswith("webui.serving") or name == "NEW_OWNERS_PER_MINUTE":
        served(settings, monkeypatch)
    elif path.startswith("webui") or name == "UPLOADS_PER_HOUR":
        asyncio.run(app_begun(settings))
    else:
        asyncio.run(engine_opened(settings))
    assert [is_so(*given) for given in made] == [True]


def served(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve as the command does, for no visitor: the server ends as soon as it would have listened."""
    monkeypatch.setattr("webui.server.Server.run", lambda _self, sockets: None)
    with bind("127.0.0.1", 0) as sock:
        assert serving.serve(settings, "a secret of some length", sock, engine=engine_of) == 0


def test_without_a_token_the_terminal_says_who_is_the_owner_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARLOUR_TOKEN", "off")
    served(Settings.load(home=tmp_path), monkeypatch)
    told = capsys.readouterr().out
    assert "PARLOUR_TOKEN=off: whoever reaches this port is its owner" in told
    assert "can start programs" in told
    assert "?token=" not in told


def test_with_a_token_nothing_is_said_of_going_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARLOUR_TOKEN", "a-token-of-twenty-letters")
    served(Settings.load(home=tmp_path), monkeypatch)
    told = capsys.readouterr().out
    assert "PARLOUR_TOKEN" not in told
    assert "?token=a-token-of-twenty-letters" in told


def test_serving_raises_the_limit_of_descriptors_before_it_opens_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    monkeypatch.setattr("webui.serving.raise_descriptor_limit", lambda: order.append("limit"))
    app = serving.StartupApp

    def noted(*given: Any) -> Any:
        order.append("app")
        return app(*given)

    monkeypatch.setattr("webui.serving.StartupApp", noted)
    served(Settings.load(home=tmp_path), monkeypatch)
    assert order == ["limit", "app"]


def test_the_loop_of_the_page_is_watched_for_as_long_as_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []

    @contextmanager
    def watched(loop: asyncio.AbstractEventLoop, starts: Callable[[], bool]) -> Generator[None]:
        assert starts(), "what is still being made ready warns nobody"
        told.append(loop)
        yield
        told.append("ended")

    monkeypatch.setattr("webui.app.watched", watched)

    async def main() -> None:
        async with app_of(Settings.load(home=tmp_path / "home")):
            assert told == [asyncio.get_running_loop()]

    asyncio.run(main())
    assert told[1:] == ["ended"]
