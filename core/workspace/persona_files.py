"""Personas as agents' files, and back: a file of an agent is a persona, as far as a persona goes."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, cast

from core.agents.config.reading import read_text
from core.agents.config.schema import AgentConfig
from core.errors import SettingsError
from core.llm.parameters import PLAIN
from core.tools.catalog import TOOL_REGISTRY
from core.workspace.levels import Level, checked_parameters, mapping_of
from core.workspace.personas import Persona, checked_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TOLD: Final = ("name", "description", "system_message", "instruction", "prompt", "llm", "llm_config")


def persona_file(persona: Persona) -> str:
    """A persona as the YAML file of an agent: name, instructions, parameters and Parlour's own tools that are on.

    Its sign, starters, libraries and model, how long it thinks, and servers have no place in such a file.
    """
    level, names = persona.level, {one.name for one in TOOL_REGISTRY.on_page()}
    generate = {name: value for name, value in level.parameters.items() if name in PLAIN}
    tools = [name for name, on in level.tools.items() if on and name in names]
    given = {"system_message": level.instructions, "extra_generate_cfg": generate, "tools": tools}
    told = {"name": persona.name, **{name: value for name, value in given.items() if value}}
    yaml: Any = import_module("yaml")
    return str(yaml.safe_dump(told, allow_unicode=True, sort_keys=False, width=100))


def persona_from(text: str, name: str) -> Persona:
    """The persona that the file of an agent describes; what a persona has no place for is passed over.

    No other file is read: what it names is not looked for.

    Args:
        text: The file's.
        name: Its name: the ending says how it is written, and it is the persona's where the agent has none.

    Raises:
        ConfigError: It cannot be read, or a field is wrong.
        SettingsError: key `persona_group`: it describes several agents; `persona_unnamed`, `steering_long`.
    """
    given = read_text(text, name)
    if given.get("agents"):
        hint = "Import the file of one of them."
        raise SettingsError("This file describes several agents.", hint=hint, key="persona_group")
    told = {field: given[field] for field in _TOLD if field in given}
    for field in ("llm", "llm_config"):
        if field in told:  # which model answers, and with which key, is chosen elsewhere
            generate = mapping_of(told[field]).get("generate_cfg")
            told[field] = {"generate_cfg": generate} if generate else None
    if given.get("extra_generate_cfg"):
        told["extra_generate_cfg"] = given["extra_generate_cfg"]
    config = AgentConfig.of({field: value for field, value in told.items() if value is not None})
    called = config.name or PurePath(name).stem
    level = Level(_instructions(config) or None, _parameters(config), _tools(given))
    return Persona("", checked_name(called), called.strip()[:1], level)


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
    found: dict[str, bool] = {}
    for field in ("tools", "function_list"):
        listed = given.get(field)
        for one in cast("Sequence[object]", listed) if isinstance(listed, list) else ():
            section = mapping_of(one)
            name = one if isinstance(one, str) else section.get("tool_name") or section.get("name")
            if isinstance(name, str) and name in names:
                found[name] = True
    return found
