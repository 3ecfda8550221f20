"""What a small model reads after a start is what the first questions to it begin with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.agents.assistant import Assistant
from core.messages.message import USER, Message
from core.testing.scripted_model import ScriptedModel
from core.workspace.assistants import Assistants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang

pytestmark = pytest.mark.anyio

SAMPLES = Path(__file__).parents[3] / "assets" / "samples"
SAID: Mapping[Lang, tuple[str, str, str]] = {
    "en": ("Turn these notes into a short letter to the tenants.", "notes.md", "When will the water be off?"),
    "zh": ("把这些笔记写成一封给住户的简短的信。", "笔记.md", "什么时候停水？"),
}


class ReadsAhead(ScriptedModel):
    """A small model of this process, as far as what it is asked goes."""

    small = True

    async def read_ahead(
        self, messages: Sequence[Message], functions: Sequence[Mapping[str, Any]] = (), lang: Lang = "en"
    ) -> None:
        await self.achat([*messages], [dict(one) for one in functions], {"lang": lang})


def _said(model: ScriptedModel, at: int) -> list[str]:
    return [f"{one.role}: {one.get_text_content()}" for one in model.requests[at].messages]


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_a_letter_and_a_question_about_documents_begin_with_what_was_read_ahead(lang: Lang) -> None:
    model = ReadsAhead(*["ok"] * 6, native=False)
    await Assistants(8).read_ahead(model)
    letter, sample, question = SAID[lang]
    for asked in (letter, question):
        agent = Assistant([], model, files=[str(SAMPLES / sample)], rag_cfg={"retrieval_type": "keyword"})
        assert [event async for event in agent.stream([Message(USER, asked)])]
    ahead = _said(model, 1 if lang == "en" else 3)
    *written, last = _said(model, 4)
    assert len(written) == 3, "the system message, and an example with its letter"
    assert ahead[: len(written)] == written
    assert last.split("\n")[0] == ahead[-1].split("\n")[0]
    assert _said(model, 5)[0] == ahead[0]


async def test_tools_are_read_ahead_with_who_the_assistant_is() -> None:
    model = ReadsAhead(*["ok"] * 4, native=False)
    await Assistants(8).read_ahead(model)
    with_tools = [_said(model, at)[0] for at in (0, 2)]
    assert all("calculator" in one for one in with_tools)
    assert with_tools[0] != with_tools[1]
