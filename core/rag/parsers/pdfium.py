"""PDF without PyMuPDF: chosen by the setting `pdf_reader`."""

from __future__ import annotations

from core.rag.parsers import pdfium_file
from core.rag.parsers.pdf import PdfParser


class PdfiumParser(PdfParser):
    """Reads the same as `PdfParser` with pypdfium2 (BSD and Apache licences)."""

    _source = staticmethod(pdfium_file.source)
