"""`docs/agents.md` names every field of an agent's file, and no other spelling than there is.

That what it shows works is held by `test_docs_snippets.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

from core.agents.catalog import AGENTS
from core.agents.config.schema import SPELLINGS, AgentConfig, AgentTool, PromptConfig

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "agents.md").read_text(encoding="utf-8")


def test_it_names_every_field() -> None:
    for kind in (AgentConfig, AgentTool, PromptConfig):
        for field in kind.model_fields:
            assert f"`{field}`" in PAGE, f"{kind.__name__}.{field} is not on the page."
    assert set(re.findall(r"`(pre_prompt|template|inputs|messages|parameters)`", PAGE)) <= set(SPELLINGS)


def test_it_names_every_kind_of_agent() -> None:
    shipped = vars(AGENTS)["_entries"]  # not what other tests add
    assert not [name for name in shipped if f"`{name}`" not in PAGE]
