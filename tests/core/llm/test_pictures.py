"""Pictures that travel inside the request."""

from __future__ import annotations

import base64
import io
import struct
import warnings
import zlib

import pytest
from PIL import Image

from core.errors import ModelRefusedError
from core.llm.media import data_uri


def made(kind: str, size=(8, 8)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize(("kind", "media_type"), [("PNG", "png"), ("JPEG", "jpeg"), ("GIF", "gif"), ("WEBP", "webp")])
def test_a_small_picture_goes_as_it_is_whatever_its_name(tmp_path, kind, media_type):
    file = tmp_path / "picture.dat"
    file.write_bytes(made(kind))
    assert data_uri(str(file)) == f"data:image/{media_type};base64,{base64.b64encode(file.read_bytes()).decode()}"
    assert data_uri(file.as_uri()) == data_uri(str(file))


@pytest.mark.parametrize("name", ["large.bmp", "a b 图.bmp"])
def test_a_large_picture_is_made_smaller(tmp_path, name):
    file = tmp_path / name
    file.write_bytes(made("BMP", (3000, 1500)))
    head, _, data = data_uri(str(file)).partition(",")
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert (head, picture.size) == ("data:image/jpeg;base64", (2048, 1024))


def test_a_damaged_picture_is_refused_by_name(tmp_path):
    file = tmp_path / "torn.bmp"
    file.write_bytes(b"BM" + b"\0" * 100)
    with pytest.raises(ModelRefusedError, match=r"'torn\.bmp' is damaged"):
        data_uri(str(file))


def test_a_telephones_picture_stands_upright_and_what_is_transparent_is_white(tmp_path):
    upright = tmp_path / "held.jpg"
    noise = Image.effect_noise((3000, 2400), 90).convert("RGB")
    turned = Image.Exif()
    turned[0x0112] = 6
    noise.save(upright, "JPEG", quality=100, exif=turned)
    clear = tmp_path / "clear.png"
    noise.putalpha(0)
    noise.save(clear, "PNG", compress_level=0)
    sizes = []
    for file in (upright, clear):
        assert file.stat().st_size > 4 * 1024 * 1024
        data = data_uri(str(file)).partition(",")[2]
        with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
            sizes.append(picture.size)
            corner = picture.getpixel((0, 0))
    assert [height > width for width, height in sizes] == [True, False]
    assert max(map(max, sizes)) == 2048
    assert isinstance(corner, tuple)
    assert min(corner) > 250


def test_a_picture_that_would_fill_the_memory_is_refused_before_it_is_unpacked(tmp_path):
    whole = io.BytesIO()
    Image.new("1", (1, 1)).save(whole, "PNG")
    start = whole.getvalue()
    about = struct.pack(">IIBBBBB", 12_000, 12_000, 1, 0, 0, 0, 0)
    head = struct.pack(">I", 13) + b"IHDR" + about + struct.pack(">I", zlib.crc32(b"IHDR" + about))
    path = tmp_path / "wide.png"
    path.write_bytes(start[:8] + head + start[33:] + b"\0" * 5_000_000)
    with warnings.catch_warnings(), pytest.raises(ModelRefusedError, match="12000 × 12000 pixels"):
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        data_uri(str(path))
