"""From a configuration to the agent: its model, its tools, its prompt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from core.agents.base import Agent
from core.agents.catalog import AGENTS
from core.agents.config import AgentConfig, filled_keys
from core.agents.config_kinds import WITHOUT_TOOLS
from core.agents.config_parts import LLMConfig
from core.agents.config_problems import ConfigError, problem
from core.agents.own_library import local_path
from core.errors import DocumentError, ParlourError, UnknownNameError
from core.llm.catalog import LLM_REGISTRY
from core.llm.open_model import get_chat_model
from core.llm.request import merge_generate
from core.mcp.settings import servers_from
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.web import is_web_address
from core.settings import Settings, named_key
from core.tools.catalog import TOOL_REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from core.llm.base import BaseChatModel
    from core.rag.config import RAGConfig

_PROVIDERS: Final[Mapping[str, Mapping[str, str]]] = {
    "azure_openai": {"model_type": "azure"},
    "dashscope": {"model_server": "dashscope"},
    "openai_api_compatible": {"model_type": "openai"},
    "tongyi": {"model_server": "dashscope"},
}
_HOW_TO_WRITE: Final = frozenset({"cache_dir", "generate_cfg", "use_raw_api"})
_NAME_A_MODEL: Final = ("model", "model_type", "model_server", "azure_endpoint", "weights")


def agent_from(
    kind: type[Agent],
    given: AgentConfig | Mapping[str, Any] | str | Path,
    variables: Mapping[str, object] | None = None,
) -> Agent:
    """The agent that a configuration describes.

    Args:
        kind: `Agent` for the class that the type or the strategy names; another class is made itself, or what the type
            names of its kinds.
        given: As `AgentConfig.of` takes it.
        variables: For the blanks of the prompt, over its own.

    Raises:
        ConfigError: A field is wrong, a blank or a key has no value.
        SettingsError: The model or a tool cannot be made of what is given; `UnknownNameError` has the near names.
    """
    config = AgentConfig.of(given)
    chosen: type[Agent] = AGENTS[config.kind] if kind is Agent or config.type is not None else kind
    if not issubclass(chosen, kind):
        raise ConfigError([problem("config_not_taken", field="type", kind=kind.__name__)])
    if unused := _unused(config, chosen):
        raise ConfigError(unused)
    _check_all(config)
    return _made(chosen, config, variables, None)


def _made(
    kind: type[Agent], config: AgentConfig, variables: Mapping[str, object] | None, usual: BaseChatModel | None
) -> Agent:
    """The agent; `usual` is the model of whoever leads it."""
    told, examples = (config.system_message, []) if config.prompt is None else config.prompt.filled(variables)
    is_led = usual is not None and _has_usual_model(config)
    model = None if not _wants_model(config) else usual if is_led else model_of(config)
    own: dict[str, Any] = {
        **_values(config),
        "function_list": _tools(config),
        "llm": model,
        "system_message": told,
        "rag_cfg": _rag(config.rag_cfg),
    }
    if config.agents:
        own["agents"] = [_made(AGENTS[one.kind], one, variables, model) for one in config.agents]
    takes = _takes(kind)
    agent = cast("Callable[..., Agent]", kind)(**{name: value for name, value in own.items() if name in takes})
    agent.prompt_messages = tuple(examples)
    extra = config.extra_generate_cfg.as_cfg() if config.extra_generate_cfg else {}
    agent.extra_generate_cfg.update(merge_generate(_how_to_write(config), extra) if is_led else extra)
    return agent


def _values(config: AgentConfig) -> dict[str, Any]:
    """What a class may take as it stands there."""
    names = ("name", "description", "max_iteration", "files", "rag_cfg")
    return {**{name: getattr(config, name) for name in names}, **config.options()}


def _unused(config: AgentConfig, kind: type[Agent], place: str = "") -> list[ParlourError]:
    """What was given and means nothing to an agent, and to those that it leads."""
    takes = _takes(kind)
    values: dict[str, Any] = {**_values(config), "agents": config.agents}
    unused = [name for name in values if values[name] and name not in takes and name in config.model_fields_set]
    if config.kind in WITHOUT_TOOLS and kind is AGENTS[config.kind]:
        unused += [name for name in ("tools", "function_list") if getattr(config, name)]
    found: list[ParlourError] = [
        problem("config_not_taken", field=f"{place}{name}", kind=kind.__name__) for name in unused
    ]
    for at, one in enumerate(config.agents):
        found += _unused(one, AGENTS[one.kind], f"{place}agents[{at}].")
    return found


def _wants_model(config: AgentConfig) -> bool:
    """Whether it is anything but a person, or what finds passages and was given no model for its words."""
    return config.kind != "UserAgent" and not (config.kind == "Memory" and _has_usual_model(config))


def _has_usual_model(config: AgentConfig) -> bool:
    """Whether it names no model; how that is to write may stand there all the same."""
    llm = config.llm or LLMConfig()
    named = llm.made is not None or set(llm.model_dump(exclude_none=True)) - _HOW_TO_WRITE
    return not (named or config.model or config.provider)


def _how_to_write(config: AgentConfig) -> dict[str, Any]:
    """What is said of that beside no model, as a request takes it."""
    cfg: dict[str, Any] = filled_keys((config.llm or LLMConfig()).as_cfg(), named_key, "llm")
    generate: dict[str, Any] = cfg.pop("generate_cfg", {})
    return {**cfg, **generate}


def model_of(config: AgentConfig) -> BaseChatModel:
    """The model; where nothing names one, that of Parlour's settings.

    Raises:
        SettingsError: It cannot be made.
    """
    llm = config.llm or LLMConfig()
    if llm.made is not None:
        return llm.made
    cfg: dict[str, Any] = filled_keys(llm.as_cfg(), named_key, "llm")
    if config.model:
        cfg["model"] = config.model
    if config.provider:
        cfg = {**_provider(config.provider), **cfg}
    if not any(cfg.get(name) for name in _NAME_A_MODEL):
        usual = Settings.load().model_cfg()
        cfg = {**usual, **cfg, "generate_cfg": merge_generate(usual["generate_cfg"], cfg.get("generate_cfg"))}
    return get_chat_model(cfg)


def problems_in(config: AgentConfig, variables: Mapping[str, object] | None = None) -> list[ParlourError]:
    """What would keep an agent from being made, as far as that shows without starting or asking anything.

    Args:
        config: With all fields as they must be.
        variables: For the blanks of the prompt.
    """
    return [*_unused(config, AGENTS[config.kind]), *_problems(config, variables, led=False)]


def _problems(
    config: AgentConfig, variables: Mapping[str, object] | None, *, led: bool, place: str = ""
) -> list[ParlourError]:
    found: list[ParlourError] = []
    checks: list[Callable[[], object]] = []
    if _wants_model(config) and not (led and _has_usual_model(config)):
        checks.append(lambda: model_of(config))
    if config.prompt is not None:
        checks.append(lambda: config.prompt and config.prompt.filled(variables))
    checks += [*_tool_checks(config), *_document_checks(config, place)]
    checks.append(lambda: _rag(config.rag_cfg))
    for check in checks:
        try:
            check()
        except ConfigError as error:
            found += error.problems
        except ParlourError as error:
            found.append(error)
    for at, one in enumerate(config.agents):
        found += _problems(one, variables, led=True, place=f"{place}agents[{at}].")
    return found


def _check_all(config: AgentConfig, place: str = "") -> None:
    """Raises SettingsError where a tool or a document is wrong: before any is made, which may start a server."""
    for check in (*_tool_checks(config), *_document_checks(config, place)):
        check()
    for at, one in enumerate(config.agents):
        _check_all(one, f"{place}agents[{at}].")


def _tool_checks(config: AgentConfig) -> list[Callable[[], object]]:
    tools = [(item.as_given(), f"tools[{n}]") for n, item in enumerate(config.tools)]
    tools += [(item, f"function_list[{n}]") for n, item in enumerate(config.function_list)]
    return [partial(_check_tool, item, place) for item, place in tools]


def _check_tool(item: Any, place: str) -> None:
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, Mapping):
        return
    own = filled_keys(cast("Mapping[str, Any]", item), named_key, place)
    if "mcpServers" in own:
        servers_from(own)
    elif "openapi" not in own:
        TOOL_REGISTRY[own["name"]]


def _document_checks(config: AgentConfig, place: str) -> list[Callable[[], object]]:
    here = ((file, f"{place}files[{n}]") for n, file in enumerate(config.files) if not is_web_address(file))
    return [partial(_check_document, local_path(file), field) for file, field in here]


def _check_document(path: Path, field: str) -> None:
    """Raises ConfigError where it cannot be read, as far as its first bytes show."""
    where = str(path.absolute())  # a relative one is sought where the program runs, or beside its file
    try:
        if not path.exists():
            raise ConfigError([problem("config_document_gone", field=field, file=where)])
        if not path.is_file():
            raise ConfigError([problem("config_document_no_file", field=field, file=where)])
        with path.open("rb") as stream:
            parser_for(path.name, stream.read(HEAD))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ConfigError([problem("config_document_closed", field=field, file=where, why=why)]) from error
    except DocumentError as error:
        raise ConfigError([problem("config_document_unread", field=field, file=where)]) from error


def _tools(config: AgentConfig) -> list[Any]:
    named = [filled_keys(item.as_given(), named_key, f"tools[{n}]") for n, item in enumerate(config.tools)]
    return [*named, *filled_keys(config.function_list, named_key, "function_list")]


def _rag(config: RAGConfig | None) -> RAGConfig | None:
    if config is None:
        return None
    services = {"embedding_model": config.embedding_model, "reranker": config.reranker}
    return config.model_copy(update=filled_keys(services, named_key, "rag_cfg"))


def _provider(name: str) -> Mapping[str, str]:
    own = name.rpartition("/")[2]  # a marketplace puts its own name before a provider's
    if own in _PROVIDERS:
        return _PROVIDERS[own]
    if own not in LLM_REGISTRY:
        raise UnknownNameError("provider", own, [*_PROVIDERS, *LLM_REGISTRY])
    return {"model_type": own}


def _takes(kind: type[Agent]) -> frozenset[str]:
    """The arguments that a class takes, its base classes' where it hands on whatever comes."""
    names: set[str] = set()
    for cls in kind.__mro__:
        made: Any = vars(cls).get("__init__")
        if made is None:
            continue
        code = made.__code__
        names |= set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        if not code.co_flags & 0x08:  # it takes no others
            break
    return frozenset(names)
