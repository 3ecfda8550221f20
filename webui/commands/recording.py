"""`parlour record` makes a recording of a conversation; `parlour demo` opens the page on one."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from core.errors import ParlourError, SettingsError, StorageError
from core.languages import LANGS
from webui.commands.command_line import Parser, add_language, id_argument, on_data_folder, sentence, words_for
from webui.commands.owners import add_owner

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from core.engine import Engine
    from core.importing.recording import Recording
    from core.settings import Settings
    from webui.words import Words

_MIB: Final = 1 << 20


def record(arguments: Sequence[str]) -> int:
    """`parlour record`: write a conversation as a recording; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour record",
        description="Record a conversation: what is in sight of it, with the logs of its replies and its files, as a "
        "file that `parlour demo` plays without a model. Keys that Parlour knows are left out.",
        allow_abbrev=False,
    )
    parser.add_argument("conversation", help="its id, as after ?c= in the page's address")
    parser.add_argument("file", type=Path, help="the file to make, such as tour.jsonl")
    parser.add_argument("--title", help="what it is called (the conversation's title)")
    parser.add_argument("--about", default="", help="a sentence on it, for the start page")
    parser.add_argument(
        "--say", action="append", default=[], metavar="TEXT", help="stands beside the next step, in order"
    )
    parser.add_argument("--speaks", choices=LANGS, help="the language that is spoken in it (that of messages)")
    parser.add_argument("--force", action="store_true", help="write over the file, if there is one")
    add_owner(parser, "whose conversation it is")
    return on_data_folder(parser, [id_argument(one) for one in arguments], _record)


def _record(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    if given.file.exists() and not given.force:
        raise StorageError(
            f"{given.file} is there already.",
            hint="Choose another name, or add --force to write over it.",
            key="record_exists",
            file=str(given.file),
        )
    recording = asyncio.run(_recorded(given, settings, words))
    lines = list(recording.lines())
    given.out = given.file
    given.file.write_bytes(b"".join(lines))
    kilobytes = max(1, round(sum(map(len, lines)) / 1000))
    return [words("record.made", file=str(given.file), n=len(recording.messages), size=kilobytes)]


async def _recorded(given: argparse.Namespace, settings: Settings, words: Words) -> Recording:
    from core.export.bundle import bundled  # much to import: other commands do without
    from core.export.exporting import conversations_at_rest
    from core.importing.recording import About, recorded
    from core.workspace.demonstrations import steps_in

    async with conversations_at_rest(settings, given.owner) as (stores, exporting):
        wanted = await stores.conversations.get(given.conversation.strip())
        with TemporaryDirectory(prefix="parlour-record-") as folder:
            bundle = Path(folder) / "conversation.zip"
            with bundle.open("wb") as file:
                async for piece in bundled(exporting, stores, [wanted.id], words.spoken):
                    file.write(piece)
            about = About(given.title or wanted.title, given.about, given.speaks or words.spoken, said=tuple(given.say))
            made = recorded(bundle, about)
    if len(given.say) > (steps := steps_in(made)):
        raise SettingsError(
            f"There are {len(given.say)} texts of --say, and steps for {steps} of them.",
            hint="Leave out the others; nothing was recorded.",
            key="record_say",
            n=len(given.say),
            steps=steps,
        )
    last = max((one["created_at"] for one in made.messages), default=wanted.created_at)
    return replace(made, about=replace(about, made=last))


def demo(arguments: Sequence[str]) -> int:
    """`parlour demo`: serve the page, which plays a recording; returns the exit code of the server."""
    parser = Parser(
        prog="parlour demo",
        description="Open the page on a recording that `parlour record` made. It is played without a model.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, help="the recording")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (7860, or the next free one)")
    parser.add_argument("--home", type=Path, help="data folder (./data, or PARLOUR_HOME)")
    add_language(parser)
    given = parser.parse_args(arguments)
    words = words_for(given.lang)
    try:
        from core.importing.recording import read_recording
        from core.settings import Settings as Read
        from webui.server import bind
        from webui.serving import bring_back, serve

        read_recording(given.file, name=str(given.file))
        file = given.file.resolve()
        settings = Read.load(host=given.host, port=given.port, home=given.home, demos=(str(file),))
        bring_back(settings)
        sock = bind(settings.host, settings.port, next_free=settings.may_move_port)
        return serve(settings, settings.signing_secret(), sock, _waiting, query={"demo": file.stem})
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
        return 1
    except KeyboardInterrupt:
        return 0


def _waiting(settings: Settings) -> Engine:
    """Whoever only watches downloads nothing."""
    from core import engine

    return engine.Engine(settings, waits=True)
