"""Pictures found on the web: listed, with small copies that were fetched here and not by the page."""

from __future__ import annotations

from base64 import b64decode
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from core.errors import SettingsError
from core.net.addresses import Reach, open_internet_and_own_network
from core.tools.builtin.web_search import ImageSearch

pytestmark = pytest.mark.anyio


def a_picture(side: int = 900) -> bytes:
    out = BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "SECRET-EXIF"
    Image.new("RGB", (side, side // 3), "blue").save(out, "JPEG", exif=exif)
    return out.getvalue()


def row(service: Any, name: str, title: str = "A tower") -> dict[str, Any]:
    return {
        "title": title,
        "imageUrl": f"https://pictures.example/{name}",
        "imageWidth": 900,
        "imageHeight": 300,
        "thumbnailUrl": f"{service.address}/{name}",
        "link": f"https://pictures.example/page-{name}",
    }


@pytest.fixture
def tool(service: Any, monkeypatch: pytest.MonkeyPatch) -> ImageSearch:
    monkeypatch.setattr(ImageSearch, "_reach", lambda _self: Reach(open_internet_and_own_network))
    return ImageSearch({"provider": "serper", "api_key": "k", "base_url": service.address, "own_network": True})


async def test_pictures_are_listed_and_small_copies_come_with_them(service: Any, tool: ImageSearch) -> None:
    service.says("/images", {"images": [row(service, "a.jpg"), row(service, "b.jpg"), row(service, "a.jpg")]})
    service.says("/a.jpg", a_picture(), content_type="image/jpeg")
    result = await tool.call({"query": "towers"})
    assert "1. A tower (900 x 300): https://pictures.example/a.jpg — https://pictures.example/page-a.jpg" in result.text
    assert "2. A tower" in result.text
    assert "3." not in result.text
    assert "small copies of 1 of them" in result.text
    (item,) = result.items  # the other could not be had, which is no reason to fail
    raw = b64decode(str(item.image).partition(",")[2])
    small = Image.open(BytesIO(raw))
    assert small.size[0] == 320
    assert b"SECRET-EXIF" not in raw
    assert "https://pictures.example/page-b.jpg" in result.extra["addresses"]


async def test_what_a_page_would_load_is_never_the_address_of_another_machine(service: Any, tool: ImageSearch) -> None:
    service.says("/images", {"images": [row(service, "a.jpg")]})
    service.says("/a.jpg", a_picture(), content_type="image/jpeg")
    result = await tool.call({"query": "towers"})
    assert all(str(item.image).startswith("data:image/jpeg;") for item in result.items)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<svg onload=alert(1)>", "image/svg+xml"),
        (b"<html>", "image/jpeg"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"x" * (4 << 20), "image/png"),
    ],
)
async def test_a_copy_that_is_no_picture_is_left_out(service: Any, tool: ImageSearch, body: bytes, kind: str) -> None:
    service.says("/images", {"images": [row(service, "a.jpg")]})
    service.says("/a.jpg", body, content_type=kind)
    assert (await tool.call({"query": "towers"})).items == ()


async def test_copies_are_of_the_open_internet_whoever_the_service_is(service: Any) -> None:
    service.says("/images", {"images": [row(service, "a.jpg")]})
    cfg = {"provider": "serper", "api_key": "k", "base_url": service.address, "own_network": True}
    assert (await ImageSearch(cfg).call({"query": "towers"})).items == ()
    assert [request.path for request in service.requests] == ["/images"]


async def test_only_the_first_ones_are_copied(service: Any, tool: ImageSearch) -> None:
    names = [f"{at}.jpg" for at in range(9)]
    service.says("/images", {"images": [row(service, name) for name in names]})
    for name in names:
        service.says(f"/{name}", a_picture(60), content_type="image/jpeg")
    result = await tool.call({"query": "towers"})
    assert (len(result.items), result.text.count("https://pictures.example/page")) == (4, 8)


async def test_nothing_found_is_said(service: Any, tool: ImageSearch) -> None:
    service.says("/images", {"images": []})
    assert (await tool.call({"query": "x"}, lang="zh")).text.startswith("没有")


async def test_without_a_key_nothing_is_sent() -> None:
    with pytest.raises(SettingsError, match="needs a key"):
        await ImageSearch({"provider": "serper"}).call({"query": "x"})
