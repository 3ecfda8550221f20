"""The tables as they are now. `migrations` makes them; a test holds the two together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)

if TYPE_CHECKING:
    from sqlalchemy import Dialect

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite's whole numbers are as large as they need to be, and only an INTEGER can be the number of a row.
_LARGE = BigInteger().with_variant(Integer, "sqlite")


class Searched(TypeDecorator[Any]):
    """JSON that statements look into: PostgreSQL does that only where no text has NUL or half a surrogate pair."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """What is stored."""
        del dialect
        return without_halves(value)

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Of what kind that is which the value is held against."""
        return self.impl_instance.coerce_compared_value(op, value)


def without_halves(value: Any) -> Any:
    """JSON without NUL and halves of surrogate pairs in its texts."""
    if isinstance(value, str):
        return value.replace("\0", "").encode(errors="replace").decode()
    if isinstance(value, dict):
        return {without_halves(name): without_halves(one) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [without_halves(one) for one in cast("list[Any]", value)]
    return value


def _owned(*, index: bool = True) -> Column[str]:
    return Column("owner_id", String, ForeignKey("owners.id", ondelete="CASCADE"), nullable=False, index=index)


def _in_conversation(*, nullable: bool = False) -> Column[str]:
    target = ForeignKey("conversations.id", ondelete="CASCADE")
    return Column("conversation_id", String, target, nullable=nullable, index=True)


owners = Table(
    "owners",
    metadata,
    Column("id", String, primary_key=True),
    Column("created_at", Float, nullable=False),
)

# Folders of the history; `settings` (instructions, libraries …) hold for the conversations in one.
folders = Table(
    "folders",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("name", Text, nullable=False),
    Column("position", Float, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("title", Text, nullable=False),
    # No foreign key: it would be a circle, and a leaf that is gone only means "show the newest".
    Column("leaf_id", String),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    # Who made the title: "question" (its first words), "model" or "person"; one by a person is never replaced.
    Column("titled_by", String, nullable=False, server_default="person"),
    # No foreign key: SQLite adds none to an existing table. A folder that is gone means "in none".
    Column("folder_id", String, index=True),
    Column("pinned_at", Float),
    Column("archived_at", Float),
    # What was chosen for this conversation alone: its model, instructions, parameters, tools.
    Column("settings", Searched, nullable=False, server_default="{}"),
)

# Messages that wait until the reply that is being written ends, the oldest first.
queued_messages = Table(
    "queued_messages",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    _in_conversation(),
    Column("text", Text, nullable=False),
    Column("file_ids", JSON, nullable=False),
    Column("position", Float, nullable=False),
    Column("created_at", Float, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    _in_conversation(),
    Column("parent_id", String, ForeignKey("messages.id", ondelete="CASCADE"), index=True),
    Column("role", String, nullable=False),
    Column("parts", JSON, nullable=False),
    Column("run_id", String),
    Column("status", String, nullable=False),
    Column("created_at", Float, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    _in_conversation(),
    Column("message_id", String, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("status", String, nullable=False),
    Column("error", JSON(none_as_null=True)),
    Column("model", Text, nullable=False),
    Column("usage", JSON(none_as_null=True)),
    # The process that answers. It renews its lease; another one takes the run over when it stops doing so. NULL: given
    # up. Each take-over adds one to the epoch, which every write of a run must name: a late one of the former holder
    # changes nothing.
    Column("worker", String, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("finished_at", Float),
    Column("epoch", Integer, nullable=False, server_default="1"),
    Column("lease_until", Float, server_default="0"),
)
Index(
    "ix_runs_one_live",
    runs.c.conversation_id,
    unique=True,
    sqlite_where=text("status = 'running'"),
    postgresql_where=text("status = 'running'"),
)

run_events = Table(
    "run_events",
    metadata,
    Column("run_id", String, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    _owned(index=False),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("payload", JSON, nullable=False),
)

# What other processes ask of the one that holds a run; the key of a question makes the first answer to it the only one.
run_requests = Table(
    "run_requests",
    metadata,
    Column("run_id", String, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String, primary_key=True),
    _owned(index=False),
    Column("kind", String, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("answer", JSON(none_as_null=True)),
    Column("at", Float, nullable=False),
)

files = Table(
    "files",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("name", Text, nullable=False),
    Column("media_type", String, nullable=False),
    Column("size", _LARGE, nullable=False),
    Column("sha256", String, nullable=False, index=True),
    Column("created_at", Float, nullable=False),
)

# Which conversations need a file: the file goes with the last of them.
file_uses = Table(
    "file_uses",
    metadata,
    Column("file_id", String, ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    Column("conversation_id", String, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True, index=True),
    _owned(),
)

libraries = Table(
    "libraries",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("name", Text, nullable=False),
    Column("created_at", Float, nullable=False),
)

conversation_libraries = Table(
    "conversation_libraries",
    metadata,
    Column("conversation_id", String, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("library_id", String, ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True, index=True),
    _owned(),
)

# A document stands in a conversation or in a named library, its `collection_id`. The `library_id` is another thing:
# its id, the hash of its content, in the one index that an owner's documents are searched in.
documents = Table(
    "documents",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    _in_conversation(nullable=True),
    Column("collection_id", String, ForeignKey("libraries.id", ondelete="CASCADE"), index=True),
    Column("file_id", String, ForeignKey("files.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("library_id", String, index=True),
    Column("status", String, nullable=False),
    Column("error", JSON(none_as_null=True)),
    Column("pages", Integer),
    Column("facts", JSON(none_as_null=True)),
    Column("created_at", Float, nullable=False),
    CheckConstraint("(conversation_id IS NULL) <> (collection_id IS NULL)", name="ck_documents_one_home"),
)
Index(
    "ix_documents_unread",
    documents.c.created_at,
    sqlite_where=text("status = 'reading'"),
    postgresql_where=text("status = 'reading'"),
)

# Documents that are being read, or wait for it: who reads them, as with runs. `due` says whose turn is next, `asked`
# what its reader is to do, `before` what the document was where it is read anew or on, `lost` how many of its readers
# died, `passed` how many had not its bytes. The password is sealed, and goes with the row when the reading is over.
readings = Table(
    "readings",
    metadata,
    Column("document_id", String, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    _owned(),
    Column("worker", String, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("lease_until", Float),
    Column("due", Float, nullable=False),
    Column("progress", JSON(none_as_null=True)),
    Column("asked", String),
    Column("before", JSON(none_as_null=True)),
    Column("restores", Boolean, nullable=False),
    Column("password", Text),
    Column("lost", Integer, nullable=False),
    Column("passed", Integer, nullable=False),
)

# The services that an owner set up, one row for each; `key` is sealed, `key_end` is what may be shown of it.
model_services = Table(
    "model_services",
    metadata,
    Column("owner_id", String, ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True),
    Column("service", String, primary_key=True),
    Column("address", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("key", Text),
    Column("key_end", String, nullable=False),
    Column("in_use", Boolean, nullable=False),
    Column("updated_at", Float, nullable=False),
)

# What an owner chose, each under a name: how tools are approved, which are on …
owner_settings = Table(
    "owner_settings",
    metadata,
    Column("owner_id", String, ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", JSON, nullable=False),
)

# The tools, by their full names, that an owner lets run unasked in a conversation.
allowances = Table(
    "allowances",
    metadata,
    Column("conversation_id", String, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("tool", String, primary_key=True),
    _owned(),
)

# The MCP servers that an owner set up; `settings` is sealed, `approved` and `off` are kept by its own names of tools.
mcp_servers = Table(
    "mcp_servers",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("trusted", Boolean, nullable=False),
    Column("asks", Boolean, nullable=False, server_default=false()),
    Column("sign_in", Text, nullable=False, server_default=""),
    Column("confirmed", Text, nullable=False),
    Column("approved", JSON, nullable=False),
    Column("off", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
)

# The steps of a reply; that positions have no gap is kept by triggers, which a migration makes.
message_agent_thoughts = Table(
    "message_agent_thoughts",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("message_id", String, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False),
    Column("thought", Text, nullable=False),
    Column("tool_name", String(255)),
    Column("tool_input", Text),
    Column("observation", Text),
    Column("position", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    UniqueConstraint("message_id", "position"),
    CheckConstraint("position >= 1", name="ck_message_agent_thoughts_position"),
)
Index("message_agent_thought_message_id_idx", message_agent_thoughts.c.message_id)

# What the turns up to a message are for a model that cannot read them all any more.
summaries = Table(
    "summaries",
    metadata,
    Column("message_id", String, ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    _in_conversation(),
    _owned(),
    Column("text", Text, nullable=False),
    Column("created_at", Float, nullable=False),
)

# What messages and titles say, as words that can be searched; a row without a message is of a title. The index over it,
# and the triggers that keep that up, are made by a migration (`message_texts.py`).
message_texts = Table(
    "message_texts",
    metadata,
    Column("id", _LARGE, primary_key=True),
    Column("message_id", String, ForeignKey("messages.id", ondelete="CASCADE"), unique=True),
    _in_conversation(),
    _owned(),
    Column("owner_key", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("words", Text, nullable=False),
)

# Keys that let an owner's programs in: `print` is a hash, `key_end` is what may be shown of the key.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("name", Text, nullable=False),
    Column("print", String, nullable=False),
    Column("key_end", String, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("models", JSON(none_as_null=True)),
    Column("budget", Float),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("used_at", Float),
    Column("revoked_at", Float),
    Column("app", JSON(none_as_null=True)),
)
Index("ix_api_keys_print", api_keys.c.print, unique=True)

# What programs show that somebody let in at a page: codes, and tokens for a while. `app` of a key says who they are.
app_tokens = Table(
    "app_tokens",
    metadata,
    Column("print", String, primary_key=True),
    Column("key_id", String, ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False, index=True),
    _owned(),
    Column("kind", String, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("spent_at", Float),
    Column("about", JSON, nullable=False),
)

# What was used with a key, month by month ("2026-11").
api_usage = Table(
    "api_usage",
    metadata,
    Column("key_id", String, ForeignKey("api_keys.id", ondelete="CASCADE"), primary_key=True),
    Column("month", String, primary_key=True),
    _owned(),
    Column("requests", Integer, nullable=False),
    Column("prompt_tokens", _LARGE, nullable=False),
    Column("completion_tokens", _LARGE, nullable=False),
    Column("cost", Float, nullable=False),
)

# The files that came through the protocol: they stay until a program deletes them.
api_files = Table(
    "api_files",
    metadata,
    Column("file_id", String, ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    _owned(),
    Column("purpose", String, nullable=False),
)

# Replies that a program may go on from, with all that was said before.
api_responses = Table(
    "api_responses",
    metadata,
    Column("id", String, primary_key=True),
    _owned(),
    Column("created_at", Float, nullable=False),
    Column("body", JSON, nullable=False),
)
# People with accounts; the id is that of the owner whose world is theirs. `name_key` tells names apart that look alike.
people = Table(
    "people",
    metadata,
    Column("id", String, ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    Column("role", String, nullable=False),
    # A hash of argon2; "" for who signs in otherwise.
    Column("password", Text, nullable=False),
    Column("limits", JSON, nullable=False, server_default="{}"),
    Column("created_at", Float, nullable=False),
    Column("seen_at", Float),
)


def _of_person(*, nullable: bool = False) -> Column[str]:
    return Column("person_id", String, ForeignKey("people.id", ondelete="CASCADE"), nullable=nullable, index=True)


# Other ways in than a password: the account at an issuer of OpenID Connect, or a passkey.
sign_ins = Table(
    "sign_ins",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    _of_person(),
    Column("data", JSON, nullable=False, server_default="{}"),
    Column("created_at", Float, nullable=False),
)

# Browsers that are signed in; the id is the hash of what the browser's cookie holds.
sessions = Table(
    "sessions",
    metadata,
    Column("id", String, primary_key=True),
    _of_person(),
    Column("browser", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
)

# One-time links: to become somebody with a role, or, where there is a person, to choose a new password. The id is the
# hash of the link's token.
invitations = Table(
    "invitations",
    metadata,
    Column("id", String, primary_key=True),
    Column("role", String, nullable=False),
    _of_person(nullable=True),
    Column("made_by", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("ends_at", Float, nullable=False),
)

# What administrators did; names as they were then, for people may be gone.
audit = Table(
    "audit",
    metadata,
    Column("id", _LARGE, primary_key=True),
    Column("at", Float, nullable=False),
    Column("by", Text, nullable=False),
    Column("did", String, nullable=False),
    Column("to", Text, nullable=False),
    Column("details", JSON, nullable=False),
)

# What an owner used on a day (UTC), in sums: it stays when the conversations that it was used in are deleted.
used = Table(
    "used",
    metadata,
    Column("owner_id", String, ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True),
    Column("day", String, primary_key=True),
    Column("messages", Integer, nullable=False),
    Column("tokens", _LARGE, nullable=False),
    Column("cost", Float, nullable=False),
)

# Groups of people; `limits` are what each of them may use, as those of a person.
groups = Table(
    "groups",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    Column("limits", JSON, nullable=False, server_default="{}"),
    Column("created_at", Float, nullable=False),
)

group_members = Table(
    "group_members",
    metadata,
    Column("group_id", String, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", String, ForeignKey("people.id", ondelete="CASCADE"), primary_key=True, index=True),
)

# What an owner shares with a group: `thing_id` is that of a library or a persona, or the name of a model service.
lent = Table(
    "lent",
    metadata,
    Column("group_id", String, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", String, primary_key=True),
    Column("thing_id", String, primary_key=True),
    Column("owner_id", String, ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("writes", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
)

# What an assistant keeps for its owner from one conversation to another: a text under each key. `size` is in bytes.
notes = Table(
    "notes",
    metadata,
    Column("owner_id", String, ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("updated_at", Float, nullable=False),
)

# The ledger of `parlour ingest`: what stands at a place was taken in as this document, or could not be. The key is a
# hash, for a place may be longer than an index takes.
ingested = Table(
    "ingested",
    metadata,
    Column("collection_id", String, ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String, primary_key=True),
    _owned(),
    Column("place", Text, nullable=False),
    Column("mark", String, nullable=False),
    Column("document_id", String, ForeignKey("documents.id", ondelete="CASCADE"), index=True),
    Column("error", JSON(none_as_null=True)),
    Column("at", Float, nullable=False),
)
