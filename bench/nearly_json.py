"""What three readers make of the nearly-JSON in the recordings of `tests/golden/records`.

    python -m bench.nearly_json

The recordings hold calls and arguments that models wrote. Those that are no JSON, are whole, and can mean one thing
only are read by ours, by `json-repair`, and by `json5` where it is installed (Parlour does not need it).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from importlib import import_module, util
from pathlib import Path
from typing import Any

from core.messages.json_text import read_value

RECORDS = Path(__file__).parents[1] / "tests" / "golden" / "records" / "qwen_agent_golden.json"
CALL = {"name": "f", "arguments": {"x": 1}}
MEANT: dict[str, Any] = {
    '{"name": "f", "arguments": {"x": 1,},}': CALL,
    '{"name": "f", /* hi */ "arguments": {"x": 1}}': CALL,
    '{name: "f", arguments: {x: 1}}': CALL,
    '{"name": "f", "arguments": {"x": 1}': CALL,
    '{"name": "f", "arguments": {"x": 1}}}': CALL,
    '{"name": "f", "arguments": {"code": "a\nb"}}': {"name": "f", "arguments": {"code": "a\nb"}},
    '{"name": "f", "arguments": {"x": NaN, "y": Infinity}}': {"name": "f", "arguments": {"x": None, "y": None}},
    "{'a': 1}": {"a": 1},
    '```json\n{"a": 1}\n```': {"a": 1},
    '{"a": 1': {"a": 1},
    '{"a": NaN}': {"a": None},
    "{city: 'A'}": {"city": "A"},
}
"""What no service takes (NaN, infinities) counts as read where it stays what it is, or becomes `None`."""


def readers() -> dict[str, Callable[[str], Any]]:
    """Those that are installed."""
    found: dict[str, Callable[[str], Any]] = {"ours": read_value}
    for name, package in (("json-repair", "json_repair"), ("json5", "json5")):
        if util.find_spec(package) is not None:
            found[name] = import_module(package).loads
    return found


def plain(value: Any) -> Any:
    """The value with `None` for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main() -> None:
    """Print how many each reads, and what each makes of the others."""
    recorded = RECORDS.read_text("utf-8")
    missing = [text for text in MEANT if json.dumps(text, ensure_ascii=False)[1:-1] not in recorded]
    if missing:
        sys.exit(f"Not in the recordings: {missing}")
    for name, read in readers().items():
        wrong: list[str] = []
        for text, meant in MEANT.items():
            try:
                found = plain(read(text))
            except Exception as error:  # whatever a reader raises, it has not read it
                wrong.append(f"{text!r}: {type(error).__name__}")
            else:
                wrong += [f"{text!r}: {found!r}"] if found != meant else []
        print(f"{name}: {len(MEANT) - len(wrong)} of {len(MEANT)}", *wrong, sep="\n   ")


if __name__ == "__main__":
    main()
