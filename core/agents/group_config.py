"""A group as a dict: its topic and its members, persons among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from core.agents.assistant import Assistant
from core.agents.user_agent import UserAgent
from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.base import Agent
    from core.agents.given_tools import GivenTool
    from core.llm.base import BaseChatModel

_TEXTS = ("name", "description", "instructions")
_LISTS = ("selected_tools", "knowledge_files")


def group_of(
    config: Mapping[str, Any],
    llm: BaseChatModel | Mapping[str, Any] | str | None,
    tools: Sequence[GivenTool] = (),
) -> tuple[str, list[Agent]]:
    """The topic and the members.

    Args:
        config: `{"background": topic, "agents": [member, ...]}`; a member is `{"name", "description", "instructions",
            "selected_tools": [...], "knowledge_files": [...]}`, or `{"name", "description", "is_human": true}`.
        llm: The members' model; a member's own `llm` comes before it. One of nothing but a `generate_cfg` says how the
            members' model writes for it.
        tools: What each member that is no person has besides its own.

    Raises:
        SettingsError: A field has the wrong type, or a tool or model cannot be made; the error names the field.
    """
    background, rows = config.get("background") or "", config.get("agents")
    if not isinstance(background, str):
        raise SettingsError("The field 'background' of a group must be text.")
    if not isinstance(rows, list):
        raise SettingsError("The field 'agents' of a group must be a list.", hint='Write {"agents": [{"name": ...}]}.')
    members = cast("list[Any]", rows)
    return background.strip(), [_member(place, row, llm, tools) for place, row in enumerate(members, start=1)]


def _member(
    place: int, row: Any, llm: BaseChatModel | Mapping[str, Any] | str | None, tools: Sequence[GivenTool]
) -> Agent:
    if not isinstance(row, dict):
        raise SettingsError(f"Member {place} of the group must be a dict.")
    fields = cast("dict[str, Any]", row)
    for names, kind, what in ((_TEXTS, str, "text"), (_LISTS, list, "a list"), (("is_human",), bool, "true or false")):
        for name in names:
            if fields.get(name) is not None and not isinstance(fields[name], kind):
                raise SettingsError(f"The field {name!r} of member {place} of the group must be {what}.")
    name, description, instructions = ((fields.get(field) or "").strip() for field in _TEXTS)
    if not name:
        raise SettingsError(f"Member {place} of the group has no name.")
    if fields.get("is_human"):
        return UserAgent(name=name, description=description)
    own, how = _own_model(fields.get("llm"))
    member = Assistant(
        [*tools, *(fields.get("selected_tools") or ())],
        own or llm,
        "\n\n".join(filter(None, (description, instructions))) or None,
        name,
        description,
        fields.get("knowledge_files") or None,
    )
    member.extra_generate_cfg.update(how)
    return member


def _own_model(given: Any) -> tuple[Any, Mapping[str, Any]]:
    """The model of a member's own, and how the group's is to write where it names none."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    how = fields.get("generate_cfg")
    if len(fields) == 1 and isinstance(how, Mapping):
        return None, cast("Mapping[str, Any]", how)
    return cast("Any", given), {}
