"""Pictures drawn by services, against a server that speaks as each of them does."""

from __future__ import annotations

from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from core.errors import BadArgumentsError, FetchError, SettingsError, ToolError
from core.tools.approval import Policy
from core.tools.builtin import image_gen as drawing
from core.tools.builtin.image_gen import ImageGen
from core.tools.taint import Taint

pytestmark = pytest.mark.anyio

KEY = "sk-CANARY"


def picture(kind: str = "PNG") -> bytes:
    out = BytesIO()
    Image.new("RGB", (40, 30), "red").save(out, kind)
    return out.getvalue()


def made(service: Any, **cfg: Any) -> ImageGen:
    return ImageGen({"api_key": KEY, "base_url": service.address, "own_network": True, **cfg})


def data_of(result: Any) -> bytes:
    (item,) = result.items
    assert item.image.startswith("data:image/")
    return b64decode(item.image.partition(",")[2])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_PAUSE", 0.0)


async def test_openai_sends_the_picture_itself(service: Any) -> None:
    service.says("/images/generations", {"created": 1, "data": [{"b64_json": b64encode(picture()).decode()}]})
    result = await made(service).call({"prompt": "a red field", "resolution": "1024*1536"})
    assert data_of(result) == picture()
    (request,) = service.requests
    assert request.body == {"model": "gpt-image-1", "prompt": "a red field", "n": 1, "size": "1024x1536"}
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_openai_may_name_an_address_which_gets_no_key(service: Any) -> None:
    service.says("/images/generations", {"data": [{"url": f"{service.address}/p.jpg"}]})
    service.says("/p.jpg", picture("JPEG"), content_type="image/jpeg")
    result = await made(service, model="dall-e-3").call({"prompt": "x"})
    assert data_of(result) == picture("JPEG")
    assert KEY not in str(service.requests[1].headers)
    assert "size" not in service.requests[0].body


async def test_dashscope_answers_at_once(service: Any) -> None:
    content = [{"image": f"{service.address}/p.png", "type": "image"}]
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    service.says("/services/aigc/multimodal-generation/generation", {"output": {"choices": [choice]}, "usage": {}})
    service.says("/p.png", picture(), content_type="image/png")
    result = await made(service, model="wan2.6-t2i", size="1280*720").call({"prompt": "红色"}, lang="zh")
    assert data_of(result) == picture()
    assert "已生成" in result.text
    assert service.requests[0].body == {
        "model": "wan2.6-t2i",
        "input": {"messages": [{"role": "user", "content": [{"text": "红色"}]}]},
        "parameters": {"n": 1, "size": "1280*720"},
    }


async def test_dashscope_is_asked_after_until_it_is_done(service: Any) -> None:
    task = {"task_id": "0385dc79-5ff8-4d82", "task_status": "PENDING"}
    service.says("/services/aigc/text2image/image-synthesis", {"output": task, "request_id": "r"})
    service.says("/tasks/0385dc79-5ff8-4d82", {"output": {**task, "task_status": "RUNNING"}})
    done = {**task, "task_status": "SUCCEEDED", "results": [{"url": f"{service.address}/p.png"}]}
    service.says("/tasks/0385dc79-5ff8-4d82", {"output": done})
    service.says("/p.png", picture(), content_type="image/png")
    assert data_of(await made(service, model="wan2.2-t2i-flash").call({"prompt": "x"})) == picture()
    assert service.requests[0].headers["x-dashscope-async"] == "enable"
    assert [request.path for request in service.requests].count("/tasks/0385dc79-5ff8-4d82") == 2


async def test_a_task_that_fails_is_told_by_its_code(service: Any) -> None:
    task = {"task_id": "t1", "task_status": "FAILED", "code": "DataInspectionFailed", "message": f"no {KEY}"}
    service.says("/services/aigc/text2image/image-synthesis", {"output": task})
    with pytest.raises(ToolError, match="DataInspectionFailed") as caught:
        await made(service, model="wanx2.1-t2i-turbo").call({"prompt": "x"})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("model", ["gpt-image-1", "qwen-image"])
@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"error": {"message": f"Incorrect API key {KEY}"}}, "refuses the key"),
        (400, {"code": "DataInspectionFailed", "message": KEY}, "DataInspectionFailed"),
        (400, {"error": {"code": "moderation_blocked", "message": KEY}}, "moderation_blocked"),
        (400, {"error": KEY}, "refuses the request"),
        (429, {}, "too often"),
        (200, {"data": [], "output": {}}, "without a picture"),
        (200, {"data": [{"b64_json": "not base64!"}], "output": {"choices": [{}]}}, "without a picture|damaged"),
        (200, [], "cannot be read"),
    ],
)
async def test_what_goes_wrong_is_one_sentence_without_the_key(
    service: Any, model: str, status: int, body: Any, said: str
) -> None:
    for path in ("/images/generations", "/services/aigc/multimodal-generation/generation"):
        service.says(path, body, status=status)
    with pytest.raises(ToolError, match=said) as caught:
        await made(service, model=model).call({"prompt": "x"})
    assert KEY not in str(caught.value)


async def test_what_is_no_picture_is_refused(service: Any) -> None:
    service.says("/images/generations", {"data": [{"b64_json": b64encode(b"<svg onload=alert(1)>").decode()}]})
    with pytest.raises(ToolError, match="damaged"):
        await made(service).call({"prompt": "x"})


async def test_an_address_of_the_own_network_in_an_answer_is_not_fetched(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.says("/images/generations", {"data": [{"url": "http://169.254.169.254/latest/meta-data"}]})
    with pytest.raises(FetchError) as caught:
        await made(service).call({"prompt": "x"})
    assert caught.value.words_key == "fetch_private"


async def test_without_a_key_it_is_said_what_to_do() -> None:
    with pytest.raises(SettingsError, match="needs a key"):
        await ImageGen().call({"prompt": "x"})
    with pytest.raises(SettingsError, match="openai or dashscope"):
        ImageGen({"api_key": "k", "service": "midjourney"}).validate_credentials({})


@pytest.mark.parametrize("resolution", ["large", "1024", "1*2*3", "99999*2"])
async def test_a_resolution_that_is_none_is_told(service: Any, resolution: str) -> None:
    with pytest.raises(BadArgumentsError, match="resolution"):
        await made(service).call({"prompt": "x", "resolution": resolution})
    assert service.requests == []


def test_it_costs_money_so_it_asks_first() -> None:
    assert Policy().verdict(ImageGen(), {"prompt": "x"}, Taint()) == "writes"
