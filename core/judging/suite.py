"""A suite: questions to agents, and what a right answer to each must have.

>>> suite = Suite.of("suite.yaml")
>>> Suite.of({"tasks": [{"id": "sum", "question": "What is 17% of 240?", "checks": [{"contains": "40.8"}]}]})
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError

from core.agents.config.problems import ConfigError, problem, problems_of
from core.agents.config.reading import read_file, with_absolute_paths
from core.agents.config.schema import AgentConfig, ConfigPart, NonEmptyText, StrictInt
from core.judging.problems import suite_problem
from core.languages import Lang  # noqa: TC001 - pydantic reads the type of a field
from core.rag.sources import is_web_address

if TYPE_CHECKING:
    from core.errors import ParlourError


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str | Mapping) else given


def _section(name: str) -> BeforeValidator:
    """A text that stands for a section with this one field."""
    return BeforeValidator(lambda given: {name: given} if isinstance(given, str) else given)


class Place(ConfigPart):
    """A place that an answer must cite.

    Args:
        document: The document's name.
        page: Counted from 1; left out, any will do.
    """

    document: NonEmptyText
    page: Annotated[StrictInt | None, Field(ge=1)] = None


class Called(ConfigPart):
    """A call that must have been made.

    Args:
        tool: Its name.
        arguments: Regular expressions that are found in the values of these arguments.
    """

    tool: NonEmptyText
    arguments: dict[str, str] = Field(default_factory=dict)


_Place = Annotated[Place, _section("document")]


class Check(ConfigPart):
    """One thing that a right answer has; exactly one of these is given.

    Args:
        contains: Texts that all stand in the answer, in whatever case.
        regex: A regular expression that is found in the answer.
        cites: Places of documents that the answer cites, all of them.
        called: A tool that was called.
        no_tool: True: no tool was called.
        judged: What a model must find of the answer, in a sentence or more.
    """

    contains: Annotated[list[NonEmptyText], BeforeValidator(_listed, json_schema_input_type=str | list[str])] | None = (
        None
    )
    regex: NonEmptyText | None = None
    cites: (
        Annotated[list[_Place], BeforeValidator(_listed, json_schema_input_type=str | Place | list[Place])] | None
    ) = None
    called: Annotated[Called, _section("tool")] | None = None
    no_tool: Literal[True] | None = None
    judged: NonEmptyText | None = None

    @property
    def kind(self) -> str:
        """Which one it is; "" where it is none."""
        return next((name for name in type(self).model_fields if getattr(self, name) is not None), "")


class Task(ConfigPart):
    """A question, and the checks of its answer. All must be met.

    Args:
        id: Its name in reports; no other task has it.
        question: What is asked.
        checks: What a right answer has.
        agent: Who is asked, one of the suite's agents; left out, the agent that the suite is run with.
        files: Documents that come with the question: paths, from the suite's own folder on, or addresses.
        library: A folder that a `Library` keeps its documents in, to be asked.
        tags: What it is counted under, beside its language.
        lang: Its language, where it is not plain from the question.
    """

    id: NonEmptyText
    question: NonEmptyText
    checks: list[Check] = Field(min_length=1)
    agent: NonEmptyText | None = None
    files: list[NonEmptyText] = Field(default_factory=list[str])
    library: NonEmptyText | None = None
    tags: list[NonEmptyText] = Field(default_factory=list[str])
    lang: Lang | None = None


_Agent = Annotated[str | dict[str, Any] | None, Field(json_schema_extra={"description": "An agent, or its file."})]


class Suite(ConfigPart):
    """Tasks, and who they are for.

    Args:
        tasks: All of them.
        name: What reports call it.
        description: What it is about.
        agent: Who is asked, as a section or a file, unless the run names somebody else.
        agents: Agents that tasks name: what such a section says stands over what the agent itself is.
        judge: Names the model that judges, as a section or a file of an agent; left out, the agent's model does.
    """

    tasks: list[Task] = Field(min_length=1)
    name: NonEmptyText | None = None
    description: str = ""
    agent: _Agent = None
    agents: dict[str, dict[str, Any]] = Field(default_factory=dict)
    judge: _Agent = None

    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def folder(self) -> Path:
        """Where its relative paths begin."""
        return self._folder

    @classmethod
    def of(cls, given: Suite | Mapping[str, Any] | str | Path) -> Suite:
        """The suite that was given: itself, a dict, or a YAML, TOML or JSON file.

        Raises:
            ConfigError: It cannot be read, or something in it is wrong; all that is wrong is in its `problems`.
        """
        if isinstance(given, Suite):
            return given
        if isinstance(given, Mapping):
            return cls._checked(given, Path.cwd())
        path = Path(given)
        return cls._checked({"name": path.stem, **read_file(path)}, path.absolute().parent, path.name)

    @classmethod
    def _checked(cls, given: Mapping[str, Any], folder: Path, file: str = "") -> Suite:
        kinds = {"": cls, "tasks": Task, "checks": Check, "called": Called, "cites": Place}
        try:
            suite = cls.model_validate(dict(given))
        except ValidationError as error:
            raise ConfigError(problems_of(error, given, kinds, {}), file) from error
        suite._folder = folder  # noqa: SLF001 - its own
        if found := list(_problems(suite)):
            raise ConfigError(found, file)
        return suite

    def file(self, name: str) -> str:
        """The absolute path of the file `name`, as a task has it; an address as it is."""
        return name if is_web_address(name) else str(self._folder / Path(name).expanduser())

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of a file, for editors."""
        schema = cls.model_json_schema()
        agent = AgentConfig.model_json_schema()
        schema["$defs"] = {**agent.pop("$defs", {}), **schema.get("$defs", {}), "AgentConfig": agent}
        own: dict[str, Any] = schema["properties"]
        own["agents"]["additionalProperties"] = {"$ref": "#/$defs/AgentConfig"}
        for name in ("agent", "judge"):
            own[name] = {
                "anyOf": [{"type": "string"}, {"$ref": "#/$defs/AgentConfig"}],
                "description": "A file, or a section.",
            }
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "A suite of Parlour"}


