"""`AgentConfig`: an agent as values, from Python, YAML, TOML or JSON.

>>> AgentConfig(provider="openai", model="gpt-5-mini", strategy="cot", max_iteration=5, tools=["calculator"])
>>> AgentConfig.of("agent.yaml")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema, model_validator

from core.agents.config_file import placed, read_file
from core.agents.config_kinds import LEADERS, KindFields, kinds, members
from core.agents.config_parts import (
    KINDS,
    SPELLINGS,
    AgentTool,
    GenerateConfig,
    LLMConfig,
    Part,
    PromptConfig,
    Text,
    Whole,
    renamed,
    wrong,
)
from core.agents.config_problems import ConfigError, problem, problems_of
from core.errors import SettingsError
from core.llm.base import BaseChatModel
from core.rag.config import RAGConfig
from core.tools.base import BaseTool

VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_SECRET: Final = re.compile(r"key|token|secret|passw|credential|authorization|cookie|^env$|^headers$", re.IGNORECASE)
_NO_SECRETS: Final = frozenset({"max_tokens", "max_input_tokens", "max_ref_token"})
_LITERAL_PLACES: Final = frozenset({"env", "headers", "args"})  # an MCP server's own, which says so itself


def _llm(given: Any) -> Any:
    if isinstance(given, BaseChatModel):
        return LLMConfig.of_model(given)
    return {"model": given} if isinstance(given, str) else given


def _rag(given: Any) -> Any:
    if given is not None and not isinstance(given, Mapping | RAGConfig):
        raise wrong("config_section")
    try:
        return RAGConfig.of(cast("Mapping[str, Any] | RAGConfig | None", given))
    except SettingsError as error:
        why = str(error).removeprefix("The settings for documents are wrong: ")
        raise wrong("config_other", why=why) from error


def _tools(given: Any) -> Any:
    """`{"mcpServers": …}` and `{"openapi": …}`, as `function_list` has them, as tools of their own."""
    if not isinstance(given, list):
        return given
    tools: list[Any] = []
    for item in cast("list[Any]", given):
        own: Mapping[str, Any] = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {}
        if isinstance(own.get("mcpServers"), Mapping):
            servers = cast("Mapping[str, Any]", own["mcpServers"]).items()
            tools += [{"provider_type": "mcp", "provider_id": name, "tool_parameters": one} for name, one in servers]
        elif "openapi" in own:
            options = {name: value for name, value in own.items() if name != "name"}
            called = {"provider_id": own["name"]} if own.get("name") else {}
            tools.append({"provider_type": "api", **called, "tool_parameters": options})
        else:
            tools.append(item)
    return tools


def _given_tool(given: Any) -> Any:
    names = set(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else set[str]()
    fine = isinstance(given, str | BaseTool) or callable(cast("object", given))
    if not fine and not {"name", "mcpServers", "openapi"} & names:
        raise wrong("config_no_tool")
    return cast("Any", given)


_MEMBER: Final = {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#"}]}
_CLASSES: Final = {"function_call": "Assistant", "cot": "ReActChat"}


class AgentConfig(KindFields):
    """All that an agent is made of. Two forms that may be mixed: `provider` and `model`, or `llm`.

    Args:
        provider: Who serves the model: a model type, or `dashscope`, `tongyi`, `azure_openai`, `openai_api_compatible`.
        model: The model's name.
        strategy: `function_call`: tools by calls (`Assistant`); `cot`: thought, action, observation (`ReActChat`).
        type: Another kind of agent, instead of a strategy: a class of the catalog, also as `parallel_doc_qa`.
        max_iteration: The most model calls of one reply, 1 to 99.
        agents: Whom a `router` or a `group_chat` leads: configurations, or files. One that names no model has that of
            the group.
        tools: Its tools, as names or sections.
        prompt: What it is told first, a text or a section; `{{name}}` is filled from the variables.
        llm: The model as `get_chat_model` takes it. Where nothing names a model, Parlour's settings do.
        function_list: Tools as an agent takes them, beside `tools`.
        system_message: What it is told first, as it is.
        name: Who speaks.
        description: What it is good at.
        files: Documents, as paths or addresses.
        rag_cfg: How they are cut and searched.
        extra_generate_cfg: Over the model's `generate_cfg`.
        agent_selection_method: As of `GroupChat`; so is `seed`.
        part_tokens: As of `ParallelDocQA`; so is `at_once`.
        dialogue_tokens: As of `DialogueRetrievalAgent`.
        full_article: As of `ArticleAgent`.
        most_chapters: As of `WriteFromScratch`.

    Raises:
        ConfigError: A field is wrong. Its `problems` are all there are; none shows a value that may be secret.
    """

    provider: Text | None = None
    model: Text | None = None
    strategy: Literal["function_call", "cot"] = "function_call"
    max_iteration: Whole = Field(default=20, ge=1, le=99)
    tools: Annotated[
        list[Annotated[AgentTool, BeforeValidator(lambda given: given, json_schema_input_type=str | AgentTool)]],
        BeforeValidator(_tools, json_schema_input_type=list[str | AgentTool]),
    ] = Field(default_factory=list[AgentTool])
    prompt: (
        Annotated[PromptConfig, BeforeValidator(lambda given: given, json_schema_input_type=str | PromptConfig)] | None
    ) = None
    agents: Annotated[list[AgentConfig], BeforeValidator(members), WithJsonSchema({"type": "array"})] = Field(
        default_factory=list["AgentConfig"]
    )
    llm: Annotated[LLMConfig, BeforeValidator(_llm, json_schema_input_type=str | LLMConfig)] | None = None
    function_list: list[Annotated[Any, BeforeValidator(_given_tool, json_schema_input_type=str | dict[str, Any])]] = (
        Field(default_factory=list[Any], repr=False)
    )
    system_message: str | None = None
    name: Text | None = None
    description: str | None = None
    files: list[Text] = Field(default_factory=list[str])
    rag_cfg: Annotated[RAGConfig | None, BeforeValidator(_rag, json_schema_input_type=RAGConfig | None)] = None
    extra_generate_cfg: GenerateConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        return renamed(given, ("llm_config", "instruction"))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.model and self.llm is not None and self.llm.model and self.llm.model != self.model:
            raise wrong("config_two", field="model", other="llm.model")
        if self.system_message is not None and self.prompt is not None:
            raise wrong("config_two", field="system_message", other="prompt")
        if self.files and self.strategy == "cot":
            raise wrong("config_only_function_call", field="files")
        if self.type is not None and "strategy" in self.model_fields_set:
            raise wrong("config_two", field="type", other="strategy")
        if self.kind in LEADERS and not self.agents:
            raise wrong("config_missing", field="agents")
        _check_names(self.name, [one.name for one in self.agents])
        for name in ("llm", "tools", "function_list", "rag_cfg"):
            if place := _misplaced(getattr(self, name), name):
                raise wrong("config_variable_place", field=place[0], name=place[1])
        return self

    @property
    def kind(self) -> str:
        """The name of the class in the catalog."""
        return _CLASSES[self.strategy] if self.type is None else kinds()[self.type]

    @classmethod
    def of(cls, given: AgentConfig | Mapping[str, Any] | str | Path) -> AgentConfig:
        """The configuration that was given: itself, a dict (which stays as it is), or a file.

        A file is YAML, TOML or JSON by its ending; relative paths in it are relative to it.

        Raises:
            ConfigError: The file cannot be read, or a field is wrong; all that is wrong is in its `problems`.
        """
        if isinstance(given, AgentConfig):
            return given
        if isinstance(given, Mapping):
            return cls._checked(given)
        if not isinstance(given, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance] - a program may give anything
            raise ConfigError([problem("config_section", field="config")])
        path = Path(given)
        return cls._checked(placed(read_file(path), path.absolute().parent), path.name)

    @classmethod
    def _checked(cls, given: Mapping[str, Any], file: str = "") -> AgentConfig:
        try:
            return cls.model_validate(dict(given))
        except ValidationError as error:
            raise ConfigError(problems_of(error, given, {"": cls, "agents": cls, **KINDS}, SPELLINGS), file) from error

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without what was left out and without secrets: `${NAME}` stays, a key itself does not.

        Tools that are no names or dicts come as their names; `AgentConfig.of` reads the rest back.
        """
        told = self.model_dump(exclude_defaults=True, exclude={"function_list", "agents"})
        own = told if self.type else {"strategy": self.strategy, "max_iteration": self.max_iteration, **told}
        if self.agents:
            own["agents"] = [one.to_dict() for one in self.agents]
        if self.function_list:
            own["function_list"] = [_named(item) for item in self.function_list]
        return cast("dict[str, Any]", _without_secrets(own))

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of a file, for editors."""
        schema = cls.model_json_schema()
        schema["properties"]["agents"]["items"] = _MEMBER  # whom it leads is written as it is itself
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "An agent of Parlour"}


def _check_names(own: str | None, given: list[str | None]) -> None:
    """Raises PydanticCustomError where one that is led has no name, or the group's or another's."""
    taken = {} if own is None else {own: "name"}
    for at, name in enumerate(given):
        if not (name or "").strip():
            raise wrong("config_missing", field=f"agents[{at}].name")
        if name in taken:
            raise wrong("config_same_name", name=name, file=taken[name], other=f"agents[{at}]")
        taken[str(name)] = f"agents[{at}]"


def filled_keys(value: Any, variable: Callable[[str], str], place: str) -> Any:
    """A copy in which each `api_key` that names a variable is the variable's value.

    Args:
        value: Dicts and lists.
        variable: Reads a variable; "" where it is not set.
        place: What `value` is called in an error.

    Raises:
        ConfigError: A variable is not set.
    """
    if isinstance(value, list):
        return [filled_keys(item, variable, f"{place}[{n}]") for n, item in enumerate(cast("list[Any]", value))]
    if not isinstance(value, Mapping):
        return value
    filled: dict[str, Any] = {}
    for name, item in cast("Mapping[str, Any]", value).items():
        field = f"{place}.{name}"
        filled[name] = filled_keys(item, variable, field)
        found = VARIABLE.fullmatch(item) if name == "api_key" and isinstance(item, str) else None
        if found:
            filled[name] = variable(found[1])
            if not filled[name]:
                raise ConfigError([problem("config_variable", field=field, name=found[1])])
    return filled


def _misplaced(value: Any, place: str) -> tuple[str, str] | None:
    """Where a variable is named that is no key's, and its name."""
    if isinstance(value, Part | RAGConfig):
        value = value.model_dump()
    if isinstance(value, list):
        found = (_misplaced(item, f"{place}[{n}]") for n, item in enumerate(cast("list[Any]", value)))
        return next((one for one in found if one), None)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        inner = (
            _misplaced(item, f"{place}.{name}") for name, item in items if name not in {"api_key", *_LITERAL_PLACES}
        )
        return next((one for one in inner if one), None)
    named = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    return (place, named[0]) if named else None


def _named(item: Any) -> Any:
    if isinstance(item, str | Mapping):
        return cast("Any", item)
    return str(getattr(item, "name", "") or getattr(item, "__name__", type(item).__name__))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in cast("list[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    items = cast("Mapping[str, Any]", value).items()
    shown = {name: _without_secrets(item) for name, item in items if not _is_secret(str(name), item)}
    return {name: item for name, item in shown.items() if item not in ({}, [])}


def _is_secret(name: str, value: Any) -> bool:
    if name in _NO_SECRETS or (isinstance(value, str) and VARIABLE.fullmatch(value)):
        return False
    return _SECRET.search(name) is not None
