"""The parts of an agent's configuration: its model, how that writes, its tools, its prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from core.agents.config_problems import ConfigError, problem, problems_of
from core.errors import SettingsError
from core.llm.asking import read_settings
from core.llm.base import BaseChatModel
from core.llm.meant_names import check_model_names
from core.messages.message import SYSTEM, Message

if TYPE_CHECKING:
    from collections.abc import Callable

Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]
Truth = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(min_length=1)]
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
"""Other names of fields, to those they have here."""


class Part(BaseModel):
    """A part that says what is wrong with it in one sentence for each field (`ConfigError`)."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, protected_namespaces=(), frozen=True)

    if not TYPE_CHECKING:  # a type checker sees the fields

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise ConfigError(
                    problems_of(error, data, {"": type(self), "agents": type(self), **KINDS}, SPELLINGS)
                ) from error

        # Without it pydantic would call `__init__` for a part of a part, and its sentences would be lost.
        __init__.__pydantic_base_init__ = True


def in_field(check: Callable[[], object]) -> None:
    """Call `check`, and let what it finds be said of the field that is looked at. Raises PydanticCustomError."""
    try:
        check()
    except SettingsError as error:
        raise wrong("config_other", why=str(error)) from error


def wrong(key: str, **details: Any) -> PydanticCustomError:
    """What a validator raises for one of `SENTENCES`."""
    return PydanticCustomError(cast("Any", key), cast("Any", key), details)


