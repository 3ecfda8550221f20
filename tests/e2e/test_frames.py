"""On a Space the page stands in a frame of another site, whatever cookies the browser keeps there: two sites, HTTPS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserType, Frame, Page, expect

from set_up import find_browser
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import until
from tests.e2e.https_sites import INNER, OUTER, HttpsSites
from tests.e2e.test_documents import CLAUSE, make_pdf

# Playwright switches off what keeps storage of frames apart for each outer site; of several such lists the last counts.
AS_USERS_HAVE_IT = "--disable-features=HttpsUpgrades"

MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")  # somebody who says yes


@dataclass(frozen=True)
class Kept:
    """What a browser keeps of a page that stands in another site's.

    Args:
        profile: Chromium's own settings.
        forget: What the cookie's header lacks when it comes to the browser.
        options: Further options of Chromium's.
        note: How the line at the foot begins; "" where there is none.
        place: Whether the conversation is there again when the outer page is loaded again.
        refers: Whether a request says from which page it comes.
    """

    profile: dict[str, Any]
    forget: str = ""
    options: tuple[str, ...] = (AS_USERS_HAVE_IT,)
    note: str = ""
    place: bool = True
    refers: bool = True


_NO_OTHER_SITES = {"cookie_controls_mode": 1, "block_third_party_cookies": True}
KEPT = {
    "allowed": Kept({"cookie_controls_mode": 0, "block_third_party_cookies": False}),
    "partitioned": Kept(_NO_OTHER_SITES),
    # As browsers did it that keep cookies apart and no storage.
    "partitioned, no storage": Kept(_NO_OTHER_SITES, options=()),
    # As in a browser that does not know `Partitioned`: its cookie is one of another site's. WebKit leaves
    # the place out of what a request refers to as well.
    "no cookie, but the tab's storage": Kept(
        _NO_OTHER_SITES,
        forget="; Partitioned",
        note="This browser keeps no cookies for a page inside a page",
        refers=False,
    ),
    "blocked": Kept(
        {"default_content_setting_values": {"cookies": 2}},
        note="This browser keeps nothing for a page inside a page",
        place=False,
    ),
}


@contextmanager
def framed(app: AppProcess, folder: Path, frame: str = "", forget: str = "") -> Iterator[HttpsSites]:
    """Both sites; `frame` are further attributes of the frame."""
    with HttpsSites(app.port, folder, frame, "?__theme=dark", forget) as sites:
        yield sites


@contextmanager
def browser_with(
    kind: BrowserType, folder: Path, sites: HttpsSites, kept: Kept = KEPT["partitioned"], *more: str
) -> Iterator[Page]:
    """A page of a browser with these settings: they are those of a whole profile."""
    profile = folder / "profile" / "Default"
    profile.mkdir(parents=True)
    (profile / "Preferences").write_text(
        json.dumps({"profile": kept.profile, "enable_referrers": kept.refers}), encoding="utf-8"
    )
    led = f"--host-resolver-rules=MAP {OUTER} 127.0.0.1, MAP {INNER} 127.0.0.1"
    trusted = f"--ignore-certificate-errors-spki-list={sites.mark}"
    context = kind.launch_persistent_context(
        str(profile.parent),
        executable_path=find_browser(),
        args=["--headless", "--no-sandbox", "--disable-gpu", led, trusted, *kept.options, *more],
        locale="en-US",
        viewport={"width": 1240, "height": 860},
    )
    context.set_default_timeout(60_000)
    yield context.pages[0]
    context.close()


def parlour(page: Page) -> Frame:
    """Parlour's page, once it can be used."""
    frame = page.frame_locator("iframe")
    expect(frame.locator("html[data-hour]")).to_be_attached()
    found = next(one for one in page.frames if INNER in one.url)
    expect(found.locator("#status [data-lang='en']")).to_be_attached()
    return found


def asked(frame: Frame, question: str) -> None:
    frame.locator("#composer textarea").fill(question)
    frame.locator("#composer textarea").press("Enter")


Start = Callable[..., AppProcess]


