"""A browser tab without a browser: speaks to the page's queue over HTTP, as Gradio's client does."""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import httpx

Frame = tuple[list[dict[str, Any]], str, str, str, str]


@dataclass
class RawPage:
    """One tab of one browser.

    Args:
        url: Where the app is, as it says itself: with its token, where it asks for one.
        conversation: What the address names, as in `?c=`.
        client: The browser; its cookie is asked for if it has none.
    """

    url: str
    conversation: str = ""
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))
    session: str = field(default_factory=lambda: secrets.token_hex(6))
    config: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self._entry = self.url
        self.url = self.url.partition("?")[0].rstrip("/")

    def open(self) -> RawPage:
        self.client.get(self._entry, follow_redirects=True)
        self.config = self.client.get(self.url + "/config").json()
        return self

    def close(self) -> None:
        self.client.close()

    def number(self, element: str, event: str) -> int:
        """The number of a listener, by its component and event."""
        components = {part["props"].get("elem_id"): part["id"] for part in self.config["components"]}
        target = [components.get(element), event]
        return next(dep["id"] for dep in self.config["dependencies"] if target in dep["targets"])

    def loading(self) -> int:
        """The number of the listener that a browser calls first."""
        return int(self._loading["id"])

    @property
    def _loading(self) -> dict[str, Any]:
        return next(dep for dep in self.config["dependencies"] if any(event == "load" for _, event in dep["targets"]))

    def join(self, number: int, *data: Any, session: str = "") -> httpx.Response:
        body = {"data": list(data), "fn_index": number, "session_hash": session or self.session}
        referer = f"{self.url}/" + (f"?c={self.conversation}" if self.conversation else "")
        headers = {"referer": referer, "content-type": "application/json"}
        # As browsers write it: half a character is escaped.
        return self.client.post(self.url + "/gradio_api/queue/join", content=json.dumps(body), headers=headers)

    def listen(self) -> Generator[dict[str, Any]]:
        """What the queue says, until it has nothing more to say."""
        address = f"{self.url}/gradio_api/queue/data"
        with self.client.stream("GET", address, params={"session_hash": self.session}) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    told = json.loads(line.removeprefix("data:"))
                    yield told
                    if told["msg"] == "close_stream":
                        return

    def telling(self, number: int, *data: Any) -> Generator[dict[str, Any]]:
        """Call a listener; what the queue says until nothing more is to come."""
        joined = self.join(number, *data)
        assert joined.status_code == 200, joined.text
        return self.listen()

    def run(self, number: int, *data: Any) -> list[dict[str, Any]]:
        return list(self.telling(number, *data))

    def frame(self, told: list[dict[str, Any]]) -> list[Any]:
        """What a call has painted when it was over: the conversation, then the panels."""
        shown = next(event["output"]["data"] for event in reversed(told) if event["msg"] == "process_completed")
        return shown[-len(self._loading["outputs"]) :]

    def paint(self, told: list[dict[str, Any]]) -> tuple[str, str]:
        """What the tab shows when a call is over: conversation and status markup."""
        chat, _, status, *_ = self.frame(told)
        return json.dumps(chat, ensure_ascii=False), str(status)

    def painted(self) -> tuple[str, str]:
        """What a browser shows once it has loaded the page: conversation and status markup."""
        return self.paint(self.run(self.loading()))

    def sending(self, text: str, *paths: str) -> Generator[dict[str, Any]]:
        """Ask; what the queue says until the reply is over."""
        files = [{"path": path, "meta": {"_type": "gradio.FileData"}} for path in paths]
        return self.telling(self.number("composer", "submit"), {"text": text, "files": files})

    def send(self, text: str, *paths: str) -> list[dict[str, Any]]:
        return list(self.sending(text, *paths))

    def act(self, **asked: Any) -> list[dict[str, Any]]:
        return self.run(self.number("bus-go", "click"), json.dumps(asked))

    def upload(self, name: str, data: bytes) -> str:
        answer = self.client.post(self.url + "/gradio_api/upload", files={"files": (name, data)})
        assert answer.status_code == 200, answer.text
        return str(answer.json()[0])
