"""Writes `examples/recipes`: each recipe of `docs/recipes.md` as a program, and the one for notebooks as a notebook.

`make reference` writes them anew; `tests/examples/test_recipes.py` holds that they are as the page has them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE, TARGET = ROOT / "docs" / "recipes.md", ROOT / "examples" / "recipes"
NAMES: Final = (
    *("invoices", "support_bot", "research", "fastapi_stream", "webhook", "notebook", "batch_that_goes_on"),
    *("answers_in_ci", "several_agents", "own_back_end"),
)
_RECIPE: Final = re.compile(r"^## \d+\. (?P<title>.+?)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CELL: Final = re.compile(r'CELL = """\n(.*?)"""', re.DOTALL)


def files() -> dict[str, str]:
    """What each file of the folder says, by its name."""
    page = SOURCE.read_text(encoding="utf-8")
    llm = _CODE.findall(page)[0].strip()
    made: dict[str, str] = {}
    for name, found in zip(NAMES, _RECIPE.finditer(page), strict=True):
        code = _CODE.findall(found["text"])[0]
        if cell := _CELL.search(code):
            made[f"{name}.ipynb"] = notebook(found["title"], llm, cell[1])
        else:
            made[f"{name}.py"] = program(found["title"], llm, code)
    return made


def program(title: str, llm: str, code: str) -> str:
    """A recipe as a file: its imports, the model, and the rest."""
    imports, rest = _parted(code)
    gap = "\n\n\n" if re.match(r"@|class |def |async def ", rest) else "\n"
    return f'"""{title}; docs/recipes.md says more."""\n\n{imports}\n\n{llm}{gap}{rest}\n'


def _parted(code: str) -> tuple[str, str]:
    """The imports at the top, and the rest."""
    lines = code.rstrip().split("\n")
    last = max(at for at, line in enumerate(lines) if re.match(r"(?:from|import) ", line))
    return "\n".join(lines[: last + 1]).strip("\n"), "\n".join(lines[last + 1 :]).strip("\n")


def notebook(title: str, llm: str, cell: str) -> str:
    """A recipe as a notebook, in version 4.5 of the format."""
    imports, asked = _parted(cell.replace("\\\\n", "\\n"))
    more = "[docs/recipes.md](../../docs/recipes.md) says more."
    told = f"# {title}\n\nA cell may write `await agent.aask(…)`; {more}"
    cells = [_cell("about", "markdown", told)]
    cells += [_cell(name, "code", code) for name, code in (("model", llm), ("imports", imports), ("ask", asked))]
    about: dict[str, Any] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}
    return {**made, "execution_count": None, "outputs": []} if kind == "code" else made


def write() -> None:
    """Write the folder anew."""
    TARGET.mkdir(exist_ok=True)
    made = files()
    for path in TARGET.iterdir():
        if path.is_file() and path.name not in made:
            path.unlink()
    for name, text in made.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(made)} recipes")


if __name__ == "__main__":
    write()
