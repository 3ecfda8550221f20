"""Encrypted PDFs open with their password; tables of contents stay lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import LockedDocumentError
from core.rag.parsers import process
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import PDF_READERS
from core.rag.parsers.process import Limits, Parsed, parse

Make = Callable[..., Path]
AES_256 = 5  # PyMuPDF's PDF_ENCRYPT_AES_256
RC4_128 = 3


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize("method", [AES_256, RC4_128])
@pytest.mark.parametrize("password", ["user", "owner", "密码"])
def test_an_encrypted_pdf_opens_with_its_password(
    make_pdf: Callable[..., Path], method: int, password: str, reader: str
) -> None:
    if password == "密码" and method == RC4_128:
        password = "user"  # the old method knows no Chinese
    user = password if password != "owner" else "user"
    path = make_pdf("A secret.", encryption=method, user_pw=user, owner_pw="owner")
    parsed = parse(path, "a.pdf", PDF_READERS[reader][0], Limits(), ParseOptions(password=password))
    assert [block.text for block in parsed.blocks] == ["A secret."]
    assert process.picture(path, PDF_READERS[reader][1], 1, 1.0, password=password).startswith(b"\x89PNG")


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize(("password", "key"), [("", "document_locked"), ("wrong", "document_password_wrong")])
def test_without_its_password_an_encrypted_pdf_stays_closed(
    make_pdf: Callable[..., Path], password: str, key: str, reader: str
) -> None:
    path = make_pdf("A secret.", encryption=AES_256, user_pw="user")
    with pytest.raises(LockedDocumentError) as caught:
        parse(path, "a.pdf", PDF_READERS[reader][0], Limits(), ParseOptions(password=password))
    assert caught.value.words_key == key
    assert "wrong" not in str(caught.value.details)
    with pytest.raises(LockedDocumentError):
        process.picture(path, PDF_READERS[reader][1], 1, 1.0, password=password)


def test_a_password_that_is_not_needed_does_no_harm(make_pdf: Callable[..., Path]) -> None:
    assert parse(make_pdf("Open."), "a.pdf", "pdf", Limits(), ParseOptions(password="x")).blocks[0].text == "Open."


def test_a_password_is_shown_nowhere() -> None:
    assert "secret" not in repr(ParseOptions(password="secret"))


def test_a_table_of_contents_stays_a_list(make_pdf: Callable[..., Path], read_pdf: Callable[..., Parsed]) -> None:
    lines = ("Preface . . . . . . . . . ix", "1 Beginnings ........... 3", "1.1 First steps . . . . 12")
    (block,) = read_pdf(make_pdf("\n".join(lines))).blocks
    assert block.text == "Preface ix\n1 Beginnings 3\n1.1 First steps 12"
    assert len(block.lines) == 3
    assert [block.text[start:].split()[0] for start, _ in block.lines] == ["Preface", "1", "1.1"]
