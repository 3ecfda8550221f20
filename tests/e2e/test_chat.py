"""A conversation as people have it: it streams, it stops, it outlives its page."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import NAMED, ask, ask_and_wait, button, chat, composer, until, wait_for_state, words_of


def test_a_reply_grows_word_by_word_and_stop_stands_in_place_of_send(page: Page) -> None:
    send, stop = button(page, "Send"), button(page, "Stop")
    expect(send).to_be_visible()
    expect(stop).to_be_hidden()
    ask(page, "Please count at leisure.")
    expect(stop).to_be_visible()
    expect(send).to_be_hidden()
    expect(chat(page)).to_contain_text("word10 ")
    seen = len(words_of(page))
    expect(composer(page)).to_have_value("")
    expect(page.locator("#top")).to_contain_text("Please count at leisure.")
    until(lambda: len(words_of(page)) > seen)
    wait_for_state(page, "running")
    stop.click()
    wait_for_state(page, "idle")
    words = words_of(page)
    assert words == [f"word{number}" for number in range(1, len(words) + 1)]
    assert len(words) < 2000
    expect(send).to_be_visible()
    expect(stop).to_be_hidden()


# What is done to the first reply, unseen as it may be.
WATCH_THE_FIRST = """() => {
  const told = ({type, attributeName}) => `${type} ${attributeName ?? ''}`;
  window.touched = [];
  const all = {subtree: true, childList: true, characterData: true, attributes: true};
  new MutationObserver((changes) => window.touched.push(...changes.map(told)))
    .observe(document.querySelector('#chat .bot-row'), all);
}"""


def test_while_a_reply_is_written_the_turns_before_it_are_left_alone(page: Page) -> None:
    ask_and_wait(page, "Hello", "You said: Hello")
    ask(page, "count at leisure")
    expect(chat(page)).to_contain_text("word5 ")
    page.evaluate(WATCH_THE_FIRST)
    expect(chat(page)).to_contain_text("word25 ")
    assert page.evaluate("window.touched") == []  # a browser would lay them all out anew with each frame
    button(page, "Stop").click()
    wait_for_state(page, "idle")


def test_stop_keeps_what_there_is_and_the_next_message_works(page: Page) -> None:
    ask(page, "count at leisure")
    expect(chat(page)).to_contain_text("word10 ")
    button(page, "Stop").click()
    wait_for_state(page, "idle")
    kept = words_of(page)
    assert 10 <= len(kept) < 2000
    expect(chat(page)).to_contain_text("You stopped this reply")
    ask_and_wait(page, "And now?", "You said: And now?")
    assert words_of(page) == kept


def test_a_reload_in_mid_reply_loses_nothing(page: Page) -> None:
    ask(page, "count at leisure, and reload")
    expect(chat(page)).to_contain_text("word20 ")
    page.reload(wait_until="domcontentloaded")
    expect(chat(page)).to_contain_text("count at leisure, and reload")
    wait_for_state(page, "running")
    seen = len(words_of(page))
    until(lambda: len(words_of(page)) > max(20, seen))
    button(page, "Stop").click()
    wait_for_state(page, "idle")
    words = words_of(page)
    assert words == [f"word{number}" for number in range(1, len(words) + 1)]


def test_enter_again_while_a_question_is_on_its_way_does_not_send_it_twice(page: Page) -> None:
    sent: list[str] = []

    def hold(route: Route) -> None:
        sent.append(route.request.post_data or "")
        if len(sent) > 1:
            route.continue_()

    page.route("**/queue/join*", hold)
    ask(page, "Say it once")
    until(lambda: bool(sent))
    page.evaluate("performance.now = (now => () => now() + 1500)(performance.now.bind(performance))")  # a slow server
    composer(page).press("Enter")
    composer(page).press("End")  # the key before it was heard by everybody
    page.unroute("**/queue/join*")  # lets go of what was held
    expect(chat(page)).to_contain_text("You said: Say it once")
    wait_for_state(page, "idle")
    assert len(sent) == 1
    assert chat(page).locator(".p-asked").count() == 1


def test_a_reload_in_the_moment_of_sending_lands_in_the_conversation(page: Page) -> None:
    question = "count at leisure from the first moment"
    with page.expect_request(lambda request: "queue/join" in request.url):
        ask(page, question)
    expect(page).to_have_url(NAMED, timeout=1)
    address = page.url
    page.reload(wait_until="domcontentloaded")
    expect(chat(page)).to_contain_text(question)
    expect(chat(page)).to_contain_text("word5 ")
    assert page.url == address
    expect(composer(page)).to_have_value("")
    button(page, "Stop").click()
    wait_for_state(page, "idle")


def test_a_question_that_was_sent_is_no_draft_any_more(page: Page) -> None:
    ask_and_wait(page, "Sent and gone", "You said: Sent and gone")
    until(lambda: not page.evaluate("Object.keys(sessionStorage).filter((name) => name.startsWith('p-draft'))"))


def test_a_reload_before_the_question_has_left_the_page_keeps_it(page: Page) -> None:
    composer(page).fill("Kept in any case")
    composer(page).evaluate("""area => {
        const press = (type) => new KeyboardEvent(type, { key: 'Enter', bubbles: true, cancelable: true });
        for (const type of ['keydown', 'keypress']) area.dispatchEvent(press(type));
    }""")
    page.reload(wait_until="domcontentloaded")
    kept = "() => { const field = document.querySelector('#composer textarea'); return (field?.value ?? '').trim(); }"
    said = "() => document.querySelector('#chat .user-row')?.innerText.trim() ?? ''"
    until(lambda: "Kept in any case" in page.evaluate(kept) + page.evaluate(said))


def test_a_refused_question_leaves_no_name_in_the_address(page: Page) -> None:
    composer(page).fill(" ")
    composer(page).press("Enter")
    expect(page.get_by_text("There is nothing to send").first).to_be_visible()
    expect(page).not_to_have_url(NAMED)


def test_a_second_tab_shows_the_same_reply_and_can_stop_it(
    page: Page, server: AppProcess, open_page: Callable[..., Page]
) -> None:
    ask(page, "count at leisure in two tabs")
    expect(chat(page)).to_contain_text("word5 ")
    expect(page).to_have_url(NAMED)
    second = open_page(server, page.url.removeprefix(server.url), context=page.context)
    expect(chat(second)).to_contain_text("word5 ")
    button(second, "Stop").click()
    for tab in (page, second):
        wait_for_state(tab, "idle")
        expect(chat(tab)).to_contain_text("You stopped this reply")
    until(lambda: words_of(page) == words_of(second))


def test_a_reply_goes_on_when_nobody_looks(page: Page, server: AppProcess, open_page: Callable[..., Page]) -> None:
    ask(page, "count calmly for nobody")
    expect(chat(page)).to_contain_text("word5 ")
    expect(page).to_have_url(NAMED)
    address = page.url.removeprefix(server.url)
    page.goto("about:blank")
    again = open_page(server, address, context=page.context)
    wait_for_state(again, "idle")
    until(lambda: words_of(again) == [f"word{number}" for number in range(1, 201)])


# Keys and words in one turn of the page's loop: faster than its framework reads the field.
_IN_ONE_TURN = """(area, [words, enter]) => {
    const press = () => {
        const options = { key: 'Enter', bubbles: true, cancelable: true };
        for (const kind of ['keydown', 'keypress', 'keyup']) area.dispatchEvent(new KeyboardEvent(kind, options));
    };
    press();
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(area, words);
    area.dispatchEvent(new Event('input', { bubbles: true }));
    if (enter) press();
}"""


def test_what_is_sent_while_a_question_is_still_on_its_way_stays_in_the_composer(page: Page) -> None:
    composer(page).fill("The first question")
    composer(page).evaluate(_IN_ONE_TURN, ["Too early.", True])
    expect(chat(page)).to_contain_text("You said: The first question")
    expect(composer(page)).to_have_value("Too early.")
    expect(page.locator("#queue li")).to_have_count(0)


def test_what_is_typed_in_the_instant_after_enter_does_not_become_the_question(page: Page) -> None:
    composer(page).fill("The whole question")
    composer(page).evaluate(_IN_ONE_TURN, ["And the next words", False])
    expect(chat(page)).to_contain_text("You said: The whole question")
    expect(composer(page)).to_have_value("And the next words")


def test_what_is_sent_before_the_page_knows_of_the_reply_waits_for_its_end(page: Page) -> None:
    ask(page, "count at leisure first")
    expect(chat(page)).to_contain_text("word3 ")
    # As in the moment before its first frame.
    composer(page).fill("Too early.")
    page.locator("#status [data-state]").evaluate("e => { e.dataset.state = 'idle'; }")
    composer(page).press("Enter")
    expect(page.locator("#queue li")).to_contain_text("Too early.")
    expect(composer(page)).to_have_value("")
    page.locator("#queue").get_by_role("button", name="Remove").click()
    expect(page.locator("#queue li")).to_have_count(0)
    button(page, "Stop").click()
    wait_for_state(page, "idle")


def test_two_conversations_are_answered_at_once_and_never_mixed(page: Page) -> None:
    ask(page, "count at leisure in the first")
    expect(chat(page)).to_contain_text("word3 ")
    expect(page).to_have_url(NAMED)
    first = page.url
    page.locator("#house").get_by_text("New chat").first.click()
    expect(chat(page)).not_to_contain_text("word3 ")
    ask_and_wait(page, "Only in the second", "You said: Only in the second")
    expect(chat(page)).not_to_contain_text("word")
    assert page.url != first
    page.go_back()
    expect(chat(page)).to_contain_text("word3 ")
    expect(chat(page)).not_to_contain_text("Only in the second")
    button(page, "Stop").click()
    wait_for_state(page, "idle")


def test_the_reply_can_be_written_again_and_the_question_changed(page: Page) -> None:
    ask_and_wait(page, "First words", "You said: First words")
    page.get_by_role("button", name="Regenerate").click()
    wait_for_state(page, "idle")
    expect(chat(page).get_by_text("You said: First words")).to_have_count(1)
    expect(chat(page).get_by_role("button", name="Previous version")).to_be_visible()
    page.locator("#chat").get_by_text("First words").first.hover()
    page.get_by_role("button", name="Edit", exact=True).first.click()
    page.get_by_role("textbox", name="Edit your question").fill("Second words")
    page.locator(".p-editing").get_by_role("button", name="Send").click()
    expect(chat(page)).to_contain_text("You said: Second words")
    expect(chat(page)).not_to_contain_text("First words")
