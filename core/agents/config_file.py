"""A configuration as a file: YAML, TOML or JSON, and the paths in it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from core.agents.config_problems import ConfigError, problem

_LARGEST: Final = 1024 * 1024  # bytes
_DEEPEST: Final = 40
_MOST_ALIASES: Final = 16
_PATHS: Final = frozenset({"cache_dir", "cwd", "index_path", "openapi", "work_dir"})
_LINE: Final = re.compile(r"(?:line|at line) (\d+)")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def read_file(path: Path) -> dict[str, Any]:
    """What the file says.

    Raises:
        ConfigError: It is not there, empty, of another kind, or cannot be read; the line is named where it is known.
    """
    kinds = {".yaml": _yaml, ".yml": _yaml, ".toml": tomllib.loads, ".json": _json}
    try:
        if not path.is_file():
            raise ConfigError([problem("config_no_file", file=str(path))])
        if path.suffix.lower() not in kinds:
            raise ConfigError([problem("config_kind")], path.name)
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is longer than 1 MB")
        text = path.read_text(encoding="utf-8-sig")
        found: object = kinds[path.suffix.lower()](text) if text.strip() else None
    except ConfigError:
        raise
    except RecursionError as error:
        raise ConfigError([problem("config_unreadable", why="it is nested too deep")], path.name) from error
    except (OSError, ValueError) as error:
        raise ConfigError([_unreadable(error)], path.name) from error
    if found is None or found == {}:
        raise ConfigError([problem("config_empty")], path.name)
    if not isinstance(found, dict):
        raise ConfigError([problem("config_unreadable", why="it must be names and values")], path.name)
    return cast("dict[str, Any]", found)


def placed(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same with the relative paths in it made absolute.

    Paths are `files`, members that are named as files, a model that is a GGUF file, and whatever is called `cache_dir`,
    `cwd`, `index_path`, `openapi` or `work_dir`. An MCP server that is a command starts in the folder, unless it says
    where.
    """
    own = {name: _placed(name, value, folder) for name, value in given.items()}
    files = given.get("files")
    if isinstance(files, list):
        own["files"] = [_at(folder, one) for one in cast("list[Any]", files)]
    agents = given.get("agents")
    if isinstance(agents, list):
        own["agents"] = [_member(one, folder) for one in cast("list[Any]", agents)]
    return own


def _member(given: Any, folder: Path) -> Any:
    return placed(cast("Mapping[str, Any]", given), folder) if isinstance(given, Mapping) else _at(folder, given)


def _placed(name: str, value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_placed("", item, folder) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        inner = {str(key): _placed(str(key), item, folder) for key, item in cast("Mapping[Any, Any]", value).items()}
        return {"cwd": str(folder), **inner} if isinstance(inner.get("command"), str) else inner
    weights = name in {"llm", "model"} and isinstance(value, str) and value.lower().endswith(".gguf")
    return _at(folder, value) if name in _PATHS or weights else value


def _at(folder: Path, value: Any) -> Any:
    if not isinstance(value, str) or not value or "\n" in value or value.lstrip().startswith("{"):
        return value
    if _ADDRESS.match(value):
        return value
    with suppress(RuntimeError):  # nobody has that name
        return str(folder / Path(value).expanduser())
    return value


def _json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands there twice")
        found[name] = value
    return found


def _yaml(text: str) -> object:
    """What YAML text says: plain values, never objects; bounded, so that a short text cannot become a huge one."""
    yaml: Any = import_module("yaml")
    loader = yaml.SafeLoader
    depth = aliases = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            aliases += isinstance(event, yaml.AliasEvent)
            if depth > _DEEPEST or aliases > _MOST_ALIASES:
                raise ValueError("it is nested too deep")
        _no_name_twice(yaml, yaml.compose(text, Loader=loader))
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = str(getattr(error, "problem", None) or "it is no YAML")
        raise ValueError(f"{why} (line {mark.line + 1})" if mark else why) from error


def _no_name_twice(yaml: Any, node: Any) -> None:
    """Raises ValueError where a name stands twice in one section: the first would be lost without a word."""
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            if key.value in names:
                raise ValueError(f"{key.value!r} stands there twice (line {key.start_mark.line + 1})")
            names |= {key.value} if isinstance(key, yaml.ScalarNode) and key.value != "<<" else set()
            _no_name_twice(yaml, value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _no_name_twice(yaml, item)


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
