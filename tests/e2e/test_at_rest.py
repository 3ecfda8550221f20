"""A page that nobody touches does nothing: no frame is asked for, no timer is set, nothing is sent."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import until
from tests.e2e.conftest import DESK, wait_until_usable

COUNT = """(() => {
  window.restless = [];
  window.frame = window.requestAnimationFrame.bind(window);
  for (const name of ['requestAnimationFrame', 'setTimeout', 'setInterval', 'fetch']) {
    const own = window[name].bind(window);
    window[name] = (...given) => {
      window.restless.push(`${name} ${given[1] ?? ''} ${new Error().stack}`);
      return own(...given);
    };
  }
  const every = window.setInterval;
  window.shortest = Infinity;
  window.setInterval = (what, rest, ...more) => {
    window.shortest = Math.min(window.shortest, rest);
    return every(what, rest, ...more);
  };
})()"""
# What was asked for while forty frames were drawn.
FORTY_FRAMES = """() => new Promise((resolve) => {
  window.restless = [];
  let left = 40;
  const next = () => (left-- > 0 ? window.frame(next) : resolve(window.restless));
  next();
})"""


def test_a_page_at_rest_asks_for_nothing(server: AppProcess, browser: Browser) -> None:
    context = browser.new_context(viewport=DESK, locale="en-US", service_workers="block")  # pyright: ignore[reportArgumentType]
    context.add_init_script(COUNT)
    page = context.new_page()
    page.goto(server.at("/"), wait_until="domcontentloaded")
    wait_until_usable(page)
    until(lambda: not page.evaluate(FORTY_FRAMES))  # it may still be settling; it comes to rest
    assert page.evaluate(FORTY_FRAMES) == []
    assert page.evaluate("window.shortest") >= 60_000
    assert page.evaluate("document.getAnimations().length") == 0
    context.close()
