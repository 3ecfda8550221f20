"""Of several long documents there is room for a beginning alone: what was read is told, and what was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import Assistant, Message
from core.messages.transcript import Transcript
from core.rag.library import Library
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

NAMES = ["first.txt", "second.txt", "third.txt"]


async def test_of_which_documents_nothing_was_read_the_model_is_told_and_the_reply_keeps(tmp_path: Path) -> None:
    with Library.open(tmp_path / "several", {"retrieval_type": "keyword"}) as library:
        for name in NAMES:
            path = tmp_path / name
            path.write_text("\n\n".join(f"Paragraph {at} of {name}. " + "word " * 300 for at in range(20)), "utf-8")
            library.add(path)
        cfg = {"retrieval_type": "keyword", "read_all": False, "max_ref_token": 150}
        model = ScriptedModel({"script": ["About words [1]."], "generate_cfg": {"max_input_tokens": 8_000}})
        agent = Assistant(llm=model, library=library, rag_cfg=cfg)
        events = [event async for event in agent.stream([Message("user", "What are these documents about?")])]
    result = Transcript(events).messages()[1]
    extra = result.extra or {}
    shown = {passage["document"] for passage in extra["passages"]}
    bare = [one["name"] for one in extra["read"] if not one["last"]]
    assert bare == [name for name in NAMES if name not in shown]
    assert "third.txt" in bare
    assert f"Nothing was read of {' and '.join(bare)}. Say so." in result.get_text_content()
