"""The page without an engine: the real layout, styles, script and headers, with conversations that are made up."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import gradio as gr
import pymupdf
import uvicorn
from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.readiness import Readiness
from core.runs.log import LoggedEvent, RunFinished
from core.runs.reply import Reply
from core.storage.base import ConversationRecord, FileRecord, Folder, QueuedMessage, StoredMessage
from core.storage.preferences import Preferences
from core.storage.space import UsedSpace
from core.tools.owner_notes import Note
from core.workspace.queue import Waiting
from tests.webui.lists import listed
from tests.webui.screen import (
    agents_scenes,
    calls_scenes,
    many_files_scenes,
    page_scenes,
    prose_scenes,
    steering_scenes,
)
from webui.auth import Cookies
from webui.bundles import assets_folder
from webui.handlers.act import FORMER
from webui.handlers.desk import toast
from webui.layout import Handles, build
from webui.middleware.headers import HeadersMiddleware
from webui.middleware.places import PlacesMiddleware
from webui.page_files import asset_routes
from webui.panels.approval import announced, ask_html
from webui.panels.evidence import ShownPage, evidence_html
from webui.panels.history import history_html
from webui.panels.models import menu_data
from webui.panels.queue import queue_html
from webui.panels.settings import ShownSettings, settings_html
from webui.panels.toolbar import temporary_html
from webui.panels.tools import notes_data
from webui.panels.top import Speakers, status_html, top_html
from webui.panels.welcome import I18N
from webui.render.conversation import conversation_entries
from webui.theme import Theme, head
from webui.views import EVIDENCE, INSPECT, Place, View
from webui.words import Words

PASSAGE = {
    "text": "The deductible is 300 dollars for each claim.",
    "document": "policy.pdf",
    "document_id": "doc",
    "page": 2,
    "rectangles": [(72.0, 110.0, 523.0, 140.0)],
    "chunk_id": 1,
}
SECOND = "Qwen2.5-Coder 1.5B, built in"
LETTERS = 10.0  # points, of the page that is shown
ANSWER = r"""You pay **300 dollars** of each claim [1].

| Cause | Deductible |
|---|---:|
| Fire | 300 |

With $n < 3$ claims it is $s = \sum t_i$, but $5 or $10 is money:

$$\bar s = \frac{1}{n}\sum s_i$$

```python
print(300 < 750)  # $x and $y
```

