"""The configurations of docs/proxies.md, run as they stand there: by Debian's nginx, Caddy and HAProxy."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from set_up import find_server, server_environment
from tests.certificates import certificate_for
from tests.e2e.app_process import ROOT, AppProcess
from tests.ports import free_port
from tests.webui.server.raw_page import RawPage

pytestmark = pytest.mark.slow

NAME = "chat.example.org"
PAGE = (ROOT / "docs" / "proxies.md").read_text("utf-8")
PROGRAM = {"name": "x", "settings": {"command": "/bin/sh", "args": ["-c", "id"]}}


def block(kind: str, number: int = 0) -> str:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[number]


def placed(text: str, **places: str) -> str:
    """A configuration with the ports and files of this test in place of those of the page, and nothing else changed."""
    for old, new in places.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class To(httpx.HTTPTransport):
    """Leads the name to a port of this machine, as a name server would."""

    def __init__(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        super().__init__(verify=context)
        self._port = port

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        named = request.url
        request.headers["host"] = named.host
        request.extensions = {**request.extensions, "sni_hostname": named.host}
        request.url = named.copy_with(host="127.0.0.1", port=self._port)
        try:
            return super().handle_request(request)
        finally:
            request.url = named  # whose cookies they are


@dataclass
class Front:
    """A proxy that runs in front of an app."""

    app: AppProcess
    port: int
    scheme: str = "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{NAME}"

    def browser(self) -> httpx.Client:
        return httpx.Client(transport=To(self.port), timeout=60, base_url=self.url)

    @contextmanager
    def page(self) -> Iterator[RawPage]:
        with self.browser() as browser:
            yield RawPage(self.url, client=browser).open()


def says(request: dict[str, Any]) -> Reply:
    """A reply whose end never comes, where a question wants one."""
    if "never end" in json.dumps(request["messages"][-1]):
        return Reply(text="First words are here, and then a very long silence follows.", hang_after=5)
    return behave(request)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    settings = {"ALLOWED_HOSTS": NAME, "TRUSTED_PROXIES": "127.0.0.1", "RETRIEVAL": "keyword"}
    with ModelServer(says) as model:
        app = AppProcess(tmp_path_factory.mktemp("proxied") / "home", model, settings).start()
        yield app
        app.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `chat.pem` (certificate and key) and `chat.key`."""
    return certificate_for(NAME, tmp_path_factory.mktemp("certificate"))


FREE: Mapping[str, str] = {}


@contextmanager
def running(folder: Path, port: int, name: str, *arguments: str) -> Iterator[None]:
    """A proxy, until the block ends."""
    program = find_server(name)
    assert program, f"{name} is not here; `python set_up.py test-all` fetches it."
    environment = {**server_environment(), "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        end = time.monotonic() + 60
        while not _listens(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)  # between two looks, not for luck
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def nginx(folder: Path, port: int, inside: str) -> Iterator[None]:
    """nginx with this inside its `http` section."""
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{place}_temp_path {folder}/{place};\n" for place in places)
    user = "user root;" if os.name == "posix" and os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{inside}\n}}\n"
    )
    with running(folder, port, "nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")):
        yield


@contextmanager
def nginx_of_the_page(
    app: AppProcess, folder: Path, certificate: Path, more: str = "", hurry: Mapping[str, str] = FREE
) -> Iterator[Front]:
    port = free_port()
    places = {
        **hurry,
        "listen 443": f"listen 127.0.0.1:{port}",
        "/etc/ssl/chat.example.org.pem": str(certificate / "chat.pem"),
        "/etc/ssl/chat.example.org.key": str(certificate / "chat.key"),
        "127.0.0.1:7860": f"127.0.0.1:{app.port}",
    }
    with nginx(folder, port, more + placed(block("nginx"), **places)):
        yield Front(app, port)


