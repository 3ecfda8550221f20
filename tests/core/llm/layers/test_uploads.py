"""What was uploaded is told to the model by name."""

from __future__ import annotations

from typing import Any

import pytest

from core.llm.base import BaseChatModel
from core.messages.content import ContentItem
from core.messages.message import USER, Message
from core.testing.scripted_model import ScriptedModel

TOOL: dict[str, Any] = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}


def told(model: BaseChatModel, *items: ContentItem, tools: bool = False) -> Message:
    question = Message(USER, [ContentItem(text="see"), *items])
    before = question.model_dump_json()
    model.chat([question], [TOOL] if tools else None, stream=False)
    assert question.model_dump_json() == before
    sent: Any = model
    return sent.requests[-1].messages[-1]


@pytest.fixture
def seeing() -> ScriptedModel:
    """A model that sees and does not hear."""
    model = ScriptedModel("fine")
    model.support_multimodal_input = True
    return model


def test_a_file_is_named_and_taken_out_even_for_a_model_that_sees(seeing: ScriptedModel) -> None:
    assert told(seeing, ContentItem(file="/a/b/doc.pdf")).content == "(Uploaded [file](doc.pdf)) see"


def test_a_picture_stays_and_is_named_where_a_tool_may_want_it(seeing: ScriptedModel) -> None:
    picture = ContentItem(image="http://x/y/a%20b.png?k=1")
    assert told(seeing, picture).items[0].text == "see"
    with_tool = told(seeing, picture, tools=True)
    assert [item.type for item in with_tool.items] == ["text", "text", "image"]
    assert with_tool.items[0].text == "(Uploaded ![image](a b.png)) "


def test_a_sound_is_named_to_a_model_that_cannot_hear(seeing: ScriptedModel) -> None:
    assert told(seeing, ContentItem(audio="x.wav")).content == "(Uploaded ![audio](x.wav)) see"
    assert told(seeing, ContentItem(audio={"data": "AAAA", "format": "wav"})).content == "(Uploaded [audio]) see"


def test_the_name_that_a_store_gave_is_told_to_nobody(seeing: ScriptedModel) -> None:
    sent = told(seeing, ContentItem(image="/files/alice/k3J9x0"), tools=True)
    assert sent.items[0].text == "(Uploaded [image]) "


def test_words_around_it_are_in_the_language_of_the_question() -> None:
    model = ScriptedModel("好")
    model.chat([Message(USER, [ContentItem(text="看看"), ContentItem(file="文档.pdf")])], stream=False)
    assert model.requests[0].messages[0].content == "（上传了 [文件](文档.pdf)）看看"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/home/ann/a b.pdf", "a b.pdf"),
        ("a%20b.pdf", "a b.pdf"),
        ("file:///home/ann/a%20b.pdf", "a b.pdf"),
        ("https://example.org/%E8%8C%B6.pdf?x=1", "茶.pdf"),
        ("data:text/csv;name=a%20b.csv;base64,YQ==", "a b.csv"),
        ("/home/ann/README", "README"),
        ("Makefile", "Makefile"),
        ("C:\\docs\\LICENSE", "LICENSE"),
    ],
)
def test_a_file_is_told_by_its_name_as_a_reader_writes_it_with_or_without_an_extension(
    seeing: ScriptedModel, address: str, name: str
) -> None:
    assert told(seeing, ContentItem(file=address)).content == f"(Uploaded [file]({name})) see"


def test_a_stored_file_is_told_by_the_name_that_it_came_with() -> None:
    model = ScriptedModel("fine")
    files = [{"id": "k3J9x0", "name": "a b.pdf", "kind": "document"}, {"id": "z", "name": "Makefile"}, "odd", {}]
    items = [ContentItem(text="see"), ContentItem(file="/files/k3J9x0"), ContentItem(file="/files/z")]
    model.chat([Message(USER, items, extra={"files": files})], stream=False)
    assert model.requests[0].messages[0].content == "(Uploaded [file](a b.pdf) [file](Makefile)) see"
