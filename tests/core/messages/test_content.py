"""Content items: exactly one thing each, quick to ask."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from core.messages.content import ContentItem


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ({"text": "a"}, "text", "a"),
        ({"text": ""}, "text", ""),
        ({"image": "sky.png"}, "image", "sky.png"),
        ({"file": "a.pdf"}, "file", "a.pdf"),
        ({"audio": {"data": "AAAA", "format": "wav"}}, "audio", {"data": "AAAA", "format": "wav"}),
        ({"video": ["1.png", "2.png"]}, "video", ["1.png", "2.png"]),
    ],
)
def test_an_item_knows_its_type_and_value(given, kind, value):
    item = ContentItem(**given)
    assert (item.type, item.value) == (kind, value)
    assert item.get_type_and_value() == (kind, value)
    assert item.model_dump() == given


@pytest.mark.parametrize("given", [{}, {"image": ""}, {"text": "a", "image": "b"}, {"text": "", "file": "b"}])
def test_none_or_two_is_refused_and_the_message_says_so(given):
    with pytest.raises(ValidationError, match="Exactly one of text, image, file, audio and video"):
        ContentItem(**given)


def test_reading_the_type_dumps_nothing(monkeypatch):
    item = ContentItem(image="a.png")
    monkeypatch.setattr(ContentItem, "model_dump", lambda *a, **k: pytest.fail("dumped"))
    assert item.type == "image"


@pytest.mark.parametrize(
    ("item", "extension"),
    [
        (ContentItem(file="Report.PDF"), "pdf"),
        (ContentItem(image="https://example.org/a/b.png?size=3&x=.jpg"), "png"),
        (ContentItem(image="data:image/png;base64,AAAA"), "png"),
        (ContentItem(file="C:\\documents\\notes.md"), "md"),
        (ContentItem(file="no_extension"), None),
        (ContentItem(text="a.txt"), None),
        (ContentItem(audio={"data": ""}), None),
        (ContentItem(file="中文.docx"), "docx"),
    ],
)
def test_the_extension_is_found_in_paths_urls_and_data_uris(item, extension):
    assert item.get_file_extension() == extension


@pytest.mark.parametrize(
    ("item", "is_media"),
    [
        (ContentItem(image="a"), True),
        (ContentItem(audio="a"), True),
        (ContentItem(video="a"), True),
        (ContentItem(file="a"), False),
        (ContentItem(text="a"), False),
    ],
)
def test_pictures_sound_and_video_are_media(item, is_media):
    assert item.is_media_content() is is_media


def test_items_read_like_dicts():
    item = ContentItem(text="a")
    assert item["text"] == "a"
    assert item.get("image", "none") == "none"
    assert "text" in item
    assert "image" not in item
    with pytest.raises(KeyError):
        item["model_dump"]


def test_a_value_may_be_replaced():
    item = ContentItem(image="a.png")
    item["image"] = "b.png"
    assert item.get_type_and_value() == ("image", "b.png")
