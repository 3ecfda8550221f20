"""LangChain's client of OpenAI gets along with Parlour: a reply, a stream with what it took, tools, embeddings."""

from __future__ import annotations

from pathlib import Path

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import SecretStr

from core.testing.script import Reply
from tests.doors.house import house_in


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}"


def test_langchain_asks_streams_calls_tools_and_embeds(tmp_path: Path) -> None:
    with house_in(tmp_path / "home") as house:
        key = SecretStr(house.key("langchain"))
        for responses in (False, True):
            chat = ChatOpenAI(
                model="parlour", base_url=house.base_url, api_key=key, max_retries=0, use_responses_api=responses
            )
            house.says(Reply(text="Hello, world.", usage=(11, 3)))
            made = chat.invoke("Hello?")
            assert (made.text, (made.usage_metadata or {}).get("total_tokens")) == ("Hello, world.", 14)
            house.says(Reply(text="One two three.", usage=(9, 4)))
            assert "".join(piece.text for piece in chat.stream("Count.")) == "One two three."
            house.says(Reply(calls=[("get_weather", {"city": "Köln"})]))
            called = chat.bind_tools([get_weather]).invoke("Weather?")
            assert [(one["name"], one["args"]) for one in called.tool_calls] == [("get_weather", {"city": "Köln"})]
        embedder = OpenAIEmbeddings(model="use", base_url=house.base_url, api_key=key, check_embedding_ctx_length=False)
        assert len(embedder.embed_query("The cat sleeps.")) == 512
