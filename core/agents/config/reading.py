"""Reads agents' files: YAML, TOML and JSON, relative paths, members in files of their own, variables and secrets."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, Final, cast

from pydantic import BaseModel

from core.agents.config.problems import ConfigError, problem, validation_error

_LARGEST: Final = 1024 * 1024  # bytes
_DEEPEST: Final = 40
_MOST_ALIASES: Final = 16
_PATHS: Final = frozenset({"cache_dir", "cwd", "index_path", "openapi", "work_dir"})
_LINE: Final = re.compile(r"(?:line|at line) (\d+)")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def read_file(path: Path) -> dict[str, Any]:
    """The content of a YAML, TOML or JSON file.

    Raises:
        ConfigError: It is missing, empty, of another kind, or cannot be parsed; with the line where it is known.
    """
    try:
        if not path.is_file():
            given = str(path) if path.name else "''"
            raise ConfigError(
                [problem("config_folder" if path.name and path.is_dir() else "config_no_file", file=given)]
            )
        _reader(path.name)
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is longer than 1 MB")
        text = path.read_text(encoding="utf-8-sig")
    except ConfigError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError([_unreadable(error)], path.name) from error
    return read_text(text, path.name)


def read_text(text: str, name: str) -> dict[str, Any]:
    """The same of a text that was read already.

    Args:
        name: The file's, whose ending says how it is written.

    Raises:
        ConfigError: As of `read_file`.
    """
    reader = _reader(name)
    try:
        if len(text) > _LARGEST:
            raise ValueError("it is longer than 1 MB")
        found = reader(text) if text.strip() else None
    except RecursionError as error:
        raise ConfigError([problem("config_unreadable", why="it is nested too deep")], name) from error
    except ValueError as error:
        raise ConfigError([_unreadable(error)], name) from error
    if found is None or found == {}:
        raise ConfigError([problem("config_empty")], name)
    if not isinstance(found, dict):
        raise ConfigError([problem("config_unreadable", why="it must be names and values")], name)
    return cast("dict[str, Any]", found)


def _reader(name: str) -> Callable[[str], object]:
    """What reads a file of that name."""
    kinds: dict[str, Callable[[str], object]] = {".yaml": _yaml, ".yml": _yaml, ".toml": tomllib.loads, ".json": _json}
    ending = PurePath(name).suffix.lower()
    if ending not in kinds:
        raise ConfigError([problem("config_kind")], name)
    return kinds[ending]


def with_absolute_paths(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A copy with relative paths made absolute.

    Paths are `files`, members that are named as files, a model that is a GGUF file, and each `cache_dir`, `cwd`,
    `index_path`, `openapi` and `work_dir`. An MCP server that is a command starts in the folder, unless it has a `cwd`.
    """
    own = {name: _placed(name, value, folder) for name, value in given.items()}
    files = given.get("files")
    if isinstance(files, list):
        own["files"] = [_absolute(folder, one) for one in cast("list[Any]", files)]
    agents = given.get("agents")
    if isinstance(agents, list):
        own["agents"] = [_member(one, folder) for one in cast("list[Any]", agents)]
    return own


def _member(given: Any, folder: Path) -> Any:
    return (
        with_absolute_paths(cast("Mapping[str, Any]", given), folder)
        if isinstance(given, Mapping)
        else _absolute(folder, given)
    )


def _placed(name: str, value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_placed("", item, folder) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        inner = {str(key): _placed(str(key), item, folder) for key, item in cast("Mapping[Any, Any]", value).items()}
        return {"cwd": str(folder), **inner} if isinstance(inner.get("command"), str) else inner
    weights = name in {"llm", "model"} and isinstance(value, str) and value.lower().endswith(".gguf")
    return _absolute(folder, value) if name in _PATHS or weights else value


def _absolute(folder: Path, value: Any) -> Any:
    if not isinstance(value, str) or not value or "\n" in value or value.lstrip().startswith("{"):
        return value
    if _ADDRESS.match(value):
        return value
    with suppress(RuntimeError):  # `~name` of nobody
        return str(folder / Path(value).expanduser())
    return value


def _json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_unique_names)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands there twice")
        found[name] = value
    return found


def _yaml(text: str) -> object:
    """YAML as plain values; nesting and aliases are bounded, so that a short text cannot expand into a huge one."""
    yaml: Any = import_module("yaml")
    loader = yaml.SafeLoader
    depth = aliases = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            aliases += isinstance(event, yaml.AliasEvent)
            if depth > _DEEPEST or aliases > _MOST_ALIASES:
                raise ValueError("it is nested too deep")
        _refuse_duplicates(yaml, yaml.compose(text, Loader=loader))
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = str(getattr(error, "problem", None) or "it is no YAML")
        raise ValueError(f"{why} (line {mark.line + 1})" if mark else why) from error


