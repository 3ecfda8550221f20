"""The errors of an agent's configuration: one sentence for each wrong field, with a key for its translation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_core import PydanticCustomError

from core.errors import ParlourError, SettingsError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

SENTENCES: Final[Mapping[str, str]] = {
    "config_unknown": "There is no field {field}.",
    "config_unknown_near": "There is no field {field}; did you mean {near}?",
    "config_missing": "The field {field} is missing.",
    "config_text": "The field {field} must be a text.",
    "config_no_text": "The field {field} must not be empty.",
    "config_whole": "The field {field} must be a whole number.",
    "config_number": "The field {field} must be a number.",
    "config_truth": "The field {field} must be true or false.",
    "config_list": "The field {field} must be a list.",
    "config_section": "The field {field} must be a section of names and values.",
    "config_between": "The field {field} must be from {least} to {most}.",
    "config_least": "The field {field} must be {least} or more.",
    "config_choice": "The field {field} must be {choices}.",
    "config_two": "Only one of {field} and {other} may be given.",
    "config_no_tool": "The field {field} is no tool: give a name, a dict, a tool or a function.",
    "config_no_command": "The field {field} needs the command or the url of the MCP server.",
    "config_no_document": "The field {field} needs its OpenAPI document, as openapi among the parameters.",
    "config_generate": "The field {field} belongs into generate_cfg.",
    "config_only_function_call": "The field {field} needs the strategy function_call.",
    "config_not_taken": "The field {field} means nothing to {kind}.",
    "config_variable_place": "The field {field} cannot be taken from the variable {name}: only an api_key can.",
    "config_variable": "The field {field} needs the variable {name}, which is not set.",
    "config_blank": "The prompt needs a value for {name}, which is not among its variables.",
    "config_other": "The field {field} is wrong: {why}",
    "config_no_file": "There is no file {file}.",
    "config_folder": "{file} is a folder; name a file in it.",
    "config_document_gone": "The field {field} names a document that is not there: {file}.",
    "config_document_no_file": "The field {field} names what is no file: {file}.",
    "config_document_closed": "The field {field} names a document that cannot be opened: {file} ({why}).",
    "config_document_unread": "The field {field} names a document that is empty, locked or of no kind that is read: "
    "{file}.",
    "config_empty": "The file is empty.",
    "config_kind": "The file cannot be read as an agent: its name must end in .yaml, .yml, .toml or .json.",
    "config_unreadable": "The file cannot be read: {why}.",
    "config_unreadable_line": "The file cannot be read in line {line}: {why}.",
    "config_no_type": "The field {field} names no kind of agent: {name}.",
    "config_no_type_near": "The field {field} names no kind of agent: {name}; did you mean {near}?",
    "config_circle": "These agents would lead themselves: {files}.",
    "config_deep": "The agents are nested too deep.",
    "config_many": "There are more than {most} agents.",
    "config_same_name": "Two agents are named {name}: {file} and {other}.",
}
"""Keys to English; the other languages are in `webui/words`."""

_LONGEST: Final = 300  # characters of a name or a reason
_TYPES: Final = {
    "string": "config_text",
    "int": "config_whole",
    "float": "config_number",
    "bool": "config_truth",
    "list": "config_list",
    "tuple": "config_list",
    "dict": "config_section",
    "mapping": "config_section",
    "model": "config_section",
}


class ConfigError(SettingsError, ValueError):
    """An agent cannot be configured so.

    Args:
        problems: All errors found; the first one is this error's message.
        file: The file's name, if it was read from one.
    """

    def __init__(self, problems: Sequence[ParlourError], file: str = "") -> None:
        first, more = problems[0], len(problems) - 1
        said = f"{file}: {first}" if file else str(first)
        rest = f"There {'is' if more == 1 else 'are'} {more} more." if more else ""
        super().__init__(said, hint=rest, key=first.words_key, **first.details)
        self.problems = tuple(problems)


def problem(key: str, **details: Any) -> SettingsError:
    """One error; details that come from a file are made printable."""
    told = {name: one_line(value) if isinstance(value, str) else value for name, value in details.items()}
    return SettingsError(SENTENCES[key].format_map(told), key=key, **told)


def one_line(text: str) -> str:
    """Somebody else's text as one printable line of at most 300 characters."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def problems_of(
    error: ValidationError, given: object, kinds: Mapping[str, type[BaseModel]], spellings: Mapping[str, str]
) -> list[ParlourError]:
    """A sentence for each error that pydantic found.

    Args:
        given: The value that was validated.
        kinds: Field names to the models that they hold, alone or in a list; "" is the outermost model.
        spellings: Aliases of fields to their proper names: a sentence uses the name that was written.
    """
    return [
        _problem_of(cast("Mapping[str, Any]", each), given, kinds, spellings)
        for each in error.errors(include_url=False)
    ]


