"""Which kind of agent a configuration describes, what only some kinds take, and the members of a group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, Field, WithJsonSchema

from core.agents.catalog import AGENTS
from core.agents.config_file import placed, read_file
from core.agents.config_parts import Part, Truth, Whole, wrong
from core.agents.config_problems import ConfigError, problem

LEADERS: Final = frozenset({"GroupChat", "Router"})
"""Kinds that are nothing without `agents`."""
WITHOUT_TOOLS: Final = frozenset(
    {
        "ArticleAgent",
        "BasicAgent",
        "ContinueWriting",
        "ExpandWriting",
        "GroupChat",
        "Memory",
        "OutlineWriting",
        "UserAgent",
        "WriteFromScratch",
    }
)
"""Kinds that call none; those that a group calls are its members'."""
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPELT: Final = {"ReActChat": "react_chat"}
_DEEPEST: Final = 10  # groups within groups
_MOST: Final = 100  # agents of one configuration


def kinds() -> dict[str, str]:
    """What `type` may say (`parallel_doc_qa`, or the class itself), to the names of the catalog."""
    spelt = {_SPELT.get(name) or _WORD.sub("_", name).lower(): name for name in AGENTS}
    return {**spelt, **{name: name for name in AGENTS}}


def _kind(given: str) -> str:
    known = kinds()
    if given in known:
        return given
    near = get_close_matches(given, known, n=1, cutoff=0.6)
    raise wrong("config_no_type_near", name=given, near=near[0]) if near else wrong("config_no_type", name=given)


class KindFields(Part):
    """What says of which kind an agent is, and what only some kinds take."""

    type: Annotated[str, AfterValidator(_kind), WithJsonSchema({"type": "string", "enum": sorted(kinds())})] | None = (
        None
    )
    agent_selection_method: Literal["auto", "round_robin", "random", "manual"] | None = None
    seed: Whole | None = None
    part_tokens: Annotated[Whole | None, Field(ge=200, le=100_000)] = None
    at_once: Annotated[Whole | None, Field(ge=1, le=64)] = None
    dialogue_tokens: Annotated[Whole | None, Field(ge=200)] = None
    full_article: Truth | None = None
    most_chapters: Annotated[Whole | None, Field(ge=1, le=30)] = None

    def options(self) -> dict[str, Any]:
        """What only some kinds take, of what was given."""
        given = {name: getattr(self, name) for name in KindFields.model_fields if name != "type"}
        return {name: value for name, value in given.items() if value is not None}


def members(given: Any) -> Any:
    """The members of a group, with those that are named as files read in; what is no list as it is.

    Raises:
        PydanticCustomError: A file cannot be read, or names one that names it; agents lead too deep, or too many.
    """
    if not isinstance(given, list):
        return given
    try:
        return _Reading().all_of(cast("list[Any]", given), ())
    except ConfigError as error:
        first = error.problems[0]
        if error.args and str(first) != str(error):  # it names the file
            raise wrong("config_other", why=str(error)) from error
        raise wrong(first.words_key, **first.details) from error


class _Reading:
    """Reads the members of one configuration in."""

    def __init__(self) -> None:
        self._count = 0

    def all_of(self, given: list[Any], over: tuple[Path | None, ...]) -> list[Any]:
        """The members; `over` are the files of those that lead them, from the outermost."""
        if len(over) >= _DEEPEST:
            raise ConfigError([problem("config_deep")])
        return [self._one(item, over) for item in given]

    def _one(self, given: Any, over: tuple[Path | None, ...]) -> Any:
        self._count += 1
        if self._count > _MOST:
            raise ConfigError([problem("config_many", most=_MOST)])
        file: Path | None = None
        if isinstance(given, str) and given:
            read = read_file(Path(given))
            file = Path(given).resolve()
            if file in over:
                way = [one.name for one in (*over[over.index(file) :], file) if one is not None]
                raise ConfigError([problem("config_circle", files=" → ".join(way))])
            given = placed(read, file.parent)
        if not isinstance(given, Mapping):
            return given
        own = cast("Mapping[str, Any]", given)
        if not isinstance(own.get("agents"), list):
            return dict(own)
        return {**own, "agents": self.all_of(own["agents"], (*over, file))}
