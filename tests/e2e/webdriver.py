"""Firefox and WebKitGTK as Debian has them, by what they understand themselves: WebDriver, without a package between.

Firefox takes its commands over a socket (Marionette), WebKitGTK over HTTP (WebKitWebDriver); the commands are the same.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.ports import free_port

ENTER = "\ue007"
T = TypeVar("T")
_WAIT = 60.0  # seconds; a machine that does other things as well takes its time
_PREFERENCES = {
    "intl.accept_languages": "en-US",
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "dom.serviceWorkers.enabled": False,
}
_TRUSTING = {"acceptInsecureCerts": True}  # a certificate of the test's own making
_BROWSERS = "/usr/lib/*/webkit2gtk-4.*/MiniBrowser"


class Driver(ABC):
    """A browser with one window."""

    @abstractmethod
    def go(self, address: str) -> None:
        """Open an address."""

    @abstractmethod
    def run(self, script: str, *given: Any) -> Any:
        """What a function's body gives back on the page."""

    @abstractmethod
    def click(self, selector: str) -> None:
        """Click as a person would."""

    @abstractmethod
    def write(self, selector: str, text: str) -> None:
        """Press keys there; for a field of files, the path of one."""

    @abstractmethod
    def enter(self, selector: str) -> None:
        """Go on in this frame; `go` leaves it."""

    @abstractmethod
    def screenshot(self) -> bytes:
        """The window as PNG."""

    def until(self, condition: str, *given: Any) -> None:
        """Wait until a function's body gives back something that is true."""
        end = time.monotonic() + _WAIT
        while not self.run(condition, *given):
            assert time.monotonic() < end, f"It never came to be: {condition} {given}"
            time.sleep(0.05)  # between two looks, not for luck


class _Firefox(Driver):
    def __init__(self, port: int) -> None:
        self._socket = _soon(lambda: socket.create_connection(("127.0.0.1", port), timeout=_WAIT), OSError)
        self._rest, self._number = b"", 0
        self._read()  # what it is
        self._ask("NewSession", **_TRUSTING)
        self._ask("SetWindowRect", width=1280, height=860)

    def go(self, address: str) -> None:
        self._ask("Navigate", url=address)

    def run(self, script: str, *given: Any) -> Any:
        return self._ask("ExecuteScript", script=script, args=given)["value"]

    def click(self, selector: str) -> None:
        self._ask("ElementClick", id=self._find(selector))

    def write(self, selector: str, text: str) -> None:
        self._ask("ElementSendKeys", id=self._find(selector), text=text)

    def enter(self, selector: str) -> None:
        self._ask("SwitchToFrame", element=self._find(selector))

    def screenshot(self) -> bytes:
        return b64decode(self._ask("TakeScreenshot", full=False)["value"])

    def close(self) -> None:
        self._socket.close()

    def _find(self, selector: str) -> str:
        return next(iter(self._ask("FindElement", using="css selector", value=selector)["value"].values()))

    def _ask(self, command: str, **given: Any) -> Any:
        self._number += 1
        message = json.dumps([0, self._number, f"WebDriver:{command}", given]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._read()
        assert not error, error
        return result

    def _read(self) -> Any:
        while b":" not in self._rest:
            self._rest += self._more()
        length, _, rest = self._rest.partition(b":")
        while len(rest) < int(length):
            rest += self._more()
        self._rest = rest[int(length) :]
        return json.loads(rest[: int(length)])

    def _more(self) -> bytes:
        more = self._socket.recv(65536)
        assert more, "Firefox has gone."
        return more


class _WebKit(Driver):
    def __init__(self, port: int, browser: Path) -> None:
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=_WAIT, trust_env=False)
        _soon(lambda: self._client.get("/status"), httpx.HTTPError)
        options = {"binary": str(browser), "args": ["--automation", "--geometry=1280x860"]}
        wanted = {"webkitgtk:browserOptions": options, **_TRUSTING}
        made = self._post("/session", capabilities={"alwaysMatch": wanted})
        self._session = f"/session/{made['sessionId']}"

    def go(self, address: str) -> None:
        self._post(f"{self._session}/url", url=address)

    def run(self, script: str, *given: Any) -> Any:
        return self._post(f"{self._session}/execute/sync", script=script, args=given)

    def click(self, selector: str) -> None:
        self._post(f"{self._find(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        self._post(f"{self._find(selector)}/value", text=text)

    def enter(self, selector: str) -> None:
        found = self._post(f"{self._session}/element", using="css selector", value=selector)
        self._post(f"{self._session}/frame", id=found)

    def screenshot(self) -> bytes:
        return b64decode(self._client.get(f"{self._session}/screenshot").json()["value"])

    def close(self) -> None:
        self._client.delete(self._session)
        self._client.close()

    def _find(self, selector: str) -> str:
        found = self._post(f"{self._session}/element", using="css selector", value=selector)
        return f"{self._session}/element/{next(iter(found.values()))}"

    def _post(self, path: str, **given: Any) -> Any:
        answer = self._client.post(path, json=given)
        assert answer.is_success, answer.text
        return answer.json()["value"]


@contextmanager
def firefox(home: Path) -> Iterator[Driver]:
    """Debian's Firefox; its profile lies in `home`."""
    profile, port = home / "profile", free_port()
    profile.mkdir(parents=True)
    preferences = {**_PREFERENCES, "marionette.port": port}
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
    (profile / "user.js").write_text("".join(lines), "utf-8")
    with _running("firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", str(profile), home=home):
        driver = _Firefox(port)
        yield driver
        driver.close()


@contextmanager
def webkit(home: Path) -> Iterator[Driver]:
    """WebKitGTK's small browser, on a screen that nobody sees."""
    port, browser = free_port(), next(iter(sorted(Path("/").glob(_BROWSERS.lstrip("/")), reverse=True)))
    home.mkdir(parents=True, exist_ok=True)
    screen = ("Xvfb", "-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp")
    with _running(*screen, home=home, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        display = f":{server.stdout.readline().decode().strip()}"
        server.stdout.close()
        further = {"DISPLAY": display, "LANG": "en_US.UTF-8", "NO_AT_BRIDGE": "1", "LIBGL_ALWAYS_SOFTWARE": "1"}
        with _running("WebKitWebDriver", "--host=127.0.0.1", f"--port={port}", home=home, further=further):
            driver = _WebKit(port, browser)
            yield driver
            driver.close()


@contextmanager
def _running(
    name: str, *arguments: str, home: Path, stdout: int = subprocess.DEVNULL, further: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    program = shutil.which(name)
    assert program, f"{name} is not installed; `make test-all` installs it."
    process = subprocess.Popen(
        [program, *arguments],
        env={**os.environ, "HOME": str(home), **(further or {})},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _soon(attempt: Callable[[], T], refusal: type[Exception]) -> T:
    """What an attempt gives back once the other side listens."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            return attempt()
        except refusal:
            assert time.monotonic() < end
        time.sleep(0.1)  # between two knocks, not for luck