@contextmanager
def caddy(app: AppProcess, folder: Path, certificate: Path, hurry: Mapping[str, str] = FREE) -> Iterator[Front]:
    del certificate  # it makes its own
    port = free_port()
    around = (
        "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n"
        f"\tdefault_bind 127.0.0.1\n\thttps_port {port}\n}}\n"
    )
    places = {**hurry, "127.0.0.1:7860": f"127.0.0.1:{app.port}"}
    (folder / "Caddyfile").write_text(around + placed(block("caddy"), **places))
    with running(folder, port, "caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"):
        yield Front(app, port)


@contextmanager
def haproxy(app: AppProcess, folder: Path, certificate: Path, hurry: Mapping[str, str] = FREE) -> Iterator[Front]:
    port = free_port()
    places = {
        **hurry,
        "bind :443": f"bind 127.0.0.1:{port}",
        "/etc/haproxy/chat.example.org.pem": str(certificate / "chat.pem"),
        "127.0.0.1:7860": f"127.0.0.1:{app.port}",
    }
    (folder / "haproxy.cfg").write_text(placed(block("haproxy"), **places))
    with running(folder, port, "haproxy", "-db", "-f", str(folder / "haproxy.cfg")):
        yield Front(app, port)


@contextmanager
def nginx_that_packs_everything(app: AppProcess, folder: Path, certificate: Path) -> Iterator[Front]:
    with nginx_of_the_page(app, folder, certificate, block("nginx", 1)) as front:
        yield front


FRONTS: list[Callable[..., Any]] = [nginx_of_the_page, nginx_that_packs_everything, caddy, haproxy]


@pytest.fixture(scope="module", params=FRONTS, ids=lambda front: front.__name__)
def front(
    request: pytest.FixtureRequest,
    app: AppProcess,
    tmp_path_factory: pytest.TempPathFactory,
    certificate: Path,
) -> Iterator[Front]:
    """The app behind each of the page's configurations."""
    with request.param(app, tmp_path_factory.mktemp("proxy"), certificate) as front:
        yield passing(front)


def passing(front: Front) -> Front:
    """It, once it passes requests on: HAProxy asks for health before it does."""
    end = time.monotonic() + 60
    with front.browser() as browser:
        while browser.get("/healthz").status_code != 200 and time.monotonic() < end:
            time.sleep(0.1)  # between two questions, not for luck
    return front


def test_the_page_is_there_under_its_name_with_a_cookie_for_https_alone(front: Front) -> None:
    with front.browser() as browser:
        page = browser.get("/")
        assert page.status_code == 200
        (cookie,) = page.headers.get_list("set-cookie")
        assert cookie.startswith("__Host-parlour-")
        assert {"Secure", "HttpOnly", "Path=/"} <= set(cookie.split("; "))
        assert f'"root":"{front.url}"' in page.text
        for header in ("x-forwarded-host", "forwarded", "x-gradio-server"):
            assert "evil.example" not in browser.get("/", headers={header: "evil.example"}).text


def test_a_reply_comes_word_by_word_while_it_is_written(front: Front) -> None:
    with front.page() as tab:
        began, told = time.monotonic(), tab.sending("never end")
        assert any("First words are here" in json.dumps(event) for event in told)
        told.close()
    # The model says no more than these words, so a proxy that collects shows them when signs of life, one each fifteen
    # seconds, have filled its buffer, or when Parlour gives the model up.
    assert time.monotonic() - began < 12


def test_a_file_of_some_megabytes_passes_and_a_larger_one_is_refused_in_parlours_words(front: Front) -> None:
    with front.page() as tab:
        assert tab.upload("notes.txt", b"x" * 5_000_000)
        large = {"files": ("large.txt", b"x" * 53_000_000)}
        refused = tab.client.post(f"{front.url}/gradio_api/upload", files=large, headers={"accept-language": "en"})
    assert refused.status_code == 413
    assert "the limit is 50 MB" in refused.text


