"""An engine in this process with the tabs of its readers: what handlers do, and every frame that follows."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from html import unescape
from types import SimpleNamespace
from typing import Any

from core.engine import Engine
from core.runs.reply import CallBlock
from core.storage.base import LOCAL_OWNER
from webui.frames import Frame, Frames
from webui.handlers.act import act
from webui.handlers.desk import Desk
from webui.uploads import Uploads
from webui.views import View, Views
from webui.words import Words


class Tabs:
    """The tabs of an engine's readers, and what handlers need."""

    owner = LOCAL_OWNER

    def __init__(self, engine: Engine, uploads: Uploads) -> None:
        self.engine = engine
        self.views = Views(Words.of)
        self.desk = Desk(engine, uploads, self.views)
        self.frames = Frames(engine, self.views)
        engine.on_change(self.views.changed)

    def tab(self, session: str = "one", owner: str = "", conversation: str = "", language: str = "en") -> View:
        headers = {"referer": f"http://127.0.0.1/?c={conversation}", "accept-language": language}
        request: Any = SimpleNamespace(session_hash=session, username=owner or self.owner, headers=headers)
        return self.views.of(request)

    async def seen(self, view: View, text: str) -> Frame:
        """The first frame that holds this."""
        async with asyncio.timeout(20), aclosing(self.frames.follow(view)) as frames:
            async for frame in frames:
                if frame is not None and text in unescape(str(frame)):
                    return frame
        raise AssertionError(f"{text} was never shown.")

    async def over(self, view: View) -> Frame:
        """The last frame."""
        async with asyncio.timeout(20), aclosing(self.frames.follow(view)) as frames:
            return [frame async for frame in frames if frame is not None][-1]

    async def act(self, view: View, **asked: Any) -> None:
        await act(self.desk, view, json.dumps(asked))

    async def last(self, view: View) -> tuple[str, CallBlock]:
        """The id of the last reply, and its call."""
        thread = await self.engine.stores.of(self.owner).conversations.thread(view.conversation_id)
        reply = await self.engine.runs.of(self.owner).reply(thread[-1])
        return thread[-1].id, next(block for block in reply.blocks if isinstance(block, CallBlock))
