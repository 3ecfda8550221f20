"""What the strip of a demonstration does: play, step, and take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.errors import NotFoundError
from webui.context import text_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webui.handlers.desk import Desk
    from webui.views import View, Watched

Asked = dict[str, Any]


async def watch(desk: Desk, view: View, asked: Asked) -> None:
    """Open a demonstration, and play it where the reader lets things move by themselves (`play`)."""
    view.watch(await desk.engine.demonstrations.opened(text_of(asked.get("name"))))
    view.resting = False
    if asked.get("play") is True:
        _watched(view).player.play()
    view.wake_up(stale=True)


async def _play(desk: Desk, view: View, asked: Asked) -> None:
    del desk
    _watched(view).player.play(on=asked.get("on") is not False)
    view.wake_up()


async def _speed(desk: Desk, view: View, asked: Asked) -> None:
    del desk, asked
    _watched(view).player.faster()
    view.wake_up()


async def _step(desk: Desk, view: View, asked: Asked) -> None:
    """To the end of a step: the next, the one before, or the one of a number from 0."""
    del desk
    player, to = _watched(view).player, asked.get("to")
    if to == "back":
        player.back()
    elif isinstance(to, int) and not isinstance(to, bool):
        player.go_to(to)
    else:
        player.forward()
    view.wake_up()


async def _take(desk: Desk, view: View, asked: Asked) -> None:
    """Go on from here: a conversation of the reader's own begins with what is in sight."""
    del asked
    watched = _watched(view)
    turns = watched.player.tape.turns_at(watched.player.position)
    async with desk.workspace(view) as workspace:
        fresh = await desk.engine.demonstrations.take_over(watched.demonstration, turns, workspace)
        (await workspace.models.chosen()).loader.wanted.set()  # a question comes next
    view.show(fresh)
    desk.views.changed(view.owner, None)


def _watched(view: View) -> Watched:
    if view.demo is None:
        raise NotFoundError("No demonstration is played here.", key="demo_gone")
    return view.demo


ACTIONS: Final[dict[str, Callable[[Desk, View, Asked], Awaitable[None]]]] = {
    "watch": watch,
    "demoplay": _play,
    "demospeed": _speed,
    "demostep": _step,
    "demotake": _take,
}
