"""Connections to a PostgreSQL database, and what it is called in a sentence."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, cast

from psycopg.conninfo import make_conninfo
from psycopg.types.string import StrDumper
from sqlalchemy import create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from core.storage.addresses import KINDS, wrong_address

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import URL, Engine

PATIENCE: Final = 10.0
"""Seconds for a server that went away to be back."""
_USUAL: Final = {
    "application_name": "parlour",
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
    # A transaction or lock whose process is gone must hold nobody up; short statements gain nothing from compiling.
    "options": "-c idle_in_transaction_session_timeout=60s -c lock_timeout=10s -c jit=off "
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
}

_BY_INDEX: Final = " -c enable_seqscan=off"


def engine_of(address: str, size: int, *, writes: bool = False) -> Engine:
    """What makes connections to a database, each in autocommit, at most so many.

    Args:
        writes: Whether they are for serializable writes. These look into an index wherever there is one: a small table
            is otherwise read as a whole, and then whoever adds any row to it at the same time is in conflict.

    Raises:
        SettingsError: The address is wrong.
    """
    url = _read(address)
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",  # transactions are begun and ended above, by hand
        json_serializer=to_json,
        pool_size=size,
        max_overflow=0,
        pool_timeout=PATIENCE,
        pool_reset_on_return=None,  # whoever takes one ends what it began
        use_native_hstore=False,
        hide_parameters=True,  # what people wrote stands in no log
        connect_args=_unsaid(url, _BY_INDEX if writes else ""),
    )
    event.listen(engine, "connect", _set_up)
    return engine


def conninfo_of(address: str) -> str:
    """The same connection for who speaks to the driver alone: an address is read in one way. Raises SettingsError."""
    url = _read(address)
    said = url.translate_connect_args(username="user", database="dbname")
    return make_conninfo(**said, **{name: _last(value) for name, value in url.query.items()}, **_unsaid(url))


def named(address: str) -> str:
    """What a database is called in a sentence, without its password. Raises SettingsError."""
    url = _read(address)
    port = f":{url.port}" if url.port else ""
    return f"the database {url.database or url.username or ''} at {url.host or 'this machine'}{port}"


def _unsaid(url: URL, more: str = "") -> dict[str, str]:
    """What is usual, and not said in the address.

    Args:
        more: Options of the server beside the usual ones.
    """
    usual = {**_USUAL, "options": _USUAL["options"] + more}
    return {name: value for name, value in usual.items() if name not in url.query}


def _last(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else value[-1]


def _read(address: str) -> URL:
    try:
        url = make_url(address)
        # A host with @ is the end of a password, which nobody shall see.
        fine = url.drivername in KINDS and "@" not in (url.host or "")
    except (ArgumentError, ValueError):
        fine, url = False, None
    if not fine or url is None:
        raise wrong_address()
    return url


class _WithoutNul(StrDumper):
    """Text without NUL, which PostgreSQL cannot hold."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "") if "\0" in obj else obj)


def _set_up(connection: psycopg.Connection[Any], _record: object) -> None:
    connection.adapters.register_dumper(str, _WithoutNul)


def to_json(value: object) -> str:
    """JSON as it reads; halves of surrogate pairs, which no text can hold, stay escaped, like NUL."""
    try:
        said = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return to_json(finite(value))
    try:
        said.encode()
    except UnicodeEncodeError:
        said = json.dumps(value, separators=(",", ":"))
    return said


def finite(value: Any) -> Any:
    """A value with null for each number that JSON has no word for: SQLite takes NaN, and PostgreSQL does not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(one) for name, one in cast("dict[str, Any]", value).items()}
    return [finite(one) for one in cast("list[Any]", value)] if isinstance(value, list | tuple) else value