- a list
"""
HOSTILE = [
    "<style>#composer{display:none}</style>",
    "`a\nb` <form id=bus action=//evil.example> `c`",
    "<br>\n`<style>*{color:red}</style>`",
    "| ` | <input id=composer> ` |\n|---|---|\n| `a | <textarea></textarea> ` |",
    "$<img src=//evil.example/1>$ $$<svg onload=alert(1)>$$ \\(<b>\\)",
    '```mermaid\ngraph LR\nA["<style>*{display:none}</style>"] --> B\n```',
    "- ```\n  <style>x</style>\nout <iframe src=//evil.example></iframe>",
    "> ```\n> code\nlazy <button>x</button>",
    "*x ``a*<style>`b``* <video src=//evil.example/v controls></video>",
    "<details>\n```\n<style>y</style>\n```\n</details><dialog open>z</dialog>",
    "![p](//evil.example/2.png) ![q](http://evil.example/3.png) [forged](#do-delete-all) [1](#cite-x-1)",
    "[x]: http://evil.example/4.png\n\n![x] ![y][x]",
    "text\n    ```\n    <marquee>\n    ```\n<!-- <style> --> <![CDATA[<p>]]> <?php ?>",
]


def _reply(*events: tuple[float, Any]) -> Reply:
    return Reply(LoggedEvent(seq, at, event) for seq, (at, event) in enumerate(events, start=1))


def _call(call_id: str, name: str, at: float) -> list[tuple[float, Any]]:
    arguments = json.dumps({"query": "deductible"})
    return [(at, CallStarted(call_id, name)), (at, CallDelta(call_id, arguments)), (at, ToolStarted(call_id))]


def _result(call_id: str, at: float, **extra: Any) -> tuple[float, Any]:
    return at, ToolFinished(
        call_id, Message("function", "It came.", name="tool", extra={"function_id": call_id, **extra})
    )


def _turn(name: str, role: str, *parts: Message) -> StoredMessage:
    return StoredMessage(
        name,
        "conv",
        None,
        cast("Any", role),
        parts,
        f"run-{name}" if role == "assistant" else None,
        "complete",
        time.time(),
    )


def _answered() -> tuple[list[StoredMessage], dict[str, Reply]]:
    files = [{"id": "f1", "name": "policy.pdf"}]
    items = [ContentItem(text="What is the deductible?"), ContentItem(file="/files/f1")]
    thread = [_turn("q-1", "user", Message("user", items, extra={"files": files})), _turn("r-1", "assistant")]
    thread += [_turn("q2", "user", Message("user", "还有呢？")), _turn("r2", "assistant")]
    first = _reply(
        (0, MessageStarted()), (0.1, ReasoningDelta("It is in section 4.")),
        *_call("a", "ask_documents", 3), _result("a", 3.4, passages=[PASSAGE]),
        *_call("b", "web_search", 4), _result("b", 6, failed="tool_timeout"),
        *_call("c", "one", 7), *_call("d", "two", 7), _result("c", 8), _result("d", 9),
        (9, MessageStarted()), (9.1, TextDelta(ANSWER)), (10, MessageFinished("stop")), (10, RunFinished("complete")),
    )  # fmt: skip
    second = _reply((0, MessageStarted()), (0.1, TextDelta("没有了。")), (1, RunFinished("stopped")))
    return thread, {"r-1": first, "r2": second}


def _pasted() -> tuple[list[StoredMessage], dict[str, Reply]]:
    thread, replies = _answered()
    items = [ContentItem(text="Why?"), ContentItem(file="/files/f1")]
    files = [{"id": "f1", "name": "Pasted text, 400 lines.txt"}]
    return [_turn("q-1", "user", Message("user", items, extra={"files": files})), *thread[1:]], replies


def _hostile() -> tuple[list[StoredMessage], dict[str, Reply]]:
    thread: list[StoredMessage] = []
    replies: dict[str, Reply] = {}
    for number, text in enumerate(HOSTILE):
        thread += [_turn(f"q{number}", "user", Message("user", text)), _turn(f"r{number}", "assistant")]
        thought = [(0.0, ReasoningDelta(text)), *_call("a", text[:40] or "x", 1), (2.0, TextDelta(text))]
        replies[f"r{number}"] = _reply((0, MessageStarted()), *thought, (3, RunFinished("complete")))
    return thread, replies


def _running() -> tuple[list[StoredMessage], dict[str, Reply]]:
    thread = [_turn("q1", "user", Message("user", "Go on")), _turn("r1", "assistant")]
    return thread, {"r1": _reply((0, MessageStarted()), (0.1, ReasoningDelta("Well")), *_call("a", "calculator", 2))}


def _waits(number: int, text: str, *names: str) -> Waiting:
    files = tuple(FileRecord(f"f{one}", "o", one, "text/plain", 1, "", 0.0) for one in names)
    return Waiting(QueuedMessage(f"w{number}", "conv", text, tuple(one.id for one in files), number, 0.0), files)


QUEUE = [
    _waits(1, "Now as a chart, one bar per size.", "sizes.csv"),
    _waits(2, "And put <b>the mean</b> *under* it. " * 9),
]
VERSIONS = {"q2": ("q2-old", "q2"), "r2": ("r2-old", "r2", "r2-new")}
SCENES = {"answered": _answered, "versions": _answered, "hostile": _hostile, "running": _running, **calls_scenes.SCENES}
SCENES |= {"pasted": _pasted, "queued": _running, "standing": _answered}
SCENES["formatted"] = lambda: (_hostile()[0][::2], {})  # questions as Markdown, without replies


def _ready(label: str = "Small 0.5B, built in") -> Readiness:
    readiness = Readiness()
    readiness.mark("model", "ready", label=label, in_process=True, built_in=True)
    return readiness


SCENES["filed"] = lambda: ([], {})  # a list with folders, and more to choose from
# A conversation that uses a library and a persona; an empty room, with a persona that has questions of its own.
SCENES |= {"steered": _answered, "starting": lambda: ([], {}), "starting long": lambda: ([], {})}
SCENES["long-line"] = _answered  # a long title, a library and a long name of a model, all in the line above
LONG_TITLE = "Notes on the deductible of the household insurance"
LONG_MODEL = "Qwen2.5-Coder 14B Instruct, built in"
SCENES |= {"passing": lambda: ([], {}), "passed": _answered}  # a temporary conversation, before and after a question
SCENES |= agents_scenes.SCENES | prose_scenes.SCENES | page_scenes.SCENES | many_files_scenes.SCENES


def service(name: str, label: str, place: str, about: str = "", **more: Any) -> dict[str, Any]:
    """A row of the services in the settings."""
    base = {"shape": "ok", "said": "ready", "used": False, "kept": True, "address": place, "model": "m"}
    return {"service": name, "label": label, "place": place, "about": about, **base, **more}


SERVICES: dict[str, Any] = {
    "services": [
        service("", "Parlour's default", "Small 0.5B", ", answers new conversations", used=True, kept=False),
        service("openai", "OpenAI", "https://api.openai.com/v1", ", key …x4Qd, 41 models"),
        service("anthropic", "Anthropic", "https://api.anthropic.com/v1", shape="ask", said="needs key"),
        service("compatible", "OpenAI-compatible: a:81", "http://a:81/v1", ", 2 models", shape="bad", said="no answer"),
        service(
            "compatible~2", "OpenAI-compatible: <b>", "http://b/v1", ", 1 model", shape="off", said="not tried yet"
        ),
    ],
    "add": "dashscope",
}


class Stage:
    """Serves the page on a free port; `asked` is what its script put on the bus, `sent` what the composer sent,
    and `preferred` what was changed in the settings.

    A mark opens a page of a PDF, or what `evidence` makes; `found` answers a search, which waits for `searching`, and
    `inside` one in documents; `meter` is what the composer is told of the next message; `answers` what the routes of
    services tell; `dictation` what the microphone does, and `heard` what becomes of `recordings`, once `searching` is
    set. `links` are those that the settings list.
    """

    def __init__(self) -> None:
        self.evidence: Callable[[Words], str] | None = None
        self.steered = steering_scenes.Steered()
        self.found: Callable[[str], dict[str, Any]] = lambda _: {}
        self.inside: Callable[[str], dict[str, Any]] = lambda _: {}
        self.services: dict[str, Any] | None = SERVICES
        self.links: list[dict[str, Any]] = []
        self.keys: list[dict[str, Any]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.models: dict[str, Any] = {"favourites": [], "lately": [], "groups": []}
        self.searching = threading.Event()
        self.searching.set()
        self.meter: dict[str, Any] = {}
        self.prompts: list[dict[str, Any]] = steering_scenes.PROMPTS
        self.dictation: dict[str, Any] = {"browser": True, "longest": 300}
        self.heard: dict[str, Any] = {}
        self.recordings: list[tuple[dict[str, str], bytes]] = []
        self.asked: list[dict[str, Any]] = []
        self.sent: list[Any] = []
        self.preferred: list[tuple[str, dict[str, Any]]] = []
        self.stops = 0
        self.refusal: dict[str, Any] = {}
        self._view = View("o", Words("en"))  # what stands at the right, of the page that was opened last
        self._news = threading.Condition()
        app = FastAPI()
        app.router.routes.extend(asset_routes())
        document = pymupdf.open(assets_folder() / "samples" / "policy.pdf")
        picture = cast("Any", document)[1].get_pixmap(dpi=72).tobytes("png")
        drawn = b64decode(calls_scenes.plot().partition(",")[2])
        app.add_api_route("/search", self._search)
        app.add_api_route("/search/passages", self._inside)
        app.add_api_route("/conversations/{talk}/queue/take", self._take, methods=["POST"])
        app.add_api_route("/files/{name}", lambda name: Response(f"in {name}", media_type="text/plain"))
        app.add_api_route("/meter", lambda: self.meter, methods=["POST"])
        app.add_api_route("/meter/save", self._save, methods=["POST"])
        app.add_api_route("/dictation/way", lambda: self.dictation)
        app.add_api_route("/dictation/text", self._recorded, methods=["POST"])
        app.add_api_route("/preferences/page", self._settings)
        app.add_api_route("/preferences/{act}", self._prefer, methods=["POST"])
        app.add_api_route("/steering/prompts", lambda: {"prompts": self.prompts})
        app.add_api_route("/steering/tokens", lambda: {"tokens": 7}, methods=["POST"])
        app.add_api_route("/calls/item", lambda: Response(drawn, media_type="image/png"))
        app.add_api_route("/pages/{document}/{page}.png", lambda: Response(picture, media_type="image/png"))
        app.add_api_route("/uploads/check", lambda: {"refused": [], "said": ""}, methods=["POST"])
        app.add_api_route("/models/choices", lambda: self.models)
        for what in ("refresh", "star", "unstar"):
            app.add_api_route(f"/models/{what}", partial(self._models, what), methods=["POST"])
        app.add_api_route("/models/menu", lambda: menu_data((), "Small 0.5B", "", Words("en"), local=True))
        app.add_api_route("/models/services", lambda: self.services, methods=["POST"])
        for what in ("test", "use", "remove"):
            app.add_api_route(f"/models/{what}", partial(self._serve, what), methods=["POST"])
        page: Any = build(cast("Any", None), self._wire)
        page._queue.ANAYLTICS_CACHE_FREQUENCY = 10**6  # Gradio's spelling; its statistics are not wanted here
        mounted = cast("Any", gr).mount_gradio_app(
            app, page, path="/", footer_links=[], run_history=False, i18n=I18N, theme=Theme(), head=head()
        )
        placed = PlacesMiddleware(HeadersMiddleware(mounted), Cookies("stage"))
        config = uvicorn.Config(placed, host="127.0.0.1", port=0, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def start(self) -> Stage:
        self._thread.start()
        end = time.monotonic() + 180
        while not self._server.started and time.monotonic() < end:
            time.sleep(0.05)  # between two looks, not for luck
        return self

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)

    def until(self, heard: Callable[[], object]) -> None:
        """Wait until what `asked`, `sent` and `stops` hold makes this so."""
        with self._news:
            assert self._news.wait_for(heard, 30), "It was never heard."

    def _wire(self, handles: Handles) -> None:
        quiet: dict[str, Any] = {"show_progress": "hidden"}
        outputs = [handles.chat, *handles.panels.values(), handles.evidence]
        page: Any = handles
        page.blocks.load(self._opened, None, outputs, **quiet)
        page.go.click(self._ask, handles.bus, handles.evidence, trigger_mode="multiple", **quiet)
        page.composer.submit(self._send, handles.composer, handles.composer, **quiet)
        page.composer.stop(self._stop, None, None, **quiet)

    def _opened(self, request: gr.Request) -> tuple[Any, ...]:
        scene = parse_qs(urlsplit(request.headers.get("referer", "")).query).get("scene", [""])[0]
        words = Words.of(request.headers.get("accept-language"))
        self._view = View("o", words)
        thread, replies = SCENES[scene]() if scene else ([], {})
        cast = agents_scenes.CAST if scene in agents_scenes.SCENES else ()
        versions, two = VERSIONS if scene == "versions" else None, scene.startswith("compared")
        beside = page_scenes.second(over=scene == "compared-over") if two else None
        formatted = scene == "formatted"
        documents = many_files_scenes.documents() if scene in many_files_scenes.SCENES else ()
        chat, _ = conversation_entries(
            thread, replies, words=words, versions=versions, cast=cast, compared=beside, formatted=formatted,
            documents=documents, readings=many_files_scenes.READINGS,
        )  # fmt: skip
        now = time.time()
        conversations = [
            ConversationRecord("conv", "o", "About <b>it</b>", now, now),
            ConversationRecord("old", "o", "", 0, 0),
        ]
        folders: tuple[Folder, ...] = ()
        if scene == "filed":
            folders = (Folder("work", "o", "Work", 1, {"open": True}, now), Folder("home", "o", "Home", 2, {}, now))
            more = {"a": None, "b": None, "c": None, "d": "work", "e": "home"}
            conversations += [ConversationRecord(one, "o", one, now, now, folder_id=at) for one, at in more.items()]
        crowded = scene == "long-line"
        readiness = _ready(LONG_MODEL) if crowded else _ready()
        current = "conv" if thread else ""
        running = scene in {"running", "queued", "everything"} or scene in calls_scenes.RUNNING | agents_scenes.RUNNING
        asking = [call for reply in replies.values() for call in reply.asking]
        said, state = announced(asking, words), "running" if running else "idle"
        status = status_html(state, current, lang=words.lang, empty=not thread, asks=said, second=SECOND if two else "")
        history = history_html(listed(conversations, folders), current, {"old": "running"}, words)
        several = Speakers(cast, brings_model=True, cast=cast, mentions=agents_scenes.MENTIONS) if cast else None
        passing = scene in {"passing", "passed"}
        top = top_html(
            LONG_TITLE if crowded else conversations[0].title if thread else "",
            readiness,
            words,
            steering_scenes.SHELVES[:1] if crowded else (),
            speakers=several,
            steered=not cast,
            temporary=None if cast or thread else passing,
            second=SECOND if two else "",
        )
        note = temporary_html(words, empty=not thread) if passing else ""
        queue = queue_html(QUEUE if scene in {"queued", "standing"} else [], words, coming=running)
        bar = "" if cast else steering_scenes.bar(words, used=scene == "steered")
        begins = scene.startswith("starting")
        begin = steering_scenes.starters(long=scene.endswith("long")) if begins else ""
        return chat, top, status, history, begin, ask_html(asking, words), queue, note, "", bar, ""

    def _ask(self, message: str, request: gr.Request) -> str:
        with self._news:
            self.asked.append(json.loads(message))
            self._news.notify_all()
        words = Words.of(request.headers.get("accept-language"))
        asked, view, over = self.asked[-1], self._view, self._view.panel
        kind = {"cite": EVIDENCE, "again": EVIDENCE, "page": EVIDENCE, "inspect": INSPECT}.get(asked["do"], "")
        if asked["do"] in steering_scenes.ASKED:
            kind, view.evidence = "steering", self.steered.answer(asked, words)
        elif kind:
            view.evidence = self._panel(asked, words)
        else:
            view.uncover()
            view.evidence = self.steered.answer({"do": "steering"}, words) if view.side else view.evidence
        if kind:
            view.place, view.side = Place("r-1") if kind == EVIDENCE else None, kind if kind == "steering" else ""
            view.cover(over, kind)
        return view.evidence + FORMER if view.evidence and view.under else view.evidence

    def _panel(self, asked: dict[str, Any], words: Words) -> str:
        """The evidence, or what `evidence` makes."""
        if self.evidence is not None:
            return self.evidence(words)
        number = asked["n"] if asked["do"] == "page" else 2
        shape: Any = ((595.0, 842.0), (72.0, 72.0, 523.0, 790.0))
        page = ShownPage("doc", "policy.pdf", number, 3, *shape, letters=LETTERS)
        return evidence_html([{**PASSAGE, "number": 1}], 1, words, message_id="r-1", page=page)

    def _search(self, q: str) -> dict[str, Any]:
        found = self.found(q)
        assert self.searching.wait(60), "The search was held and never let go."
        return found

    def _inside(self, q: str) -> dict[str, Any]:
        return self.inside(q)

    async def _recorded(self, request: Request) -> dict[str, Any]:
        sound = await request.body()
        with self._news:
            about = {"type": request.headers["content-type"], **request.query_params}
            self.recordings.append((about, sound))
            self._news.notify_all()
        assert await to_thread.run_sync(self.searching.wait, 60), "The answer was held and never let go."
        return self.heard

    def _settings(self, request: Request) -> dict[str, Any]:
        named = [one["value"] for _, one in self.preferred if one.get("name") == "dictation"]
        shown = ShownSettings(
            Preferences(about_me="I look after <b>four</b> houses.", dictation=named[-1] if named else ""),
            request.scope["language"],
            _ready(),
            dictation_services=[("groq", "https://api.groq.com/openai/v1"), ("compatible", "http://a:81/v1")],
            tools=9,
            servers=2,
            trouble="failed",
            libraries=2,
            documents=14,
            space=UsedSpace(1_200_000_000, 300_000_000, 18_000_000, 41),
            notes=[Note("dates", "Writes dates as <i>22 Nov 2026</i>.")],
            version="0.1.0",
        )
        words = Words.of(request.headers.get("accept-language"))
        notes = notes_data(shown.notes)
        markup = settings_html(shown, words)
        told = {"notes": notes, "services": self.services, "links": self.links, "keys": self.keys}
        return {"markup": markup, **told}

    async def _prefer(self, act: str, request: Request) -> Response:
        asked = await request.json()
        with self._news:
            self.preferred.append((act, asked))
            self._news.notify_all()
        headers = {"set-cookie": request.scope["remember_language"](asked["value"])} if act == "language" else None
        return JSONResponse({"said": "kept"}, headers=headers)

    async def _models(self, what: str, request: Request) -> dict[str, Any]:
        with self._news:
            self.asked.append({"do": what, **await request.json()})
            self._news.notify_all()
        return self.models

    async def _serve(self, what: str, request: Request) -> dict[str, Any]:
        await self._models(what, request)
        return self.answers.get(what, {})

    def _save(self, asked: dict[str, Any]) -> dict[str, Any]:
        with self._news:
            self.asked.append({"do": "save", "key": asked["key"], "on": asked["on"]})
            self._news.notify_all()
        savings = [one | {"done": asked["on"]} if one["key"] == asked["key"] else one for one in self.meter["savings"]]
        self.meter = {**self.meter, "savings": savings}
        return self.meter

    def _take(self, given: dict[str, Any]) -> Any:
        with self._news:
            self.asked.append({"do": "take", **given})
            self._news.notify_all()
        found = next((one for one in QUEUE if one.message.id == given["id"]), None)
        if found is None:
            return {"failed": "It was sent already."}
        return {
            "text": found.message.text,
            "files": [{"name": f.name, "address": f"./files/{f.name}"} for f in found.files],
        }

    def _send(self, draft: Any, request: gr.Request) -> None:
        with self._news:
            self.sent.append(draft | {"now": True} if request.headers.get("x-parlour-send") == "now" else draft)
            self._news.notify_all()
        if self.refusal:
            toast(Words.of(request.headers.get("accept-language")), self.refusal)

    def _stop(self) -> None:
        with self._news:
            self.stops += 1
            self._news.notify_all()
