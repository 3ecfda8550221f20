"""`AgentConfig`: an agent as values, from Python, YAML, TOML or JSON.

>>> AgentConfig(provider="openai", model="gpt-5-mini", strategy="cot", max_iteration=5, tools=["calculator"])
>>> AgentConfig.of("agent.yaml")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from core.agents.catalog import AGENTS
from core.agents.config.page import PersonaModel, PersonaSection
from core.agents.config.problems import ConfigError, problem, problems_of, validation_error
from core.agents.config.reading import (
    as_written,
    misplaced_variable,
    read_file,
    read_members,
    with_absolute_paths,
    without_secrets,
)
from core.errors import SettingsError
from core.llm.base import BaseChatModel
from core.llm.validation import check_model_names, read_settings
from core.messages.message import SYSTEM, Message
from core.rag.config import RAGConfig
from core.tools.base import BaseTool

StrictInt = Annotated[int, Field(strict=True)]
StrictFloat = Annotated[float, Field(strict=True)]
StrictBool = Annotated[bool, Field(strict=True)]
NonEmptyText = Annotated[str, Field(min_length=1)]
ProviderType = Literal["builtin", "api", "plugin", "mcp"]
_BLANK: Final = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_DECIDE: Final = ("azure_endpoint", "weights", "use_raw_api")
SPELLINGS: Final = {
    "llm_config": "llm",
    "instruction": "system_message",
    "base_url": "model_server",
    "api_base": "model_server",
    "name": "tool_name",
    "provider": "provider_id",
    "type": "provider_type",
    "parameters": "tool_parameters",
    "pre_prompt": "simple_prompt_template",
    "template": "simple_prompt_template",
    "messages": "prompt_messages",
    "inputs": "variables",
    "text": "content",
}
"""Aliases of fields, to their proper names."""


class ConfigPart(BaseModel):
    """A section of a configuration; its errors are one sentence for each wrong field (`ConfigError`)."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, protected_namespaces=(), frozen=True)

    if not TYPE_CHECKING:  # a type checker sees the fields

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise ConfigError(
                    problems_of(error, data, {"": type(self), "agents": type(self), **KINDS}, SPELLINGS)
                ) from error

        # Without it pydantic would call `__init__` for nested sections, too, and their sentences would be lost.
        __init__.__pydantic_base_init__ = True


def check_in_field(check: Callable[[], object]) -> None:
    """Call `check`; its SettingsError becomes one of the validated field. Raises PydanticCustomError."""
    try:
        check()
    except SettingsError as error:
        raise validation_error("config_other", why=str(error)) from error


