"""All that is wrong with the file of an agent, told at once: what is right in it is checked without what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import ValidationError

from core.agents.config.build import problems_in
from core.agents.config.problems import ConfigError, written_name
from core.agents.config.reading import read_file, with_absolute_paths
from core.agents.config.schema import SPELLINGS, AgentConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from core.errors import ParlourError

_MOST: Final = 20  # times that something shows only without what was wrong before
_FIRST: Final = re.compile(r"\w+")


def problems_of_file(
    file: str | Path, variables: Mapping[str, object] | None = None
) -> tuple[AgentConfig | None, list[ParlourError]]:
    """What is wrong with a file, as far as that shows without starting or calling anything.

    Args:
        file: YAML, TOML or JSON.
        variables: For the blanks of the prompt.

    Returns:
        The configuration, without the fields that are wrong, and the errors; `None` where nothing can be made of it.
    """
    path, given, wrong = Path(file), dict[str, Any](), set[str]()
    found: list[ParlourError] = []
    for _ in range(_MOST):
        try:
            config = AgentConfig.of(given or path)
        except ConfigError as error:
            known = set(map(str, found))
            lacking = {str(one.details.get("field")) for one in error.problems if one.words_key == "config_missing"}
            found += [one for one in error.problems if str(one) not in known and not lacking & wrong]
            if not isinstance(error.__cause__, ValidationError):
                return None, found  # the file itself cannot be read
            given = given or with_absolute_paths(read_file(path), path.absolute().parent)
            if not (taken := _take_out(given, error.__cause__)) or not given:
                return None, found
            wrong |= taken
        else:
            return config, [*found, *problems_in(config, variables, without=wrong)]
    return None, found


def _take_out(given: dict[str, Any], error: ValidationError) -> set[str]:
    """Take the fields that are wrong out of what was written; their names."""
    places = [_place(given, each["loc"] or _named(each)) for each in error.errors(include_url=False)]
    for holder, name in places:
        holder.pop(name, None)
    return {name for _, name in places if name}


def _place(given: dict[str, Any], loc: tuple[int | str, ...]) -> tuple[dict[str, Any], str]:
    """The innermost section that holds what is wrong, and the name of that."""
    here: Any = given
    holder, name = given, ""
    for part in loc:
        section = cast("dict[str, Any]", here) if isinstance(here, dict) else {}
        items = cast("list[Any]", here) if isinstance(here, list) else []
        if (written := written_name(str(part), section, SPELLINGS)) in section:
            holder, name, here = section, written, section[written]
        elif isinstance(part, int) and part < len(items):
            here = items[part]
        else:
            break
    return holder, name


def _named(each: ErrorDetails) -> tuple[str, ...]:
    """Of an error of the whole, the field that it names first."""
    found = _FIRST.match(str(each.get("ctx", {}).get("field", "")))
    return (found[0],) if found else ()
