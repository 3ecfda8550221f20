"""Reading a file in this very process, so that what goes wrong is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.rag.document import About, Block, PageShape
from core.rag.parsers.base import Scanned
from core.rag.parsers.catalog import HEAD, PARSER_REGISTRY, PDF_READERS, parser_for
from core.rag.parsers.process import Parsed


@pytest.fixture(params=PDF_READERS)
def read_pdf(request: pytest.FixtureRequest) -> Callable[[Path], Parsed]:
    """All that is in a PDF, by either library."""
    return lambda path: _parsed(PDF_READERS[request.param][0], path, path.name)


@pytest.fixture
def read() -> Callable[..., Parsed]:
    """All that the parser of a file gives, chosen as for a user."""

    def read(path: Path, name: str = "") -> Parsed:
        with path.open("rb") as file:
            parser, _ = parser_for(name or path.name, file.read(HEAD))
        return _parsed(parser, path, name or path.name)

    return read


def _parsed(parser: str, path: Path, name: str) -> Parsed:
    parsed = Parsed()
    for found in PARSER_REGISTRY[parser]().parse(path, name):
        match found:
            case About():
                parsed.about = found
            case PageShape():
                parsed.shapes.append(found)
            case Block():
                parsed.blocks.append(found)
            case Scanned():
                parsed.scanned.append(found.page)
    return parsed
