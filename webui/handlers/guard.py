"""Turns what goes wrong in a handler into one sentence on the page; nothing a handler does can break the tab."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import gradio as gr

from core.errors import ParlourError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from webui.views import View
    from webui.words import Words

_log = logging.getLogger(__name__)
_SECONDS = 8


def toast(words: Words, error: ParlourError | dict[str, Any]) -> None:
    """Say what went wrong, where it has no place in the conversation."""
    cast("Any", gr).Warning(words.error(error), duration=_SECONDS)


def untouched() -> Any:
    """The answer of a handler that leaves what it could write to as it is: a refused draft stays in the composer."""
    return cast("Any", gr).skip()


async def guarded(view: View, work: Awaitable[Any]) -> Any:
    """Do `work` for a tab; where it fails the page says so, and nothing is touched.

    An error on purpose is told as it is; any other is logged, and told as unexpected.
    """
    try:
        return await work
    except ParlourError as error:
        toast(view.words, error)
    except Exception:
        _log.exception("The page asked for something, and it failed.")
        toast(view.words, {"key": "unexpected"})
    view.poke(stale=True)
    return untouched()
