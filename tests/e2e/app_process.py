"""The whole app in a process of its own, with a scripted model on 127.0.0.1 for its model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from core.testing.model_server import ModelServer
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 240  # a machine that does other things as well takes its time
_NOT_PASSED_ON = ("PARLOUR_", "OPENAI_", "AZURE_OPENAI_", "DASHSCOPE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass
class AppProcess:
    """`python -m webui`, started with `start`, ended with `stop` or, as by a power cut, `kill`.

    Args:
        home: The data folder; it outlives the process.
        model: The scripted model, or None: then `settings` must say what answers.
        settings: Further `PARLOUR_*` variables, by their names without the prefix.
    """

    home: Path
    model: ModelServer | None
    settings: dict[str, str] = field(default_factory=dict[str, str])
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    _browser: urllib.request.OpenerDirector = field(default_factory=urllib.request.build_opener)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """What the app printed to be opened: with its token, where it asks for one."""
        return re.findall(r"Parlour is opening at (\S+)", self.log.read_text("utf-8"))[-1]

    def at(self, path: str) -> str:
        """The address of a path of the page for a browser that has no cookie yet."""
        token = urlsplit(self.address).query
        return f"{self.url}{path}{'&' if '?' in path else '?'}{token}" if token else self.url + path

    def client(self) -> httpx.Client:
        """The browser of a user who opened the address that was printed."""
        client = httpx.Client(base_url=self.url, timeout=60)
        client.get(self.at("/"), follow_redirects=True)
        return client

    @property
    def log(self) -> Path:
        """What the app has printed."""
        return self.home.parent / f"{self.home.name}.log"

    def start(self) -> Self:
        """Start the app and wait until `/readyz` says that every part is ready."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "webui"],
                cwd=ROOT,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )  # in this process's group, so that whoever ends the tests ends the app too
        self.wait_until_ready()
        return self

    def wait_until_ready(self) -> None:
        """Ask `/readyz` until it answers 200.

        Raises:
            RuntimeError: The app ended, or was not ready in time; the message holds what it printed last.
        """
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process is not None and self.process.poll() is not None:
                break
            status, _ = self.get("/readyz")
            if status == 200:
                self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
                if self.settings.get("ROLE") not in {"worker", "sandbox"}:  # which have no pages
                    self._browser.open(self.at(self.settings.get("ROOT_PATH", "") + "/"), timeout=60).close()
                return
            time.sleep(0.1)  # between two questions, not for luck
        raise RuntimeError(f"Parlour was not ready: {self.get('/readyz')}\n{self.log.read_text('utf-8')[-4000:]}")

    def get(self, path: str) -> tuple[int, Any]:
        """Status and body (parsed where it is JSON) of a GET of its user; 0 where nobody listens."""
        try:
            try:
                response = self._browser.open(self.url + path, timeout=10)
            except urllib.error.HTTPError as error:
                response = error
            with response:
                status, raw = int(response.status or 0), response.read()
        except OSError:
            return 0, None
        try:
            return status, json.loads(raw)
        except ValueError:
            return status, raw.decode("utf-8", "replace")

    def stop(self) -> None:
        """End it as Ctrl-C or a service manager would."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, sign: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(sign)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(_NOT_PASSED_ON)}
        own = {"HOST": "127.0.0.1", "PORT": str(self.port), "HOME": str(self.home)}
        own |= {"CODE": "off"}  # a sandbox is tried for a second: for those tests that use it
        own |= {"TITLES": "0"}  # a call that a script does not reckon with: for those tests that do
        own |= {"NEW_OWNERS_PER_MINUTE": "0"}  # one suite opens more browsers than people of one address do
        own |= self.settings
        if self.model is not None:
            own |= {"BASE_URL": self.model.base_url, "MODEL": "scripted", "API_KEY": "any"}
        return {**kept, "PYTHONUNBUFFERED": "1", **{f"PARLOUR_{name}": value for name, value in own.items()}}
