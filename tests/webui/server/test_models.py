"""The dialog about models over HTTP: each owner's own, and no key ever comes back."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, NotFoundError, ParlourError, UnknownNameError
from core.models.choices import Choosable, ServiceChoices
from core.models.menu import MENU, menu
from core.models.model_name import INSTALLED, ModelName
from core.storage.base import LOCAL_OWNER
from core.storage.model_services import ModelService
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage
from webui.panels.model_menu import choices_data, state_said
from webui.panels.model_services import services_data
from webui.panels.models import failure, menu_data
from webui.words import Words

KEY = "sk-CANARY-0123456789abcdef"


@pytest.fixture(scope="module")
def service() -> Iterator[ModelServer]:
    with ModelServer(lambda request: Reply(text="From the service."), api_key=KEY, models=["one", "two"]) as server:
        yield server


def ask(tab: RawPage, what: str, **asked: Any) -> dict[str, Any]:
    answer = tab.client.post(f"{tab.url}/models/{what}", json=asked)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert KEY not in answer.text
    return dict(answer.json())


def menu_of(tab: RawPage) -> dict[str, Any]:
    return dict(tab.client.get(f"{tab.url}/models/menu").json())


def entry(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in told["services"] if one["name"] == name)


def used_lately(tab: RawPage, *names: str) -> list[dict[str, Any]]:
    """Wait until these models wrote replies last: it is noted after them."""
    end, lately = time.monotonic() + 120, list[dict[str, Any]]()
    while time.monotonic() < end:
        lately = tab.client.get(f"{tab.url}/models/choices").json()["lately"]
        if tuple(one["model"] for one in lately)[: len(names)] == names:
            return list(lately[: len(names)])
    raise AssertionError(lately)


def everything(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_model_is_tried_kept_used_and_left_again(page: RawPage, app: AppProcess, service: ModelServer) -> None:
    given = {"service": "compatible", "address": service.base_url, "model": "one", "key": KEY}
    assert menu_of(page)["used"] == ""
    assert ask(page, "offered", **given)["models"] == ["one", "two"]
    assert ask(page, "test", **given)["said"].startswith("one · 127.0.0.1 began to answer after 0.")
    kept = entry(ask(page, "save", **given), "compatible")
    assert (kept["kept"], kept["has_key"], kept["key_end"]) == (True, True, "cdef")
    told = ask(page, "use", service="compatible", address=service.base_url, model="two")
    assert (told["used"], told["model"]) == ("compatible", "two · 127.0.0.1")
    chat, _ = page.paint(page.send("Hello?"))
    assert "From the service." in chat
    assert "two" in chat  # which model wrote it
    assert service.requests[-1].body["model"] == "two"
    config = page.client.get(page.url + "/config").text
    assert KEY not in config + chat + page.client.get(page.url + "/").text
    assert ask(page, "use", service="")["used"] == ""
    assert KEY.encode() not in everything(app.home) + app.log.read_bytes()


def test_saving_the_service_in_use_tests_it_first_and_keeps_the_old_settings_until_told_otherwise(
    page: RawPage, service: ModelServer
) -> None:
    given = {"service": "compatible", "address": service.base_url, "model": "one"}
    assert ask(page, "save", **given, key="sk-wrong-CANARY")["said"] == "Saved. It answers once you press Use."
    ask(page, "use", **given, key=KEY)
    told = ask(page, "save", **given, key="sk-wrong-CANARY")
    assert told["failed"].endswith("Nothing was saved; the settings in use stay as they were.")
    assert "does not accept the API key" in told["failed"]
    assert told["anyway"] is True
    assert entry(menu_of(page), "compatible")["key_end"] == "cdef"
    wrong = ask(page, "save", **{**given, "address": "no address"})
    assert wrong["failed"]
    assert "anyway" not in wrong
    assert ask(page, "save_anyway", **given, key="sk-wrong-CANARY")["said"].startswith("Saved.")
    assert entry(menu_of(page), "compatible")["key_end"] == "NARY"
    kept = ask(page, "save", **{**given, "model": "two"}, key=KEY)
    assert (kept["used"], kept["said"]) == ("compatible", "Saved. It answers from the next question on.")
    assert entry(kept, "compatible")["model"] == "two"
    ask(page, "use", service="")


def test_a_wrong_key_is_told_without_it(page: RawPage, service: ModelServer) -> None:
    given = {"service": "compatible", "address": service.base_url, "model": "one"}
    said = ask(page, "test", **given, key="sk-wrong-CANARY")["failed"]
    assert said.endswith("does not accept the API key. Check the key and its permissions.")
    assert "Your message" not in said


@pytest.mark.parametrize("what", ["save", "use", "test", "offered"])
def test_only_the_pages_own_requests_are_understood(page: RawPage, app: AppProcess, what: str) -> None:
    address = f"{app.url}/models/{what}"
    with httpx.Client() as stranger:
        assert stranger.get(address).status_code == 401
    assert page.client.get(address).status_code in {404, 405}
    send = page.client.post
    assert send(address, data={"service": "openai"}).status_code == 400
    assert send(address, content=b"[1]", headers={"content-type": "application/json"}).status_code == 400
    assert send(address, content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert send(address, json={"service": "x" * 40_000}).status_code == 400
    assert send(address, json={}, headers={"origin": "https://evil.example"}).status_code == 403
    odd = b'{"service": 1, "key": {}, "model": null, "address": "\\ud800"}'
    assert send(address, content=odd, headers={"content-type": "application/json"}).status_code == 200


def test_an_unforeseen_failure_is_told_in_words(page: RawPage) -> None:
    assert (
        ask(page, "save", service="martian", key=KEY)["failed"]
        == "This service cannot be chosen here. Choose another one."
    )


def test_who_has_no_cookie_gets_nothing(shared: AppProcess) -> None:
    with httpx.Client(base_url=shared.url) as nobody:
        assert nobody.get("/models/menu").status_code == 401
        assert nobody.post("/models/use", json={"service": ""}).status_code == 401


def test_on_a_shared_page_each_reader_chooses_alone_and_never_this_machine(
    shared: AppProcess, service: ModelServer, alice: RawPage, bob: RawPage
) -> None:
    offered = {one["name"] for one in menu_of(alice)["services"]}
    assert offered == set(menu(local=False))
    assert not offered & {"llama_cpp", "ollama"}
    for address in (service.base_url, "https://localhost", "https://169.254.169.254/v1"):
        for what in ("save", "use", "test", "offered"):
            told = ask(alice, what, service="compatible", address=address, model="m", key=KEY)
            assert "shared page" in told["failed"]
    assert not service.requests or service.requests[-1].body["model"] != "m"
    ask(alice, "save", service="openai", key=KEY)
    assert entry(menu_of(alice), "openai")["key_end"] == "cdef"
    assert not entry(menu_of(bob), "openai")["kept"]
    assert menu_of(bob)["used"] == ""
    assert KEY.encode() not in everything(shared.home) + shared.log.read_bytes()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_service_has_a_name_in_both_languages(lang: Any) -> None:
    told = menu_data((), "Small 0.5B, built in", "", Words(lang), local=True)
    assert [one["name"] for one in told["services"]] == [*MENU]
    assert all(one["label"] and one["group"] for one in told["services"])
    assert "Small 0.5B" in told["default"]


def test_servers_that_are_kept_stand_side_by_side_with_a_place_for_one_more() -> None:
    def kept(service: str, address: str) -> ModelService:
        return ModelService(LOCAL_OWNER, service, address, "m", None, "", in_use=False, updated_at=0)

    mine = [kept("compatible~2", "https://b.example/v1"), kept("compatible", "http://a:81/v1"), kept("openai", "")]
    told = menu_data(mine, "", "", Words("en"), local=True)["services"]
    assert [(one["name"], one["label"], one["kept"]) for one in told if "compatible" in one["name"]] == [
        ("compatible", "OpenAI-compatible: a:81", True),
        ("compatible~2", "OpenAI-compatible: b.example", True),
        ("compatible~3", "Another OpenAI-compatible server", False),
    ]
    assert [one["label"] for one in told if one["name"].startswith(("openai", "ollama"))] == ["OpenAI", "Ollama"]


def test_what_a_service_said_is_passed_on_where_nothing_better_is_known() -> None:
    refused = ModelRefusedError(None, "400", "temperature must be 1")
    assert failure(refused, Words("en")) == "The model service refused the request. It said: temperature must be 1"
    foreign = ModelMisbehavedError(None, None, "x answered, but not as a model service.", hint="Check.")
    assert failure(foreign, Words("en")).endswith("that is not a reply. Check the address; it often ends in /v1.")
    moved = ModelRefusedError(None, None, "x sends its callers elsewhere.")
    moved.details |= {"place": "https://other.example/v1"}
    assert failure(moved, Words("en")).endswith("It redirects to https://other.example/v1: use that, if you trust it.")
    unknown = UnknownNameError("built-in model", "qwen9", ["qwen2.5"])
    assert failure(unknown, Words("zh")) == "没有名为 qwen9 的内置模型。请从列表中选择，或填写 .gguf 文件的路径。"
    assert failure(NotFoundError("x"), Words("en")) == "This no longer exists."
    assert failure(ParlourError("x", key="key_wrong_form"), Words("zh")) == (
        "这不是 API 密钥。请重新复制：它是一行字母和数字。"
    )


@pytest.mark.anyio
@pytest.mark.parametrize("key", [KEY, "sk-CANARY\\'\""])  # as text, and as `repr` writes it
async def test_a_key_in_a_failure_that_nobody_foresaw_is_not_logged(caplog: pytest.LogCaptureFixture, key: str) -> None:
    from types import SimpleNamespace
    from typing import cast

    from starlette.applications import Starlette

    from webui.handlers.models import ModelRoutes

    class Broken:
        async def kept(self) -> list[ModelService]:
            return []

        async def save(self, draft: Any, *, use: bool) -> None:
            raise ZeroDivisionError(f"with {draft.key} and {draft.key!r}")

    @asynccontextmanager
    async def opened(owner: str) -> AsyncGenerator[Any]:
        yield SimpleNamespace(owner=owner, models=Broken())

    engine = SimpleNamespace(workspaces=SimpleNamespace(open=opened))
    context = cast("Any", SimpleNamespace(engine=engine, words=Words.of))
    routes = Starlette(routes=ModelRoutes(context).table())

    async def owned(scope: Any, receive: Any, send: Any) -> None:
        await routes({**scope, "owner": "local"}, receive, send)

    caplog.set_level(logging.DEBUG)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(owned), base_url="http://test") as client:
        answer = await client.post("/models/save", json={"service": "openai", "key": key})
    assert answer.json()["failed"].startswith("Something went wrong")
    assert "ZeroDivisionError" in caplog.text
    assert "CANARY" not in caplog.text + answer.text


@pytest.mark.anyio
async def test_beside_the_prices_of_a_service_with_a_key_the_menu_says_what_a_title_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.applications import Starlette

    from core.engine import Engine
    from core.settings import Settings
    from core.testing.scripted_model import ScriptedModel
    from webui.context import WebContext
    from webui.handlers.models import ModelRoutes

    monkeypatch.setenv("PARLOUR_TITLES", "1")
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as engine:
        routes = Starlette(routes=ModelRoutes(WebContext(engine, engine.settings, Words.of)).table())

        async def owned(scope: Any, receive: Any, send: Any) -> None:
            await routes({**scope, "owner": "local"}, receive, send)

        async def note(client: httpx.AsyncClient) -> Any:
            return (await client.get("/models/choices")).json().get("note")

        async with httpx.AsyncClient(transport=httpx.ASGITransport(owned), base_url="http://test") as client:
            assert await note(client) is None  # nothing costs anything yet
            # Where a key is typed it is said before the first call.
            assert "up to 1,120 tokens" in (await client.get("/models/menu")).json()["titles"]
            await client.post("/models/save_anyway", json={"service": "anthropic", "key": KEY})
            assert "up to 1,120 tokens" in str(await note(client))
            async with engine.workspaces.open("local") as workspace:
                await workspace.preferences.change("titles", False)
            assert await note(client) is None
            assert "titles" not in (await client.get("/models/menu")).json()


def test_the_menu_lists_models_side_by_side_and_never_a_price_of_nothing(page: RawPage, service: ModelServer) -> None:
    ask(page, "save", service="compatible", address=service.base_url, model="one", key=KEY)
    told = ask(page, "refresh")
    rows = {(one["service"], one["model"]): one for group in told["groups"] for one in group["models"]}
    assert (rows["compatible", "two"]["said"], rows["compatible", "two"]["price"]) == ("ready", "free")
    assert (rows["anthropic", "claude-sonnet-4-5"]["said"], rows["anthropic", "claude-sonnet-4-5"]["price"]) == (
        "needs key",
        "$3.00 / $15.00",
    )
    assert rows["anthropic", "claude-sonnet-4-5"]["can"] == "Anthropic · sees, tools, 200k"
    assert rows["dashscope", "qwen-plus"]["price"] == "price unknown"
    starred = ask(page, "star", service="compatible", model="two")["favourites"]
    assert [(one["model"], one["star"]) for one in starred] == [("two", 1)]
    assert page.client.get(f"{page.url}/models/choices").json()["favourites"] == starred
    assert ask(page, "unstar", service="compatible", model="two")["favourites"] == []
    assert "cannot be chosen" in ask(page, "star", service="martian", model="x")["failed"]
    ask(page, "remove", service="compatible")


def rows_of(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["service"]: one for one in told["services"]}


def test_the_settings_have_a_row_for_each_service_and_two_of_one_kind_stand_side_by_side(
    page: RawPage, service: ModelServer
) -> None:
    first = rows_of(page.client.get(f"{page.url}/preferences/page").json()["services"])
    assert (first[""]["label"], first[""]["used"], first[""]["kept"]) == ("Parlour's default", True, False)
    assert "anthropic" not in first  # it wants a key, and nobody gave one
    ask(page, "save", service="compatible", address=service.base_url, model="one", key=KEY)
    ask(page, "save", service="compatible~2", address="http://127.0.0.1:9", model="m")
    ask(page, "save", service="anthropic", model="claude-sonnet-4-5")
    ask(page, "use", service="compatible", address=service.base_url, model="one")
    rows = rows_of(ask(page, "services"))
    mine, other = rows["compatible"], rows["compatible~2"]
    assert (mine["place"], mine["about"]) == (service.base_url, ", key …cdef, 2 models, answers new conversations")
    assert (mine["said"], mine["used"], rows[""]["used"]) == ("ready", True, False)
    assert (other["label"], other["said"]) == ("OpenAI-compatible: 127.0.0.1:9", "no answer")
    assert (rows["anthropic"]["said"], rows["anthropic"]["about"]) == ("needs key", "")
    for one in (mine, other):
        assert ask(page, "test", service=one["service"], address=one["address"], model=one["model"]).keys() <= {
            "said",
            "failed",
        }
    ask(page, "save_anyway", service="compatible", address=service.base_url, model="one", key="")  # the key is removed
    assert "key …" not in rows_of(ask(page, "services"))["compatible"]["about"]
    for name in ("compatible", "compatible~2", "anthropic"):
        ask(page, "remove", service=name)
    assert not {"compatible", "compatible~2", "anthropic"} & rows_of(ask(page, "services")).keys()


def test_what_adds_a_service_begins_with_one_that_is_not_there() -> None:
    def kept(service: str) -> ModelService:
        return ModelService(LOCAL_OWNER, service, "https://x/v1", "m", "sealed", "cdef", in_use=False, updated_at=0)

    wanting = [name for name, one in MENU.items() if one.wants_key == "needed"]
    every = [ServiceChoices(name, "https://x/v1", (Choosable(ModelName(name, "m"), "ready"),)) for name in wanting]
    told = services_data(every[:1], [kept(wanting[0])], "", Words("en"), local=True)
    assert told["add"] == wanting[1]
    told = services_data(every, [kept(name) for name in wanting], "", Words("en"), local=True)
    assert told["add"] == "compatible"
    chinese = services_data(every[:1], [kept(wanting[0])], "", Words("zh"), local=True)["services"][0]
    assert chinese["about"] == "，密钥 …cdef，1 个模型"


def test_used_lately_are_five_at_most_without_favourites_and_what_is_gone() -> None:
    names = [ModelName("openai", f"m{number}") for number in range(8)]
    openai = ServiceChoices("openai", "https://api.openai.com/v1", tuple(Choosable(one, "no_key") for one in names))
    used = [ModelName("openai", "gone"), ModelName("martian", "m0"), *reversed(names)]
    told = choices_data([openai], [names[6]], used, "", Words("en"))
    assert [one["model"] for one in told["lately"]] == ["m7", "m5", "m4", "m3", "m2"]
    assert {one["said"] for one in told["lately"]} == {"needs key"}
    assert choices_data([], [], used, "", Words("en"))["lately"] == []


def test_the_model_that_stands_first_anyway_is_not_among_those_used_lately() -> None:
    installed = ServiceChoices("", "", (Choosable(INSTALLED, "ready"),))
    told = choices_data([installed], [], [INSTALLED], "Qwen", Words("en"))
    assert (told["lately"], len(told["groups"][0]["models"])) == ([], 1)


def test_a_built_in_model_stands_once_in_the_menu_and_says_how_much_must_be_downloaded() -> None:
    small, larger, guessed = (ModelName("llama_cpp", name) for name in ("qwen2.5-coder-0.5b", "b", "c"))
    of = [
        ServiceChoices("", "", (Choosable(INSTALLED, "ready", twin=small.model),)),
        ServiceChoices(
            "llama_cpp",
            "",
            (
                Choosable(small, "ready"),
                Choosable(larger, "absent", 0, 1_117_320_768),
                Choosable(guessed, "absent", 0, 2_100_000_000, estimated=True),
            ),
        ),
    ]
    told = choices_data(of, [small], [larger, small], "Qwen 0.5B, built in", Words("en"))
    default, *built_in = [row for group in told["groups"] for row in group["models"]]
    assert default["twin"] == {"service": "llama_cpp", "model": small.model}
    assert [(row["model"], row["said"], row["shape"]) for row in built_in] == [
        ("b", "1.1 GB to download", "ask"),
        ("c", "about 2.1 GB to download", "ask"),
    ]
    assert [row["model"] for row in told["favourites"]] == [small.model]  # what was starred stays so
    assert [row["model"] for row in told["lately"]] == ["b"]
    chinese = choices_data(of, [], [], "Qwen 0.5B", Words("zh"))["groups"][1]["models"]
    assert [row["said"] for row in chinese] == ["需下载 1.1 GB", "需下载约 2.1 GB"]
    begun = Choosable(larger, "absent", 617_320_768, 1_117_320_768)
    assert state_said(begun, Words("en")) == "500 MB to download"
    assert state_said(Choosable(larger, "absent"), Words("en")) == "not downloaded"
    assert state_said(Choosable(larger, "here"), Words("zh")) == "已下载"


def test_the_built_in_models_have_the_state_of_one_that_is_there() -> None:
    models = (Choosable(ModelName("llama_cpp", "a"), "untried"), Choosable(ModelName("llama_cpp", "b"), "ready"))
    row = services_data([ServiceChoices("llama_cpp", "", models)], (), "", Words("en"), local=True)["services"][0]
    assert (row["label"], row["place"], row["about"]) == ("Built in", "on this machine", "")
    assert (row["said"], row["shape"], row["kept"]) == ("ready", "ok", False)


@pytest.mark.parametrize(
    ("lang", "some", "all_of_them"), [("en", "1 downloaded", "downloaded"), ("zh", "已下载 1 个", "已下载")]
)
def test_the_row_of_built_in_models_says_how_many_are_downloaded_with_the_sign_of_yes(
    lang: str, some: str, all_of_them: str
) -> None:
    def row(*states: Any) -> dict[str, Any]:
        models = tuple(Choosable(ModelName("llama_cpp", str(at)), state, 0, 9) for at, state in enumerate(states))
        return services_data([ServiceChoices("llama_cpp", "", models)], (), "", Words(lang), local=True)["services"][0]

    for states, said in ((("here", "absent", "absent"), some), (("here", "here", "here"), all_of_them)):
        told = row(*states)
        assert (told["said"], told["shape"]) == (said, "ok")
    assert row("absent", "absent", "absent")["shape"] == "ask"


def test_a_tab_chooses_for_its_conversation_and_a_new_one_has_the_choice_from_its_first_question(
    page: RawPage, service: ModelServer
) -> None:
    ask(page, "save", service="compatible", address=service.base_url, model="one", key=KEY)
    page.act(do="new")
    page.act(do="model", service="compatible", model="two")
    page.send("Hello?")
    assert service.requests[-1].body["model"] == "two"
    page.act(do="model", service="compatible", model="one")
    page.send("And now?")
    assert service.requests[-1].body["model"] == "one"
    lately = used_lately(page, "one", "two")
    assert [(one["service"], one["said"]) for one in lately] == [("compatible", "ready")] * 2
    assert [one["model"] for one in ask(page, "star", service="compatible", model="two")["lately"]][:1] == ["one"]
    page.act(do="model", service="martian", model=7)
    page.act(do="new")
    chat, _ = page.paint(page.send("Elsewhere?"))
    assert "From the service." not in chat
    ask(page, "remove", service="compatible")
