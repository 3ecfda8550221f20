"""The fields of forms in Word documents: content controls, and the older fields of forms, as words in their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.rag.parsers.base import clean
from core.rag.parsers.pdf_forms import is_internal
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_W14: Final = "{http://schemas.microsoft.com/office/word/2010/wordml}"
CONTROL: Final = f"{_W}sdt"
OLDER: Final = f"{_W}fldChar"
_OFF: Final = frozenset({"0", "false", "off"})
_MOST_OPTIONS: Final = 12
_SAID: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "on": "☒ (checked)",
        "off": "☐ (not checked)",
        "empty": "(empty)",
        "options": "{value} (options: {options})",
        "between": ", ",
        "named": "{label}: {value}",
    },
    "zh": {
        "on": "☒（已勾选）",
        "off": "☐（未勾选）",
        "empty": "（空）",
        "options": "{value}（选项：{options}）",
        "between": "、",
        "named": "{label}：{value}",
    },
}


def control_text(control: Any, inside: str, before: str) -> str:
    """What stands for a content control in its paragraph.

    Args:
        control: The element.
        inside: The text in it.
        before: The text of the paragraph so far: a control is named once.
    """
    about = control.find(f"{_W}sdtPr")
    if about is None:
        return inside
    said = _said(before + inside)
    box = about.find(f"{_W14}checkbox")
    choices = next(
        (found for kind in ("dropDownList", "comboBox") if (found := about.find(f"{_W}{kind}")) is not None), None
    )
    is_field = choices is not None or about.find(f"{_W}date") is not None or about.find(f"{_W}text") is not None
    placeholder = about.find(f"{_W}showingPlcHdr") is not None
    if box is not None:
        ticked = box.find(f"{_W14}checked")
        value = said["on" if ticked is not None and _is_on(ticked.get(f"{_W14}val")) else "off"]
    elif choices is not None:
        options = [
            str(one.get(f"{_W}displayText") or one.get(f"{_W}value") or "") for one in choices.iter(f"{_W}listItem")
        ]
        value = _chosen("" if placeholder else inside.strip(), options, said)
    elif is_field or placeholder:
        value = said["empty"] if placeholder or not inside.strip() else inside
    else:
        return inside
    label = clean(_value(about, "alias") or _value(about, "tag")).strip()
    bare = before.rstrip(" :：\t\u3000")
    named = not label or is_internal(label) or bare.casefold().endswith(label.casefold())
    return value if named or (bare and box is None) else said["named"].format(label=label, value=value)


def older_text(field: Any, before: str) -> str:
    """What stands for a field of the older kind where it begins; "" for one whose text follows as words do.

    Args:
        field: The element that begins it.
        before: The text of the paragraph so far.
    """
    about = field.find(f"{_W}ffData")
    if about is None:
        return ""
    said = _said(before)
    box, choices = about.find(f"{_W}checkBox"), about.find(f"{_W}ddList")
    if box is not None:
        ticked = box.find(f"{_W}checked")
        ticked = box.find(f"{_W}default") if ticked is None else ticked
        return said["on" if ticked is not None and _is_on(ticked.get(f"{_W}val")) else "off"]
    if choices is not None:
        options = [str(one.get(f"{_W}val") or "") for one in choices.iter(f"{_W}listEntry")]
        at = _value(choices, "result") or _value(choices, "default") or "0"
        chosen = int(at) if at.isdecimal() else 0
        return _chosen(options[chosen] if chosen < len(options) else "", options, said)
    return ""


def _chosen(value: str, options: Sequence[str], said: Mapping[str, str]) -> str:
    offered = [clean(one).strip() for one in options if one.strip()][:_MOST_OPTIONS]
    told = clean(value) or said["empty"]
    return said["options"].format(value=told, options=said["between"].join(offered)) if offered else told


def _said(text: str) -> Mapping[str, str]:
    return _SAID["zh" if ideographs(text) * 3 > len(text) else "en"]


def _is_on(value: str | None) -> bool:
    return value is None or value.lower() not in _OFF


def _value(node: Any, name: str) -> str:
    found = node.find(f"{_W}{name}")
    return str(found.get(f"{_W}val") or "") if found is not None else ""
