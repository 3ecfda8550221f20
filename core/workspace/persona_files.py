"""Personas as agents' files, and back: a file of an agent is a persona, and says all that a persona does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, cast

from core.agents.config.reading import read_text
from core.agents.config.schema import AgentConfig
from core.errors import SettingsError
from core.llm.parameters import PLAIN
from core.models.model_name import INSTALLED, ModelName
from core.tools.catalog import TOOL_REGISTRY
from core.workspace.levels import Level, checked_change, checked_parameters, mapping_of
from core.workspace.personas import Persona, checked_name, checked_sign, checked_starters, first_sign

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_TOLD: Final = ("name", "description", "system_message", "instruction", "prompt", "llm", "llm_config", "persona")
_READ: Final = frozenset({*_TOLD, "agents", "extra_generate_cfg", "model", "tools", "function_list", "$schema"})
_ANY: Final = "*"  # the service of a model that a file names without one
_SERVER: Final = "mcp:"


@dataclass(frozen=True, slots=True)
class AtHome:
    """What an owner has, by name.

    Args:
        libraries: The ids of named libraries.
        models: The services that are set up, each with its model.
        servers: The MCP servers.
    """

    libraries: Mapping[str, str] = field(default_factory=dict[str, str])
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    servers: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Lacks:
    """What a persona names that its new owner has not, by name, and what of its file a persona has no place for.

    Args:
        tools: Those that are not Parlour's own.
        fields: Those of the file that were passed over.
    """

    libraries: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


def persona_file(persona: Persona, libraries: Mapping[str, str] | None = None) -> str:
    """A persona as the YAML file of an agent.

    What a program's agent has as well (name, instructions, parameters, Parlour's own tools that are on) stands where
    programs look for it; the rest in its section `persona`. Services and servers are there by name alone.

    Args:
        libraries: The ids of libraries to their names; those without a name are left out.
    """
    level, names = persona.level, {one.name for one in TOOL_REGISTRY.on_page()}
    generate = {name: value for name, value in level.parameters.items() if name in PLAIN}
    tools = [name for name, on in level.tools.items() if on and name in names]
    given = {"system_message": level.instructions, "extra_generate_cfg": generate, "tools": tools}
    besides = {
        "starters": [*persona.starters],
        "libraries": [libraries[one] for one in level.libraries if one in libraries] if libraries else [],
        "model": persona.model.as_json() if persona.model is not None else None,
        "effort": level.parameters.get("effort"),
        "tools": {name: on for name, on in level.tools.items() if name not in tools},
    }
    section = {"sign": persona.sign, **{name: value for name, value in besides.items() if value}}
    told = {"name": persona.name, **{name: value for name, value in given.items() if value}, "persona": section}
    yaml: Any = import_module("yaml")
    return str(yaml.safe_dump(told, allow_unicode=True, sort_keys=False, width=100))


def persona_from(text: str, name: str) -> Persona:
    """The persona that the file of an agent describes; what a persona has no place for is passed over.

    No other file is read: what it names is not looked for. Its libraries are names; `at_home` looks for them, and for
    its model.

    Args:
        text: The file's.
        name: Its name: the ending says how it is written, and it is the persona's where the agent has none.

    Raises:
        ConfigError: It cannot be read, or a field is wrong.
        SettingsError: key `persona_group`: it describes several agents; `persona_unnamed`, `steering_long`,
            `steering_value`.
    """
    given = read_text(text, name)
    if given.get("agents"):
        hint = "Import the file of one of them."
        raise SettingsError("This file describes several agents.", hint=hint, key="persona_group")
    told = {one: given[one] for one in _TOLD if one in given}
    for one in ("llm", "llm_config"):
        if one in told:  # its key stays where it is
            generate = mapping_of(told[one]).get("generate_cfg")
            told[one] = {"generate_cfg": generate} if generate else None
    if given.get("extra_generate_cfg"):
        told["extra_generate_cfg"] = given["extra_generate_cfg"]
    config = AgentConfig.of({one: value for one, value in told.items() if value is not None})
    called, section = config.name or PurePath(name).stem, config.persona
    parameters, tools, libraries = _parameters(config), _tools(given), ()
    sign, starters, model = first_sign(called), (), _model(given)
    if section is not None:
        sign = checked_sign(section.sign) if section.sign is not None else sign
        starters = checked_starters(section.starters)
        model = ModelName.read(section.model.model_dump()) if section.model is not None else model
        parameters |= {"effort": section.effort} if section.effort is not None else {}
        checked = checked_change({"tools": section.tools, "libraries": section.libraries})
        tools, libraries = tools | checked["tools"], checked["libraries"]
    level = Level(_instructions(config) or None, parameters, tools, libraries)
    return Persona("", checked_name(called), sign, level, starters, model)


def passed_over(text: str, name: str) -> Lacks:
    """The tools and fields of an agent's file of which nothing came into its persona. Raises ConfigError.

    Args:
        text: As of `persona_from`.
        name: As of `persona_from`.
    """
    given = read_text(text, name)
    names = {one.name for one in TOOL_REGISTRY.on_page()}
    tools = dict.fromkeys(one for one in _named_tools(given) if one not in names)
    return Lacks(tools=tuple(tools), fields=tuple(one for one in given if one not in _READ))


def at_home(persona: Persona, here: AtHome) -> tuple[Persona, Lacks]:
    """A persona that came from a file among what its new owner has, and what it names that is not there.

    A library and a model that are not there are left out; a server stays by its name, for when it is set up.
    """
    names, model = persona.level.libraries, persona.model
    found = tuple(here.libraries[one] for one in names if one in here.libraries)
    if model is not None and model.service == _ANY:
        service = next((one for one, usual in here.models.items() if usual == model.model), None)
        home = ModelName(service, model.model) if service is not None else None
    else:
        home = model if model is None or model == INSTALLED or model.service in here.models else None
    wanted = [one.removeprefix(_SERVER).split(":")[0] for one, on in persona.level.tools.items() if on and _outer(one)]
    lacks = Lacks(
        tuple(one for one in names if one not in here.libraries),
        (_said(model),) if model is not None and home is None else (),
        tuple(dict.fromkeys(one for one in wanted if one not in here.servers)),
    )
    return replace(persona, level=replace(persona.level, libraries=found), model=home), lacks


def _outer(name: str) -> bool:
    return name.startswith(_SERVER)


def _said(model: ModelName) -> str:
    return " · ".join(part for part in (model.model, model.service) if part and part != _ANY)


def _model(given: Mapping[str, Any]) -> ModelName | None:
    """The model that a file names for programs; which service has it here is not said."""
    llm = given.get("llm") or given.get("llm_config")
    named = given.get("model") or (llm if isinstance(llm, str) else mapping_of(llm).get("model"))
    return ModelName.read({"service": _ANY, "model": named}) if named else None


def _instructions(config: AgentConfig) -> str:
    """What the agent is told; blanks stay, to be filled by whoever reads them."""
    prompt = config.prompt
    if prompt is None:
        return config.system_message or ""
    told = [prompt.simple_prompt_template, *(one.content for one in prompt.prompt_messages if one.role == "system")]
    return "\n\n".join(text for text in told if text)


def _parameters(config: AgentConfig) -> dict[str, Any]:
    """Those that a persona has, of the model's settings and what goes over them."""
    sections = (config.llm.generate_cfg if config.llm is not None else None, config.extra_generate_cfg)
    given = {name: value for one in sections if one is not None for name, value in one.as_cfg().items()}
    found: dict[str, Any] = {}
    for name in PLAIN:
        if name in given:
            with suppress(SettingsError):
                found |= checked_parameters({name: given[name]})
    return found


def _tools(given: Mapping[str, Any]) -> dict[str, bool]:
    """Parlour's own tools that it names."""
    names = {one.name for one in TOOL_REGISTRY.on_page()}
    return {name: True for name in _named_tools(given) if name in names}


def _named_tools(given: Mapping[str, Any]) -> list[str]:
    """The tools that a file names, and what stands in the place of a name where there is none, such as `mcpServers`."""
    found: list[str] = []
    for place in ("tools", "function_list"):
        listed = given.get(place)
        for one in cast("Sequence[object]", listed) if isinstance(listed, list) else ():
            section = mapping_of(one)
            name = one if isinstance(one, str) else section.get("tool_name") or section.get("name")
            name = name or next(iter(section), None)
            if isinstance(name, str):
                found.append(name)
    return found