def shown_there(start_app: Start, **more: str) -> AppProcess:
    """A Parlour that the outer site may show, behind a proxy that speaks HTTPS."""
    settings = {"ALLOWED_HOSTS": INNER, "FRAMES": f"https://{OUTER}:*", "OWNERS": "cookie", "CODE": "off"}
    return start_app(TRUSTED_PROXIES="127.0.0.1", RETRIEVAL="keyword", **settings, **more)


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_in_a_frame_it_answers_shows_evidence_and_finds_its_place_when_the_outer_page_is_loaded_again(
    kept: Kept, start_app: Start, browser: Browser, tmp_path: Path
) -> None:
    app = shown_there(start_app)
    document = make_pdf(tmp_path / "policy.pdf", f"Section 7. {CLAUSE}")
    with (
        framed(app, tmp_path, forget=kept.forget) as sites,
        browser_with(browser.browser_type, tmp_path, sites, kept) as page,
    ):
        page.goto(sites.outer)
        frame = parlour(page)
        assert frame.evaluate("() => isSecureContext && location.ancestorOrigins[0] !== origin") is True
        expect(frame.locator("html")).to_have_class("dark")
        with page.expect_response(lambda response: "/gradio_api/upload?" in response.url):
            frame.locator("#composer input[type=file]").first.set_input_files(document)
        asked(frame, "What is the deductible for water damage?")
        expect(frame.locator("#chat")).to_contain_text("four hundred and twenty euros")
        expect(frame.locator("#status [data-state=idle]")).to_be_attached()
        frame.locator("#chat a.cite").first.click()
        picture = frame.locator("#evidence").get_by_role("img", name="Page 1 of policy.pdf")
        expect(picture).to_be_visible()
        until(lambda: picture.evaluate("(one) => one.naturalWidth") > 0)
        expect(frame.locator("#evidence .p-hl.p-on").first).to_be_visible()
        note = frame.locator(".p-framed[role=note]")
        expect(note).to_have_count(1 if kept.note else 0)
        if kept.note:
            expect(note).to_contain_text(kept.note)
            expect(note.locator("a")).to_have_attribute("target", "_blank")
        page.reload()
        again = parlour(page)
        if kept.place:
            expect(again.locator("#chat")).to_contain_text("four hundred and twenty euros")
        else:
            expect(again.locator("#status [data-room=empty]")).to_be_attached()


@pytest.mark.parametrize("frame", ["", 'allow="microphone; clipboard-write"'], ids=["not lent", "lent"])
def test_the_microphone_is_used_where_the_page_around_lends_it_and_else_that_is_said_with_a_way_out(
    frame: str, start_app: Start, browser: Browser, tmp_path: Path
) -> None:
    app = shown_there(start_app, MODEL_OPTIONS='{"audio": true}')
    with (
        framed(app, tmp_path, frame) as sites,
        browser_with(browser.browser_type, tmp_path, sites, KEPT["partitioned"], *MICROPHONE) as page,
    ):
        page.goto(sites.outer)
        here = parlour(page)
        record = here.get_by_role("button", name="Record")
        record.click()
        hint = here.locator(".p-hint")
        if frame:
            expect(here.locator("#composer .microphone-button.recording, #composer .record-button")).to_be_visible()
            expect(hint).to_have_count(0)
        else:
            expect(hint).to_contain_text("The page around this one does not let it use the microphone.")
            way = hint.get_by_role("link", name="Open it in a window of its own")
            with page.context.expect_page() as opened:
                way.click()
            expect(opened.value.locator("#composer textarea")).to_be_visible()
            assert opened.value.url.startswith(sites.inner)
            opened.value.close()
            expect(record).to_be_visible()
            asked(here, "Can this be copied?")
            expect(here.locator("#status [data-state=idle]")).to_be_attached()
            here.locator("#chat .bot-row, #chat .bot").last.hover()
            here.get_by_role("button", name="Copy").last.click()
            here.locator("#composer textarea").press("Control+v")
            expect(here.locator("#composer textarea")).to_have_value("You said: Can this be copied?")
