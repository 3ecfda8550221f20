"""Pages and files of the web as documents: fetched once, read like any file, and never from where nobody may look."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.agents.assistant import Assistant
from core.errors import DocumentError, FetchError, UnsupportedFormatError
from core.messages.content import ContentItem
from core.messages.events import ToolFinished
from core.messages.message import Message
from core.net.addresses import Reach, open_internet_and_own_network
from core.rag.library import Library
from core.rag.sources import page
from core.testing.scripted_model import ScriptedModel

NEAR = Reach(open_internet_and_own_network)
PAGE = (
    "<html><head><title>Herons &amp; lakes</title></head><body><h1>Food</h1><p>The heron eats fish.</p></body></html>"
)


class Site:
    """A server of pages on this machine."""

    def __init__(self) -> None:
        site = self
        self.pages: dict[str, tuple[str, bytes]] = {"/heron": ("text/html; charset=utf-8", PAGE.encode())}
        self.asked: list[str] = []
        self.waits = threading.Event()
        self.waits.set()
        self.was_asked = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                site.was_asked.set()
                site.waits.wait(10)
                kind, body = site.pages.get(self.path, ("", b""))
                self.send_response(200 if kind else 404)
                self.send_header("content-type", kind or "text/plain")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def url(self, path: str = "/heron") -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"


@pytest.fixture
def site() -> Iterator[Site]:
    running = Site()
    yield running
    running.waits.set()
    running.server.shutdown()
    running.server.server_close()
    running.thread.join()


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "near", {"own_network": True}) as opened:
        yield opened


def test_a_page_is_a_document_called_by_its_title(site: Site, near: Library) -> None:
    document = near.add(site.url())
    assert (document.name, document.media_type) == ("Herons & lakes.html", "text/html")
    (passage,) = near.find("What does the heron eat?")
    assert (passage.text, passage.heading) == ("The heron eats fish.", "Food")
    assert near.add(site.url(), name="Birds 1.0").name == "Birds 1.0.html"
    assert len(near.documents()) == 1


def test_a_pdf_has_its_pages(site: Site, near: Library, make_pdf: Callable[..., Path]) -> None:
    site.pages["/pdf/2401.00001"] = ("application/pdf", make_pdf("First.", "The heron eats fish.").read_bytes())
    assert near.add(site.url("/pdf/2401.00001")).name == "2401.00001.pdf"
    (passage,) = near.find("heron")
    assert passage.page == 2
    assert near.page_picture(passage).startswith(b"\x89PNG")


@pytest.mark.parametrize("meta", ["gbk", "utf-8", ""])
def test_the_server_knows_the_encoding_of_a_page(site: Site, near: Library, meta: str) -> None:
    said = f"<meta charset={meta}>" if meta else ""
    page = f"<html><head>{said}<title>条款</title></head><body><p>每年保费为三百元。</p></body></html>"
    site.pages["/zh"] = ("text/html; charset=GB2312", page.encode("gbk"))
    site.pages["/zh.txt"] = ("text/plain; charset=big5", "每年保費為三百元。".encode("big5"))
    assert near.add(site.url("/zh")).name == "条款.html"
    near.add(site.url("/zh.txt"))
    assert {passage.text for passage in near.find("三百")} == {"每年保费为三百元。", "每年保費為三百元。"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("charset", "body"),
    [
        ("punycode", b"bcher-kva"),
        ("idna", b"xn--bcher-kva"),
        ("unicode_escape", b"b\\u00fccher"),
        ("raw-unicode-escape", b"b\\u00fccher"),
        ("utf-7", b"b+APw-cher"),
        ("undefined", b"plain"),
        ("rot13", b"plain"),
        ("zlib", b"plain"),
        ("martian", b"plain"),
    ],
)
async def test_a_server_cannot_have_its_page_read_in_what_no_page_is_written_in(
    site: Site, charset: str, body: bytes
) -> None:
    site.pages["/odd"] = (f"text/plain; charset={charset}", body)
    assert await page(site.url("/odd"), reach=NEAR) == (body, "odd")


@pytest.mark.anyio
async def test_the_server_is_not_held_up_while_a_page_is_decoded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def decoded(data: bytes) -> str:
        threads.append(threading.current_thread())
        return data.decode()

    monkeypatch.setattr("core.rag.sources.decode", decoded)
    assert (await page(site.url(), reach=NEAR))[1] == "Herons & lakes.html"
    (thread,) = threads
    assert thread is not threading.current_thread()


@pytest.mark.anyio
@pytest.mark.parametrize("head", ["<title " * 400_000, "<meta charset=" + " " * 2_000_000])
async def test_a_head_that_never_ends_is_read_once(site: Site, monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    monkeypatch.setattr("core.rag.sources._HEAD", 2**22)  # read again for each letter, this would take an hour
    site.pages["/endless"] = ("text/html; charset=big5", head.encode())
    assert await page(site.url("/endless"), reach=NEAR) == (head.encode(), "endless.html")


@pytest.mark.anyio
async def test_what_a_page_says_of_its_encoding_far_below_its_head_is_text(site: Site) -> None:
    body = f"<html><body>{'x' * 70_000}<meta charset=big5></body></html>".encode()
    site.pages["/low"] = ("text/html; charset=big5", body)
    assert (await page(site.url("/low"), reach=NEAR))[0] == body


def test_where_nobody_may_look_nothing_is_fetched(site: Site, tmp_path: Path) -> None:
    with Library.open(tmp_path / "far") as far:
        with pytest.raises(FetchError) as caught:
            far.add(site.url())
        assert caught.value.words_key == "fetch_private"
        assert far.documents() == []
    assert site.asked == []


def test_what_cannot_be_read_leaves_nothing_behind(site: Site, near: Library, tmp_path: Path) -> None:
    site.pages["/blob"] = ("application/octet-stream", b"\x7fELF\0\0\0\0" * 10)
    for path, error in (("/blob", UnsupportedFormatError), ("/gone", FetchError)):
        with pytest.raises(error):
            near.add(site.url(path))
    assert near.documents() == []
    assert list((tmp_path / "near" / "originals").iterdir()) == []


def test_fetching_ends_when_it_is_not_wanted_any_more(site: Site, near: Library) -> None:
    site.waits.clear()
    cancelled = threading.Event()

    def give_up() -> None:
        site.was_asked.wait(10)
        cancelled.set()

    giving_up = threading.Thread(target=give_up)
    giving_up.start()
    with pytest.raises(DocumentError) as caught:
        near.add(site.url(), cancelled=cancelled)
    giving_up.join()
    assert caught.value.words_key == "document_cancelled"
    assert near.documents() == []


@pytest.mark.anyio
async def test_an_assistant_takes_addresses_as_files_and_in_messages(site: Site) -> None:
    question = "What does the heron eat?"
    given = Assistant(llm=ScriptedModel("Fish.", "Fish."), files=[site.url()], rag_cfg={"own_network": True})
    for _ in range(2):
        events = [event async for event in given.stream([Message("user", question)])]
        (found,) = [event.message for event in events if isinstance(event, ToolFinished)]
        assert "The heron eats fish." in found.get_text_content()
    assert site.asked == ["/heron"]  # once
    asked = [Message("user", [ContentItem(text=question), ContentItem(file=site.url())])]
    named = Assistant(llm=ScriptedModel("Fish."), rag_cfg={"own_network": True})
    assert any(isinstance(event, ToolFinished) for event in [event async for event in named.stream(asked)])


@pytest.mark.anyio
async def test_an_address_that_cannot_be_fetched_is_an_error_once_and_the_conversation_goes_on(site: Site) -> None:
    asked = [Message("user", [ContentItem(text="What is it?"), ContentItem(file=site.url("/gone"))])]
    agent = Assistant(llm=ScriptedModel("I do not know."), rag_cfg={"own_network": True})
    with pytest.raises(FetchError):
        [event async for event in agent.stream(asked)]
    assert [event async for event in agent.stream(asked)]
    assert site.asked == ["/gone"]
