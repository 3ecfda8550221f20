"""Who is asked what: the agents of a suite, made once, and its tasks as questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.config.build import model_of, problems_in
from core.agents.config.problems import ConfigError
from core.agents.config.schema import AgentConfig, GenerateConfig, LLMConfig
from core.agents.conversation import language_of
from core.judging.checks import Judge
from core.judging.problems import suite_problem, within
from core.judging.result import Row
from core.judging.suite import section
from core.messages.content import ContentItem
from core.messages.message import USER, Message
from core.rag.library import Library

if TYPE_CHECKING:
    from typing import Self

    from core.errors import ParlourError
    from core.judging.suite import Suite, Task
    from core.languages import Lang
    from core.llm.base import BaseChatModel

AgentGiven = Agent | AgentConfig | Mapping[str, Any] | str | Path
_INSTEAD: Final = (
    {"llm", "model", "provider"},
    {"system_message", "prompt"},
    {"tools", "function_list"},
)
"""Fields that stand for one another: of a section that lies over another, one of them takes the place of all."""
_DOCUMENTS: Final = ("ask_documents", "read_documents")


@dataclass(frozen=True, slots=True)
class Asked:
    """A task, who answers it, and what it looks like before it is answered."""

    task: Task
    agent: Agent
    messages: list[Message]
    lang: Lang
    row: Row


@dataclass
class Plan:
    """A suite ready to be run; a context manager that lets go of models and libraries which were made for it.

    Args:
        agent: Who is asked, in the place of the suite's own.
        judge: Names the model that judges, in the place of the suite's own.
        cache_dir: Where replies of models are kept; `None`: nowhere but where a model's own settings say.
        variables: For the blanks of prompts.
        evaluated: Marks the program's own evaluators.

    Raises:
        ConfigError: An agent cannot be made, or a task does not fit its agent.
        SettingsError: A model cannot be made.
    """

    suite: Suite
    agent: AgentGiven | None = None
    judge: AgentGiven | None = None
    cache_dir: Path | None = None
    variables: Mapping[str, object] | None = None
    evaluated: str = ""
    models: dict[str, BaseChatModel] = field(default_factory=dict[str, "BaseChatModel"])
    _agents: dict[str, tuple[Agent, str]] = field(default_factory=dict[str, "tuple[Agent, str]"])
    _libraries: dict[str, Library] = field(default_factory=dict[str, Library])
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    async def aclose(self) -> None:
        """Let go of the models."""
        for model in self.models.values():
            await model.aclose()

    @property
    def labels(self) -> str:
        """The models that answer."""
        return ", ".join(dict.fromkeys(agent.llm.label for agent, _ in self._agents.values() if agent.llm))

    def asked(self, tasks: list[Task]) -> list[Asked]:
        """The tasks as they are asked."""
        if found := [] if isinstance(self.agent, Agent) else problems_in(self._base(), self.variables):
            raise ConfigError(found)  # also where every task is for an agent that would do without what is wrong
        asked: list[Asked] = []
        for task in tasks:
            agent, mark = self._agent(task.agent)
            if problem := self._misfit(task, agent):
                found.append(problem)
                continue
            asked.append(self._asked(task, agent, mark))
        if found:
            raise ConfigError(found)
        return asked

    def judge_of(self, tasks: list[Task]) -> Judge | None:
        """Who judges; nobody where no task wants it."""
        if not any(check.judged for task in tasks for check in task.checks):
            return None
        given = self._judge_given()
        if isinstance(given, Agent):
            return Judge(given._model())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - says that there is none
        extra = given.extra_generate_cfg
        return Judge(self._model(given), extra.as_cfg() if extra else {})

    # -- inside ---------------------------------------------------------------------------------------------------

    def _asked(self, task: Task, agent: Agent, mark: str) -> Asked:
        files = [self.suite.file(file) for file in task.files]
        items = [ContentItem(text=task.question), *(ContentItem(file=file) for file in files)]
        messages = [Message(USER, items if files else task.question)]
        documents: list[str] = []
        if task.library:
            library = self._library(self.suite.file(task.library))
            documents = [document.id for document in library.documents()]
            agent = cast("Assistant", agent).over(library, documents)
        own = task.model_dump(exclude={"tags"})
        said = json.dumps([own, [_stamp(file) for file in files], sorted(documents)], sort_keys=True)
        judge = self._judge_mark() if any(check.judged for check in task.checks) else ""
        digest = f"{_digest(said)}-{_digest(mark + judge + self.evaluated)}"
        lang: Lang = task.lang or language_of(messages)
        return Asked(task, agent, messages, lang, Row(task.id, digest, task.question, lang=lang, tags=tuple(task.tags)))

    def _misfit(self, task: Task, agent: Agent) -> ParlourError | None:
        if task.library and not isinstance(agent, Assistant):
            return suite_problem("suite_only_assistant", id=task.id)
        known = [*agent.function_map, *_DOCUMENTS]
        if self._is_own(task.agent):
            return None  # a program's agent may bring its tools in its own way
        for tool in (check.called.tool for check in task.checks if check.called):
            if tool not in known:
                near = get_close_matches(tool, known, n=1)
                key, more = ("suite_no_tool_near", {"near": near[0]}) if near else ("suite_no_tool", {})
                return suite_problem(key, id=task.id, tool=tool, **more)
        return None

    def _is_own(self, name: str | None) -> bool:
        return name is None and isinstance(self.agent, Agent)

    def _agent(self, name: str | None) -> tuple[Agent, str]:
        """An agent by its name in the suite, and the mark of what it is; `None` is who is asked otherwise."""
        if (key := name or "") not in self._agents:
            if name is None and isinstance(self.agent, Agent):
                own = [type(self.agent).__name__, self.agent.name, self.agent.system_message, *self.agent.function_map]
                model = self.agent.llm
                self._agents[key] = self.agent, json.dumps([own, model.model if model else None], default=str)
            else:
                self._agents[key] = self._made(name)
        return self._agents[key]

    def _made(self, name: str | None) -> tuple[Agent, str]:
        place = f"agents.{name}" if name else "agent"
        config = _over(self._base(), section(self.suite, self.suite.agents[name]) if name else None, place)
        model = self._model(config)
        made = config.model_copy(update={"llm": LLMConfig.of_model(model), "model": None, "provider": None})
        try:
            agent = Agent.from_config(made, variables=self.variables)
        except ConfigError as error:
            raise ConfigError(within(place, error)) from error
        if self.cache_dir is not None and not model.generate_cfg.get("cache_dir") and not model.cfg.get("cache_dir"):
            agent.extra_generate_cfg.setdefault("cache_dir", str(self.cache_dir))
        return agent, json.dumps([config.to_dict(), model.model, dict(self.variables or {})], default=str)

    def _base(self) -> AgentConfig:
        if isinstance(self.agent, Agent):
            return AgentConfig(llm=cast("Any", self.agent.llm)) if self.agent.llm else AgentConfig()
        given = section(self.suite, self.suite.agent) if self.agent is None else self.agent
        return _config(given if given is not None else {}, "agent")

    def _model(self, config: AgentConfig) -> BaseChatModel:
        """One model for all agents that name the same."""
        llm = config.llm or LLMConfig()
        if llm.made is not None:
            return llm.made
        key = json.dumps([llm.as_cfg(), config.model, config.provider], sort_keys=True, default=str)
        if key not in self.models:
            if self.cache_dir is not None and llm.cache_dir is None:
                generate = llm.generate_cfg or GenerateConfig()
                if generate.cache_dir is None:
                    kept = generate.model_copy(update={"cache_dir": str(self.cache_dir)})
                    config = config.model_copy(update={"llm": llm.model_copy(update={"generate_cfg": kept})})
            self.models[key] = model_of(config)
        return self.models[key]

    def _library(self, folder: str) -> Library:
        if folder not in self._libraries:
            self._libraries[folder] = self._open.enter_context(Library.open(folder))
        return self._libraries[folder]

    def _judge_given(self) -> Agent | AgentConfig:
        given = section(self.suite, self.suite.judge) if self.judge is None else self.judge
        if given is None or isinstance(given, Agent):
            return given or self._agent(None)[0]
        return _config(given, "judge")

    def _judge_mark(self) -> str:
        """What tells who judges from others: what another judge found counts no more."""
        given = self._judge_given()
        if isinstance(given, Agent):
            return given.llm.model if given.llm else ""
        return json.dumps([given.to_dict(), self._model(given).model], default=str)


def _config(given: AgentGiven, place: str) -> AgentConfig:
    try:
        return AgentConfig.of(cast("Any", given))
    except ConfigError as error:
        if isinstance(given, Mapping):
            raise ConfigError(within(place, error)) from error
        raise


def _over(base: AgentConfig, own: str | Mapping[str, Any] | None, place: str) -> AgentConfig:
    """The base with what a section says over it."""
    if own is None:
        return base
    said = cast("Mapping[str, Any]", own)
    replaced = {name for names in _INSTEAD if names & set(said) for name in names}
    kept = {name: getattr(base, name) for name in base.model_fields_set if name not in replaced}
    return _config({**kept, **said}, place)


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:16]


def _stamp(file: str) -> object:
    path = Path(file)
    return sha256(path.read_bytes()).hexdigest()[:20] if path.is_file() else file
