"""The attacks on dialogs once more, in a house with accounts: programs, servers, services and libraries of a member."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.kills.forked_page import Origin
from core.net.addresses import mark_header, serving
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.webui.server import test_libraries as libraries
from tests.webui.server import test_models as models
from tests.webui.server import test_services_dialog as services
from tests.webui.server import test_tools_dialog as tools
from tests.webui.server.raw_page import RawPage
from tests.webui.server.signed_in_app import SECRET, SignedIn, house_of

ATTACKERS = ("member", "administrator", "owner")
"""Who may open these dialogs at all; that guests may not, the table of rights holds (`test_rights.py`)."""
test_m1_readers_of_a_shared_page_add_no_program = tools.test_m1_readers_of_a_shared_page_add_no_program
test_m1_no_other_door_of_the_page_adds_one = tools.test_m1_no_other_door_of_the_page_adds_one
test_a2_a11_what_is_alices_does_not_exist_for_bob = tools.test_a2_a11_what_is_alices_does_not_exist_for_bob
test_a_service_is_added_switched_and_removed_and_its_key_never_comes_back = (
    services.test_a_service_is_added_switched_and_removed_and_its_key_never_comes_back
)
test_a_library_of_somebody_else_does_not_exist = libraries.test_a_library_of_somebody_else_does_not_exist
test_on_a_shared_page_each_reader_chooses_alone_and_never_this_machine = (
    models.test_on_a_shared_page_each_reader_chooses_alone_and_never_this_machine
)
service = models.service
test_what_cannot_be_added_is_told_in_a_sentence = services.test_what_cannot_be_added_is_told_in_a_sentence


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[SignedIn]:
    people = [("alice", "member"), *((role, role) for role in (*ATTACKERS, "guest"))]
    with house_of(tmp_path_factory.mktemp("accounts"), origin, people) as house:
        yield house


@pytest.fixture(scope="module")
def app(here: SignedIn) -> AppProcess:
    return here.app


@pytest.fixture
def shared(here: SignedIn) -> AppProcess:
    return here.app


@pytest.fixture
def alice(here: SignedIn) -> Iterator[RawPage]:
    tab = here.browser("alice")
    yield tab
    tab.close()


@pytest.fixture(params=ATTACKERS)
def bob(request: pytest.FixtureRequest, here: SignedIn) -> Iterator[RawPage]:
    tab = here.browser(request.param)
    yield tab
    tab.close()


@pytest.mark.parametrize("who", ["guest", "browser"])
def test_m1_a_guest_opens_no_dialog_that_could_start_anything(here: SignedIn, who: str) -> None:
    tab = here.browser(who)
    entry = {"text": '{"mcpServers": {"x": {"command": "sh"}}}'}
    for what in ("paste", "save", "confirm", "connect"):
        assert tab.client.post(f"{tab.url}/tools/{what}", json=entry).status_code == 403
    tab.close()


@pytest.mark.parametrize("who", ["administrator", "owner"])
def test_m1_who_looks_after_the_house_is_asked_before_a_program_starts(here: SignedIn, who: str) -> None:
    tab = here.browser(who)
    (server,) = tools.ask(tab, "paste", text='{"mcpServers": {"x": {"command": "sh", "args": ["-c", "id"]}}}')["added"]
    opened = tools.state(tab, server)["opened"]
    seen = opened["confirm"]
    assert (opened["shape"], Path(seen["program"]).name, seen["arguments"]) == ("ask", "sh", ["-c", "id"])
    assert tools.ask(tab, "check", server=server)["failed"], "it was not confirmed"
    tools.ask(tab, "remove", server=server)
    tab.close()


def test_s5_what_an_own_tool_asks_of_parlour_is_refused_whoevers_session_goes_along(here: SignedIn) -> None:
    with serving(here.app.port, SECRET):
        mark = mark_header()
    for who in ("guest", *ATTACKERS):
        tab = here.browser(who)
        for method, path in (("GET", "/tools/state"), ("GET", "/libraries/state"), ("POST", "/tools/save")):
            assert tab.client.request(method, tab.url + path, headers=mark).status_code == 403, (who, path)
        assert tab.client.get(f"{tab.url}/config").status_code == 200
        tab.close()


def test_s9_a_model_at_this_machine_is_named_by_who_looks_after_the_house_and_by_nobody_else(
    here: SignedIn, service: ModelServer
) -> None:
    for who, may in (("member", False), ("administrator", True), ("owner", True)):
        tab = here.browser(who)
        given = {"service": "compatible", "address": service.base_url, "model": "one", "key": models.KEY}
        assert ("shared page" in models.ask(tab, "test", **given).get("failed", "")) is not may, who
        tab.close()
