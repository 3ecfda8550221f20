"""Through every door a document of a library has its name there, whatever a conversation calls the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from core.engine import Engine
from tests.doors.house import OWNER, House, house_in

VAULT = b"The vault opens with the word heliotrope. The cellar opens with a brass key."


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("names") / "home", titles=False) as house:
        house.do(with_vault)
        yield house


async def with_vault(engine: Engine) -> None:
    """A library with a file, which a conversation has under another name, too; that came last."""
    async with engine.workspaces.open(OWNER) as workspace:
        library = await workspace.libraries.create("Vaults")
        shelved = await workspace.libraries.add(library.id, VAULT, "vault.md")
        await read(workspace, shelved.id)
        talk = await workspace.conversations.create()
        file = await workspace.files.put("private-diary.md", VAULT)
        await read(workspace, (await workspace.intake.add(talk.id, file)).id)
        assert {one.name for one in (await workspace.index()).documents()} == {"private-diary.md"}


async def read(workspace: Any, document_id: str) -> None:
    await workspace.intake.wait_for_end(document_id)
    assert (await workspace.documents.get(document_id)).status == "ready"


def test_chat_completions_cite_it_by_its_name_in_the_library(house: House) -> None:
    house.says("With heliotrope [1].")
    with OpenAI(base_url=house.base_url, api_key=house.key("names"), max_retries=0, timeout=60) as client:
        asked: Any = [{"role": "user", "content": "With which word does the vault open?"}]
        made: Any = client.chat.completions.create(model="parlour", messages=asked).choices[0].message.model_dump()
    assert [one["file_citation"]["filename"] for one in made["annotations"]] == ["vault.md"]
    assert "private-diary" not in str(house.model.requests[-1].body), "nor is the model told the other name"


def test_programs_that_ask_over_mcp_are_told_its_name_in_the_library(house: House) -> None:
    house.says("With heliotrope [1].")
    assert house.do(lambda engine: engine.outward.of(OWNER).ask("With which word does the vault open?")).endswith(
        "\n\n[1] vault.md"
    )
    found = house.do(lambda engine: engine.outward.of(OWNER).search("heliotrope", None, 3))
    assert {one["document"] for one in found} == {"vault.md"}


def test_a_question_that_is_tried_in_the_library_finds_it_by_its_name_there(house: House) -> None:
    async def tried(engine: Engine) -> set[str]:
        async with engine.workspaces.open(OWNER) as workspace:
            (library,) = await workspace.libraries.list()
            return {one.document for one in await workspace.libraries.tried(library.id, "heliotrope")}

    assert house.do(tried) == {"vault.md"}
