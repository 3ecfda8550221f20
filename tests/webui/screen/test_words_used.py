"""No sentence is kept that nobody says, and a key that is put together from parts finds one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.judging.report import WORDS as REPORTS
from core.judging.suite import Check
from webui.words import sentences

EN = sentences("en")
ROOT = Path(__file__).resolve().parents[3]
TREES = {
    path: ast.parse(path.read_text("utf-8"))
    for room in ("core", "webui")
    for path in sorted((ROOT / room).rglob("*.py"))
}
SCRIPTS = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "assets" / "js").glob("*.js")))


def pattern(text: ast.JoinedStr) -> str:
    """What a text with blanks may become."""
    parts = (re.escape(part.value) if isinstance(part, ast.Constant) else r"[\w.-]+" for part in text.values)  # pyright: ignore[reportArgumentType]
    return "".join(parts)


def nodes() -> Iterator[tuple[Path, ast.AST]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            yield path, node


def asked_in_parts() -> list[tuple[str, str]]:
    """Where a sentence is asked for by a key with blanks, and what that key may be."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", pattern(node.args[0]))
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.args[0], ast.JoinedStr)
        and (getattr(node.func, "id", "") or getattr(node.func, "attr", "")) == "words"
    ]


@pytest.mark.parametrize(("place", "key"), asked_in_parts(), ids=str)
def test_a_key_that_is_put_together_finds_a_sentence(place: str, key: str) -> None:
    assert [one for one in EN if re.fullmatch(key, one)], place


def test_no_sentence_is_kept_that_nobody_says() -> None:
    written = {node.value for _, node in nodes() if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    built = [pattern(node) for _, node in nodes() if isinstance(node, ast.JoinedStr)]
    of_keys = re.compile("|".join(one for one in built if re.match(r"[a-z_]+\\\.", one) or one.endswith("_one")))
    in_script = set(re.findall(r"['\"`]([a-z_0-9]+)['\"`]", SCRIPTS))
    built_in_script = re.compile("|".join(one.replace("$", r"\w+") for one in parts_of_the_script()))

    def said(key: str) -> bool:
        if key.startswith("js."):
            return key[3:] in in_script or bool(built_in_script.fullmatch(key[3:]))
        if key.startswith("error."):
            return key.removeprefix("error.").removesuffix(".do") in written or bool(of_keys.fullmatch(key))
        return key in written or bool(of_keys.fullmatch(key))

    assert [key for key in EN if not said(key)] == []


def parts_of_the_script() -> list[str]:
    """The keys with blanks that the page's script asks for; a blank is a `$`."""
    return [re.sub(r"\$\{[^}]*\}", "$", one) for one in re.findall(r"\bsay\(`([^`]+)`", SCRIPTS)]


def test_whatever_may_be_unknown_is_called_by_its_name_in_both_languages() -> None:
    kinds = {
        node.args[0].value
        for _, node in nodes()
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in {"Registry", "UnknownNameError"}
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    assert len(kinds) > 5
    assert [kind for kind in kinds if f"check.kind.{str(kind).replace(' ', '_')}" not in EN] == []


def test_a_report_has_the_same_words_in_both_languages_and_names_every_check() -> None:
    assert set(REPORTS["en"]) == set(REPORTS["zh"])
    assert [kind for kind in Check.model_fields if f"check.{kind}" not in REPORTS["en"]] == []
