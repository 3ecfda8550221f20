"""The real application over HTTP: what is Alice's stays Alice's, on every route, Gradio's own included."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pymupdf
import pytest

from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage

SECRET = "The vault opens with the word heliotrope."
ROUTES = [
    "/files/{file}",
    "/files/{file}?download=1",
    "/pages/{document}/1.png",
    "/conversations/{conversation}/export?as=md",
    "/conversations/{conversation}/export?as=json",
]
ACTIONS: list[dict[str, str | int]] = [
    {"do": "open", "id": "{conversation}"},
    {"do": "rename", "id": "{conversation}", "title": "Bob was here"},
    {"do": "delete", "id": "{conversation}"},
    {"do": "edit", "id": "{question}", "text": "Bob was here"},
    {"do": "regenerate", "id": "{reply}"},
    {"do": "continue", "id": "{reply}"},
    {"do": "cite", "message": "{reply}", "n": 1},
    {"do": "page", "document": "{document}", "n": 1},
    {"do": "passages", "n": 0},
    {"do": "chunk", "n": 1},
    {"do": "drop", "upload": "{upload}"},
]


def pdf_of(text: str) -> bytes:
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), text)
    return bytes(document.tobytes())


@pytest.fixture(scope="module")
def app(shared: AppProcess) -> AppProcess:
    """An app whose browsers are owners of their own, as on a network; tests may bind only this machine's address."""
    return shared


@dataclass
class Hers:
    """What Alice has, and what an attacker may have learned of it."""

    tab: RawPage
    conversation: str
    question: str
    reply: str
    file: str
    document: str
    upload: str
    event: str

    def painted(self) -> str:
        """Her conversation, as a new tab of hers shows it."""
        return RawPage(self.tab.url, self.conversation, self.tab.client).open().painted()[0]


def hers_at(app: AppProcess, tab: RawPage | None = None) -> Hers:
    """What Alice has at an app: a question on a document with its reply, and a draft.

    Args:
        tab: Hers, where she has to sign in.
    """
    tab = tab or RawPage(app.address).open()
    upload = tab.upload("vault.pdf", pdf_of(SECRET))
    chat, status = tab.paint(tab.send("What opens the vault?", upload))
    assert "heliotrope" in chat
    kept = tab.upload("draft.txt", b"not sent yet")
    reply = _found(r"#do-regenerate-([\w-]+)", chat)
    told = tab.act(do="cite", message=reply, n=1)
    panel = str(next(event["output"]["data"][0] for event in told if event["msg"] == "process_generating"))
    event = tab.join(tab.number("bus-go", "click"), '{"do": "close"}').json()["event_id"]
    list(tab.listen())
    return Hers(
        tab=tab,
        conversation=_found(r'data-conversation="([^"]+)"', status),
        question=_found(r"#do-edit-([\w-]+)", chat),
        reply=reply,
        file=_found(r"/files/([\w-]+)", chat),
        document=_found(r"/pages/([\w-]+)/1.png", panel),
        upload=kept,
        event=event,
    )


@pytest.fixture(scope="module")
def alice(app: AppProcess) -> Iterator[Hers]:
    hers = hers_at(app)
    yield hers
    hers.tab.close()


@pytest.fixture
def bob(app: AppProcess) -> Iterator[RawPage]:
    tab = RawPage(app.address).open()
    yield tab
    tab.close()


@pytest.fixture
def nobody(app: AppProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=app.url) as client:
        yield client


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, html.unescape(text))
    assert match, f"{pattern} is not in {text[:2000]}"
    return match[1]


