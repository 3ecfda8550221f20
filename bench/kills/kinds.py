"""What a life does until it is killed: each kind goes on and on, and tells what was acknowledged."""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
from collections.abc import Awaitable, Callable

from core.engine import Engine
from core.errors import ConflictError, ParlourError
from core.runs.manager import Live
from tests.core.talks import talk_of, world_of

Tell = Callable[..., None]
OWNERS = 4


class Doing:
    """One life's work.

    Args:
        engine: Parlour, without its page.
        tell: Tells the parent process something, at once.
        seed: Decides everything but when the kill comes.
    """

    def __init__(self, engine: Engine, tell: Tell, seed: int) -> None:
        self.engine = engine
        self.tell = tell
        self.chance = random.Random(seed)
        self.owner = f"owner{self.chance.randrange(OWNERS)}-{secrets.token_hex(4)}"

    async def talk(self) -> str:
        """A new conversation."""
        return (await self.engine.stores.of(self.owner).conversations.create()).id

    async def ask(self, talk: str, words: str, files: tuple[str, ...] = ()) -> Live:
        """Send a question, and tell when it is acknowledged."""
        tag = secrets.token_hex(8)
        self.tell("begun", tag)
        run = await talk_of(self.engine, self.owner, talk).ask(f"[{tag}] {words}", files)
        self.tell("messages", tag, [self.owner, talk])
        return run

    async def over(self, run: Live) -> None:
        """Wait for a reply, and tell that it is whole."""
        if await run.wait() == "complete":
            self.tell("replies", run.message_id, [self.owner, run.conversation_id, run.reply().text])

    async def send(self) -> None:
        """Short questions, one after the other."""
        talk = await self.talk()
        for _ in range(self.chance.randrange(1, 4)):
            await self.over(await self.ask(talk, "Say something."))

    async def stream(self) -> None:
        """A reply of some seconds."""
        await self.over(await self.ask(await self.talk(), "Please stream."))

    async def tools(self) -> None:
        """Calls of a tool that changes something, unasked."""
        chosen = self.engine.stores.of(self.owner).settings
        await chosen.change("approval", lambda _: {"mode": "never"})
        talk = await self.talk()
        for _ in range(3):
            await self.over(await self.ask(talk, "Use the tool."))

    async def approval(self) -> None:
        """A call that waits for its user, and is answered."""
        talk = await self.talk()
        run = await self.ask(talk, "Use the tool.")
        async for _ in run.log.follow():
            if run.reply().asking:
                break
        (call,) = run.reply().asking
        self.tell("asked", run.id, [self.owner, talk, call.call_id])
        await asyncio.sleep(self.chance.random() * 0.2)
        self.tell("decided", run.id)  # begun, at least
        await talk_of(self.engine, self.owner, talk).decide(call.call_id, self.chance.random() < 0.7)
        await self.over(run)

    async def upload(self) -> None:
        """A file with a question."""
        talk = await self.talk()
        data = self.chance.randbytes(self.chance.randrange(1, 400_000))
        file = await self.engine.stores.of(self.owner).files.put("random.bin", data)
        run = await self.ask(talk, "What is in it?", (file.id,))
        self.tell("files", file.id, [self.owner, hashlib.sha256(data).hexdigest()])
        await self.over(run)

    async def reading(self) -> None:
        """A document of sixty parts, and a question about one of them."""
        talk = await self.talk()
        word = f"zebra{secrets.token_hex(6)}"
        parts = [f"## Part {number}\n\nThis part tells of {number} lighthouses and more.\n" for number in range(60)]
        parts.insert(self.chance.randrange(60), f"## The part\n\nThe {word} lives here and nowhere else.\n")
        file = await self.engine.stores.of(self.owner).files.put("parts.md", "\n".join(parts).encode())
        document = await world_of(self.engine, self.owner).intake.add(talk, file)
        self.tell("documents", document.id, [self.owner, talk, word])
        await self.over(await self.ask(talk, f"Where does the {word} live?"))

    async def delete(self) -> None:
        """A conversation with a document, deleted while both are at work."""
        talk = await self.talk()
        file = await self.engine.stores.of(self.owner).files.put(
            "gone.md", f"# {secrets.token_hex(8)}\n\nSoon gone.".encode()
        )
        await world_of(self.engine, self.owner).intake.add(talk, file)
        await self.over(await self.ask(talk, "Soon gone."))
        self.tell("deleting", talk)
        await talk_of(self.engine, self.owner, talk).delete()
        self.tell("deleted", talk)

    async def edit(self) -> None:
        """A changed question, and another reply to it."""
        talk = await self.talk()
        run = await self.ask(talk, "Say something.")
        await self.over(run)
        thread = await self.engine.stores.of(self.owner).conversations.thread(talk)
        tag = secrets.token_hex(8)
        self.tell("begun", tag)
        conversation = talk_of(self.engine, self.owner, talk)
        edited = await conversation.edit(thread[-2].id, f"[{tag}] Say something else.")
        self.tell("messages", tag, [self.owner, talk])
        await self.over(edited)
        await self.over(await conversation.regenerate(edited.message_id))

    async def two_tabs(self) -> None:
        """Three tabs, two of them in one conversation."""
        talk, other = await self.talk(), await self.talk()

        async def tab(where: str) -> None:
            for _ in range(3):
                try:
                    await self.over(await self.ask(where, "Please stream a little."))
                except ConflictError:  # the other tab was faster
                    await asyncio.sleep(0.01)

        await asyncio.gather(tab(talk), tab(talk), tab(other))

    async def go_on(self, kind: str) -> None:
        """Do it again and again."""
        work: Callable[[], Awaitable[None]] = getattr(self, kind)
        while True:
            try:
                await work()
            except ParlourError as error:
                self.tell("refused", str(error))
                await asyncio.sleep(0.05)


LIVING = ("send", "stream", "tools", "approval", "upload", "reading", "delete", "edit", "two_tabs")
