"""A memory for models: texts under keys, kept in files, or in the database of a Parlour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from core.errors import BadArgumentsError, SettingsError
from core.tools.base import BaseTool
from core.tools.notes import KeyFiles, KeyNotExistsError, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.languages import Lang
    from core.storage.owner_notes import NoteStore

__all__ = ["KeyNotExistsError", "Storage"]

_OPERATIONS = ("put", "get", "delete", "scan")
_CHANGES: Mapping[str, Mapping[str, str]] = {
    "put": {"en": "keep something in your notes", "zh": "在记事中保存内容"},
    "delete": {"en": "delete something from your notes", "zh": "从记事中删除内容"},
}
_LIMITS = ("longest_value", "most_bytes", "most_keys")
_MOST_SCANNED = 256 * 1024  # characters of one listing
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "operate": {
            "type": "string",
            "enum": list(_OPERATIONS),
            "description": "put keeps a value, get reads one, delete forgets one, scan lists all below a key.",
        },
        "key": {
            "type": "string",
            "default": "/",
            "description": "Where the value is kept, like a path: project/notes. `/` is where all keys begin.",
        },
        "value": {"type": "string", "description": "The text to keep; for put alone."},
    },
    "required": ["operate"],
}


class Storage(BaseTool):
    """Keeps texts from one reply to another.

    Args:
        cfg: Options. `storage_root_path` is the folder, by default `workspace/tools/storage` under the current one;
            give each user a folder of their own. `longest_value` and `most_bytes` are limits in bytes, `most_keys`
            is one of values.

    Raises:
        SettingsError: A limit is no whole number above zero.
    """

    name = "storage"
    description = "Keeps texts under keys and finds them again later, also in other conversations."
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Notes", "zh": "记事存储"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "read your notes", "zh": "读取记事"}
    deduplicate = True
    writes = True
    timeout = 20.0

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self.storage_root_path = str(self.cfg.get("storage_root_path") or Path("workspace") / "tools" / self.name)
        limits = {name: _limit(name, self.cfg[name]) for name in _LIMITS if name in self.cfg}
        self._files = KeyFiles(Path(self.storage_root_path).expanduser(), **limits)

    def changes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether something is kept or forgotten; reading changes nothing."""
        return arguments.get("operate") in _CHANGES

    def destroys(self, arguments: Mapping[str, Any]) -> bool:
        """Whether something is forgotten: it does not come back."""
        return arguments.get("operate") == "delete"

    def wants(self, arguments: Mapping[str, Any], lang: Lang = "en") -> str:
        """What a call is about to do."""
        words = _CHANGES.get(str(arguments.get("operate")), self.wishes)
        return words[lang]

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        """Do what `operate` says.

        Raises:
            BadArgumentsError: No value can have this key, or the value is missing or too long.
            KeyNotExistsError: `get` finds nothing.
            ToolError: There is no room, or the folder cannot be used.
        """
        del kwargs
        given = self._verify_json_format_args(params)
        key = "/".join(parts_of(given.get("key", "/")))
        match given["operate"]:
            case "put":
                return self.put(key, given.get("value"))
            case "get":
                return self._files.get(key)
            case "delete":
                return _deleted(key, found=self._files.delete(key))
            case _:
                return self.scan(key)

    def put(self, key: str, value: str | None) -> str:
        """Keep a value.

        Raises:
            BadArgumentsError: It is missing, too long, or cannot have this key.
        """
        self._files.put(key, _value_of(value))
        return f"Successfully saved {key}."

    def scan(self, key: str) -> str:
        """All keys below `key` with their values, a line each; of very many only the first."""
        return _listed(key, self._files.scan(key))


class OwnerStorage(Storage):
    """The same for one owner of a Parlour, whose notes are in its database.

    Args:
        cfg: `notes` is where they are kept.
    """

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        super().__init__()
        self._notes: NoteStore = cfg["notes"]

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:  # pyright: ignore[reportIncompatibleMethodOverride] - it is awaited
        """Do what `operate` says.

        Raises:
            BadArgumentsError: No value can have this key, or the value is missing or too long.
            KeyNotExistsError: `get` finds nothing.
            ToolError: There is no room.
            StorageError: The database failed.
        """
        del kwargs
        given = self._verify_json_format_args(params)
        key = "/".join(parts_of(given.get("key", "/")))
        match given["operate"]:
            case "put":
                await self._notes.put(key, _value_of(given.get("value")))
                return f"Successfully saved {key}."
            case "get":
                if (value := await self._notes.get(key)) is None:
                    raise KeyNotExistsError(f"Get Failed: {key} does not exist")
                return value
            case "delete":
                return _deleted(key, found=await self._notes.delete(key))
            case _:
                below = await self._notes.below(key, _MOST_SCANNED)
                return _listed(key, ((name[len(key) :] if key else f"/{name}", value) for name, value in below))


def _value_of(value: str | None) -> str:
    if value is None:
        raise BadArgumentsError("The field 'value' is missing.", field="value")
    return value


def _deleted(key: str, *, found: bool) -> str:
    return f"Successfully deleted {key}" if found else f"Delete Failed: {key} does not exist"


def _listed(key: str, found: Iterable[tuple[str, str]]) -> str:
    """The keys as seen from `key`, each with its value."""
    lines: list[str] = []
    room = _MOST_SCANNED
    for name, value in found:
        lines.append(f"{name or '/' + key}: {value}")
        room -= len(lines[-1])
        if room < 0:
            lines.append("… There is more: scan a longer key.")
            break
    return "\n".join(lines) or f"Scan Failed: {key or '/'} does not exist"


def _limit(name: str, given: object) -> int:
    if isinstance(given, int) and given > 0:
        return given
    raise SettingsError(f"The storage tool's {name!r} must be a whole number above zero, not {given!r}.")