def test_alice_reads_her_own_file_page_and_draft(alice: Hers) -> None:
    client, url = alice.tab.client, alice.tab.url
    file = client.get(f"{url}/files/{alice.file}")
    assert file.status_code == 200
    assert file.content.startswith(b"%PDF")
    assert file.headers["content-disposition"].startswith("attachment")
    assert file.headers["x-content-type-options"] == "nosniff"
    part = client.get(f"{url}/files/{alice.file}", headers={"range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"%PDF")
    assert client.get(f"{url}/pages/{alice.document}/1.png").content.startswith(b"\x89PNG")
    assert client.get(f"{url}/gradio_api/file={alice.upload}").text == "not sent yet"


@pytest.mark.parametrize("route", ROUTES)
def test_files_and_pages_are_nobody_elses(alice: Hers, bob: RawPage, nobody: httpx.Client, route: str) -> None:
    path = route.format(file=alice.file, document=alice.document, conversation=alice.conversation)
    assert alice.tab.client.get(alice.tab.url + path).status_code == 200
    assert bob.client.get(bob.url + path).status_code == 404
    assert nobody.get(path).status_code == 401


@pytest.mark.parametrize(
    "path", ["/files/x", "/files/../parlour.db", "/files/%2e%2e%2fparlour.db", "/pages/x/1.png", "/pages/x/-1.png"]
)
def test_what_is_not_there_looks_like_what_is_somebody_elses(bob: RawPage, path: str) -> None:
    assert bob.client.get(bob.url + path).status_code == 404


def test_a_draft_of_alices_is_not_served_to_bob(alice: Hers, bob: RawPage, nobody: httpx.Client) -> None:
    for path in (alice.upload, alice.upload.replace("/", "%2F")):
        assert bob.client.get(f"{bob.url}/gradio_api/file={path}").status_code == 403
        assert nobody.get(f"/gradio_api/file={path}").status_code in {401, 403}


def test_bob_cannot_send_alices_draft_as_his_own(alice: Hers, bob: RawPage) -> None:
    told = bob.send("Look at this", alice.upload)
    assert any(event["msg"] == "log" for event in told)  # the refusal is said
    chat, status = bob.paint(told)
    assert chat == "[]"
    assert 'data-conversation=""' in status
    assert alice.tab.client.get(f"{alice.tab.url}/gradio_api/file={alice.upload}").status_code == 200


def test_bob_cannot_read_or_join_alices_stream(alice: Hers, bob: RawPage, nobody: httpx.Client) -> None:
    session = alice.tab.session
    for client in (bob.client, nobody):
        for path in (f"queue/data?session_hash={session}", f"heartbeat/{session}"):
            refused = {401, 403} if client is nobody else {403}
            assert client.get(f"{bob.url}/gradio_api/{path}").status_code in refused
    assert bob.join(0, session=session).status_code == 403


def test_bob_cannot_cancel_what_alice_runs(alice: Hers, bob: RawPage) -> None:
    bob.act(do="look")
    for session in (alice.tab.session, bob.session):
        asked = {"session_hash": session, "fn_index": 0, "event_id": alice.event}
        assert bob.client.post(f"{bob.url}/gradio_api/cancel", json=asked).status_code == 403


def test_the_address_of_alices_conversation_shows_bob_an_empty_room(alice: Hers, app: AppProcess) -> None:
    tab = RawPage(app.address, alice.conversation).open()
    chat, status = tab.painted()
    assert chat == "[]"
    assert alice.conversation not in status
    tab.close()


@pytest.mark.parametrize("asked", ACTIONS, ids=lambda asked: asked["do"])
def test_nothing_that_the_page_can_ask_for_touches_what_is_alices(
    alice: Hers, bob: RawPage, asked: dict[str, str | int]
) -> None:
    known = {name: getattr(alice, name) for name in ("conversation", "question", "reply", "document", "upload")}
    filled = {name: value.format(**known) if isinstance(value, str) else value for name, value in asked.items()}
    before = alice.painted()
    told = bob.act(**filled)
    assert "heliotrope" not in str(told)
    assert alice.painted() == before
    assert "heliotrope" in before
    assert alice.tab.client.get(f"{alice.tab.url}/gradio_api/file={alice.upload}").status_code == 200


def test_an_upload_over_the_limit_is_refused_in_the_readers_language(bob: RawPage) -> None:
    too_much = {"files": ("big.bin", b"x" * (1024 * 1024 + 1))}
    for language, word in (("en", "limit"), ("zh-CN", "上限")):
        answer = bob.client.post(f"{bob.url}/gradio_api/upload", files=too_much, headers={"accept-language": language})
        assert answer.status_code == 413
        assert word in answer.text
        assert "big.bin" in answer.text


def test_an_upload_needs_an_owner(nobody: httpx.Client) -> None:
    assert nobody.post("/gradio_api/upload", files={"files": ("a.txt", b"x")}).status_code == 403


def test_the_page_names_no_endpoint_for_programs(bob: RawPage) -> None:
    assert bob.client.get(f"{bob.url}/gradio_api/info").status_code == 403
    assert {dep["api_visibility"] for dep in bob.config["dependencies"]} == {"private"}


def test_a_stranger_costs_no_library(app: AppProcess, bob: RawPage) -> None:
    libraries = app.home / "libraries"
    before = set(libraries.iterdir())
    assert bob.client.get(f"{bob.url}/pages/x/1.png").status_code == 404
    assert set(libraries.iterdir()) == before


@pytest.mark.parametrize("name", ["%00", "css/%00", "a" * 300, "a" * 5000, "css/" + "%F0%9F%98%80" * 200])
def test_a_name_that_no_file_can_have_is_not_there(bob: RawPage, name: str) -> None:
    assert bob.client.get(f"{bob.url}/assets/{name}").status_code == 404
    assert bob.client.get(f"{bob.url}/static/{name}").status_code == 404


def test_own_assets_and_gradios_come_from_one_address(bob: RawPage) -> None:
    own = bob.client.get(f"{bob.url}/assets/css/tokens.css?v=1")
    assert own.headers["content-type"].startswith("text/css")
    assert "immutable" in own.headers["cache-control"]
    page = bob.client.get(bob.url + "/").text
    script = _found(r'src="\./(assets/index-[\w-]+\.js)"', page)
    assert bob.client.get(f"{bob.url}/{script}").status_code == 200
    assert bob.client.get(f"{bob.url}/assets/%2e%2e/pyproject.toml").status_code in {403, 404}  # Gradio says 403


def test_what_a_relieved_follower_painted_does_not_come_back_when_it_ends(bob: RawPage) -> None:
    events: list[str] = []
    ended: dict[str, bool] = {}
    for told in bob.sending("count slowly"):
        if told["msg"] == "process_generating" and not events:
            events = [told["event_id"], bob.join(bob.loading()).json()["event_id"]]
        if told["msg"] == "process_completed":
            ended[told["event_id"]] = {"__type__": "update"} not in bob.frame([told])
    assert ended == dict(zip(events, (False, True), strict=True))
