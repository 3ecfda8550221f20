"""Many questions under one limit, their answers in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar, cast

from core.bridge.endings import contained
from core.errors import ParlourError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

T = TypeVar("T")
Q = TypeVar("Q")

DEFAULT_CONCURRENCY: Final = 8


async def in_order(
    ask: Callable[[Q], Awaitable[T]], questions: Sequence[Q], concurrency: int, *, keep_errors: bool
) -> list[T | ParlourError]:
    """Ask each question, at most `concurrency` at the same time.

    Args:
        ask: Asks one.
        questions: All of them.
        concurrency: From 1.
        keep_errors: Whether an error takes the place of its answer; else the first one ends all and is raised.

    Raises:
        SettingsError: `concurrency` is no whole number from 1.
    """
    if type(concurrency) is not int or concurrency < 1:
        hint = "Give a whole number, at least 1."
        raise SettingsError(f"concurrency cannot be {concurrency!r}.", hint=hint, name="concurrency")
    answers: list[T | ParlourError | None] = [None] * len(questions)
    left = iter(enumerate(questions))
    tasks = [
        asyncio.create_task(_work(ask, left, answers, keep_errors=keep_errors))
        for _ in range(min(concurrency, len(questions)))
    ]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return cast("list[T | ParlourError]", answers)


async def _work(
    ask: Callable[[Q], Awaitable[T]],
    left: Iterable[tuple[int, Q]],
    answers: list[T | ParlourError | None],
    *,
    keep_errors: bool,
) -> None:
    for place, question in left:  # shared: whoever is free takes the next
        try:
            with contained():
                answers[place] = await ask(question)
        except ParlourError as error:
            if not keep_errors:
                raise
            answers[place] = error
