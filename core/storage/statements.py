"""Statements on the way of a question, built once: to build one takes several times as long as to run it.

What they are asked for is bound by name: `owner`, `conversation`, `message`, `run` …
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    Float,
    Text,
    any_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    select,
    text,
    update,
)

from core.storage.dialects import clock, upsert
from core.storage.tables import (
    allowances,
    conversation_libraries,
    conversations,
    documents,
    files,
    folders,
    group_members,
    lent,
    libraries,
    mcp_servers,
    message_texts,
    messages,
    owner_settings,
    owners,
    people,
    queued_messages,
    run_events,
    run_requests,
    runs,
)

_owner: BindParameter[str] = bindparam("owner")
_conversation: BindParameter[str] = bindparam("conversation")
_message: BindParameter[str] = bindparam("message")
_run: BindParameter[str] = bindparam("run")
_this = conversations.c.id == _conversation
_mine = _this & (conversations.c.owner_id == _owner)

OWNER_CHOICE: Final = select(owner_settings.c.value).where(
    owner_settings.c.owner_id == _owner, owner_settings.c.name == bindparam("name")
)
OWNER_HELD: Final = select(owners.c.id).where(owners.c.id == _owner).with_for_update(key_share=True)
ADD_OWNER: Final = upsert(owners).on_conflict_do_nothing()

CONVERSATION: Final = select(conversations).where(_mine)
CONVERSATION_HELD: Final = CONVERSATION.with_for_update(key_share=True)
"""Nobody else changes the conversation, or begins anything in it, until the transaction ends."""
CONVERSATION_SETTINGS: Final = select(conversations.c.settings).where(_this)
CONVERSATION_ID: Final = select(conversations.c.id).where(_this)
ADD_CONVERSATION: Final = insert(conversations)
SHOW_LEAF: Final = update(conversations).where(_this).values(leaf_id=bindparam("leaf"), updated_at=bindparam("time"))
TITLE_AND_OWNER: Final = select(conversations.c.owner_id, conversations.c.title).where(_this)

_naming = update(conversations).values(title=bindparam("named"), titled_by="question")
NAME_UNNAMED: Final = _naming.where(_this, conversations.c.title == "")
"""Give a conversation that has no title the one that its question makes."""
_is_former = conversations.c.title.in_(bindparam("former", expanding=True)) | (conversations.c.titled_by == "model")
NAME_ANEW: Final = _naming.where(_this, conversations.c.titled_by != "person", _is_former)
"""The same in place of one that another version of the question, or a model, made; never of one by a person."""

MESSAGE: Final = select(messages).where(messages.c.id == _message, messages.c.owner_id == _owner)
_of_conversation = messages.c.conversation_id == _conversation
TURNS: Final = select(messages).where(_of_conversation).order_by(messages.c.created_at, messages.c.id)
_as_text = [cast(column, Text).label("parts") if column.name == "parts" else column for column in messages.c]
TURNS_AS_TEXT: Final = select(*_as_text).where(_of_conversation).order_by(messages.c.created_at, messages.c.id)
TREE: Final = (
    select(messages.c.id, messages.c.parent_id, messages.c.role)
    .where(_of_conversation)
    .order_by(messages.c.created_at, messages.c.id)
)
ADD_MESSAGE: Final = insert(messages)
END_MESSAGE: Final = (
    update(messages).where(messages.c.id == _message).values(parts=bindparam("said"), status=bindparam("ended"))
)

FILES_OF_OWNER: Final = (
    select(files.c.id)
    .where(files.c.owner_id == _owner, files.c.id.in_(bindparam("wanted", expanding=True)))
    .order_by(files.c.id)
    .with_for_update(read=True, key_share=True)
)
"""Those that are there, and stay until the transaction ends."""

_adding = upsert(message_texts)
KEEP_WORDS: Final = _adding.on_conflict_do_update(index_elements=["message_id"], set_={"words": _adding.excluded.words})
FORGET_WORDS: Final = delete(message_texts).where(message_texts.c.message_id == _message)
ADD_WORDS: Final = insert(message_texts)
CHANGE_TITLE_WORDS: Final = (
    update(message_texts)
    .where(message_texts.c.conversation_id == _conversation, message_texts.c.message_id.is_(None))
    .values(title=bindparam("said"))
)

ALLOWED_TOOLS: Final = (
    select(allowances.c.tool).where(allowances.c.conversation_id == _conversation).order_by(allowances.c.tool)
)
QUEUED: Final = (
    select(queued_messages)
    .where(queued_messages.c.conversation_id == _conversation)
    .order_by(queued_messages.c.position, queued_messages.c.id)
)
MCP_SERVERS: Final = (
    select(mcp_servers).where(mcp_servers.c.owner_id == _owner).order_by(mcp_servers.c.created_at, mcp_servers.c.id)
)

_is_own = documents.c.conversation_id == _conversation
_is_shelved = documents.c.collection_id.in_(bindparam("shelves", expanding=True))
_is_read = documents.c.library_id.is_not(None)
_is_stopped = (documents.c.status == "cancelled") & _is_read
_oldest_first = documents.c.created_at, documents.c.id
OWN_DOCUMENTS: Final = select(documents).where(_is_own).order_by(*_oldest_first)
SHELVED_DOCUMENTS: Final = select(documents).where(_is_shelved).order_by(*_oldest_first)
OWN_READ: Final = select(documents.c.library_id, documents.c.name).where(_is_read, _is_own).order_by(*_oldest_first)
SHELVED_READ: Final = (
    select(documents.c.library_id, documents.c.name, documents.c.owner_id, documents.c.collection_id)
    .where(_is_read, _is_shelved)
    .distinct()
)
KNOWN_IN_PART: Final = (
    select(documents)
    .where(((documents.c.status == "reading") & _is_shelved) | (_is_stopped & (_is_shelved | _is_own)))
    .order_by(*_oldest_first)
    .limit(bindparam("most"))
)


def lent_to(person: ColumnElement[str] | str) -> ColumnElement[bool]:
    """Whether a row of `libraries` is shared with somebody, by the groups that they are in at this moment."""
    return (
        exists()
        .where(lent.c.kind == "library", lent.c.thing_id == libraries.c.id, lent.c.owner_id == libraries.c.owner_id)
        .where(group_members.c.group_id == lent.c.group_id, group_members.c.person_id == person)
        .where(people.c.id == lent.c.owner_id, people.c.role != "guest", lent.c.owner_id != person)
        .correlate(libraries, conversations, conversation_libraries)
    )


_whose = conversation_libraries.c.owner_id
OWN_SHELVES: Final = (
    select(conversation_libraries.c.library_id)
    .join(libraries, libraries.c.id == conversation_libraries.c.library_id)
    .where(conversation_libraries.c.conversation_id == _conversation)
    .where((libraries.c.owner_id == _whose) | lent_to(_whose))
)
SHELVES_CHOSEN: Final = select(conversation_libraries.c.library_id).where(
    conversation_libraries.c.conversation_id == _conversation
)
TAKEN_BACK: Final = select(libraries.c.id).where(
    libraries.c.id.in_(bindparam("wanted", expanding=True)), libraries.c.owner_id != _owner, ~lent_to(_owner)
)
"""Those of several libraries that are somebody else's, who does not share them now."""
SETTINGS_OF_FOLDER: Final = (
    select(folders.c.settings, conversations.c.settings)
    .join(conversations, conversations.c.folder_id == folders.c.id)
    .where(_this)
)
_listing = (
    select(
        *(libraries.c[name] for name in ("id", "owner_id", "name", "created_at")),
        func.count(documents.c.id),
        func.count(documents.c.id).filter(documents.c.status == "reading"),
    )
    .outerjoin(documents, documents.c.collection_id == libraries.c.id)
    .group_by(libraries.c.id)
)
LIBRARIES_OF_OWNER: Final = _listing.where(libraries.c.owner_id == _owner)
LENT_LIBRARIES: Final = (
    _listing.add_columns(people.c.name.label("lender"))
    .join(people, people.c.id == libraries.c.owner_id)
    .where(lent_to(_owner))
    .group_by(people.c.name)
)
LIBRARIES: Final = _listing.where(libraries.c.id.in_(bindparam("wanted", expanding=True)))