def test_a_visitor_starts_no_program_and_nobody_without_a_cookie_does_anything(front: Front) -> None:
    with front.page() as tab:
        told = tab.client.post(f"{front.url}/tools/save", json=PROGRAM).json()
        assert told["failed"].startswith("Programs are started for the owner of this machine alone")
    with front.browser() as stranger:
        for path in ("/tools/save", "/tools/connect", "/tools/confirm"):
            assert stranger.post(path, json=PROGRAM).status_code == 401


def test_a_probe_is_told_that_it_is_ready_and_nothing_else(front: Front) -> None:
    with front.browser() as probe:
        assert probe.get("/readyz").json() == {"ready": True}


# Each configuration with time-outs of twenty seconds in place of its own.
HURRIED: dict[str, tuple[Callable[..., Any], Mapping[str, str]]] = {
    "nginx": (nginx_of_the_page, {"proxy_read_timeout 10m": "send_timeout 20s; proxy_read_timeout 20s"}),
    "caddy": (
        caddy,
        {
            "reverse_proxy 127.0.0.1:7860": "reverse_proxy 127.0.0.1:7860 {\n\t\ttransport http {\n"
            "\t\t\tread_timeout 20s\n\t\t\tresponse_header_timeout 20s\n\t\t}\n\t}"
        },
    ),
    "haproxy": (
        haproxy,
        {"timeout client 10m": "timeout client 20s", "timeout server 10m": "timeout server 20s"},
    ),
}
SILENT = "be silent for 40 seconds"


@pytest.mark.parametrize("name", HURRIED)
def test_what_waits_for_a_silent_model_outlives_the_time_outs_of_a_proxy(
    name: str, app: AppProcess, tmp_path: Path, certificate: Path
) -> None:
    made, hurry = HURRIED[name]
    with (
        made(app, tmp_path, certificate, hurry=hurry) as front,
        passing(front).page() as tab,
        ThreadPoolExecutor() as pool,
    ):
        token = tab.client.post(f"{front.url}/tools/token", json={}).json()["token"]
        answered = pool.submit(asked_by_a_program, front, token)
        chat, status = tab.paint(tab.send(SILENT))
        assert f"You said: {SILENT}" in chat
        assert 'data-state="idle"' in status
        assert SILENT in answered.result()


def asked_by_a_program(front: Front, token: str) -> str:
    """What the assistant answers over MCP to whoever has a token."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    ask = {"name": "ask", "arguments": {"question": SILENT}}
    with front.browser() as program:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ask}
        answer = program.post("/mcp", json=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.text


NAIVE = {
    "as nginx does by default": "",
    "with the client's address": "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    "with the name alone": "proxy_set_header Host $host;",
    "with all but the name": "proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;",
}


@pytest.mark.parametrize("settings", [{}, {"ALLOWED_HOSTS": NAME}, {"TRUSTED_PROXIES": "127.0.0.1"}], ids=str)
def test_however_a_proxy_is_set_up_it_lets_no_stranger_be_the_owner(tmp_path: Path, settings: dict[str, str]) -> None:
    with ModelServer(behave) as model:
        app = AppProcess(tmp_path / "home", model, settings).start()
        try:
            for number, (what, lines) in enumerate(NAIVE.items()):
                folder, port = tmp_path / str(number), free_port()
                folder.mkdir()
                inside = f"location / {{ proxy_pass http://127.0.0.1:{app.port}; {lines} }}"
                with (
                    nginx(folder, port, f"server {{ listen 127.0.0.1:{port}; {inside} }}"),
                    Front(app, port, "http").browser() as stranger,
                ):
                    for origin in ({}, {"origin": f"http://{NAME}"}):
                        for path in ("/tools/save", "/tools/connect", "/tools/confirm"):
                            answer = stranger.post(path, json=PROGRAM, headers=origin)
                            assert answer.status_code in {401, 403}, (what, path, answer.text)
                        assert stranger.get("/tools/state", headers=origin).status_code in {401, 403}
        finally:
            app.stop()
