"""Hostile text stays text: nothing runs, and nothing is asked of any other server."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import pytest
from playwright.sync_api import Page, expect

from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, wait_for_state
from tests.e2e.test_documents import add


class _Request(socketserver.StreamRequestHandler):
    """Counts a request for an address that only the hostile text names: a port may have had another server before."""

    timeout = 10

    def handle(self) -> None:
        assert isinstance(self.server, Listener)
        with suppress(OSError):
            if self.server.secret.encode() in self.rfile.readline(10_000):
                self.server.asked.append(1)


class Listener(socketserver.ThreadingTCPServer):
    """Counts what is asked of it."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.secret = token_hex(8)
        super().__init__(("127.0.0.1", 0), _Request)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{self.secret}"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def hostile(address: str) -> str:
    """What a model or a document may say to make a browser run or fetch something."""
    return f"""Before.
![one]({address}/one.png)
![two][ref]

[ref]: {address}/two.png
<img src="{address}/three.png" onerror="document.title='pwned'">
<script>document.title='pwned'</script>
<svg onload="document.title='pwned'"><image href="{address}/four.png"/></svg>
<iframe src="{address}/five" srcdoc="<script>parent.document.title='pwned'</script>"></iframe>
<style>@import url({address}/six.css); body {{ background: url({address}/seven.png) }}</style>
<link rel="prefetch" href="{address}/eight"><meta http-equiv="refresh" content="0;url={address}/nine">
<base href="{address}/"><form action="{address}/ten"><input name="q"><button>Go</button></form>
<audio src="{address}/eleven.mp3" autoplay></audio><video poster="{address}/twelve.png" src="{address}/t.mp4"></video>
<div id="status" style="position:fixed;inset:0;background:red" data-state="running">Covered</div>
<a href="javascript:document.title='pwned'" id="trap">click here</a>
[and here](javascript:document.title='pwned')
<a href="#do-delete-everything" class="p-do">do</a>

$$\\includegraphics{{{address}/thirteen.png}}$$ $\\href{{javascript:alert(1)}}{{x}}$

```mermaid
graph LR
  A["<img src={address}/fourteen.png onerror=alert(1)>"] --> B
  click A "javascript:alert(1)"
```

```mermaid
graph LR
  A["&lt;b id=composer class=p-do data-do=retry style=position:fixed&gt;Covered&lt;/b&gt;"] --> B
  B["&lt;img src={address}/fifteen.png onerror=alert(1)&gt; #lt;input#gt;"]
```

```mermaid
flowchart TD
  A@{{ img: "{address}/sixteen.png", label: "L" }}
  B["<%%{{wrap}}%%b id=status>"]
```

After.
"""


def assert_harmless(page: Page, listener: Listener) -> None:
    expect(chat(page)).to_contain_text("After.")
    assert page.title() != "pwned"
    for own in ("#status", "#composer"):
        assert page.locator(own).count() == 1
    assert (
        page.locator("#chat").locator("form, iframe, input, [data-do], style:not(svg *), [style*=fixed]").count() == 0
    )
    for link in page.locator("#chat a", has_text="here").all():
        assert not (link.get_attribute("href") or "").startswith("javascript:")
    assert not listener.asked


def test_a_models_reply_runs_and_fetches_nothing(
    listener: Listener, start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    page = open_page(start_app(Reply(text=list(hostile(listener.address)), pace=0.001)))
    ask(page, "Show me.")
    expect(chat(page)).to_contain_text("After.")
    wait_for_state(page, "idle")
    assert_harmless(page, listener)
    page.reload(wait_until="domcontentloaded")
    assert_harmless(page, listener)


def test_ones_own_message_and_a_title_run_and_fetch_nothing(page: Page, listener: Listener) -> None:
    ask(page, hostile(listener.address))
    expect(chat(page)).to_contain_text("You said:")
    wait_for_state(page, "idle")
    expect(chat(page).locator(".mermaid")).to_have_count(0)  # a question stands as it was typed
    expect(chat(page)).to_contain_text("click A")
    assert_harmless(page, listener)
    page.locator("#house").get_by_text("New chat").first.click()
    expect(page.locator("#status [data-room=empty]")).to_be_attached()
    ask(page, f"<img src={listener.address}/title.png onerror=\"document.title='pwned'\">")
    expect(page.locator("#top")).to_contain_text("<img")
    wait_for_state(page, "idle")
    assert page.title() != "pwned"
    assert not listener.asked


@pytest.mark.parametrize("kind", ["md", "html"])
def test_a_documents_words_run_and_fetch_nothing(page: Page, listener: Listener, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"hostile.{kind}"
    path.write_text("# Herons\n\nHerons fish. " + hostile(listener.address), encoding="utf-8")
    add(page, path)
    ask(page, "How do herons fish?")
    expect(chat(page)).to_contain_text("Herons fish.")
    wait_for_state(page, "idle")
    chat(page).get_by_role("button").filter(has_text="ask_documents").first.click()
    chat(page).locator("a.cite").first.click()
    expect(page.locator("#evidence")).to_contain_text("Herons")
    assert page.title() != "pwned"
    assert page.locator("#status").count() == 1
    assert not listener.asked
