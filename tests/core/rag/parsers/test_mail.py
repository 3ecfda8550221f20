"""Letters: who wrote to whom, the text in its encoding, and what is attached."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError
from core.rag.document import About, Block
from core.rag.parsers.base import Found
from core.rag.parsers.mail import MailParser, OutlookParser
from tests.core.rag.parsers.compound_file import compound
from tests.core.rag.parsers.old_office import outlook

ABOUT = """From: Ann <ann@example.com>
To: Bob <bob@example.com>
Date: Fri, 27 Nov 2026 10:00:00 +0000
Subject: 灯 lamps"""


def found_in(tmp_path: Path, data: bytes) -> list[Found]:
    path = tmp_path / "a.eml"
    path.write_bytes(data)
    return list(MailParser().parse(path, path.name))


def told(found: list[Found]) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in found if isinstance(one, Block)]


def a_letter(text: str = "See the file.") -> EmailMessage:
    letter = EmailMessage()
    letter["Subject"] = "灯 lamps"
    letter["From"] = "Ann <ann@example.com>"
    letter["To"] = "Bob <bob@example.com>"
    letter["Date"] = "Fri, 27 Nov 2026 10:00:00 +0000"
    letter.set_content(text)
    return letter


def test_the_first_block_says_who_wrote_to_whom_and_when(tmp_path: Path) -> None:
    found = found_in(tmp_path, bytes(a_letter()))
    assert found[0] == About(title="灯 lamps")
    assert told(found) == [("paragraph", ABOUT), ("paragraph", "See the file.")]


def test_of_texts_that_say_the_same_the_plain_one_is_read(tmp_path: Path) -> None:
    letter = a_letter()
    letter.add_alternative("<p>See the <b>file</b> again.</p>", subtype="html")
    assert [text for _, text in told(found_in(tmp_path, bytes(letter)))][1:] == ["See the file."]


def test_a_letter_of_html_alone_is_read_as_a_page(tmp_path: Path) -> None:
    data = b"Subject: x\r\nContent-Type: text/html; charset=gb2312\r\n\r\n" + "<h2>灯</h2><p>绿色</p>".encode("gb2312")
    assert told(found_in(tmp_path, data))[1:] == [("heading", "灯"), ("paragraph", "绿色")]


def test_attached_files_are_read_under_their_names_and_others_told(tmp_path: Path) -> None:
    letter = a_letter()
    letter.add_attachment("Name,Price\nlamp,12\n", subtype="csv", filename="价格.csv")
    letter.add_attachment(b"\x7fELF\0\0\0", maintype="application", subtype="x", filename="tool")
    inner = a_letter("Words within.")
    letter.add_attachment(inner)
    found = found_in(tmp_path, bytes(letter))
    blocks = told(found)
    assert ("heading", "价格.csv") in blocks
    assert ("table", "Name | Price\nlamp | 12") in blocks
    assert ("paragraph", "Words within.") in blocks
    assert [text for _, text in blocks if text.startswith("Not read")] == [
        "Not read: files of this kind are not read. 未读取：不支持这种格式。"
    ]
    assert found[-1] == About(title="灯 lamps", left_out=1)


@pytest.mark.parametrize("charset", ["utf-8", "gb18030", "big5", "no-such-encoding"])
def test_text_is_read_in_its_encoding_even_if_the_letter_names_none_that_is_known(tmp_path: Path, charset: str) -> None:
    words = "台燈在綠色的門旁邊，今天我們一起看。"
    data = f"Subject: x\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n".encode()
    encoded = words.encode("utf-8" if charset.startswith("no") else charset)
    assert told(found_in(tmp_path, data + encoded))[1:] == [("paragraph", words)]


@pytest.mark.parametrize(
    "data",
    [
        b"From: \xff\xfe<<>>@\nTo: =?utf-8?q?=\nDate: yesterday\nSubject: =?bogus?b?AAAA?=\n\nwords",
        b"Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n--a\n\nwords\n--a",
        b"Subject: x\nContent-Type: multipart/mixed\n\nwords",
        b'Subject: x\nContent-Type: text/plain; charset="\nContent-Transfer-Encoding: base64\n\nwords',
        b"Subject: x\n"
        + b"".join(b"Content-Type: multipart/mixed; boundary=a%d\n\n--a%d\n" % (n, n) for n in range(300)),
    ],
)
def test_a_letter_that_breaks_the_rules_is_read_as_far_as_it_goes(tmp_path: Path, data: bytes) -> None:
    assert told(found_in(tmp_path, data))


def test_what_is_called_a_letter_and_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(BrokenDocumentError):
        found_in(tmp_path, b"\n\n\n")


def test_a_letter_of_outlook_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.msg"
    path.write_bytes(outlook("灯", "See the green door.\r\n\r\nBye", "Ann"))
    assert told(list(OutlookParser().parse(path, path.name))) == [
        ("paragraph", "From: Ann\nSubject: 灯"),
        ("paragraph", "See the green door."),
        ("paragraph", "Bye"),
    ]


def test_a_container_without_a_letter_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.msg"
    path.write_bytes(compound({"Something": b"else"}))
    with pytest.raises(BrokenDocumentError):
        list(OutlookParser().parse(path, path.name))
