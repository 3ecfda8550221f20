"""Below a path of another site the whole page works, and asks for nothing outside of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, wait_for_script, wait_for_state
from tests.e2e.test_documents import CLAUSE, add, make_pdf


def test_below_a_path_a_document_is_asked_its_page_shown_and_the_conversation_found_again(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    app = start_app(name="below", ROOT_PATH="/chat", RETRIEVAL="keyword")
    page = open_page(app, "/chat/")
    asked = set[str]()
    page.on("request", lambda request: asked.add(urlsplit(request.url).path))
    add(page, make_pdf(tmp_path / "policy.pdf", "This policy covers one flat.", f"Section 7. {CLAUSE}"))
    ask(page, "What is the deductible for water damage?")
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    wait_for_state(page, "idle")
    chat(page).locator("a.cite").first.click()
    picture = page.locator("#evidence").get_by_role("img", name="Page 2 of policy.pdf")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 500
    page.reload()
    wait_for_script(page)
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    assert urlsplit(page.url).path == "/chat/"
    expect(page.locator("#history")).to_contain_text("deductible")
    assert {path for path in asked if not path.startswith("/chat/")} == set()
    assert any("/assets/" in path for path in asked)
    assert {cookie.get("path") for cookie in page.context.cookies()} == {"/chat/"}