IS_RUNNING: Final = text("runs.status = 'running'")  # as the partial index has it, which a bound value could not use
RUN: Final = select(runs).where(runs.c.id == _run, runs.c.owner_id == _owner)
RUN_TO_END: Final = RUN.with_for_update(key_share=True)
RUN_HELD: Final = (
    select(runs.c.owner_id, runs.c.epoch, runs.c.status).where(runs.c.id == _run).with_for_update(key_share=True)
)
"""Nobody else writes, ends or takes over the run until the transaction ends; the same of `RUN_TO_END`."""
RUNS_HELD: Final = (
    select(runs.c.id, runs.c.owner_id, runs.c.epoch, runs.c.status)
    .where(runs.c.id.in_(bindparam("wanted", expanding=True)))
    .order_by(runs.c.id)  # all in one order, so that no two wait for each other
    .with_for_update(key_share=True)
)
RUNS_HELD_QUICKLY: Final = (
    select(runs.c.id, runs.c.owner_id, runs.c.epoch, runs.c.status)
    .where(runs.c.id == any_(bindparam("wanted", type_=ARRAY(Text))))
    .order_by(runs.c.id)
    .with_for_update(key_share=True)
)
"""The same in PostgreSQL alone: one statement, of however many runs."""
lasting: ColumnElement[float] = clock() + bindparam("lasts", type_=Float)
"""When a lease is over that lasts so many seconds from now, by the clock of the database."""
ADD_RUN: Final = insert(runs).values(lease_until=lasting)
RENEW_RUN: Final = update(runs).where(runs.c.id == _run).values(lease_until=lasting)
END_RUN: Final = (
    update(runs)
    .where(runs.c.id == _run)
    .values(
        status=bindparam("ended"), error=bindparam("trouble"), usage=bindparam("spent"), finished_at=bindparam("time")
    )
)
TAKE_NAME: Final = select(func.pg_try_advisory_xact_lock(func.hashtextextended(bindparam("name", type_=Text), 0)))
"""In PostgreSQL alone: take a name until the transaction ends, if nobody has taken it."""
FORGET_EVENTS: Final = delete(run_events).where(run_events.c.run_id == _run)
COUNT_EVENTS: Final = select(func.count()).select_from(run_events).where(run_events.c.run_id == _run)
FORGET_REQUESTS: Final = (
    update(run_requests).where(run_requests.c.run_id == _run, run_requests.c.answer.is_(None)).values(payload={})
)
"""What was asked of a run and not done before its end: what somebody typed is kept no longer than that."""
ADD_EVENTS: Final = upsert(run_events).on_conflict_do_nothing()