def renamed(given: Any, names: Sequence[str]) -> Any:
    """A dict with the proper names for other spellings of these fields; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    own = cast("Mapping[str, Any]", given)
    proper = {other: SPELLINGS[other] for other in names}
    for other, name in proper.items():
        if other in own and name in own:
            raise wrong("config_two", field=other, other=name)
    return {proper.get(name, name): value for name, value in own.items()}


class GenerateConfig(Part):
    """How a model writes. Names that are not here go to the service as they are, unless one is almost one of ours.

    Args:
        temperature: How freely it chooses, 0 to 2.
        top_p: From how much of the likely it chooses, 0 to 1.
        max_tokens: The longest answer.
        max_input_tokens: The longest conversation; what is older is left out.
        max_retries: How often a service that failed is asked again.
        seed: Makes a reply repeatable, where the service can.
        stop: Words that end a reply.
        function_choice: `auto`, `none`, or the tool that must be called.
        parallel_function_calls: Whether several tools may be called at once.
        thought_in_content: Whether the service sends thoughts in the text.
        fncall_prompt_type: How tools are put into the prompt of a model that has no calls of its own.
        cache_dir: Keeps replies in that folder.
    """

    model_config = ConfigDict(extra="allow")

    temperature: Annotated[Number | None, Field(ge=0, le=2)] = None
    top_p: Annotated[Number | None, Field(ge=0, le=1)] = None
    max_tokens: Annotated[Whole | None, Field(ge=1)] = None
    max_input_tokens: Annotated[Whole | None, Field(ge=1)] = None
    max_retries: Annotated[Whole | None, Field(ge=0)] = None
    seed: Whole | None = None
    stop: Annotated[list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)] | None = (
        None
    )
    function_choice: Text | None = None
    parallel_function_calls: Truth | None = None
    thought_in_content: Truth | None = None
    fncall_prompt_type: Literal["nous", "qwen", "json_schema"] | None = None
    cache_dir: Text | None = None

    @model_validator(mode="after")
    def _meant(self) -> Self:
        in_field(lambda: read_settings(self.as_cfg()))
        return self

    def as_cfg(self) -> dict[str, Any]:
        """What a model takes."""
        return self.model_dump(exclude_none=True)


class LLMConfig(Part):
    """A model: what `get_chat_model` takes as a dict. A back end's further names may stand beside these.

    Args:
        model: Its name, or a file of weights.
        model_type: Which back end; worked out from the rest where it is left out.
        model_server: The address of the service (also `base_url`, `api_base`), or `dashscope`.
        api_key: The key, or `${NAME}` for the variable that holds it.
        generate_cfg: How it writes.
        use_raw_api: Whether tools go through the service's own calling.
        cache_dir: Keeps replies in that folder.
    """

    model_config = ConfigDict(extra="allow")

    model: Text | None = None
    model_type: Text | None = None
    model_server: Text | None = None
    api_key: str | None = Field(default=None, repr=False)
    generate_cfg: GenerateConfig | None = None
    use_raw_api: Truth | None = None
    cache_dir: Text | None = None

    _made: BaseChatModel | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        return renamed(given, ("base_url", "api_base"))

    @model_validator(mode="after")
    def _meant(self) -> Self:
        if strayed := sorted(set(self.model_extra or {}) & set(GenerateConfig.model_fields)):
            raise wrong("config_generate", field=strayed[0])
        if not self.model_type:
            in_field(lambda: check_model_names(self.model_extra or {}, _DECIDE))
        return self

    @classmethod
    def of_model(cls, model: BaseChatModel) -> LLMConfig:
        """The configuration of `model`, which a program made."""
        config = cls(model=model.model or None, model_type=model.model_type or None)
        config._made = model
        return config

    @property
    def made(self) -> BaseChatModel | None:
        """The model itself, where a program gave one."""
        return self._made

    def as_cfg(self) -> dict[str, Any]:
        """What `get_chat_model` takes; keys are still names of variables where they were given so."""
        cfg = self.model_dump(exclude_none=True, exclude={"generate_cfg", "use_raw_api"})
        generate = self.generate_cfg.as_cfg() if self.generate_cfg else {}
        if self.use_raw_api is not None:
            generate.setdefault("use_raw_api", self.use_raw_api)
        return {**cfg, "generate_cfg": generate} if generate else cfg


class AgentTool(Part):
    """A tool of an agent.

    Args:
        tool_name: Its name (also `name`); of an API or an MCP server the only one wanted, all where it is left out.
        provider_id: Who brings it (also `provider`): the name of an MCP server, or of an API in its tools' names.
        provider_type: `builtin` or `plugin`: by its name; `api`: an OpenAPI document; `mcp`: a server (also `type`).
        tool_parameters: Its options (also `parameters`); for an API `openapi` and its credentials, for an MCP server
            its `command` or `url`.
    """

    tool_name: Text | None = None
    provider_id: Text | None = None
    provider_type: ProviderType = "builtin"
    tool_parameters: dict[str, Any] = Field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"tool_name": given}
        return renamed(given, ("name", "provider", "type", "parameters"))

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.provider_type in {"builtin", "plugin"} and not self.tool_name:
            raise wrong("config_missing", field="tool_name")
        if self.provider_type == "mcp" and not {"command", "url", "serverUrl", "httpUrl"} & set(self.tool_parameters):
            raise wrong("config_no_command")
        if self.provider_type == "api" and not self.tool_parameters.get("openapi"):
            raise wrong("config_no_document")
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


class PromptMessage(Part):
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
        return renamed(given, ("text",))


class PromptConfig(Part):
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
        return renamed(given, ("pre_prompt", "template", "messages", "inputs"))

    def blanks(self) -> list[str]:
        """The names that need a value, in their order."""
        texts = [self.simple_prompt_template, *(message.content for message in self.prompt_messages)]
        return list(dict.fromkeys(name for text in texts for name in _BLANK.findall(text)))

    def filled(self, variables: Mapping[str, object] | None = None) -> tuple[str, list[Message]]:
        """What the agent is told, and the messages that come before the conversation.

        Args:
            variables: Over the prompt's own. A value is put in as it is: blanks in it are not filled.

        Raises:
            ConfigError: A blank has no value; all of them are named.
        """
        values = {**self.variables, **(variables or {})}
        if missing := [problem("config_blank", name=name) for name in self.blanks() if name not in values]:
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
}
