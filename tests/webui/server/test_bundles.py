"""Our script and our styles are one file of each, and hold everything that lies in `assets`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webui import bundles
from webui.bundles import assets_folder

ASSETS = assets_folder()


def modules(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder


def test_each_module_stands_once_after_what_it_needs_and_keeps_its_names_to_itself(tmp_path: Path) -> None:
    folder = modules(
        tmp_path,
        top=(
            "import { one, start as begin } from './left.js';\nimport { one as other } from './right.js';\n"
            "begin(one, other);\n"
        ),
        left="import { base } from './low.js';\nexport const one = base + 1;\nexport async function start() {}\n",
        right="import { base } from './low.js';\nexport const one = base + 2;\n",
        low="const hidden = 1;\nexport const base = hidden;",
    )
    assert bundles.joined_script(folder, "top") == (
        "const $low = (() => {\nconst hidden = 1;\nconst base = hidden;\nreturn { base };\n})();\n"
        "const $left = (() => {\nconst { base } = $low;\nconst one = base + 1;\nasync function start() {}\n"
        "return { one, start };\n})();\n"
        "const $right = (() => {\nconst { base } = $low;\nconst one = base + 2;\nreturn { one };\n})();\n"
        "const $top = (() => {\nconst { one, start: begin } = $left;\nconst { one: other } = $right;\n"
        "begin(one, other);\nreturn {  };\n})();\n"
    )


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    folder = modules(tmp_path, a="import { b } from './b.js';\n", b="import { a } from './a.js';\n")
    with pytest.raises(ValueError, match="a → b → a"):
        bundles.joined_script(folder, "a")


@pytest.mark.parametrize(
    "line",
    ["import './b.js';", "export default 1;", "export let n = 0;", "import * as b from './b.js';", "export { n };"],
)
def test_what_cannot_be_joined_is_refused_and_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(line)):
        bundles.joined_script(modules(tmp_path, a=line + "\n"), "a")


def test_every_module_and_every_stylesheet_is_in_the_page() -> None:
    script, styles = bundles.script().body.decode(), bundles.stylesheet().body.decode()
    for path in sorted((ASSETS / "js").glob("*.js")):
        assert script.count(f"const ${path.stem} = ") == 1, path.name
    for path in sorted((ASSETS / "css").glob("*.css")):
        assert styles.count(path.read_text("utf-8").replace('url("../', 'url("./')) == 1, path.name


def test_every_picture_of_the_styles_is_where_they_look() -> None:
    pictures = re.findall(r'url\("(?!data:)([^"]+)"\)', bundles.stylesheet().body.decode())
    assert pictures
    for picture in pictures:
        assert (ASSETS / picture).is_file(), picture


def test_a_name_changes_with_what_is_in_the_file() -> None:
    assert bundles.Bundle.of("a", "js", "").name != bundles.Bundle.of("b", "js", "").name
    assert bundles.Bundle.of("a", "js", "").name == bundles.Bundle.of("a", "js", "").name


def test_a_class_gets_its_look_from_one_sheet() -> None:
    """The later of two sheets would change what the other one laid out: on the desk, sheets of narrow windows apart."""
    sheets: dict[str, set[str]] = {}
    for path in (ASSETS / "css").glob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
        for rule in re.findall(r"^(\S[^{}]*)\{", text, re.MULTILINE):  # those of `@media` are indented
            for chosen in re.findall(r"(?:^|,)\s*(\.p-[\w-]+)\s*(?=,|$)", rule.strip()):
                sheets.setdefault(chosen, set()).add(path.name)
    assert len(sheets) > 100
    assert {name: found for name, found in sheets.items() if len(found) > 1} == {}
