"""Conversations from elsewhere on their way into the tables: all that come together, or none of them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, insert, select

from core.messages.message import Message
from core.storage.base import new_id
from core.storage.conversations import clean, insert_owner, use_files
from core.storage.kept_pages import PAGES, PagePlace
from core.storage.message_texts import keep_title, text_row
from core.storage.tables import conversations, files, message_agent_thoughts, message_texts, messages, run_events, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from core.storage.database import Database

LONGEST_TITLE: Final = 200
"""Characters of a title that comes from elsewhere; what is longer is cut."""
_NAMED_FILE: Final = re.compile(r'(?<=/files/)[\w-]{22}|(?<=")[\w-]{22}(?=")')
_AT_ONCE: Final = 500  # values in one question to the database


@dataclass(frozen=True, slots=True)
class ArrivingTurn:
    """A turn as its row, with the row of the run that it came of, the rows of its log and those of its steps."""

    row: dict[str, Any]
    run: dict[str, Any] | None = None
    log: tuple[dict[str, Any], ...] = ()
    steps: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ArrivingConversation:
    """A conversation whose turns stand after those that they follow.

    Args:
        row: `id`, `title`, `titled_by`, `created_at`, `updated_at`, `leaf_id`.
        files: The files that it needs, by the ids that its turns name them by.
        documents: Those of them that are read.
        pages: Pictures of pages whose documents do not come along; their files are among those that it needs.
    """

    row: dict[str, Any]
    turns: tuple[ArrivingTurn, ...]
    files: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    pages: tuple[PagePlace, ...] = ()


class ArrivingConversations:
    """Takes conversations in for one owner."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def known_file(self, file_id: str, digest: str) -> tuple[bool, bool]:
        """Whether a file's id is taken, and whether it is this owner's and has this content."""
        query = select(files.c.owner_id, files.c.sha256).where(files.c.id == file_id)
        row = await self._database.read(lambda c: c.execute(query).first())
        return row is not None, row is not None and (row.owner_id, row.sha256) == (self._owner, digest)

    async def take_in(
        self, arriving: Callable[[], Iterable[ArrivingConversation]], renamed: Mapping[str, str]
    ) -> list[str]:
        """Store conversations in one transaction; where one of their ids is taken, all of theirs are new.

        Args:
            arriving: Gives them one after the other, each time from the first.
            renamed: New ids of files whose own were taken.

        Returns:
            The ids that the conversations have now.

        Raises:
            StorageError: The database failed; nothing was stored.
        """

        def store(connection: Connection) -> list[str]:
            insert_owner(connection, self._owner)
            return [_Arrival(connection, self._owner, renamed).store(one) for one in arriving()]

        return await self._database.write(store)


class _Arrival:
    """One conversation, inside a transaction."""

    def __init__(self, connection: Connection, owner: str, renamed: Mapping[str, str]) -> None:
        self._connection, self._owner, self._renamed = connection, owner, renamed

    def store(self, arriving: ArrivingConversation) -> str:
        ids = self._ids(arriving)
        talk = ids[arriving.row["id"]]
        title = clean(str(arriving.row["title"]))[:LONGEST_TITLE]
        values = {**arriving.row, "id": talk, "title": title, "leaf_id": ids.get(arriving.row["leaf_id"] or "")}
        if arriving.pages:
            places = [replace(one, file=self._renamed.get(one.file, one.file)) for one in arriving.pages]
            values["settings"] = {PAGES: [asdict(one) for one in places]}
        self._connection.execute(insert(conversations).values(**values, owner_id=self._owner))
        keep_title(self._connection, talk)
        rows, work, log, steps, texts = list[Any](), list[Any](), list[Any](), list[Any](), list[Any]()
        for turn in arriving.turns:
            row, own = turn.row, {"owner_id": self._owner, "conversation_id": talk}
            run_id = ids[turn.run["id"]] if turn.run is not None else None
            parts = self._renamed_parts(row["parts"])
            fresh = {"id": ids[row["id"]], "parent_id": ids.get(row["parent_id"] or ""), "run_id": run_id}
            rows.append({**row, **fresh, **own, "parts": parts})
            said = [Message(**part) for part in parts]
            texts += text_row(self._owner, talk, ids[row["id"]], row["role"], said)
            if turn.run is not None:
                held = {"worker": "", "epoch": 1, "lease_until": 0.0}
                work.append({**turn.run, **own, **held, "id": run_id, "message_id": ids[row["id"]]})
                log += ({**one, "run_id": run_id, "owner_id": self._owner} for one in self._renamed_parts(turn.log))
            places = {"owner_id": self._owner, "message_id": ids[row["id"]]}
            steps += ({**one, **places, "id": ids.get(one["id"]) or new_id()} for one in turn.steps)
        for table, fresh_rows in (
            *((messages, rows), (runs, work), (run_events, log), (message_agent_thoughts, steps)),
            (message_texts, texts),
        ):
            if fresh_rows:
                self._connection.execute(insert(table), fresh_rows)
        use_files(self._connection, self._owner, talk, [self._renamed.get(one, one) for one in arriving.files])
        return talk

    def _ids(self, arriving: ArrivingConversation) -> dict[str, str]:
        """The ids that everything gets: its own, or all new where one of them is taken."""
        turns = [str(turn.row["id"]) for turn in arriving.turns]
        work = [str(turn.run["id"]) for turn in arriving.turns if turn.run is not None]
        steps = [str(step["id"]) for turn in arriving.turns for step in turn.steps]
        talk = str(arriving.row["id"])
        columns = (
            *((conversations.c.id, [talk]), (messages.c.id, turns), (runs.c.id, work)),
            (message_agent_thoughts.c.id, steps),
        )
        is_taken = any(
            self._connection.execute(select(column).where(column.in_(ids[at : at + _AT_ONCE])).limit(1)).first()
            for column, ids in columns
            for at in range(0, len(ids), _AT_ONCE)
        )
        return {one: new_id() if is_taken else one for one in (talk, *turns, *work, *steps)}

    def _renamed_parts(self, rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """The rows, with the new ids of files in place of those that were taken."""
        if not self._renamed:
            return rows
        text = json.dumps(rows, ensure_ascii=False)
        return json.loads(_NAMED_FILE.sub(lambda found: self._renamed.get(found[0], found[0]), text))