def _refuse_duplicates(yaml: Any, node: Any) -> None:
    """Raises ValueError where a section has a name twice: YAML would silently drop the first."""
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            if key.value in names:
                raise ValueError(f"{key.value!r} stands there twice (line {key.start_mark.line + 1})")
            names |= {key.value} if isinstance(key, yaml.ScalarNode) and key.value != "<<" else set()
            _refuse_duplicates(yaml, value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_duplicates(yaml, item)


def _unreadable(error: Exception) -> Any:
    if isinstance(error, UnicodeDecodeError):
        return problem("config_unreadable", why="it is not UTF-8")
    if isinstance(error, OSError):
        return problem("config_unreadable", why=error.strerror or type(error).__name__)
    said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    line = _LINE.search(str(error))
    why = re.sub(r"\s*\((?:at )?(?:end of document|line [^)]*)\)", "", said)
    why = f"{why[:1].lower()}{why[1:]}".rstrip(".")
    return problem("config_unreadable_line", line=line[1], why=why) if line else problem("config_unreadable", why=why)


_DEEPEST_GROUPS: Final = 10  # groups within groups
_MOST_AGENTS: Final = 100  # agents of one configuration


def read_members(given: Any) -> Any:
    """The members of a group, with those that are named as files read; anything but a list as it is.

    Raises:
        PydanticCustomError: A file cannot be read or includes itself, or there are too many agents or levels.
    """
    if not isinstance(given, list):
        return given
    try:
        return _MemberReader().all_of(cast("list[Any]", given), ())
    except ConfigError as error:
        first = error.problems[0]
        if error.args and str(first) != str(error):  # it names the file
            raise validation_error("config_other", why=str(error)) from error
        raise validation_error(first.words_key, **first.details) from error


class _MemberReader:
    """Reads the members of one configuration, and theirs."""

    def __init__(self) -> None:
        self._count = 0

    def all_of(self, given: list[Any], over: tuple[Path | None, ...]) -> list[Any]:
        """The members; `over` are the files that include them, outermost first."""
        if len(over) >= _DEEPEST_GROUPS:
            raise ConfigError([problem("config_deep")])
        return [self._one(item, over) for item in given]

    def _one(self, given: Any, over: tuple[Path | None, ...]) -> Any:
        self._count += 1
        if self._count > _MOST_AGENTS:
            raise ConfigError([problem("config_many", most=_MOST_AGENTS)])
        file: Path | None = None
        if isinstance(given, str) and given:
            read = read_file(Path(given))
            file = Path(given).resolve()
            if file in over:
                way = [one.name for one in (*over[over.index(file) :], file) if one is not None]
                raise ConfigError([problem("config_circle", files=" → ".join(way))])
            given = with_absolute_paths(read, file.parent)
        if not isinstance(given, Mapping):
            return given
        own = cast("Mapping[str, Any]", given)
        if not isinstance(own.get("agents"), list):
            return dict(own)
        return {**own, "agents": self.all_of(own["agents"], (*over, file))}


VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_SECRET: Final = re.compile(r"key|token|secret|passw|credential|authorization|cookie|^env$|^headers$", re.IGNORECASE)
_NO_SECRETS: Final = frozenset({"max_tokens", "max_input_tokens", "max_ref_token"})
_KEYS: Final = frozenset({"api_key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"})
_LITERAL_PLACES: Final = frozenset({"env", "headers", "args"})  # of an MCP server, which resolves variables itself


def resolve_keys(value: Any, variable: Callable[[str], str], place: str) -> Any:
    """A copy in which each `api_key` that names a variable is the variable's value.

    Args:
        value: Dicts and lists.
        variable: Returns a variable's value; "" where it is not set.
        place: The name of `value` in errors.

    Raises:
        ConfigError: A variable is not set.
    """
    if isinstance(value, list):
        return [resolve_keys(item, variable, f"{place}[{n}]") for n, item in enumerate(cast("list[Any]", value))]
    if not isinstance(value, Mapping):
        return value
    filled: dict[str, Any] = {}
    for name, item in cast("Mapping[str, Any]", value).items():
        field = f"{place}.{name}"
        filled[name] = resolve_keys(item, variable, field)
        found = VARIABLE.fullmatch(item) if name in _KEYS and isinstance(item, str) else None
        if found:
            filled[name] = variable(found[1])
            if not filled[name]:
                raise ConfigError([problem("config_variable", field=field, name=found[1])])
    return filled


def misplaced_variable(value: Any, place: str) -> tuple[str, str] | None:
    """The path and the name of a variable that stands elsewhere than in an `api_key`; None where there is none."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, list):
        found = (misplaced_variable(item, f"{place}[{n}]") for n, item in enumerate(cast("list[Any]", value)))
        return next((one for one in found if one), None)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        inner = (
            misplaced_variable(item, f"{place}.{name}") for name, item in items if name not in _KEYS | _LITERAL_PLACES
        )
        return next((one for one in inner if one), None)
    named = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    return (place, named[0]) if named else None


def as_written(item: Any) -> Any:
    """A tool as a file would name it: a name or a dict as it is, anything else by its name."""
    if isinstance(item, str | Mapping):
        return cast("Any", item)
    return str(getattr(item, "name", "") or getattr(item, "__name__", type(item).__name__))


def without_secrets(value: Any) -> Any:
    """A copy of plain values without keys, tokens, headers and the like, and without what is then empty."""
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in cast("list[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    items = cast("Mapping[str, Any]", value).items()
    shown = {name: without_secrets(item) for name, item in items if not _is_secret(str(name), item)}
    return {name: item for name, item in shown.items() if item not in ({}, [])}


def _is_secret(name: str, value: Any) -> bool:
    if name in _NO_SECRETS or (isinstance(value, str) and VARIABLE.fullmatch(value)):
        return False
    return _SECRET.search(name) is not None
