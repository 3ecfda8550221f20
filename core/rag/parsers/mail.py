"""Letters with what is attached: e-mail (EML) through Python's own reader, Outlook's (MSG) through python-oxmsg."""

from __future__ import annotations

import email
import email.policy
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from core.errors import BrokenDocumentError, UnsupportedFormatError
from core.rag.document import About, Block
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean, ending
from core.rag.parsers.compound import compound, compound_kind
from core.rag.parsers.parts import File, parts
from core.rag.parsers.text import decode, looks_like_text, paragraphs
from core.rag.parsers.web_page import page_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage
    from pathlib import Path

MEDIA_TYPE = "message/rfc822"
OUTLOOK_MEDIA_TYPE = "application/vnd.ms-outlook"
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_LONGEST_HEADER = 4_000
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
_MOST_PARTS = 2_000
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030"}  # with characters that letters have all the same


class MailParser:
    """Reads an e-mail: who wrote it to whom and when, its text, and the files attached to it."""

    def accepts(self, name: str, head: bytes) -> str:
        """Text whose name says that it is an e-mail."""
        return MEDIA_TYPE if ending(name) == ".eml" and looks_like_text(head) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """The headers as the first block, then the text, then what is attached, each file under its name.

        Raises:
            BrokenDocumentError: It is no e-mail.
        """
        try:
            letter = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            headers = [(one, _header(letter, one)) for one in _HEADERS]
            body, attached = _parts_of(letter)
        except _DAMAGE as error:
            raise BrokenDocumentError("The e-mail is damaged.") from error
        if not any(said for _, said in headers) and not body:
            raise BrokenDocumentError("The file is called EML, but is no e-mail.", key="document_not_what_it_says")
        yield About(title=dict(headers)["Subject"])
        yield from _about(headers)
        for kind, text in body:
            yield from page_blocks(text) if kind == "html" else paragraphs(clean(text), "paragraph")
        yield from parts(attached, options, dict(headers)["Subject"])


class OutlookParser:
    """Reads a letter that Outlook saved."""

    def accepts(self, name: str, head: bytes) -> str:
        """A compound file that says that it is a letter."""
        return OUTLOOK_MEDIA_TYPE if compound_kind(name, head) == ".msg" else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """As of an e-mail.

        Raises:
            BrokenDocumentError: It is damaged, or another kind of file.
        """
        with compound(path, "The letter"):
            letter: Any = cast("Any", import_module("oxmsg")).Message.load(str(path))
            headers = [(one, _outlook_header(letter, one)) for one in _HEADERS]
            body, page = letter.body, letter.html_body
            attached = [_outlook_file(one) for one in letter.attachments]
            yield About(title=dict(headers)["Subject"])
            yield from _about(headers)
            yield from paragraphs(clean(body), "paragraph") if body else page_blocks(page or "")
            yield from parts(attached, options, dict(headers)["Subject"])


def _about(headers: list[tuple[str, str]]) -> Iterator[Block]:
    said = [f"{name}: {text}" for name, text in headers if text]
    if said:
        yield Block("paragraph", "\n".join(said))


def _header(letter: EmailMessage, name: str) -> str:
    """What a header says, as it reads; one that is damaged says what it can."""
    try:
        said = str(letter.get(name, ""))
    except (*_DAMAGE, IndexError):  # Python's reader trips over some damage
        said = next((text for key, text in letter.raw_items() if key.lower() == name.lower()), "")
    return " ".join(clean(said.encode(errors="replace").decode()).split())[:_LONGEST_HEADER]


def _parts_of(letter: EmailMessage) -> tuple[list[tuple[str, str]], list[File]]:
    """The texts of the letter itself, and the files: of texts that say the same, the plain one is read."""
    body: list[tuple[str, str]] = []
    files: list[File] = []
    waiting: list[Any] = [letter]
    seen = 0
    while waiting and (seen := seen + 1) <= _MOST_PARTS:
        part = waiting.pop()
        kind: str = part.get_content_type()
        name = _file_name(part)
        if kind == "message/rfc822":
            files.append(File(name or f"{len(files) + 1}.eml", 0, partial(_letter_bytes, part)))
        elif kind == "multipart/alternative":
            waiting.append(_best(part))
        elif part.is_multipart():
            waiting.extend(reversed(part.get_payload()))
        elif kind in {"text/plain", "text/html"} and not name and part.get_content_disposition() != "attachment":
            text = _text_of(part)
            if text.strip():
                body.append((kind.removeprefix("text/"), text))
        elif name or part.get_content_disposition() == "attachment":
            files.append(File(name or f"{len(files) + 1}", 0, partial(_bytes_of, part)))
    return body, files


def _best(part: Any) -> Any:
    inside: list[Any] = list(part.get_payload()) if part.is_multipart() else []
    kinds = {one.get_content_type(): one for one in reversed(inside)}
    for kind in ("text/plain", "multipart/related", "multipart/mixed", "text/html"):
        if kind in kinds:
            return kinds[kind]
    return inside[0] if inside else email.message_from_string("", policy=email.policy.default)


def _file_name(part: Any) -> str:
    with suppress(*_DAMAGE, IndexError):
        return str(part.get_filename() or "")
    return ""


def _text_of(part: Any) -> str:
    """The text in the encoding that the letter names, if it fits; else in the one that it seems to be in."""
    data = _bytes_of(part)
    named: str = part.get_content_charset("") or ""
    if named and named not in {"utf-8", "us-ascii"}:
        with suppress(LookupError, UnicodeDecodeError):
            return data.decode(_WIDER.get(named, named)).replace("\r\n", "\n")
    return decode(data)


def _bytes_of(part: Any) -> bytes:
    try:
        payload: object = part.get_payload(decode=True)
    except _DAMAGE as error:
        raise BrokenDocumentError("It is damaged.") from error
    return payload if isinstance(payload, bytes) else b""


def _letter_bytes(part: Any) -> bytes:
    try:
        inside: list[Any] = part.get_payload()
        return inside[0].as_bytes() if inside else b""
    except (*_DAMAGE, IndexError) as error:
        raise BrokenDocumentError("It is damaged.") from error


def _outlook_header(letter: Any, name: str) -> str:
    said = str(letter.message_headers.get(name, ""))
    if not said:
        match name:
            case "From":
                said = letter.sender or ""
            case "Subject":
                said = letter.subject
            case "Date":
                said = f"{letter.sent_date:%Y-%m-%d %H:%M}" if letter.sent_date else ""
            case "To":
                said = ", ".join(_address(one) for one in letter.recipients)
            case _:
                pass
    return " ".join(clean(said).split())[:_LONGEST_HEADER]


def _address(recipient: Any) -> str:
    name, address = recipient.name or "", recipient.email_address or ""
    return f"{name} <{address}>" if name and address and name != address else name or address


def _outlook_file(attachment: Any) -> File:
    def read() -> bytes:
        if attachment.file_bytes is None:  # a letter within the letter, or what lies elsewhere
            raise UnsupportedFormatError("It is no file.")
        return attachment.file_bytes

    return File(attachment.file_name or "-", attachment.size, read)
