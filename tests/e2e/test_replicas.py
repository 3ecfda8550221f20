"""Two Parlours behind a proxy: one is killed, and the page goes on with the other, by itself and with nothing lost."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.app_process import ROOT, AppProcess
from tests.e2e.chat_steps import NAMED, ask, ask_and_wait, chat, composer, until, wait_for_state, words_of
from tests.e2e.test_restart import GONE
from tests.grown_servers import S3Server, Served
from tests.ports import free_port

GROWN = ROOT / "deploy" / "grown"
SOON = 5.0  # seconds in which the page is there again, where nothing else keeps the machine


class Front(AppProcess):
    """What the proxy shows of both: no process of its own."""

    def at(self, path: str) -> str:
        return self.url + path


class Pair:
    """Two Parlours with one data folder, and the proxy before them.

    Args:
        names: What the proxy's cookie calls each.
    """

    def __init__(self, names: dict[str, AppProcess], port: int) -> None:
        self.names = names
        self.front = Front(next(iter(names.values())).home, None, port=port)

    def serving(self, page: Page) -> AppProcess:
        """Which of the two a page is served by, as its cookie has it."""
        (name,) = (one.get("value", "") for one in page.context.cookies() if one.get("name") == "parlour_at")
        return self.names[name]


def by_haproxy(ports: tuple[int, int], port: int) -> tuple[str, list[str]]:
    """The configuration of the repository with the ports of this test, and what its cookie calls each."""
    text = placed(
        "haproxy.cfg",
        {
            ":443 ssl crt /etc/haproxy/chat.example.org.pem alpn h2,http/1.1": f"127.0.0.1:{port}",
            "X-Forwarded-Proto https": "X-Forwarded-Proto http",
            " secure ": " ",
            "10.0.0.11:7860": f"127.0.0.1:{ports[0]}",
            "10.0.0.12:7860": f"127.0.0.1:{ports[1]}",
        },
    )
    return text, ["a", "b"]


def by_caddy(ports: tuple[int, int], port: int) -> tuple[str, list[str]]:
    """As above; Caddy calls each by a hash of its address."""
    both = [f"127.0.0.1:{one}" for one in ports]
    text = placed(
        "Caddyfile",
        {
            "{$PARLOUR_DOMAIN}": f"http://127.0.0.1:{port}",
            "{$PARLOUR_AT:parlour-1:7860 parlour-2:7860}": " ".join(both),
        },
    )
    return "{\n\tadmin off\n}\n" + text, [hmac.new(b"", one.encode(), "sha256").hexdigest() for one in both]


def placed(name: str, places: dict[str, str]) -> str:
    text = (GROWN / name).read_text("utf-8")
    for old, new in places.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.fixture(params=["haproxy", pytest.param("caddy", marks=pytest.mark.slow)])
def pair(
    request: pytest.FixtureRequest, start_app: Callable[..., AppProcess], proxy: Callable[[str, str, int], Served]
) -> Pair:
    """Two Parlours with one data folder."""
    return paired(request.param, proxy, start_app)


@pytest.fixture
def grown_pair(
    request: pytest.FixtureRequest, start_app: Callable[..., AppProcess], proxy: Callable[[str, str, int], Served]
) -> Pair:
    """Two Parlours with a data folder each, which share PostgreSQL, Redis and an S3 store."""
    shared, names = all_shared(request), iter(("one", "two"))
    return paired("haproxy", proxy, lambda **settings: start_app(name=next(names), **shared, **settings))


def all_shared(request: pytest.FixtureRequest) -> dict[str, str]:
    """What Parlours are set to that share PostgreSQL, Redis and an S3 store."""
    store: S3Server = request.getfixturevalue("s3")
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    for name, value in {"ACCESS_KEY_ID": "AKIDTEST", "SECRET_ACCESS_KEY": "any", "ENDPOINT_URL": store.address}.items():
        patch.setenv(f"AWS_{name}", value)
    return {
        "DATABASE": request.getfixturevalue("postgres"),
        "REDIS": request.getfixturevalue("redis"),
        "FILES": f"s3://{store.make_bucket()}/parlour",
        "SECRET": "the same secret of both Parlours",
    }


def paired(name: str, proxy: Callable[[str, str, int], Served], start: Callable[..., AppProcess]) -> Pair:
    port = free_port()
    settings = {"ALLOWED_HOSTS": f"127.0.0.1:{port}", "OWNERS": "cookie", "TRUSTED_PROXIES": "127.0.0.1"}
    both = [start(**settings, RETRIEVAL="keyword") for _ in range(2)]
    text, names = {"haproxy": by_haproxy, "caddy": by_caddy}[name]((both[0].port, both[1].port), port)
    proxy(name, text, port)
    return Pair(dict(zip(names, both, strict=True)), port)


def test_the_page_goes_on_with_the_other_when_the_one_that_serves_it_is_killed(
    pair: Pair, open_page: Callable[..., Page]
) -> None:
    opening = time.monotonic()
    page = open_page(pair.front, expected=(*GONE, "Bad Gateway"))
    # Two seconds until it looks, and the page anew; on a machine that is too busy for that, what it takes there.
    soon = max(SOON, 2 + 2 * (time.monotonic() - opening))
    ask_and_wait(page, "Are you there?", "You said: Are you there?")
    ask(page, "count at leisure until the lights go out")
    expect(chat(page)).to_contain_text("word10 ")
    expect(page).to_have_url(NAMED)
    address = page.url
    composer(page).fill("What I was about to ask")
    served = pair.serving(page)
    served.kill()
    began = time.monotonic()
    expect(page.locator("html")).to_have_attribute("data-connection", "lost")
    expect(page.get_by_text("Your text is saved; the page comes back by itself.")).to_be_visible()
    expect(page.locator("html")).not_to_have_attribute("data-connection", "lost")
    expect(chat(page)).to_contain_text("You said: Are you there?")
    expect(chat(page)).to_contain_text("word10 ")
    expect(composer(page)).to_have_value("What I was about to ask")
    assert time.monotonic() - began < soon
    assert page.url == address
    assert pair.serving(page) is not served
    # The one that it is idle at is killed. What is sent next goes to the other, or stands in the composer again: what a
    # proxy has begun to pass on to one that is gone, it may not give to another.
    wait_for_state(page, "idle")
    served.start()
    page.evaluate("window.sameAsBefore = true")
    pair.serving(page).kill()
    ask(page, "And now?")
    until(lambda: "You said: And now?" in chat(page).inner_text() or came_back(page))
    if came_back(page):
        composer(page).press("Enter")
    expect(chat(page)).to_contain_text("You said: And now?")
    wait_for_state(page, "idle")
    assert chat(page).inner_text().count("You said: And now?") == 1
    assert pair.serving(page) is served
    assert page.url == address


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["haproxy"], indirect=True)
def test_a_reply_that_one_writes_is_shown_by_the_other_and_still_when_that_one_is_killed(
    pair: Pair, open_page: Callable[..., Page]
) -> None:
    page = open_page(pair.front, expected=GONE)
    ask(page, "count at leisure")
    expect(chat(page)).to_contain_text("word5 ")
    expect(page).to_have_url(NAMED)
    writes = pair.serving(page)
    other = next(name for name, one in pair.names.items() if one is not writes)
    (kept,) = (one for one in page.context.cookies() if one.get("name") == "parlour_at")
    page.context.add_cookies([{**kept, "value": other}])  # pyright: ignore[reportArgumentType] - as it came
    page.reload()
    expect(chat(page)).to_contain_text("word15 ")
    assert pair.serving(page) is pair.names[other]
    wait_for_state(page, "running")
    pair.serving(page).kill()
    expect(page.locator("html")).to_have_attribute("data-connection", "lost")
    expect(page.locator("html")).not_to_have_attribute("data-connection", "lost")
    wait_for_state(page, "running")
    assert pair.serving(page) is writes
    words = words_of(page)
    assert len(words) >= 15
    assert words == [f"word{number}" for number in range(1, len(words) + 1)]
    expect(chat(page)).to_contain_text(f"word{len(words) + 10} ")


@pytest.mark.slow
def test_parlours_that_share_no_folder_have_one_conversation_and_one_file(
    grown_pair: Pair, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(grown_pair.front, expected=(*GONE, "Bad Gateway"))
    ask_and_wait(page, "Are you there?", "You said: Are you there?")
    (tmp_path / "heron.txt").write_text("The heron lives at lake Zug.")
    page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "heron.txt")
    expect(page.get_by_role("button", name="Remove heron.txt")).to_be_visible()
    served = grown_pair.serving(page)
    served.kill()
    ask(page, "Where does the heron live?")
    expect(chat(page)).to_contain_text("The heron lives at lake Zug.")
    wait_for_state(page, "idle")
    assert grown_pair.serving(page) is not served
    expect(chat(page)).to_contain_text("You said: Are you there?")
    served.start()
    grown_pair.serving(page).kill()
    page.reload()
    expect(chat(page)).to_contain_text("The heron lives at lake Zug.")
    assert grown_pair.serving(page) is served


@pytest.mark.slow
def test_a_reply_goes_on_when_the_worker_that_writes_it_is_killed_in_the_middle_of_a_sentence(
    request: pytest.FixtureRequest, start_app: Callable[..., AppProcess], open_page: Callable[..., Page], postgres: str
) -> None:
    shared = {**all_shared(request), "RETRIEVAL": "keyword", "OWNERS": "cookie"}
    web = start_app(name="web", ROLE="web", **shared)
    page = open_page(web)
    ask(page, "count at leisure")
    expect(chat(page)).to_contain_text("Nobody writes replies at the moment.")
    workers = [start_app(name=name, ROLE="worker", **shared) for name in ("one", "two")]
    assert [workers[0].get(path)[0] for path in ("/healthz", "/readyz", "/", "/chat")] == [200, 200, 404, 404]
    expect(chat(page)).to_contain_text("word20 ")
    expect(chat(page)).not_to_contain_text("Nobody writes")
    for _ in range(2):  # as often as a reply is taken over
        (writes,) = [one for one in workers if one.process is not None and holds(postgres, one.process.pid)]
        writes.kill()
        began = time.monotonic()
        while not any(one.process is not None and holds(postgres, one.process.pid) for one in workers):
            assert words_of(page), "what there was stays in sight meanwhile"
        assert time.monotonic() - began < 15
        writes.start()
        words = words_of(page)
        assert words == [f"word{number}" for number in range(1, len(words) + 1)]
    expect(chat(page)).to_contain_text("word20 ")
    words = words_of(page)
    assert words == [f"word{number}" for number in range(1, len(words) + 1)]
    page.get_by_role("button", name="Stop").click()
    wait_for_state(page, "idle")


def holds(database: str, number: int) -> bool:
    """Whether the process of this number writes the reply."""
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT worker FROM runs WHERE status = 'running'").fetchall()
    return [name.partition("@")[0].rpartition("/")[2] for (name,) in found] == [str(number)]


def came_back(page: Page) -> bool:
    """Whether the page was loaded again and has the question in its composer."""
    text = "window.sameAsBefore ? '' : document.querySelector('#composer textarea')?.value"
    return page.locator("#status [data-state=idle]").count() > 0 and page.evaluate(text) == "And now?"
