"""`parlour export`: a conversation of the data folder as Markdown or JSON, and which there are."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.export.at_rest import conversations_at_rest
from core.storage.base import LOCAL_OWNER
from webui.commands.at_home import at_home
from webui.commands.parser import Parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from core.export.exporting import Exporting
    from core.settings import Settings
    from core.storage.conversations import ConversationStore
    from webui.words import Words


_ID = re.compile(r"-[\w-]{21}")  # one that begins like an option; with a space in front it is none


def main(arguments: Sequence[str]) -> int:
    """Write the conversation, or a line for each that there is; returns the exit code, as `at_home`."""
    parser = Parser(
        prog="parlour export", description="Export a conversation, or list which there are.", allow_abbrev=False
    )
    parser.add_argument("conversation", nargs="?", help="its id, as after ?c= in the page's address; left out: a list")
    parser.add_argument("--format", choices=("md", "json"), default="md", help="to read, or all of it (md)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write it (the terminal)")
    parser.add_argument("--owner", default=LOCAL_OWNER, help="whose it is (the owner of this machine)")
    return at_home(parser, [f" {one}" if _ID.fullmatch(one) else one for one in arguments], _exported)


def _exported(given: argparse.Namespace, settings: Settings, words: Words) -> tuple[str, ...]:
    asyncio.run(_run(given, settings, words))
    return ()


async def _run(given: argparse.Namespace, settings: Settings, words: Words) -> None:
    async with conversations_at_rest(settings) as (conversations, exporting):
        if given.conversation is None:
            await _list(conversations, given.owner, words)
        else:
            await _write(exporting, given, words)


async def _list(conversations: ConversationStore, owner: str, words: Words) -> None:
    for one in await conversations.list(owner):
        when = datetime.fromtimestamp(one.updated_at, UTC).strftime("%Y-%m-%d %H:%M")
        title = "".join(sign if sign.isprintable() else " " for sign in one.title) or words("top.untitled")
        _print(f"{one.id}  {when}  {title}\n")


async def _write(exporting: Exporting, given: argparse.Namespace, words: Words) -> None:
    made = await exporting.export(given.owner, given.conversation.strip(), given.format, words.lang)
    async with aclosing(made.pieces) as pieces:
        if given.out is None:
            async for piece in pieces:
                _print(piece)
            return
        out, draft = _places(given.out)
        try:
            with draft.open("w", encoding="utf-8", newline="\n") as file:
                async for piece in pieces:
                    file.write(piece)
            if draft != out:
                draft.replace(out)
        finally:
            if draft != out:
                draft.unlink(missing_ok=True)


def _places(named: Path) -> tuple[Path, Path]:
    """Where a file is to be, and where it is written: a link stays one, and a pipe or a terminal is written to."""
    out = named.resolve()
    is_other = out.exists() and not out.is_file()  # of a folder the system says that it is one
    return out, out if is_other else out.with_name(f".{out.name}.part")


def _print(text: str) -> None:
    """In UTF-8, whatever the terminal's own encoding can say."""
    sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.buffer.flush()
