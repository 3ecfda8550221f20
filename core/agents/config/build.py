"""Makes the agent that a configuration describes, and finds beforehand what would keep it from being made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import unwrap
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from core.agents.catalog import AGENTS
from core.agents.config.problems import ConfigError, problem
from core.agents.config.reading import resolve_keys
from core.agents.config.schema import AgentConfig, LLMConfig
from core.agents.file_library import local_path
from core.errors import DocumentError, ParlourError, UnknownNameError
from core.llm.catalog import LLM_REGISTRY
from core.llm.open_model import get_chat_model
from core.llm.request import merge_generate
from core.mcp.settings import servers_from
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.sources import is_web_address
from core.settings import Settings, named_key
from core.tools.catalog import TOOL_REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from core.llm.base import BaseChatModel
    from core.rag.config import RAGConfig

_PROVIDERS: Final[Mapping[str, Mapping[str, str]]] = {
    "azure_openai": {"model_type": "azure"},
    "dashscope": {"model_server": "dashscope"},
    "openai_api_compatible": {"model_type": "openai"},
    "tongyi": {"model_server": "dashscope"},
}
A = TypeVar("A")

_GENERATE_FIELDS: Final = frozenset({"cache_dir", "generate_cfg", "use_raw_api"})
_KINDS: Final = frozenset({"agents", "strategy", "type"})
_MODELS: Final = frozenset({"llm", "llm_config", "model", "provider"})
_NAME_A_MODEL: Final = ("model", "model_type", "model_server", "azure_endpoint", "weights")


def agent_from(
    kind: type[A],
    given: AgentConfig | Mapping[str, Any] | str | Path,
    variables: Mapping[str, object] | None = None,
    *,
    any_kind: bool = False,
) -> A:
    """The agent that a configuration describes.

    Args:
        kind: Its class, or a base class of what the configuration's `type` names.
        given: As `AgentConfig.of` takes it.
        variables: For the blanks of the prompt, over its own.
        any_kind: Whether the strategy chooses the class, where there is no `type`.

    Raises:
        ConfigError: A field is wrong, a blank or a key has no value.
        SettingsError: The model or a tool cannot be made of what is given; `UnknownNameError` has the near names.
    """
    config = AgentConfig.of(given)
    chosen: type[Any] = AGENTS[config.kind] if any_kind or config.type is not None else kind
    if not issubclass(chosen, kind):
        raise ConfigError([problem("config_not_taken", field="type", kind=kind.__name__)])
    if unused := _unused(config, chosen):
        raise ConfigError(unused)
    _check_all(config)
    return _make(chosen, config, variables, None)


def _make(
    kind: type[Any], config: AgentConfig, variables: Mapping[str, object] | None, usual: BaseChatModel | None
) -> Any:
    """The agent; `usual` is the model of the agent that leads it."""
    told, examples = (config.system_message, []) if config.prompt is None else config.prompt.render(variables)
    is_led = usual is not None and _uses_default_model(config)
    model = None if not _wants_model(config) else usual if is_led else model_of(config)
    own: dict[str, Any] = {
        **_values(config),
        "function_list": _tools(config),
        "llm": model,
        "system_message": told,
        "rag_cfg": _rag(config.rag_cfg),
    }
    if config.agents:
        own["agents"] = [_make(AGENTS[one.kind], one, variables, model) for one in config.agents]
    takes = _accepted_arguments(kind)
    agent = kind(**{name: value for name, value in own.items() if name in takes})
    agent.prompt_messages = tuple(examples)
    extra = config.extra_generate_cfg.as_cfg() if config.extra_generate_cfg else {}
    agent.extra_generate_cfg.update(merge_generate(_generate_settings(config), extra) if is_led else extra)
    return agent


def _values(config: AgentConfig) -> dict[str, Any]:
    """The fields that a class may take unchanged."""
    names = ("name", "description", "max_iteration", "files", "rag_cfg")
    return {**{name: getattr(config, name) for name in names}, **config.options()}


def _unused(config: AgentConfig, kind: type[Any], place: str = "") -> list[ParlourError]:
    """An error for each field that means nothing to the agent or to one that it leads."""
    takes = _accepted_arguments(kind)
    values: dict[str, Any] = {**_values(config), "agents": config.agents}
    unused = [name for name in values if values[name] and name not in takes and name in config.model_fields_set]
    if kind is AGENTS[config.kind] and not kind.calls_tools:
        unused += [name for name in ("tools", "function_list") if getattr(config, name)]
    found: list[ParlourError] = [
        problem("config_not_taken", field=f"{place}{name}", kind=kind.__name__) for name in unused
    ]
    for at, one in enumerate(config.agents):
        found += _unused(one, AGENTS[one.kind], f"{place}agents[{at}].")
    return found


def _wants_model(config: AgentConfig) -> bool:
    needs = AGENTS[config.kind].needs_model
    return needs == "always" or (needs == "if_named" and not _uses_default_model(config))


def _uses_default_model(config: AgentConfig) -> bool:
    """Whether it names no model; it may still say how the default one writes."""
    llm = config.llm or LLMConfig()
    named = llm.made is not None or set(llm.model_dump(exclude_none=True)) - _GENERATE_FIELDS
    return not (named or config.model or config.provider)


def _generate_settings(config: AgentConfig) -> dict[str, Any]:
    """The generate settings of a configuration that names no model."""
    cfg: dict[str, Any] = resolve_keys((config.llm or LLMConfig()).as_cfg(), named_key, "llm")
    generate: dict[str, Any] = cfg.pop("generate_cfg", {})
    return {**cfg, **generate}


def model_of(config: AgentConfig) -> BaseChatModel:
    """The model that the configuration names, else that of Parlour's settings.

    Raises:
        SettingsError: The model cannot be made.
    """
    llm = config.llm or LLMConfig()
    if llm.made is not None:
        return llm.made
    cfg: dict[str, Any] = resolve_keys(llm.as_cfg(), named_key, "llm")
    if config.model:
        cfg["model"] = config.model
    if config.provider:
        cfg = {**_provider(config.provider), **cfg}
    if not any(cfg.get(name) for name in _NAME_A_MODEL):
        usual = Settings.load().model_cfg()
        cfg = {**usual, **cfg, "generate_cfg": merge_generate(usual["generate_cfg"], cfg.get("generate_cfg"))}
    return get_chat_model(cfg)


def problems_in(
    config: AgentConfig, variables: Mapping[str, object] | None = None, *, without: Collection[str] = ()
) -> list[ParlourError]:
    """All errors that making the agent would raise and that show without starting or calling anything.

    Args:
        config: A configuration whose fields are valid.
        variables: For the blanks of the prompt.
        without: Names of fields that were taken out of it, for they are wrong: what hangs on them is not looked at.
    """
    unused = [] if _KINDS.intersection(without) else _unused(config, AGENTS[config.kind])
    knows_model = _MODELS.isdisjoint(without)
    return [*unused, *_problems(config, variables, led=False, knows_model=knows_model)]


def _problems(
    config: AgentConfig,
    variables: Mapping[str, object] | None,
    *,
    led: bool,
    knows_model: bool = True,
    place: str = "",
) -> list[ParlourError]:
    found: list[ParlourError] = []
    checks: list[Callable[[], object]] = []
    if knows_model and _wants_model(config) and not (led and _uses_default_model(config)):
        checks.append(lambda: model_of(config))
    if config.prompt is not None:
        checks.append(lambda: config.prompt and config.prompt.render(variables))
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
        found += _problems(one, variables, led=True, knows_model=knows_model, place=f"{place}agents[{at}].")
    return found


def _check_all(config: AgentConfig, place: str = "") -> None:
    """Raises SettingsError where a tool or a document is wrong, before anything is made: that may start a server."""
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
    own = resolve_keys(cast("Mapping[str, Any]", item), named_key, place)
    if "mcpServers" in own:
        servers_from(own)
    elif "openapi" not in own:
        TOOL_REGISTRY[own["name"]]


def _document_checks(config: AgentConfig, place: str) -> list[Callable[[], object]]:
    here = ((file, f"{place}files[{n}]") for n, file in enumerate(config.files) if not is_web_address(file))
    return [partial(_check_document, local_path(file), field) for file, field in here]


def _check_document(path: Path, field: str) -> None:
    """Raises ConfigError where the document is missing, or its first bytes show that it cannot be read."""
    where = str(path.absolute())  # a relative path is one of the working directory; in a file it was made absolute
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
    named = [resolve_keys(item.as_given(), named_key, f"tools[{n}]") for n, item in enumerate(config.tools)]
    return [*named, *resolve_keys(config.function_list, named_key, "function_list")]


def _rag(config: RAGConfig | None) -> RAGConfig | None:
    if config is None:
        return None
    services = {"embedding_model": config.embedding_model, "reranker": config.reranker}
    return config.model_copy(update=resolve_keys(services, named_key, "rag_cfg"))


def _provider(name: str) -> Mapping[str, str]:
    own = name.rpartition("/")[2]  # a marketplace prefixes a provider's name with its own
    if own in _PROVIDERS:
        return _PROVIDERS[own]
    if own not in LLM_REGISTRY:
        raise UnknownNameError("provider", own, [*_PROVIDERS, *LLM_REGISTRY])
    return {"model_type": own}


def _accepted_arguments(kind: type[Any]) -> frozenset[str]:
    """The names of a constructor's arguments, with its base classes' where it passes `**kwargs` on."""
    names: set[str] = set()
    for cls in kind.__mro__:
        made: Any = vars(cls).get("__init__")
        if made is None:
            continue
        code = unwrap(made).__code__
        names |= set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        if not code.co_flags & 0x08:  # no **kwargs
            break
    return frozenset(names)
