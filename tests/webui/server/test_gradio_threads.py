"""What Gradio does on the loop, and what still gets a thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
from importlib import import_module
from typing import Any, cast

import gradio
import pytest

from webui.gradio_threads import letters, stay_on_loop

MANY = "a" * 30_000
BLOCKS, QUEUEING, ROUTES = (cast("Any", import_module(f"gradio.{name}")) for name in ("blocks", "queueing", "routes"))


class _Noting:
    """Notes, as a component, in which thread it is asked."""

    def preprocess(self, value: Any) -> int:
        del value
        return threading.get_ident()

    postprocess = preprocess


def _thread_of(work: Any, *args: Any) -> int:
    async def ask() -> int:
        return await BLOCKS.anyio.to_thread.run_sync(work, *args, limiter=None)

    stay_on_loop()
    return asyncio.run(ask())


@pytest.mark.parametrize("value", [None, "a line", ["a", "b"], [{"role": "user", "content": "a question"}], 3])
def test_what_a_component_makes_of_a_small_value_it_makes_on_the_loop(value: object) -> None:
    here = threading.get_ident()
    assert _thread_of(_Noting().postprocess, value) == here
    assert _thread_of(_Noting().preprocess, value) == here


@pytest.mark.parametrize("value", [MANY, [MANY], [{"role": "user", "content": MANY}], ["a"] * 30_000, object()])
def test_what_it_makes_of_a_large_or_strange_value_it_makes_in_a_thread(value: object) -> None:
    assert _thread_of(_Noting().postprocess, value) != threading.get_ident()


def test_a_message_of_gradio_is_as_large_as_what_it_says() -> None:
    assert letters(gradio.ChatMessage(role="user", content="four")) < 100
    assert letters([gradio.ChatMessage(role="user", content=MANY)]) > 20_000


def test_a_function_of_the_page_still_gets_a_thread() -> None:
    assert _thread_of(lambda _: threading.get_ident(), "small") != threading.get_ident()


def test_statistics_that_are_not_kept_are_looked_at_on_the_loop() -> None:
    async def look(summarise: Any) -> Any:
        return await QUEUEING.run_sync(summarise, [])

    def compute_analytics_summary(records: list[Any]) -> int:
        del records
        return threading.get_ident()

    stay_on_loop()
    assert asyncio.run(look(compute_analytics_summary)) == threading.get_ident()


def test_who_is_not_signed_in_is_refused_on_the_loop() -> None:
    def login_check(user: str = "") -> None:
        if not user:
            raise PermissionError("nobody is signed in")

    stay_on_loop()
    depends = ROUTES.Depends
    asked = depends(login_check).dependency
    assert inspect.iscoroutinefunction(asked)
    assert depends(login_check).dependency is asked  # the same each time: FastAPI asks it once for a request
    assert inspect.signature(asked) == inspect.signature(login_check)
    asyncio.run(asked(user="somebody"))
    with pytest.raises(PermissionError):
        asyncio.run(asked())


def test_other_dependencies_stay_as_they_are() -> None:
    def other() -> None:
        return None

    stay_on_loop()
    assert ROUTES.Depends(other).dependency is other
