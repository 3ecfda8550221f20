"""The attacks on what is another's once more, in a house with accounts, by everybody who may come in: what is a
member's is nobody else's, the owner of the house included."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from bench.kills.forked_page import Origin
from tests.e2e.app_process import AppProcess
from tests.webui.server import test_isolation as attacks
from tests.webui.server.raw_page import RawPage
from tests.webui.server.signed_in_app import SignedIn, house_of

ATTACKERS = ("browser", "guest", "member", "administrator", "owner")
test_alice_reads_her_own_file_page_and_draft = attacks.test_alice_reads_her_own_file_page_and_draft
test_files_and_pages_are_nobody_elses = attacks.test_files_and_pages_are_nobody_elses
test_what_is_not_there_looks_like_what_is_somebody_elses = (
    attacks.test_what_is_not_there_looks_like_what_is_somebody_elses
)
test_a_draft_of_alices_is_not_served_to_bob = attacks.test_a_draft_of_alices_is_not_served_to_bob
test_bob_cannot_send_alices_draft_as_his_own = attacks.test_bob_cannot_send_alices_draft_as_his_own
test_bob_cannot_read_or_join_alices_stream = attacks.test_bob_cannot_read_or_join_alices_stream
test_bob_cannot_cancel_what_alice_runs = attacks.test_bob_cannot_cancel_what_alice_runs
test_nothing_that_the_page_can_ask_for_touches_what_is_alices = (
    attacks.test_nothing_that_the_page_can_ask_for_touches_what_is_alices
)
nobody = attacks.nobody


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[SignedIn]:
    people = [("alice", "member"), *((role, role) for role in ATTACKERS if role != "browser")]
    with house_of(tmp_path_factory.mktemp("accounts"), origin, people) as house:
        yield house


@pytest.fixture(scope="module")
def app(here: SignedIn) -> AppProcess:
    return here.app


@pytest.fixture(scope="module")
def alice(here: SignedIn) -> Iterator[attacks.Hers]:
    hers = attacks.hers_at(here.app, here.browser("alice"))
    yield hers
    hers.tab.close()


@pytest.fixture(params=ATTACKERS)
def bob(request: pytest.FixtureRequest, here: SignedIn) -> Iterator[RawPage]:
    tab = here.browser(request.param)
    yield tab
    tab.close()


def test_the_address_of_alices_conversation_shows_whoever_else_an_empty_room(alice: attacks.Hers, bob: RawPage) -> None:
    tab = RawPage(bob.url, alice.conversation, bob.client).open()
    chat, status = tab.painted()
    assert chat == "[]"
    assert alice.conversation not in status


def test_who_is_not_signed_in_is_nobody_though_the_request_comes_from_this_machine(
    alice: attacks.Hers, nobody: httpx.Client
) -> None:
    forwarded = {"x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1", "x-real-ip": "127.0.0.1"}
    for headers in ({}, forwarded, {"authorization": "Bearer local"}):
        for path in ("/libraries/state", "/tools/state", f"/files/{alice.file}", "/people"):
            answer = nobody.get(path, headers=headers)
            assert answer.status_code in {303, 401}, path
            assert "heliotrope" not in answer.text
