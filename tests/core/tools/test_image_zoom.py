"""A part of a picture, cut out and shown larger; whatever a picture is, it costs no more than it may."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from PIL import Image

from core.errors import BadArgumentsError, FetchError, ToolError
from core.messages.content import ContentItem
from core.messages.message import USER, Message
from core.tools.builtin.image_zoom_in_tool import ImageZoomInTool, box_of, shown_size, side_of

pytestmark = pytest.mark.anyio


def quarters() -> Image.Image:
    """Red, green, blue and white, from the top left."""
    picture = Image.new("RGB", (400, 200), "white")
    picture.paste("red", (0, 0, 200, 100))
    picture.paste("green", (200, 0, 400, 100))
    picture.paste("blue", (0, 100, 200, 200))
    return picture


def packed(picture: Image.Image, kind: str = "PNG", **more: Any) -> bytes:
    out = BytesIO()
    picture.save(out, kind, **more)
    return out.getvalue()


def said(*addresses: str) -> list[Message]:
    return [Message(USER, [ContentItem(text="Look"), *(ContentItem(image=one) for one in addresses)])]


def uri(data: bytes) -> str:
    return f"data:image/png;base64,{b64encode(data).decode()}"


async def zoomed(messages: list[Message], box: Sequence[float], number: Any = 0) -> Image.Image:
    (item,) = await ImageZoomInTool().call({"bbox_2d": box, "label": "x", "img_idx": number}, messages=messages)
    return Image.open(BytesIO(b64decode(str(item.image).partition(",")[2])))


async def test_corners_are_thousandths_of_the_sides(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(packed(quarters()))
    for box, colour in (([500, 0, 1000, 500], (0, 128, 0)), ([0, 500, 500, 1000], (0, 0, 255))):
        part = await zoomed(said(str(path)), box)
        assert part.getcolors() == [(part.size[0] * part.size[1], colour)]
        assert part.size[0] / part.size[1] == pytest.approx(2, abs=0.1)
        assert part.size[0] * part.size[1] >= 256 * 32 * 32


async def test_any_picture_of_the_conversation_can_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "b.png"
    path.write_bytes(packed(Image.new("RGB", (50, 50), "black")))
    messages = [*said(uri(packed(quarters()))), Message("assistant", "I see."), *said(path.as_uri())]
    assert (await zoomed(messages, [0, 0, 400, 400])).getpixel((5, 5)) == (255, 0, 0)
    assert (await zoomed(messages, [0, 0, 400, 400], 1)).getpixel((5, 5)) == (0, 0, 0)
    assert (await zoomed(messages, [0, 0, 400, 400], 1.0)).getpixel((5, 5)) == (0, 0, 0)


@pytest.mark.parametrize("number", [2, -1, 0.5])
async def test_a_picture_that_is_not_there_says_which_are(number: float) -> None:
    with pytest.raises(BadArgumentsError, match="from 0 to 1"):
        await zoomed(said(uri(packed(quarters())), uri(packed(quarters()))), [0, 0, 9, 9], number)
    with pytest.raises(BadArgumentsError, match="no picture"):
        await zoomed([Message(USER, "Hello")], [0, 0, 9, 9], 0)


@pytest.mark.parametrize("box", [[0, 0, 1001, 5], [-1, 0, 5, 5], [0, 0, float("nan"), 5]])
async def test_corners_outside_are_told(box: list[float]) -> None:
    with pytest.raises(BadArgumentsError, match="0 to 1000"):
        await zoomed(said(uri(packed(quarters()))), box)


@pytest.mark.parametrize("box", [[0, 0, 1, 2], "0,0,1,1", [1, 2, 3, "4"]])
def test_what_are_no_corners_is_told(box: Any) -> None:
    arguments = {"bbox_2d": box if isinstance(box, str) else box[:3] if "4" not in box else box}
    with pytest.raises(BadArgumentsError, match="bbox_2d"):
        ImageZoomInTool().verify({**arguments, "label": "x", "img_idx": 0})


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(side: int) -> bytes:
    """A PNG that says it is `side` by `side`."""
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [65_000, 10_000, 7_200])
async def test_u6_a_picture_of_too_many_pixels_is_refused_before_it_is_unpacked(side: int) -> None:
    with pytest.raises(ToolError, match="50 million pixels"):
        await zoomed(said(uri(bomb(side))), [0, 0, 1000, 1000])


async def test_u6_of_a_film_only_the_first_frame_is_opened() -> None:
    frames = [Image.new("P", (40, 40), at % 255) for at in range(300)]
    data = packed(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert (await zoomed(said(uri(data)), [0, 0, 1000, 1000])).size == (512, 512)


async def test_u6_what_a_camera_writes_is_not_handed_on_and_its_turn_is_heeded() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "SECRET-EXIF"
    data = packed(quarters(), "JPEG", exif=exif, quality=95)
    part = await zoomed(said(uri(data)), [0, 0, 1000, 1000])
    assert part.size[1] > part.size[0]  # the camera was held upright
    assert "SECRET" not in str(part.info)
    assert b"SECRET-EXIF" not in packed(part)


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"GIF89a", b"\x89PNG\r\n\x1a\n", bomb(20)])
async def test_what_is_no_picture_is_told(data: bytes) -> None:
    with pytest.raises(ToolError, match="damaged"):
        await zoomed(said(uri(data)), [0, 0, 1000, 1000])


@pytest.mark.parametrize("address", ["/nowhere/a.png", "file:///nowhere/a.png", "data:image/png;base64,%"])
async def test_a_picture_that_is_not_here_is_told(address: str) -> None:
    with pytest.raises(ToolError):
        await zoomed(said(address), [0, 0, 1000, 1000])


async def test_s1_a_picture_of_the_own_network_is_not_fetched() -> None:
    with pytest.raises(FetchError, match="not a public address"):
        await zoomed(said("http://169.254.169.254/a.png"), [0, 0, 1000, 1000])


@settings(deadline=None)
@given(some.lists(some.floats(0, 1000), min_size=4, max_size=4), some.integers(1, 9000), some.integers(1, 5000))
def test_whatever_part_is_asked_for_lies_inside_and_is_shown_at_a_bearable_size(
    corners: list[float], width: int, height: int
) -> None:
    left, top, right, bottom = box_of(corners)
    x0, x1 = side_of(left * width, right * width, width)
    y0, y1 = side_of(top * height, bottom * height, height)
    assert 0 <= x0 < x1 <= width
    assert 0 <= y0 < y1 <= height
    shown = shown_size(x1 - x0, y1 - y0)
    assert all(side % 32 == 0 and side > 0 for side in shown)
    assert shown[0] * shown[1] < 60_000_000
