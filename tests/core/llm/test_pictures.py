"""Pictures that travel inside the request."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from core.errors import ModelRefusedError
from core.llm.pictures import data_uri, with_pictures
from core.messages.content import ContentItem
from core.messages.message import USER, Message


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


@pytest.mark.anyio
async def test_messages_without_local_pictures_stay_the_same_objects(tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(made("PNG"))
    plain = Message(USER, "text")
    far = Message(USER, [ContentItem(image="https://example.org/a.png"), ContentItem(image="data:image/png;base64,A")])
    near = Message(USER, [ContentItem(text="look"), ContentItem(image=str(file))])
    first, second, third = await with_pictures([plain, far, near])
    assert first is plain
    assert second is far
    assert [str(item.value)[:10] for item in third.items] == ["look", "data:image"]
    assert near.items[1].image == str(file)
