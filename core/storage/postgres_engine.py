"""Connections to a PostgreSQL database, and what it is called in a sentence."""

from __future__ import annotations

import json
import math
import re
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

_SEVERAL: Final = re.compile(
    r"(?P<before>\w+://(?:[^/?#@]*@)?)(?P<hosts>[^/?#@]*,[^/?#@]*)(?P<rest>(?:[/?#].*)?)", re.DOTALL
)
_HOST: Final = re.compile(r"(?:\[(?P<long>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d+))?")
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
        url,
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
    return make_conninfo(**_said(url), **_unsaid(url))


def named(address: str) -> str:
    """What a database is called in a sentence, without its password. Raises SettingsError."""
    url = _read(address)
    return f"the database {url.database or url.username or ''} at {' or '.join(_servers(url))}"


def _unsaid(url: URL, more: str = "") -> dict[str, str]:
    """What is usual, and not said in the address.

    Args:
        more: Options of the server beside the usual ones.
    """
    usual = {**_USUAL, "options": _USUAL["options"] + more}
    if len(_servers(url)) > 1:
        usual["target_session_attrs"] = "read-write"  # the others only follow it
    return {name: value for name, value in usual.items() if name not in url.query}


def _said(url: URL) -> dict[str, str]:
    """What an address says, by libpq's names. Raises ArgumentError."""
    said = cast("dict[str, object]", url.get_dialect()().create_connect_args(url)[1])
    return {name: _last(value) for name, value in said.items()}


def _last(value: object) -> str:
    return str(cast("tuple[object, ...]", value)[-1] if isinstance(value, tuple) else value)


def _servers(url: URL) -> list[str]:
    """The servers that an address names, or this machine. Raises ArgumentError, ValueError."""
    said = _said(url)
    hosts, ports = (said.get(name, "").split(",") for name in ("host", "port"))
    ports = ports * len(hosts) if len(ports) == 1 else ports
    pairs = zip(hosts, ports, strict=True)
    return [f"{host or 'this machine'}{port and ':'}{port}" for host, port in pairs]


def _with_hosts(address: str) -> URL:
    """An address in which several servers may stand where one usually does, as libpq takes it.

    https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS
    """
    found = _SEVERAL.fullmatch(address)
    if found is None:
        return make_url(address)
    places = [_HOST.fullmatch(one) for one in found["hosts"].split(",")]
    if None in places:
        raise ValueError("no list of hosts")
    named = [(one["host"] or one["long"], one["port"] or "5432") for one in places if one is not None]
    hosts, ports = (",".join(part) for part in zip(*named, strict=True))
    return make_url(f"{found['before']}{found['rest']}").update_query_dict({"host": hosts, "port": ports})


def _read(address: str) -> URL:
    try:
        url = _with_hosts(address)
        # A host with @ is the end of a password, which nobody shall see.
        fine = url.drivername in KINDS and "@" not in (url.host or "")
        url = url.set(drivername="postgresql+psycopg")
        _servers(url)
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
