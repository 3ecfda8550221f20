"""Reads a group that a model proposes: what is nearly right is mended, the rest is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from core.messages.json_text import read_object

if TYPE_CHECKING:
    from collections.abc import Collection

Wrong: TypeAlias = Literal["no_object", "no_members", "no_name", "persons"]

_MOST_MEMBERS = 10
_LISTS = ("agents", "members", "roles", "成员", "角色")
_TOPICS = ("background", "topic", "背景", "主题")
_YES = (True, 1, "true", "yes", "是")


class WrongProposalError(ValueError):
    """What is wrong with a proposal: `why` names the sentence."""

    def __init__(self, why: Wrong) -> None:
        super().__init__(why)
        self.why: Wrong = why


def proposal(text: str, tools: Collection[str] = ()) -> dict[str, Any]:
    """The group in what a model wrote, as `GroupChat` takes it.

    Mended are JSON that is nearly right or stands among words, other names for the lists, members given by name or as a
    dict, names that occur twice, and fields of a wrong type. Files are never taken over, and of tools only those there
    are: what a model writes gives nobody a right.

    Args:
        text: What the model wrote.
        tools: The names of the tools that members may have.

    Raises:
        WrongProposalError: There is no group in it.
    """
    found = _object(text)
    background = next((found[key] for key in _TOPICS if isinstance(found.get(key), str)), "")
    rows = next((found[key] for key in _LISTS if found.get(key)), None)
    if isinstance(rows, dict):
        rows = _from_mapping(cast("dict[str, Any]", rows))
    if not isinstance(rows, list) or not rows:
        raise WrongProposalError("no_members")
    members: list[dict[str, Any]] = []
    for row in cast("list[Any]", rows)[:_MOST_MEMBERS]:
        member = _member(row, tools)
        member["name"] = _free(member["name"], [other["name"] for other in members])
        members.append(member)
    if all(member.get("is_human") for member in members):
        raise WrongProposalError("persons")
    return {"background": background.strip(), "agents": members}


def _object(text: str) -> dict[str, Any]:
    for part in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            return read_object(part)
        except (ValueError, RecursionError):
            continue
    raise WrongProposalError("no_object")


def _from_mapping(given: dict[str, Any]) -> list[Any]:
    """Members as `{name: description}` or `{name: {...}}`, or one alone."""
    if "name" in given:
        return [given]
    return [{"name": name, **(row if isinstance(row, dict) else {"description": row})} for name, row in given.items()]


def _member(row: Any, tools: Collection[str]) -> dict[str, Any]:
    fields = cast("dict[str, Any]", row if isinstance(row, dict) else {"name": row})
    name = " ".join(_text(fields.get("name")).strip("@＠ ").split())
    if not name:
        raise WrongProposalError("no_name")
    instructions = _text(fields.get("instructions"))
    description = _text(fields.get("description")) or instructions.partition("\n")[0]
    if fields.get("is_human") in _YES:
        return {"name": name, "description": description, "is_human": True}
    wanted = fields.get("selected_tools")
    named = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    selected = [one for one in named if isinstance(one, str) and one in tools]
    return {"name": name, "description": description, "instructions": instructions, "selected_tools": selected}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(_text(one) for one in cast("list[Any]", value))
    return value.strip() if isinstance(value, str) else ""


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or with a number that makes it another."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free
