"""A library: documents that can be searched and shown, in one folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path
    from types import TracebackType

    from core.rag.config import RAGConfig, RetrievalType
    from core.rag.document import Document, Passage, Rectangle


class Library:
    """Documents in one folder, safe in many threads and processes. Use `Library.open`."""

    @classmethod
    def open(cls, folder: str | Path, config: RAGConfig | Mapping[str, Any] | None = None) -> Library:
        """Open the library in `folder`, making it where there is none."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of files and threads."""
        raise NotImplementedError

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, path: str | Path, *, name: str | None = None) -> Document:
        """Read a file in; it is searchable when this returns."""
        raise NotImplementedError

    def add_text(self, text: str, *, name: str) -> Document:
        """Take in plain text."""
        raise NotImplementedError

    def remove(self, document_id: str) -> None:
        """Take a document out, its file and pictures too."""
        raise NotImplementedError

    def documents(self) -> list[Document]:
        """All documents, the oldest first."""
        raise NotImplementedError

    def document(self, document_id: str) -> Document:
        """One document."""
        raise NotImplementedError

    def find(
        self,
        question: str,
        k: int | None = None,
        retrieval_type: RetrievalType | None = None,
        *,
        documents: Collection[str] | None = None,
    ) -> list[Passage]:
        """The passages that answer a question best, the best first."""
        raise NotImplementedError

    def page_picture(self, passage: Passage, zoom: float = 2.0) -> bytes:
        """The passage's page as PNG with the passage marked."""
        raise NotImplementedError

    def page_image(self, document_id: str, page: int, zoom: float = 2.0) -> bytes:
        """A page as PNG, unmarked."""
        raise NotImplementedError

    def page_size(self, document_id: str, page: int) -> tuple[float, float]:
        """Width and height of a page as displayed, in points."""
        raise NotImplementedError

    def text_box(self, document_id: str, page: int) -> Rectangle | None:
        """The box around all text of a page, in points."""
        raise NotImplementedError

    async def aadd(self, path: str | Path, *, name: str | None = None) -> Document:
        """`add`, in a thread."""
        raise NotImplementedError

    async def afind(
        self,
        question: str,
        k: int | None = None,
        retrieval_type: RetrievalType | None = None,
        *,
        documents: Collection[str] | None = None,
    ) -> list[Passage]:
        """`find`, in a thread."""
        raise NotImplementedError

    async def apage_image(self, document_id: str, page: int, zoom: float = 2.0) -> bytes:
        """`page_image`, in a thread."""
        raise NotImplementedError
