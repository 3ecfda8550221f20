"""`BasicAgent`: the model alone."""

from __future__ import annotations

from core.agents.basic import BasicAgent
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel
from core.tools.builtin.calculator import Calculator


def test_the_model_reads_the_conversation_and_nothing_else():
    model = ScriptedModel("Hello.")
    asked = [Message("user", "Hi."), Message("assistant", "Yes?"), Message("user", "Never mind.")]
    reply = BasicAgent([Calculator()], model).run_nonstream(asked)
    assert [message.content for message in reply] == ["Hello."]
    assert list(model.requests[0].messages) == asked
    assert model.requests[0].functions == ()
