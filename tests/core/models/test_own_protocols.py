"""Services that are asked in their own protocols: those that were set up by their compatible addresses go on."""

from __future__ import annotations

import pytest

from core.llm.open_model import get_chat_model
from core.models.menu import MENU, checked_address, model_cfg
from core.models.model_name import Abilities
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from webui.words import Words

OWN = {name: one for name, one in MENU.items() if one.speaks}


@pytest.mark.parametrize("name", [name for name, one in OWN.items() if not one.typed])
def test_a_stored_address_is_asked_in_the_services_own_protocol(name):
    service = OWN[name]
    stored = checked_address("", service, local=True)
    assert stored == service.address
    model = get_chat_model(model_cfg(service, stored, service.models[0], "a-key", local=True))
    assert model.model_type == service.speaks
    assert model.service.host in stored
    assert model.native_calls


@pytest.mark.parametrize("name", [name for name, one in OWN.items() if not one.typed])
def test_a_reader_of_a_shared_page_has_the_same(name):
    service = OWN[name]
    model = get_chat_model(model_cfg(service, service.address, service.models[0], "a-key", local=False))
    assert model.model_type == service.speaks


def test_bedrock_is_asked_where_its_owner_says_and_by_strangers_on_the_open_internet_alone():
    address = "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1"
    mine = get_chat_model(model_cfg(MENU["bedrock"], address, "m", "k", local=True))
    theirs = get_chat_model(model_cfg(MENU["bedrock"], address, "m", "k", local=False))
    assert (mine.model_type, theirs.model_type) == ("bedrock", "openai_public")


def test_what_its_owner_says_that_it_can_do_counts():
    service = MENU["anthropic"]
    said = Abilities(sees=False)
    model = get_chat_model(model_cfg(service, service.address, "claude-x", "k", local=True, abilities=said))
    assert not model.support_multimodal_input


def test_each_of_them_says_in_both_languages_what_that_gives():
    for service in OWN.values():
        for lang in ("en", "zh"):
            assert Words(lang)(f"models.own.{service.speaks}")


def test_a_service_that_was_set_up_answers_in_its_own_protocol():
    with ModelServer([Reply(reasoning="Hm.", text="Hello!")]) as server:
        cfg = model_cfg(MENU["anthropic"], f"http://127.0.0.1:{server.port}/v1", "claude-sonnet-4-5", "k", local=True)
        model = get_chat_model(cfg)
        assert model.quick_chat("Hello") == "Hello!"
        assert server.requests[0].path == "/v1/messages"
