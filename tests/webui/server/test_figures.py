"""The picture of a figure is served to whoever has its document, and to nobody else."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import httpx
from docx import Document
from PIL import Image

from core.engine import Engine
from tests.doors.house import OWNER, house_in


def report(path: Path) -> Path:
    """A document with one figure and its caption."""
    drawn = Image.new("RGB", (400, 300), "white")
    drawn.paste("navy", (40, 60, 360, 240))
    chart = io.BytesIO()
    drawn.save(chart, "PNG")
    document = Document()
    document.add_paragraph("The harbour grew.")
    document.add_picture(io.BytesIO(chart.getvalue()))
    document.add_paragraph("Figure 1: Ships by year")
    document.save(str(path))
    return path


def test_a_figure_is_shown_to_the_owner_of_its_document_alone_and_is_gone_with_it(tmp_path: Path) -> None:
    source = report(tmp_path / "report.docx")

    async def kept(engine: Engine, owner: str) -> tuple[str, str, int]:
        async with engine.workspaces.open(owner) as workspace:
            library = await workspace.libraries.create("Harbour")
            await workspace.libraries.add(library.id, source, f"{owner}.docx")
            async with asyncio.timeout(180):
                while (one := (await workspace.libraries.opened(library.id)).documents[0]).status != "ready":
                    await asyncio.sleep(0.02)
            document = str(one.library_id)
            (figure,) = (await workspace.index()).figures.of([document])
            return library.id, document, figure.number

    async def gone(engine: Engine, library: str) -> None:
        async with engine.workspaces.open(OWNER) as workspace:
            await workspace.libraries.delete(library)

    with house_in(tmp_path / "home") as house:
        library, document, number = house.do(lambda engine: kept(engine, OWNER))
        address = f"{house.address}/pages/{document}/figure"
        shown = httpx.get(f"{address}/{number}.jpg")
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/jpeg")
        with Image.open(io.BytesIO(shown.content)) as picture:
            assert picture.getpixel((picture.width // 2, picture.height // 2))[2] > 90  # type: ignore[index] - navy
        for wrong in (f"{address}/{number + 1}.jpg", f"{address}/0.jpg", f"{house.address}/pages/x/figure/1.jpg"):
            assert httpx.get(wrong).status_code == 404, wrong
        house.do(lambda engine: gone(engine, library))
        assert httpx.get(f"{address}/{number}.jpg").status_code == 404
        house.do(lambda engine: kept(engine, "b-bob"))
        assert httpx.get(f"{address}/{number}.jpg").status_code == 404, "the same document of somebody else"
