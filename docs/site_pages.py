"""What the site adds to the pages of this folder: the reference, and pages that lie elsewhere in the repository.

MkDocs calls the three functions while it builds (`hooks` in `mkdocs.yml`).
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parent.parent
ELSEWHERE: Final = {
    "CHANGELOG.md": "changes.md",
    "DEVELOPERS.md": "developers.md",
    "LICENSE": "licence.md",
    "examples/README.md": "examples/index.md",
}
"""Files of the repository, and what they are called in the site."""
PICTURES: Final = {
    "assets/icons/favicon.svg": "pictures/favicon.svg",
    "assets/icons/mark-dark.svg": "pictures/mark.svg",
}
_LINK: Final = re.compile(r"(\]\()(?!https?://|#)([^)#\s]+)")
_NAMES_OF: Final = re.compile(r"^<!-- names of: ([\w., ]+) -->$", re.MULTILINE)

_REPOSITORY: Final = re.compile(r"<!-- repository -->.*?<!-- /repository -->\n*", re.DOTALL)


def public_names() -> dict[str, list[str]]:
    """The names of `core` by the module they live in, read from its table without importing it."""
    tree = ast.parse((ROOT / "core" / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NAMES":
            return ast.literal_eval(node.value)
    raise LookupError("core/__init__.py has no table of names.")


def without_links_of_the_repository(markdown: str) -> str:
    """A page without what is for readers of the repository alone: `<!-- repository -->…<!-- /repository -->`."""
    return _REPOSITORY.sub("", markdown)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, a page for each example, and the icons."""
    for source, target in ELSEWHERE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "LICENSE":
            text = f"# Licence\n\n```text\n{text.strip()}\n```\n"
        files.append(File.generated(config, target, content=_moved(text, posixpath.dirname(source), target)))
    for example in sorted((ROOT / "examples").glob("*.py")):
        text = f"# {example.name}\n\n```python\n{example.read_text(encoding='utf-8').strip()}\n```\n"
        files.append(File.generated(config, f"examples/{example.stem}.md", content=text))
    for data in sorted((ROOT / "examples").glob("*.yaml")):
        files.append(File.generated(config, f"examples/{data.name}", abs_src_path=str(data)))
    for source, target in PICTURES.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Send links that leave this folder to the pages made of their targets, and put names where they belong."""
    source = page.file.src_uri
    markdown = without_links_of_the_repository(markdown)
    if page.file.generated_by is None:
        markdown = _moved(markdown, posixpath.join("docs", posixpath.dirname(source)), source)
    return _NAMES_OF.sub(lambda found: "\n\n".join(_entries(found[1])), markdown)


def _entries(wanted: str) -> Iterator[str]:
    """A line for mkdocstrings for each name of the rooms, in the order of the table."""
    for room in (part.strip() for part in wanted.split(",")):
        for module, names in public_names().items():
            if f"{module}.".startswith(f"{room}."):
                for name in sorted(names, key=str.isupper):  # constants last
                    yield f"::: {module}.{name}"


def _moved(markdown: str, folder: str, page: str) -> str:
    """The links of a text that stood in `folder` of the repository, as the site's `page` needs them."""
    here = posixpath.dirname(page)

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[2]))
        if target in ELSEWHERE:
            target = ELSEWHERE[target]
        elif target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif target.startswith("examples/") and target.endswith(".py"):
            target = target.removesuffix(".py") + ".md"
        else:
            return found[0]
        return f"{found[1]}{posixpath.relpath(target, here or '.')}"

    return _LINK.sub(link, markdown)
