"""The documentation's pictures: what daily users expect and what is there can be seen, and nothing weighs much."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "pictures"
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]*)#([^)\s]+)\)")
_MOST = 3_500_000  # bytes of all of them
_EACH = 150_000


def rows() -> list[list[str]]:
    """The cells of the table, without its head."""
    text = (DOCS / "expectations.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def sections(page: str) -> dict[str, str]:
    """What stands under each heading of a page, by the heading's address."""
    parts = re.split(r"^#+ (.+)$", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)[1:]
    names = ("-".join(re.sub(r"[^\w\s-]", "", title).lower().split()) for title in parts[::2])
    return dict(zip(names, parts[1::2], strict=True))


def test_each_line_of_what_daily_users_expect_leads_to_a_picture_of_what_is_there() -> None:
    found = rows()
    assert len(found) == 47
    for expected, there, _, seen in found:
        if there.startswith("not there"):
            assert not seen, expected
            continue
        links = LINK.findall(seen)
        assert links, expected
        for page, heading in links:
            assert IMAGE.search(sections(page or "expectations.md").get(heading, "")), (expected, page, heading)


def test_each_picture_is_there_and_says_in_words_what_is_seen() -> None:
    for page in DOCS.glob("*.md"):
        for said, address in IMAGE.findall(page.read_text("utf-8")):
            assert (page.parent / address).is_file(), (page.name, address)
            assert len(said) >= 20, (page.name, address)


def test_each_picture_is_shown_somewhere_and_together_they_weigh_little() -> None:
    root = DOCS.parent
    told = "".join(page.read_text("utf-8") for page in [root / "README.md", *DOCS.rglob("*.md")])
    files = [path for path in PICTURES.iterdir() if path.is_file()]
    assert [path.name for path in files if path.name not in told] == []
    sizes = [path.stat().st_size for path in files]
    assert max(sizes) <= _EACH
    assert sum(sizes) <= _MOST
