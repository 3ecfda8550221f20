"""What the page is made of comes packed, and is kept by browsers for good."""

from __future__ import annotations

import gzip
import re
from typing import Any, cast

import brotli
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from webui import bundles
from webui.bundles import coding_for
from webui.middleware.headers import HeadersMiddleware
from webui.page_files import FRONT_END, asset_routes, front_end_file
from webui.page_head import with_head


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(HeadersMiddleware(Starlette(routes=asset_routes())))


def got(client: TestClient, path: str, accept: str) -> tuple[dict[str, str], bytes]:
    """Headers and bytes as they were sent."""
    with client.stream("GET", path, headers={"accept-encoding": accept}) as answer:
        assert answer.status_code == 200
        return dict(answer.headers), b"".join(answer.iter_raw())


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("br; q=0.0", ""),
        ("identity", ""),
        ("", ""),
    ],
)
def test_a_browser_gets_the_best_coding_that_it_takes(accept: str, coding: str) -> None:
    assert coding_for(accept) == coding


@pytest.mark.parametrize("bundle", [bundles.script(), bundles.stylesheet()], ids=["script", "styles"])
def test_our_script_and_styles_come_packed_whole_and_for_good(client: TestClient, bundle: bundles.Bundle) -> None:
    path = f"/assets/{bundle.name}"
    unpack = {"br": cast("Any", brotli).decompress, "gzip": gzip.decompress, "": bytes}
    for coding, opened in unpack.items():
        for _ in range(2):  # made, and kept
            headers, body = got(client, path, coding)
            assert headers.get("content-encoding", "") == coding
            assert opened(body) == bundle.body
            assert headers["cache-control"] == "public, max-age=31536000, immutable"
            assert headers["vary"] == "Accept-Encoding"
            assert headers["content-type"] == bundle.media_type
    assert client.get("/assets/parlour-000000000000.js").status_code == 404


def test_gradios_modules_come_packed_and_for_good(client: TestClient) -> None:
    name = next(path.name for path in FRONT_END.glob("core-*.js"))
    headers, body = got(client, f"/assets/{name}", "br")
    assert cast("Any", brotli).decompress(body) == (FRONT_END / name).read_bytes()
    assert "immutable" in headers["cache-control"]
    font = next(path.name for path in FRONT_END.glob("*.woff2"))
    headers, body = got(client, f"/assets/{font}", "br")
    assert "content-encoding" not in headers
    assert body == (FRONT_END / font).read_bytes()


@pytest.mark.parametrize("pattern", ["index-*.js", "hls-*.js", "statustracker-*.js"])
def test_a_module_that_is_changed_here_is_asked_for_each_time_and_sent_only_where_it_changed(
    client: TestClient, pattern: str
) -> None:
    (name,) = (one.name for one in FRONT_END.glob(pattern) if front_end_file(one.name) != one.read_bytes())
    headers, _ = got(client, f"/assets/{name}", "br")
    assert headers["cache-control"] == "no-cache"
    again = client.get(f"/assets/{name}", headers={"accept-encoding": "br", "if-none-match": headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", headers["etag"])
    changed = client.get(f"/assets/{name}", headers={"accept-encoding": "br", "if-none-match": 'W/"another"'})
    assert (changed.status_code, len(changed.content) > 0) == (200, True)


def test_gradios_client_handles_each_message_as_it_comes_whether_the_tab_is_seen_or_not() -> None:
    before = [path for path in FRONT_END.glob("index-*.js") if b"visibilityState" in path.read_bytes()]
    assert len(before) == 1
    after = front_end_file(before[0].name)
    assert b"visibilityState" not in after
    assert 0 < len(before[0].read_bytes()) - len(after) < 200


def test_the_player_of_streamed_video_is_replaced_by_one_of_the_same_names_that_plays_nothing() -> None:
    (player,) = FRONT_END.glob("hls-*.js")
    names = set(re.findall(r"\w+ as (\w+)", player.read_text("utf-8")[-200:]))
    stand_in = front_end_file(player.name).decode()
    assert len(names) == 3
    assert set(re.findall(r"no as (\w+)", stand_in)) == names
    assert len(stand_in) < 200
    # Whoever imports it takes one of these names.
    for path in FRONT_END.glob("*.js"):
        for taken in re.findall(r'import\{([^{}]*)\}from"\./' + re.escape(player.name), path.read_text("utf-8")):
            assert {part.split(" as ")[0] for part in taken.split(",")} <= names, path.name


def test_what_counts_the_seconds_of_loading_ends_with_it_and_nothing_else_is_changed() -> None:
    (counter,) = FRONT_END.glob("statustracker-*.js")
    before, after = counter.read_bytes(), front_end_file(counter.name)
    change = re.compile(rb"\w+\.status===`pending`&&(?=\w+&&(\w+)\(\)\}\)\})")
    assert len(change.findall(after)) == 1
    assert change.sub(b"", after) == before


def test_the_page_names_a_manifest_of_its_own_that_every_reader_of_it_gets(client: TestClient) -> None:
    page = (FRONT_END.parent / "index.html").read_bytes()
    named = re.findall(r'<link rel="manifest"[^>]*>', with_head(page, "en").decode())
    assert named == ['<link rel="manifest" crossorigin="use-credentials" href="./assets/app.webmanifest">']
    manifest = client.get("/assets/app.webmanifest").json()
    assert (manifest["name"], manifest["start_url"]) == ("Parlour", "../")
    assert [client.get(f"/assets/{icon['src']}").status_code for icon in manifest["icons"]] == [200]
