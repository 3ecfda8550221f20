"""Python that the assistant wants to run: asked for with the code in sight, its plot and file in the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from core.testing.script import Reply, Request
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, until, wait_for_state

CODE = """import matplotlib.pyplot as plt
sales = {"一月": 3, "二月": 5, "三月": 8}
plt.bar(sales.keys(), sales.values())
plt.title("销售额 2026")
plt.show()
open("sales.csv", "w").write("month,sold\\n1,3\\n")
sum(sales.values())"""


def plots(request: Request) -> Reply:
    """Wants to run the code, then says what came of it."""
    last: Any = request["messages"][-1]
    if last["role"] == "tool":
        return Reply(text="Sixteen in all.")
    offered = [tool["function"]["name"] for tool in request.get("tools") or []]
    if "code_interpreter" not in offered:
        return Reply(text="I cannot run code here.")
    return Reply(calls=[("code_interpreter", {"code": CODE})])


def test_allowed_code_brings_its_plot_and_its_file(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app(plots, CODE="auto")
    page = open_page(app)
    until(lambda: "code_interpreter" in page.request.get("/readyz").json())
    told = page.request.get("/readyz").json()["code_interpreter"]
    ask(page, "How many did we sell?")
    if told["state"] == "off":
        assert told["reason"]
        expect(chat(page)).to_contain_text("I cannot run code here.")
        return
    card = page.locator(".p-asks:not([data-fresh])")
    expect(card).to_contain_text("run Python code")
    expect(card.get_by_role("textbox")).to_have_value(CODE)
    card.get_by_role("button", name="Allow once").click()
    wait_for_state(page, "idle")
    expect(chat(page)).to_contain_text("Sixteen in all.")
    picture = chat(page).locator("img[src*='/files/']").first
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    expect(chat(page).locator(".p-drawn")).to_contain_text("sales.csv")
