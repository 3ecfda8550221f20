"""Pictures are counted by the rule of the service that sees them."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from core.llm.picture_tokens import item_tokens, picture_tokens, size_of
from core.messages.content import ContentItem


def png(width: int, height: int) -> bytes:
    held = BytesIO()
    Image.new("RGB", (width, height), "white").save(held, "PNG")
    return held.getvalue()


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-4o-mini", (512, 512), 8500),
        ("gpt-4.1-mini", (1024, 1024), 1659),
        ("gpt-5", (512, 512), 210),
        ("o3", (512, 512), 225),
        ("claude-sonnet-4", (1000, 750), 1000),
        ("qwen2.5-vl-7b-instruct", (280, 280), 102),
        ("qwen-vl-max", (4000, 4000), 1227),
        ("qwen3-vl-plus", (320, 320), 102),
        ("qwen-vl-max", (1, 1), 6),
    ],
)
def test_known_pictures_take_what_the_service_says(model: str, size: tuple[int, int], tokens: int) -> None:
    assert picture_tokens(size, model) == tokens


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.sampled_from(["qwen-vl-max", "qwen3-vl-plus", "llava"]))
def test_no_picture_takes_more_than_the_most_or_less_than_the_least(width: int, height: int, model: str) -> None:
    most = 2562 if model.startswith("qwen3") else 1282
    tokens = picture_tokens((width, height), model)
    if max(width, height) <= 200 * min(width, height):  # beyond, services refuse a picture
        assert 6 <= tokens <= most


def test_the_size_is_read_from_the_picture_itself(tmp_path: Path) -> None:
    raw = png(300, 200)
    file = tmp_path / "a b.png"
    file.write_bytes(raw)
    assert size_of(f"data:image/png;base64,{b64encode(raw).decode()}") == (300, 200)
    assert size_of(str(file)) == (300, 200)
    assert size_of(file.as_uri()) == (300, 200)


def test_a_picture_that_was_drawn_anew_under_its_name_has_its_new_size(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    for size in ((30, 20), (50, 40)):
        Image.new("RGB", size).save(file)
        assert size_of(str(file)) == size


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/a.png", "/no/such/file.png", "data:image/png;base64,AAAA", "data:,x", "x"]
)
def test_a_picture_that_is_elsewhere_or_none_is_taken_for_a_middling_one(address: str) -> None:
    assert size_of(address) == (1024, 1024)


def test_recordings_and_videos_take_tokens_by_their_length() -> None:
    short = item_tokens(ContentItem(audio={"data": "A" * 40_000, "format": "wav"}), "qwen-audio")
    long = item_tokens(ContentItem(audio={"data": "A" * 4_000_000, "format": "wav"}), "qwen-audio")
    assert short < long
    two = item_tokens(ContentItem(video=["http://x/1.jpg", "http://x/2.jpg"]), "qwen-vl-max")
    eight = item_tokens(ContentItem(video=["http://x/1.jpg"] * 8), "qwen-vl-max")
    assert eight == 4 * two