def _problem_of(
    each: Mapping[str, Any], given: object, kinds: Mapping[str, type[BaseModel]], spellings: Mapping[str, str]
) -> ParlourError:
    loc: tuple[int | str, ...] = each["loc"]
    kind, context = str(each["type"]), cast("dict[str, Any]", each.get("ctx") or {})
    field = _written_path(loc, given, spellings)
    model = kinds.get(next((str(part) for part in reversed(loc[:-1]) if isinstance(part, str)), ""))
    if kind.startswith("config_"):
        below = str(context.pop("field", ""))
        said = f"{field}.{below}" if field and below else field or below or "config"
        return problem(kind, **context, field=said)
    if kind == "extra_forbidden":
        fields = model.model_fields if model else {}
        known = [*fields, *(other for other, proper in spellings.items() if proper in fields)]
        near = get_close_matches(str(loc[-1]), known, n=1, cutoff=0.6)
        return (
            problem("config_unknown_near", field=field, near=near[0])
            if near
            else problem("config_unknown", field=field)
        )
    if kind == "missing":
        return problem("config_missing", field=field)
    if kind in {"greater_than_equal", "less_than_equal"}:
        return _out_of_range(field, str(loc[-1]), context, model)
    if kind == "literal_error":
        return problem("config_choice", field=field, choices=context["expected"])
    if kind in {"string_too_short", "too_short"}:
        return problem("config_no_text", field=field)
    known = _TYPES.get(kind.partition("_")[0])
    return problem(known, field=field or "config") if known else problem("config_other", field=field, why=_why(each))


def _out_of_range(field: str, name: str, context: Mapping[str, Any], model: type[BaseModel] | None) -> ParlourError:
    info = model.model_fields.get(name) if model else None
    bounds = {
        end: value
        for one in (info.metadata if info else ())
        for end in ("ge", "le")
        if (value := getattr(one, end, None)) is not None
    }
    least, most = bounds.get("ge", context.get("ge")), bounds.get("le", context.get("le"))
    return (
        problem("config_least", field=field, least=least)
        if most is None
        else problem("config_between", field=field, least=least, most=most)
    )


def _why(each: Mapping[str, Any]) -> str:
    return str(each["msg"]).removeprefix("Value error, ").rstrip(".") + "."


def _written_path(loc: Sequence[int | str], given: object, spellings: Mapping[str, str]) -> str:
    """The path of a field in the names that were written: `tools[0].type`."""
    said = ""
    for part in loc:
        name = part if isinstance(part, int) else written_name(part, given, spellings)
        said += f"[{name}]" if isinstance(name, int) else f".{name}" if said else name
        given = _below(given, name)
    return said


def written_name(part: str, given: object, spellings: Mapping[str, str]) -> str:
    """The name under which a field was written, which may be an alias."""
    if not isinstance(given, Mapping) or part in given:
        return part
    others: Iterator[str] = (other for other, proper in spellings.items() if proper == part and other in given)
    return next(others, part)


def _below(given: object, name: int | str) -> object:
    if isinstance(given, Mapping):
        return cast("Mapping[Any, object]", given).get(name)
    if isinstance(given, list) and isinstance(name, int) and name < len(cast("list[object]", given)):
        return cast("list[object]", given)[name]
    return None


def validation_error(key: str, **details: Any) -> PydanticCustomError:
    """The error that a validator raises for one of `SENTENCES`."""
    return PydanticCustomError(cast("Any", key), cast("Any", key), details)