_CHECKS: Final = ", ".join(Check.model_fields)


def _problems(suite: Suite) -> Iterator[ParlourError]:
    """What is wrong beyond the form of fields."""
    ids: set[str] = set()
    for n, task in enumerate(suite.tasks):
        if task.id in ids:
            yield suite_problem("suite_same_id", id=task.id)
        ids.add(task.id)
        if task.agent is not None and task.agent not in suite.agents:
            near = get_close_matches(task.agent, suite.agents, n=1)
            key, more = ("suite_no_agent_near", {"near": near[0]}) if near else ("suite_no_agent", {})
            yield suite_problem(key, id=task.id, agent=task.agent, **more)
        for file in task.files:
            if not is_web_address(file) and not Path(suite.file(file)).is_file():
                yield suite_problem("suite_no_file", id=task.id, file=file)
        if task.library and not Path(suite.file(task.library), "library.sqlite").is_file():
            yield suite_problem("suite_no_library", id=task.id, library=task.library)
        for m, check in enumerate(task.checks):
            yield from _wrong_check(check, f"tasks[{n}].checks[{m}]")


def _wrong_check(check: Check, field: str) -> Iterator[ParlourError]:
    given = [name for name in type(check).model_fields if getattr(check, name) is not None]
    if len(given) != 1:
        yield suite_problem("suite_one_check", field=field, known=_CHECKS)
    if check.contains == [] or check.cites == []:
        yield problem("config_no_text", field=f"{field}.{check.kind}")
    patterns = {f"{field}.regex": check.regex} if check.regex else {}
    if check.called:
        patterns |= {f"{field}.called.arguments.{name}": one for name, one in check.called.arguments.items()}
    for place, pattern in patterns.items():
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            yield suite_problem("suite_regex", field=place, why=str(error))


def section(suite: Suite, given: str | Mapping[str, Any] | None) -> str | dict[str, Any] | None:
    """A section of a suite that stands for an agent, ready for `AgentConfig.of`: its paths are absolute."""
    if isinstance(given, str):
        return suite.file(given)
    return None if given is None else with_absolute_paths(given, suite.folder)
