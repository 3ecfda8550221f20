"""Connects the page's components with what they do. Every answer of Gradio's queue is private to the page.

Gradio reads the annotations of the handlers, so what they name is imported for real.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator  # noqa: TC003
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, Any, cast

import gradio as gr  # noqa: TC002

from core.errors import StorageError
from core.observing import is_traced
from webui.frames import Frames
from webui.handlers.desk import Desk, guarded, toast, untouched
from webui.handlers.hosted import HostedDesk
from webui.handlers.send import Draft, send, stop
from webui.panels.catalog import PANELS
from webui.requests import asked_on_page
from webui.unread import Unread
from webui.views import Views

if TYPE_CHECKING:
    from webui.context import WebContext
    from webui.layout import Handles
    from webui.uploads import Uploads

_log = logging.getLogger(__name__)

_QUIET: dict[str, Any] = {"concurrency_limit": None, "show_progress": "hidden", "api_visibility": "private"}
# Several followers of one tab may start: the newest stays, the others see it and leave. Gradio begins what waits in
# several queues in any order: in one, what was asked for first is begun first.
_IN_ORDER: dict[str, Any] = {**_QUIET, "trigger_mode": "multiple", "concurrency_id": "tab"}
_NO_FRAME: tuple[Any, ...] = (untouched(),) * (1 + len(PANELS))


class Handlers:
    """What the page's components do, for all tabs.

    Attributes:
        views: All tabs.
    """

    def __init__(self, context: WebContext, uploads: Uploads) -> None:
        self.views = views = Views(
            context.words, Unread(context.engine.stores, others=context.engine.stores.database.others)
        )
        self._desk = Desk(context.engine, uploads, views, context.deletions)
        self._hosted = HostedDesk(self._desk, context.look)
        self._frames = Frames(context.engine, views, context.deletions.planned_of)
        context.engine.on_change(views.changed)
        context.engine.runs.on_change(self._run_changed)

    def wire(self, handles: Handles) -> None:
        """Add the listeners: first the server's state changes, then the tab's follower paints."""
        page: Any = handles
        frame = [handles.chat, *handles.panels.values()]
        # What is asked for and the frames after it are one call: a call of its own for them would be two more requests
        # and another turn in the queue before the first one is shown.
        page.blocks.load(self.open_and_follow, None, frame, **_IN_ORDER)
        page.composer.submit(self.send_and_follow, handles.composer, [handles.composer, *frame], **_IN_ORDER)
        page.go.click(self.act_and_follow, handles.bus, [handles.evidence, *frame], **_IN_ORDER)
        page.composer.stop(self.stop, None, None, **_IN_ORDER)

    async def open_and_follow(self, request: gr.Request) -> AsyncGenerator[tuple[Any, ...], None]:
        """`opened`, then the frames of the tab."""
        await self.opened(request)
        async with aclosing(self.follow(request)) as frames:
            async for values in frames:
                yield values

    async def send_and_follow(self, draft: Draft | None, request: gr.Request) -> AsyncGenerator[tuple[Any, ...], None]:
        """`send`, then the frames of the tab; before the first one stands the composer's new value."""
        async with aclosing(self._followed(await self.send(draft, request), request)) as frames:
            async for values in frames:
                yield values

    async def act_and_follow(self, message: str, request: gr.Request) -> AsyncGenerator[tuple[Any, ...], None]:
        """`act`, then the frames of the tab; before the first one stands what the evidence panel shows."""
        async with aclosing(self._followed(await self.act(message, request), request)) as frames:
            async for values in frames:
                yield values

    async def _followed(self, answer: Any, request: gr.Request) -> AsyncGenerator[tuple[Any, ...], None]:
        """The frames of the tab: `answer` stands before the first one, and what it was written to is left alone then.

        Gradio repeats what was yielded last when the call ends, and the answer must not come once more: it would
        empty a composer in which somebody is writing.
        """
        count, values = 0, _NO_FRAME
        try:
            async with aclosing(self.follow(request)) as frames:
                async for values in frames:
                    yield (answer if not count else untouched(), *values)
                    count += 1
        except Exception:
            if not count:  # what was asked for is done all the same: a question that is kept leaves the composer
                yield (answer, *values)
            raise
        if not count:
            yield (answer, *values)
        if count <= 1:
            yield (untouched(), *values)

    async def opened(self, request: gr.Request) -> None:
        """The page was loaded: show the conversation that its address names."""
        view = self._desk.views.of(request)
        view.opened = True
        if self._desk.deletions.is_going(view.conversation_id):
            view.show("")
        await guarded(view, self._hosted.begin(view))

    async def send(self, draft: Draft | None, request: gr.Request) -> Any:
        """Send what stands in the composer: into the queue while a reply is written, unless the request says `now`."""
        view = self._desk.views.of(request)
        now = cast("Any", request).headers.get("x-parlour-send") == "now"
        with asked_on_page(request) if is_traced() else nullcontext():
            return await guarded(view, send(self._desk, view, draft, now=now))

    async def stop(self, request: gr.Request) -> None:
        """Stop the reply."""
        view = self._desk.views.of(request)
        await guarded(view, stop(self._desk, view))

    async def act(self, message: str, request: gr.Request) -> Any:
        """Do what the page's own script asks."""
        view = self._desk.views.of(request)
        with asked_on_page(request, message) if is_traced() else nullcontext():
            return await guarded(view, self._hosted.act(view, message))

    async def follow(self, request: gr.Request) -> AsyncGenerator[tuple[Any, ...], None]:
        """Paint the tab until there is nothing more to come."""
        view = self._desk.views.of(request)
        try:
            async with aclosing(self._frames.follow(view)) as frames:
                async for frame in frames:
                    values = (frame.chat, *frame.panels.values()) if frame is not None else None
                    yield values or _NO_FRAME
        except StorageError as error:  # also where the house is being closed
            _log.info("A tab cannot be painted: %s", error)
            toast(view.words, error)

    def _run_changed(self, owner: str, conversation_id: str) -> None:
        if not self._desk.engine.runs.is_answered(conversation_id):
            self._desk.views.ended(owner, conversation_id)
