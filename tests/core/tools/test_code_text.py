"""Code out of what a model hands over."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tools.arguments import extract_code
from tests.tries import tries

FENCE = "```"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("print(1)", "print(1)"),
        ("", ""),
        (f"{FENCE}python\nprint(1)\n{FENCE}", "print(1)\n"),
        (f"Here:\n{FENCE}py title=x\nif x:\n    y()\n{FENCE}\nDone.", "if x:\n    y()\n"),
        (f"{FENCE}\n\n{FENCE}\n{FENCE}\nx\n{FENCE}", "x\n"),
        (f"{FENCE}py\nprint(1)", "print(1)"),  # the end was cut off
        (f"~~~\nx = '{FENCE}'\n~~~", f"x = '{FENCE}'\n"),
        ("Here:\n  ~~~py\nx\n  ~~~", "x\n"),
        (f"{FENCE}`md\n{FENCE}\nx\n{FENCE}\n{FENCE}`", f"{FENCE}\nx\n{FENCE}\n"),
        (f"Use {FENCE}x{FENCE} here", f"Use {FENCE}x{FENCE} here"),
        ('{"code": "print(1)\\n"}', "print(1)\n"),
        ("{'code': 'print(1)', 'x': None}", "print(1)"),
        (json.dumps({"code": f"{FENCE}py\nprint('a')\n{FENCE}"}), "print('a')\n"),
        ('{"query": "x"}', '{"query": "x"}'),
        ("{'a': 1}['a']", "{'a': 1}['a']"),
        ('{"code": 1}', '{"code": 1}'),
    ],
)
def test_it_is_found_in_a_fence_in_json_or_bare(text: str, code: str) -> None:
    assert extract_code(text) == code


@pytest.mark.parametrize("looping", ["`", "~", "`~", "~~~ ", "``` ", " ~~~", "~~~`", "```a ~~~"])
def test_marks_without_end_take_no_time_without_end(looping: str) -> None:
    text = looping * 200_000
    assert extract_code(text) == text


@settings(max_examples=tries(50))
@given(st.text(alphabet="`~ \tab\n", min_size=1, max_size=8))
def test_what_is_repeated_takes_time_in_proportion(looping: str) -> None:
    def seconds(times: int) -> float:
        began = time.process_time()
        extract_code(looping * times)
        return time.process_time() - began

    assert seconds(20_000) < 0.5  # of which a hundredth is enough; what grows with the square takes ten times as long


@given(st.text(alphabet=st.characters(exclude_characters="`~{", exclude_categories=["Cs"]), min_size=1))
def test_code_comes_out_of_a_fence_as_it_went_in(code: str) -> None:
    if code.strip():
        assert extract_code(f"So:\n{FENCE}python\n{code}\n{FENCE}\nThat is all.") == code + "\n"
