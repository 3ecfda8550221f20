"""What is wrong with arguments, in few words that a page has sentences for in each of its languages.

Beside the sentence that the model reads, an error of arguments has the details `fault`, one of `FAULTS`; `named`, the
argument that it is about; and `bound`, what that had to keep within. Of a wrong type there is `kind` in place of a
fault, the types that it may have, as JSON calls them, separated by commas. All of them are texts: errors are kept, and
go from one process to another.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FAULTS: Final = (
    *("missing", "extra", "choice", "too_long", "too_short", "too_many", "too_few", "twice"),
    *("most", "least", "below", "above", "step", "pattern", "form", "other"),
)
"""All but a wrong type: `form` is the form of dates, addresses and the like, `other` is said of what has no word."""
_KINDS: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_LONGEST: Final = 200  # letters of a bound that are told


# The fault, by the keyword of a JSON Schema.
_OF_SCHEMA: Final[Mapping[str, str]] = {
    "required": "missing",
    "dependentRequired": "missing",
    "additionalProperties": "extra",
    "unevaluatedProperties": "extra",
    "propertyNames": "extra",
    "enum": "choice",
    "const": "choice",
    "maxLength": "too_long",
    "minLength": "too_short",
    "maxItems": "too_many",
    "maxProperties": "too_many",
    "minItems": "too_few",
    "minProperties": "too_few",
    "uniqueItems": "twice",
    "maximum": "most",
    "minimum": "least",
    "exclusiveMaximum": "below",
    "exclusiveMinimum": "above",
    "multipleOf": "step",
    "pattern": "pattern",
    "format": "form",
}


def fault_of_schema(error: Any) -> dict[str, str]:
    """What an error of `jsonschema` says."""
    field = ".".join(str(part) for part in error.absolute_path)
    wanted: Any = error.validator_value
    if error.validator == "type":
        kinds = [wanted] if isinstance(wanted, str) else cast("list[str]", wanted)
        return _wrong_kind(field, kinds)
    fault = _OF_SCHEMA.get(error.validator, "other")
    if fault in {"missing", "extra"}:
        return _fault(fault, ".".join(filter(None, (field, _property_of(error, fault)))))
    if fault == "choice":
        return _fault(fault, field, ", ".join(map(_shown, wanted if error.validator == "enum" else [wanted])))
    return _fault(fault, field, "" if fault in {"form", "twice", "other"} else wanted)


def _property_of(error: Any, fault: str) -> str:
    """Which property is missing, or is one too many."""
    instance: object = error.instance
    given = cast("dict[str, Any]", instance) if isinstance(instance, dict) else {}
    if error.validator == "required":
        return next((one for one in error.validator_value if one not in given), "")
    if fault == "missing":
        wanted = (one for name, all_ in error.validator_value.items() if name in given for one in all_)
        return next((one for one in wanted if one not in given), "")
    known: Any = error.schema.get("properties") or {}
    return next((one for one in given if one not in known), "")


# The fault and the name of its bound, by the kind of an error of pydantic.
_OF_PYDANTIC: Final[Mapping[str, tuple[str, str]]] = {
    "missing": ("missing", ""),
    "missing_argument": ("missing", ""),
    "missing_keyword_only_argument": ("missing", ""),
    "extra_forbidden": ("extra", ""),
    "unexpected_keyword_argument": ("extra", ""),
    "literal_error": ("choice", "expected"),
    "enum": ("choice", "expected"),
    "union_tag_invalid": ("choice", "expected_tags"),
    "string_too_long": ("too_long", "max_length"),
    "bytes_too_long": ("too_long", "max_length"),
    "url_too_long": ("too_long", "max_length"),
    "string_too_short": ("too_short", "min_length"),
    "bytes_too_short": ("too_short", "min_length"),
    "too_long": ("too_many", "max_length"),
    "too_short": ("too_few", "min_length"),
    "less_than_equal": ("most", "le"),
    "greater_than_equal": ("least", "ge"),
    "less_than": ("below", "lt"),
    "greater_than": ("above", "gt"),
    "multiple_of": ("step", "multiple_of"),
    "string_pattern_mismatch": ("pattern", "pattern"),
}
# The JSON type that is wanted, by the beginning of such a kind.
_WANTED: Final[Mapping[str, str]] = {
    "string": "string",
    "bytes": "string",
    "int": "integer",
    "float": "number",
    "finite": "number",
    "decimal": "number",
    "bool": "boolean",
    **dict.fromkeys(("list", "tuple", "set", "frozen_set", "iterable", "iteration"), "array"),
    **dict.fromkeys(("dict", "mapping", "model", "model_attributes", "dataclass"), "object"),
    "none": "null",
}
_WRONG_KIND: Final = ("_type", "_parsing", "_from_float", "_sub_type", "_required", "_number")
_KEY: Final = "[key]"  # ends the place of a name that does not fit
_FORMS: Final = ("date", "time", "timezone", "url", "uuid", "json", "path", "complex", "value")


def fault_of_pydantic(errors: Sequence[Mapping[str, Any]], arguments: Mapping[str, Any]) -> dict[str, str] | None:
    """What the first of some errors of pydantic says; `None` where it is the tool's own code that refuses.

    Args:
        arguments: What was checked.
    """
    loc, kind = tuple(errors[0]["loc"]), str(errors[0]["type"])
    there = _within(loc, arguments)
    field = ".".join(map(str, there))
    if loc[-1:] == (_KEY,) and len(there) == len(loc) - 1:  # the name itself is wrong, whatever stands under it
        return _fault("extra", field)
    if len(there) < len(loc) and not (kind == "missing" and len(there) == len(loc) - 1):  # a choice of a union
        choices = [one for one in errors if tuple(one["loc"][: len(there)]) == there]
        wanted = [_kind_wanted(str(one["type"])) for one in choices if len(one["loc"]) == len(there) + 1]
        return _wrong_kind(field, wanted) if len(wanted) == len(choices) and all(wanted) else _fault("other", field)
    field = ".".join(map(str, loc))
    if wanted_kind := _kind_wanted(kind):
        return _wrong_kind(field, [wanted_kind])
    if kind in _OF_PYDANTIC:
        fault, name = _OF_PYDANTIC[kind]
        bound = cast("Mapping[str, Any]", errors[0].get("ctx") or {}).get(name, "")
        return _fault(fault, field, _listed(str(bound)) if fault == "choice" else bound)
    if kind in {"value_error", "assertion_error"}:
        return None
    is_form = kind.partition("_")[0] in _FORMS or kind.startswith("string_")
    return _fault("form" if is_form else "other", field)


def _within(loc: Sequence[str | int], arguments: Mapping[str, Any]) -> tuple[str | int, ...]:
    """As much of a place as is in the arguments: pydantic has the names of a union's choices in it as well."""
    found: object = arguments
    for at, part in enumerate(loc):
        if isinstance(found, dict) and part in found:
            found = cast("dict[object, object]", found)[part]
        elif isinstance(found, list) and isinstance(part, int) and part < len(cast("list[object]", found)):
            found = cast("list[object]", found)[part]
        else:
            return tuple(loc[:at])
    return tuple(loc)


def fault_of_unknown(field: str) -> dict[str, str]:
    """That there is no such field."""
    return _fault("extra", field)


def _kind_wanted(kind: str) -> str:
    if not kind.endswith(_WRONG_KIND):
        return ""
    begin = next((kind.removesuffix(one) for one in _WRONG_KIND if kind.endswith(one)), "")
    return _WANTED.get(begin.removesuffix("_sub"), "")


def _listed(expected: str) -> str:
    """The choices that pydantic lists in English, separated by commas."""
    return re.sub(r" or ('[^']*'|[^' ]+)$", r", \1", expected)


def _wrong_kind(field: str, kinds: Sequence[str]) -> dict[str, str]:
    known = [one for one in dict.fromkeys(kinds) if one in _KINDS]
    return {"named": field, "kind": ",".join(known)} if known else _fault("other", field)


def _fault(fault: str, field: str, bound: object = "") -> dict[str, str]:
    text = bound if isinstance(bound, str) else _shown(bound)
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return {"fault": fault, "named": field, "bound": short}


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