def canonical_names(given: Any, names: Sequence[str]) -> Any:
    """A dict with proper names for these aliases; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    own = cast("Mapping[str, Any]", given)
    proper = {other: SPELLINGS[other] for other in names}
    for other, name in proper.items():
        if other in own and name in own:
            raise validation_error("config_two", field=other, other=name)
    return {proper.get(name, name): value for name, value in own.items()}


class GenerateConfig(ConfigPart):
    """How a model writes. Unknown names are passed to the service, unless one looks like a misspelt name of ours.

    Args:
        temperature: Randomness of sampling, 0 to 2.
        top_p: Probability mass of nucleus sampling, 0 to 1.
        max_tokens: The longest answer, in tokens.
        max_input_tokens: The longest conversation, in tokens; older messages are left out.
        max_retries: How often a failed request is sent again.
        seed: Makes a reply repeatable, where the service supports it.
        stop: Words that end a reply.
        function_choice: `auto`, `none`, or the tool that must be called.
        parallel_function_calls: Whether several tools may be called at once.
        thought_in_content: Whether the service sends thoughts in the text.
        fncall_prompt_type: The prompt template for tools, for a model without tool calls of its own.
        cache_dir: The folder of a reply cache.
    """

    model_config = ConfigDict(extra="allow")

    temperature: Annotated[StrictFloat | None, Field(ge=0, le=2)] = None
    top_p: Annotated[StrictFloat | None, Field(ge=0, le=1)] = None
    max_tokens: Annotated[StrictInt | None, Field(ge=1)] = None
    max_input_tokens: Annotated[StrictInt | None, Field(ge=1)] = None
    max_retries: Annotated[StrictInt | None, Field(ge=0)] = None
    seed: StrictInt | None = None
    stop: Annotated[list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)] | None = (
        None
    )
    function_choice: NonEmptyText | None = None
    parallel_function_calls: StrictBool | None = None
    thought_in_content: StrictBool | None = None
    fncall_prompt_type: Literal["nous", "qwen", "json_schema"] | None = None
    cache_dir: NonEmptyText | None = None

    @model_validator(mode="after")
    def _meant(self) -> Self:
        check_in_field(lambda: read_settings(self.as_cfg()))
        return self

    def as_cfg(self) -> dict[str, Any]:
        """The settings as `generate_cfg`."""
        return self.model_dump(exclude_none=True)


class LLMConfig(ConfigPart):
    """A model: what `get_chat_model` takes as a dict. A back end's further names may stand beside these.

    Args:
        model: Its name, or a file of weights.
        model_type: Which back end; worked out from the rest where it is left out.
        model_server: The address of the service (also `base_url`, `api_base`), or `dashscope`.
        api_key: The key, or `${NAME}` for the variable that holds it.
        generate_cfg: How it writes.
        use_raw_api: Whether the service's own tool calling is used.
        cache_dir: The folder of a reply cache.
    """

    model_config = ConfigDict(extra="allow")

    model: NonEmptyText | None = None
    model_type: NonEmptyText | None = None
    model_server: NonEmptyText | None = None
    api_key: str | None = Field(default=None, repr=False)
    generate_cfg: GenerateConfig | None = None
    use_raw_api: StrictBool | None = None
    cache_dir: NonEmptyText | None = None

    _made: BaseChatModel | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        return canonical_names(given, ("base_url", "api_base"))

    @model_validator(mode="after")
    def _meant(self) -> Self:
        if strayed := sorted(set(self.model_extra or {}) & set(GenerateConfig.model_fields)):
            raise validation_error("config_generate", field=strayed[0])
        if not self.model_type:
            check_in_field(lambda: check_model_names(self.model_extra or {}, _DECIDE))
        return self

    @classmethod
    def of_model(cls, model: BaseChatModel) -> LLMConfig:
        """The configuration that stands for `model`, an object that a program made."""
        config = cls(model=model.model or None, model_type=model.model_type or None)
        config._made = model
        return config

    @property
    def made(self) -> BaseChatModel | None:
        """The model object, if a program gave one."""
        return self._made

    def as_cfg(self) -> dict[str, Any]:
        """The dict that `get_chat_model` takes; `${NAME}` in a key is not resolved yet."""
        cfg = self.model_dump(exclude_none=True, exclude={"generate_cfg", "use_raw_api"})
        generate = self.generate_cfg.as_cfg() if self.generate_cfg else {}
        if self.use_raw_api is not None:
            generate.setdefault("use_raw_api", self.use_raw_api)
        return {**cfg, "generate_cfg": generate} if generate else cfg


class AgentTool(ConfigPart):
    """A tool of an agent.

    Args:
        tool_name: Its name (also `name`); of an API or an MCP server the only one wanted, all where it is left out.
        provider_id: Who brings it (also `provider`): the name of an MCP server, or of an API in its tools' names.
        provider_type: `builtin` or `plugin`: by its name; `api`: an OpenAPI document; `mcp`: a server (also `type`).
        tool_parameters: Its options (also `parameters`); for an API `openapi` and its credentials, for an MCP server
            its `command` or `url`.
    """

    tool_name: NonEmptyText | None = None
    provider_id: NonEmptyText | None = None
    provider_type: ProviderType = "builtin"
    tool_parameters: dict[str, Any] = Field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"tool_name": given}
        return canonical_names(given, ("name", "provider", "type", "parameters"))

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.provider_type in {"builtin", "plugin"} and not self.tool_name:
            raise validation_error("config_missing", field="tool_name")
        if self.provider_type == "mcp" and not {"command", "url", "serverUrl", "httpUrl"} & set(self.tool_parameters):
            raise validation_error("config_no_command")
        if self.provider_type == "api" and not self.tool_parameters.get("openapi"):
            raise validation_error("config_no_document")
        return self

    def as_given(self) -> dict[str, Any]:
        """What `function_list` takes."""
        options = dict(self.tool_parameters)
        if self.provider_type == "mcp":
            wanted = {"include": [self.tool_name]} if self.tool_name else {}
            return {"mcpServers": {self.provider_id or "server": {**wanted, **options}}}
        if self.provider_type == "api":
            called = {"name": self.provider_id} if self.provider_id else {}
            return {**called, **({"only": [self.tool_name]} if self.tool_name else {}), **options}
        return {**options, "name": self.tool_name}


class PromptMessage(ConfigPart):
    """A message before the conversation: what the agent is told, or an example of a question and its answer.

    Args:
        role: Who says it.
        content: What (also `text`).
    """

    role: Literal["system", "user", "assistant"]
    content: str

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        return canonical_names(given, ("text",))


class PromptConfig(ConfigPart):
    """What an agent is told first. `{{name}}` is a blank that `variables` fills.

    Args:
        simple_prompt_template: The text (also `pre_prompt`, `template`).
        prompt_messages: Or messages (also `messages`): those of the system are told, the others come before the
            conversation as examples.
        variables: Values for the blanks (also `inputs`).
    """

    simple_prompt_template: str = ""
    prompt_messages: list[PromptMessage] = Field(default_factory=list[PromptMessage])
    variables: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"simple_prompt_template": given}
        return canonical_names(given, ("pre_prompt", "template", "messages", "inputs"))

    def placeholders(self) -> list[str]:
        """The names that need a value, in their order."""
        texts = [self.simple_prompt_template, *(message.content for message in self.prompt_messages)]
        return list(dict.fromkeys(name for text in texts for name in _BLANK.findall(text)))

    def render(self, variables: Mapping[str, object] | None = None) -> tuple[str, list[Message]]:
        """What the agent is told, and the messages that come before the conversation.

        Args:
            variables: Over the prompt's own. A value is put in as it is: blanks in it are not filled.

        Raises:
            ConfigError: A blank has no value; all of them are named.
        """
        values = {**self.variables, **(variables or {})}
        if missing := [problem("config_blank", name=name) for name in self.placeholders() if name not in values]:
            raise ConfigError(missing)

        def fill(text: str) -> str:
            return _BLANK.sub(lambda blank: str(values[blank[1]]), text)

        told = [self.simple_prompt_template, *(one.content for one in self.prompt_messages if one.role == SYSTEM)]
        examples = [Message(one.role, fill(one.content)) for one in self.prompt_messages if one.role != SYSTEM]
        return fill("\n\n".join(text for text in told if text)), examples


KINDS: Final[Mapping[str, type[BaseModel]]] = {
    "llm": LLMConfig,
    "generate_cfg": GenerateConfig,
    "extra_generate_cfg": GenerateConfig,
    "tools": AgentTool,
    "prompt": PromptConfig,
    "prompt_messages": PromptMessage,
    "persona": PersonaSection,
    "model": PersonaModel,
}
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPELT: Final = {"ReActChat": "react_chat"}


def kinds() -> dict[str, str]:
    """The values of `type` (`parallel_doc_qa`, or the class's name), to the names of the catalog."""
    spelt = {_SPELT.get(name) or _WORD.sub("_", name).lower(): name for name in AGENTS}
    return {**spelt, **{name: name for name in AGENTS}}


def _kind(given: str) -> str:
    known = kinds()
    if given in known:
        return given
    near = get_close_matches(given, known, n=1, cutoff=0.6)
    raise (
        validation_error("config_no_type_near", name=given, near=near[0])
        if near
        else validation_error("config_no_type", name=given)
    )


class KindFields(ConfigPart):
    """The kind of an agent, and the arguments that only some of the kinds that ship with Parlour take."""

    type: Annotated[str, AfterValidator(_kind), WithJsonSchema({"type": "string", "enum": sorted(kinds())})] | None = (
        None
    )
    agent_selection_method: Literal["auto", "round_robin", "random", "manual"] | None = None
    seed: StrictInt | None = None
    part_tokens: Annotated[StrictInt | None, Field(ge=200, le=100_000)] = None
    at_once: Annotated[StrictInt | None, Field(ge=1, le=64)] = None
    dialogue_tokens: Annotated[StrictInt | None, Field(ge=200)] = None
    full_article: StrictBool | None = None
    most_chapters: Annotated[StrictInt | None, Field(ge=1, le=30)] = None

    def options(self) -> dict[str, Any]:
        """The arguments that only some kinds take, of those that were given."""
        given = {name: getattr(self, name) for name in KindFields.model_fields if name != "type"}
        return {name: value for name, value in given.items() if value is not None}


GivenLLM: TypeAlias = str | LLMConfig | list[str | LLMConfig]
"""A model as a configuration has it: its name, its settings, or several of these, a chain."""


def _llm(given: Any) -> Any:
    if isinstance(given, BaseChatModel):
        return LLMConfig.of_model(given)
    if isinstance(given, list):
        return {"model_type": "fallback", "models": cast("list[Any]", given)}
    return {"model": given} if isinstance(given, str) else given


def _rag(given: Any) -> Any:
    if given is not None and not isinstance(given, Mapping | RAGConfig):
        raise validation_error("config_section")
    try:
        return RAGConfig.of(cast("Mapping[str, Any] | RAGConfig | None", given))
    except SettingsError as error:
        why = str(error).removeprefix("The settings for documents are wrong: ")
        raise validation_error("config_other", why=why) from error


def _tool_sections(given: Any) -> Any:
    """Tools with `{"mcpServers": …}` and `{"openapi": …}`, as in `function_list`, turned into `AgentTool` sections."""
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


def _listed_tool(given: Any) -> Any:
    names = set(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else set[str]()
    fine = isinstance(given, str | BaseTool) or callable(cast("object", given))
    if not fine and not {"name", "mcpServers", "openapi"} & names:
        raise validation_error("config_no_tool")
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
        llm: The model as `get_chat_model` takes it, or a list of them, a chain. Where nothing names a model, Parlour's
            settings do.
        function_list: Tools as an agent takes them, beside `tools`.
        system_message: What it is told first, as it is.
        name: Who speaks.
        description: What it is good at.
        files: Documents, as paths or addresses.
        rag_cfg: How they are cut and searched.
        extra_generate_cfg: Over the model's `generate_cfg`.
        persona: What a persona of the page has besides; programs pass over it.
        agent_selection_method: As of `GroupChat`; so is `seed`.
        part_tokens: As of `ParallelDocQA`; so is `at_once`.
        dialogue_tokens: As of `DialogueRetrievalAgent`.
        full_article: As of `ArticleAgent`.
        most_chapters: As of `WriteFromScratch`.

    Raises:
        ConfigError: A field is wrong. Its `problems` are all there are; none shows a value that may be secret.
    """

    provider: NonEmptyText | None = None
    model: NonEmptyText | None = None
    strategy: Literal["function_call", "cot"] = "function_call"
    max_iteration: StrictInt = Field(default=20, ge=1, le=99)
    tools: Annotated[
        list[Annotated[AgentTool, BeforeValidator(lambda given: given, json_schema_input_type=str | AgentTool)]],
        BeforeValidator(_tool_sections, json_schema_input_type=list[str | AgentTool]),
    ] = Field(default_factory=list[AgentTool])
    prompt: (
        Annotated[PromptConfig, BeforeValidator(lambda given: given, json_schema_input_type=str | PromptConfig)] | None
    ) = None
    agents: Annotated[list[AgentConfig], BeforeValidator(read_members), WithJsonSchema({"type": "array"})] = Field(
        default_factory=list["AgentConfig"]
    )
    llm: (
        Annotated[LLMConfig, BeforeValidator(_llm, json_schema_input_type=str | LLMConfig | list[str | LLMConfig])]
        | None
    ) = None
    function_list: list[Annotated[Any, BeforeValidator(_listed_tool, json_schema_input_type=str | dict[str, Any])]] = (
        Field(default_factory=list[Any], repr=False)
    )
    system_message: str | None = None
    name: NonEmptyText | None = None
    description: str | None = None
    files: list[NonEmptyText] = Field(default_factory=list[str])
    rag_cfg: Annotated[RAGConfig | None, BeforeValidator(_rag, json_schema_input_type=RAGConfig | None)] = None
    extra_generate_cfg: GenerateConfig | None = None
    persona: PersonaSection | None = None

    _own: dict[str, Any] = PrivateAttr(default_factory=dict[str, Any])  # what `config_fields` of its kind names

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        return canonical_names(given, ("llm_config", "instruction"))

    @model_validator(mode="wrap")
    @classmethod
    def _with_own_fields(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        fields: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
        own = _own_fields(fields)
        config = handler({name: value for name, value in fields.items() if name not in own} if own else given)
        config._own.update(own)  # noqa: SLF001 - one of its own
        return config

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.model and self.llm is not None and self.llm.model and self.llm.model != self.model:
            raise validation_error("config_two", field="model", other="llm.model")
        if self.system_message is not None and self.prompt is not None:
            raise validation_error("config_two", field="system_message", other="prompt")
        if self.files and self.strategy == "cot":
            raise validation_error("config_only_function_call", field="files")
        if self.type is not None and "strategy" in self.model_fields_set:
            raise validation_error("config_two", field="type", other="strategy")
        if self.type is not None and AGENTS[self.kind].leads_agents and not self.agents:
            raise validation_error("config_missing", field="agents")
        _check_names(self.name, [one.name for one in self.agents])
        for name in ("llm", "tools", "function_list", "rag_cfg"):
            if place := misplaced_variable(getattr(self, name), name):
                raise validation_error("config_variable_place", field=place[0], name=place[1])
        return self

    @property
    def kind(self) -> str:
        """The name of the class in the catalog."""
        return _CLASSES[self.strategy] if self.type is None else kinds()[self.type]

    def options(self) -> dict[str, Any]:
        """The arguments that only some kinds take, of those that were given."""
        return {**super().options(), **self._own}

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
        return cls._checked(with_absolute_paths(read_file(path), path.absolute().parent), path.name)

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
        told = {**self.model_dump(exclude_defaults=True, exclude={"function_list", "agents"}), **self._own}
        own = told if self.type else {"strategy": self.strategy, "max_iteration": self.max_iteration, **told}
        if self.agents:
            own["agents"] = [one.to_dict() for one in self.agents]
        if self.function_list:
            own["function_list"] = [as_written(item) for item in self.function_list]
        return cast("dict[str, Any]", without_secrets(own))

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of a file, for editors."""
        schema = cls.model_json_schema()
        schema["properties"]["agents"]["items"] = _MEMBER  # whom it leads is written as it is itself
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "An agent of Parlour"}


def _own_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the kind of agent adds to those of every configuration."""
    unknown = given.keys() - AgentConfig.model_fields.keys() - SPELLINGS.keys()
    kind = kinds().get(str(given.get("type"))) if unknown else None
    return {name: given[name] for name in unknown & AGENTS[kind].config_fields} if kind else {}


def _check_names(own: str | None, given: list[str | None]) -> None:
    """Raises PydanticCustomError where one that is led has no name, or the group's or another's."""
    taken = {} if own is None else {own: "name"}
    for at, name in enumerate(given):
        if not (name or "").strip():
            raise validation_error("config_missing", field=f"agents[{at}].name")
        if name in taken:
            raise validation_error("config_same_name", name=name, file=taken[name], other=f"agents[{at}]")
        taken[str(name)] = f"agents[{at}]"
