"""The commands on a data folder: `parlour backup`, `restore` and `export`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.backup.elsewhere import Elsewhere
from core.backup.restoring import restore_backup
from core.backup.writing import write_backup
from core.errors import extra_for
from core.storage.blobs import delete_all, files_beside
from core.storage.carrying_files import carry_files
from core.storage.data_folder import drafted
from core.storage.opening import opened_blobs
from webui.commands.command_line import Parser, id_argument, on_data_folder
from webui.commands.owners import add_owner

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractContextManager

    from core.backup.contents import Manifest
    from core.export.exporting import Exporting
    from core.export.together import FileForm
    from core.settings import Settings
    from core.storage.conversations import ConversationStore
    from webui.words import Words


def backup(arguments: Sequence[str]) -> int:
    """`parlour backup`: write the data folder into one file; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour backup",
        description="Write conversations, files and libraries into one file, also while Parlour runs.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, help="the file to make, or a folder, where it is named after the time")
    parser.add_argument(
        "--with-secret",
        action="store_true",
        help="take in the secret; without it, elsewhere, kept keys must be typed in again and cookies do not count",
    )
    return on_data_folder(parser, arguments, _back_up)


def _back_up(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    if settings.store is None:
        rows = _grown_rows(settings)
        file, manifest = write_backup(settings.home, given.file, with_secret=given.with_secret, rows=rows)
    else:
        file, manifest = asyncio.run(_with_files_elsewhere(given, settings))
    megabytes = max(1, round(file.stat().st_size / 1_000_000))
    if "secret" in manifest.entries:
        about = "backup.with_secret"
    else:
        about = "backup.secret_elsewhere" if given.with_secret else "backup.without_secret"
    return [words("backup.made", file=str(file), size=megabytes, **_counted(manifest, words)), words(about)]


def _counted(manifest: Manifest, words: Words) -> dict[str, str]:
    """How much is in a backup, each as "1 file" or "3 files"."""
    return {
        name: words(f"backup.{name}_one" if n == 1 else f"backup.{name}", n=n)
        for name, n in manifest.counts.items()
        if f"backup.{name}" in words
    }


def _grown_rows(settings: Settings) -> Callable[[Path], None] | None:
    """What writes the rows of a PostgreSQL database into a file; `None` where they are in the data folder."""
    if settings.database is None:
        return None
    with extra_for("A PostgreSQL database"):
        from core.storage.carrying import copy_grown
    return partial(copy_grown, settings.database.get_secret_value())


async def _with_files_elsewhere(given: argparse.Namespace, settings: Settings) -> tuple[Path, Manifest]:
    async with opened_blobs(settings) as blobs:
        elsewhere = Elsewhere(blobs, asyncio.get_running_loop())
        rows = _grown_rows(settings)
        write = partial(write_backup, with_secret=given.with_secret, rows=rows, elsewhere=elsewhere)
        return await asyncio.to_thread(write, settings.home, given.file)


def restore(arguments: Sequence[str]) -> int:
    """`parlour restore`: make a data folder of a backup; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour restore",
        description="Make a data folder of a backup. Parlour must not be running on it.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, help="the file that `parlour backup` made")
    parser.add_argument(
        "--replace", action="store_true", help="also where the folder is not empty: what is there is kept beside it"
    )
    return on_data_folder(parser, arguments, _restore)


def _restore(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    done = restore_backup(given.file, settings.home, replace=given.replace)
    made = datetime.fromtimestamp(done.manifest.made).astimezone().strftime("%Y-%m-%d %H:%M")
    said = [words("restore.done", home=str(settings.home), made=made, **_counted(done.manifest, words))]
    if done.aside is not None:
        said.append(words("restore.aside", folder=str(done.aside)))
    if settings.store is not None:
        said.append(words("restore.files", files=asyncio.run(_into_store(settings)), place=settings.files))
    if not done.has_secret and settings.secret is None:
        said.append(words("restore.without_secret"))
    if settings.database is not None:
        said.append(words("restore.move"))
    return said


async def _into_store(settings: Settings) -> int:
    """Carry the files of a data folder into the store that settings name; what arrived goes from the folder."""
    here = files_beside(settings.home / "files")
    async with opened_blobs(settings) as blobs:
        carried = await carry_files(here, blobs)
    await delete_all(here, "o/")
    return carried.files


def export(arguments: Sequence[str]) -> int:
    """`parlour export`: write conversations, or list them all; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour export", description="Export conversations, or list which there are.", allow_abbrev=False
    )
    parser.add_argument("conversation", nargs="*", help="ids, as after ?c= in the page's address; left out: a list")
    parser.add_argument(
        "--format",
        choices=("md", "json", "html", "pdf"),
        default="md",
        help="md, html and pdf are to be read, json is all of it (md)",
    )
    parser.add_argument("--all", action="store_true", help="all conversations, as one ZIP")
    parser.add_argument(
        "--bundle",
        type=Path,
        metavar="FILE",
        help="write them whole (all, where none is named) into a ZIP that is read without Parlour and comes in again",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write it (the terminal)")
    add_owner(parser, "whose it is")
    return on_data_folder(parser, [id_argument(one) for one in arguments], _export, _wrong_of_export)


def _wrong_of_export(given: argparse.Namespace) -> str:
    some = bool(given.conversation or given.all)
    if given.out is not None and not some:
        return "--out needs what is written; name a conversation, or write --all"
    if any(not one.strip() for one in given.conversation):
        return "a conversation must be an id, not ''; `parlour export` lists all"
    return ""


def _export(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    count = asyncio.run(_run(given, settings, words))
    out: Path | None = given.bundle or given.out
    if out is not None and out.is_file():
        return [words("export.written_one" if count == 1 else "export.written", file=out, n=count)]
    return [] if count or given.all or given.bundle else [words("export.none")]  # on standard output may be a ZIP


async def _run(given: argparse.Namespace, settings: Settings, words: Words) -> int:
    """How many were written or listed."""
    from core.export.exporting import conversations_at_rest  # much to import: other commands do without

    async with conversations_at_rest(settings, given.owner) as (stores, exporting):
        conversations = stores.conversations
        there = [one.id for one in await conversations.list()] if given.all or not given.conversation else []
        ids = there if given.all else [one.strip() for one in given.conversation]
        if given.bundle is not None:
            from core.export.bundle import bundled

            await _write(bundled(exporting, stores, ids or there, words.spoken), given.bundle)
        elif given.all or len(ids) > 1:
            from core.export.together import zipped

            await _write(zipped(exporting, ids, given.format, words.spoken), given.out)
        elif ids:
            await _write(await _pieces(exporting, ids[0], given.format, words), given.out)
        else:
            await _list_conversations(conversations, words)
        return len(ids or there)


async def _pieces(exporting: Exporting, conversation_id: str, form: FileForm, words: Words) -> AsyncGenerator[bytes]:
    if form != "pdf":
        made = await exporting.export(conversation_id, form, words.spoken)
        return _encoded(made.pieces)
    _, printed = await exporting.printed(conversation_id, words.spoken)
    return _once(printed)


async def _encoded(texts: AsyncGenerator[str]) -> AsyncGenerator[bytes]:
    async with aclosing(texts):
        async for text in texts:
            yield text.encode()


async def _once(made: bytes) -> AsyncGenerator[bytes]:
    yield made


async def _list_conversations(conversations: ConversationStore, words: Words) -> None:
    for one in await conversations.list():
        when = datetime.fromtimestamp(one.updated_at, UTC).strftime("%Y-%m-%d %H:%M")
        title = "".join(sign if sign.isprintable() else " " for sign in one.title) or words("top.untitled")
        _print(f"{one.id}  {when}  {title}\n")


async def _write(made: AsyncGenerator[bytes], named: Path | None) -> None:
    async with aclosing(made) as pieces:
        if named is None:
            async for piece in pieces:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            return
        with _place(named) as place, place.open("wb") as file:
            async for piece in pieces:
                file.write(piece)


def _place(named: Path) -> AbstractContextManager[Path]:
    """Where to write: a draft that becomes the file; links are followed, a pipe or terminal is written to directly."""
    out = named.resolve()
    is_other = out.exists() and not out.is_file()  # of a folder the system says that it is one
    return nullcontext(out) if is_other else drafted(out)


def _print(text: str) -> None:
    """Print UTF-8, whatever the encoding of the terminal."""
    sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.buffer.flush()
