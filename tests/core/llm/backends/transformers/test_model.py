"""The Transformers back end without torch: its settings, what it refuses, what it names, what it makes of messages."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from core.errors import MissingExtraError, ModelRefusedError, ModelServiceError, SettingsError
from core.llm.backends.transformers import model as transformers_model
from core.llm.backends.transformers.inputs import Sampling, opened_pictures, sampling
from core.llm.backends.transformers.load import Place, fetched_folder, load_error, progress_bar
from core.llm.backends.transformers.model import TransformersModel
from core.llm.open_model import get_chat_model
from core.llm.request import Progress
from core.net.addresses import Reach
from core.testing.gguf_file import gguf_file

pytestmark = pytest.mark.anyio


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages count as installed; none of these tests comes to the point of importing them."""
    monkeypatch.setattr(transformers_model, "need_packages", lambda *_: None)


def opened(**cfg: object) -> TransformersModel:
    model = get_chat_model({"model_type": "transformers", **cfg})
    assert isinstance(model, TransformersModel)
    return model


def a_folder(path: Path, **config: object) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"model_type": "llama", **config}), "utf-8")
    return path


# -- settings ---------------------------------------------------------------------------------------------------------


def test_a_missing_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.errors.find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(MissingExtraError, match=r'torch.*pip install ".*\[transformers\]"') as caught:
        opened(model="some/model")
    assert caught.value.details["extra"] == "transformers"  # the page's own sentence has the command too


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("key", "value"), [("dtype", "int3"), ("threads", -1), ("vision", "perhaps")])
def test_a_wrong_setting_is_named(key: str, value: object) -> None:
    with pytest.raises(SettingsError, match=key):
        opened(model="some/model", **{key: value})


@pytest.mark.usefixtures("installed")
def test_no_model_is_said() -> None:
    with pytest.raises(SettingsError, match="name no model"):
        opened()


@pytest.mark.usefixtures("installed")
def test_its_label_is_the_last_part_of_its_name(tmp_path: Path) -> None:
    assert opened(model="Qwen/Qwen3-0.6B").label == "Qwen3-0.6B, Transformers"
    assert opened(model=f"{a_folder(tmp_path / 'mine')}/").label == "mine, Transformers"
    assert opened(model=str(tmp_path / "other.gguf")).label == "other, Transformers"


@pytest.mark.usefixtures("installed")
def test_a_folder_says_how_much_it_reads_and_whether_it_sees(tmp_path: Path) -> None:
    text = opened(model=str(a_folder(tmp_path / "text", max_position_embeddings=2000)))
    assert not text.support_multimodal_input
    assert text.generate_cfg == {"max_tokens": 500, "max_input_tokens": 1350}
    folder = a_folder(tmp_path / "sees", vision_config={"a": 1}, text_config={"max_position_embeddings": 4000})
    sees = opened(model=str(folder))
    assert sees.support_multimodal_input
    assert sees.generate_cfg["max_tokens"] == 1000
    assert not opened(model=str(folder), vision=False).support_multimodal_input


@pytest.mark.usefixtures("installed")
def test_what_the_user_sets_stays(tmp_path: Path) -> None:
    given = {"max_tokens": 7, "max_input_tokens": 9}
    folder = a_folder(tmp_path / "text", max_position_embeddings=2000)
    assert opened(model=str(folder), generate_cfg=given).generate_cfg == given


# -- files that are not there or not right ----------------------------------------------------------------------------


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["nowhere", "nowhere/model.gguf"])
async def test_a_folder_or_file_that_is_missing_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="There is no model f") as caught:
        await opened(model=str(tmp_path / name)).prepare()
    assert caught.value.hint


@pytest.mark.usefixtures("installed")
async def test_a_folder_without_its_config_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelServiceError, match=r"no config\.json") as caught:
        await opened(model=str(tmp_path)).prepare()
    assert caught.value.words_key == "model_not_loaded"
    assert caught.value.hint


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("content", [b"", b"no model", gguf_file()[:-1]])
async def test_the_one_gguf_file_of_a_folder_is_taken_and_looked_at(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "one.gguf").write_bytes(content)
    with pytest.raises(ModelServiceError, match=r"one\.gguf") as caught:
        await opened(model=str(tmp_path)).prepare()
    assert caught.value.words_key == "weights_not_loaded"


async def test_gguf_needs_packages_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.gguf").write_bytes(gguf_file())
    monkeypatch.setattr("core.errors.find_spec", lambda name: None if name == "gguf" else object())
    with pytest.raises(MissingExtraError, match="gguf"):
        await opened(model=str(tmp_path / "one.gguf")).prepare()


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (MemoryError(), "model_no_memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "model_no_memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "model_no_memory"),
        (ValueError("model type `x` but Transformers does not recognize this architecture."), "model_not_loaded"),
        (ValueError("Please pass the argument `trust_remote_code=True` to allow custom code."), "settings"),
        (KeyError("hidden_size"), "model_not_loaded"),
    ],
)
def test_what_goes_wrong_while_loading_has_a_name_and_a_hint(tmp_path: Path, error: Exception, key: str) -> None:
    named = load_error(error, Place(tmp_path))
    assert named.words_key == key
    assert named.hint


# -- the hub ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


@pytest.mark.usefixtures("installed", "offline")
async def test_a_model_that_cannot_be_fetched_is_said() -> None:
    with pytest.raises(ModelServiceError, match="some/model") as caught:
        await opened(model="some/model").prepare()
    assert caught.value.words_key == "weights_unreachable"
    assert caught.value.hint


@pytest.mark.usefixtures("offline")
def test_a_name_that_can_be_none_is_said() -> None:
    with pytest.raises(SettingsError, match="no name of a model"):
        fetched_folder("so--me/mo..del", None, "", None)


def test_only_bytes_on_disk_count_as_progress() -> None:
    seen: list[Progress] = []
    bar = progress_bar(seen.append, "m")
    with (
        bar(desc="Downloading bytes", unit="B", total=0, initial=0) as coming,
        bar(desc="Fetching 2 files", total=2) as files,
        bar(desc="Reconstructing", unit="B", total=0, initial=0) as written,
    ):
        written.total += 10
        for each in (coming, files, written):
            each.update(4)
        written.update(6)
    assert seen == [Progress("m", 4, 10), Progress("m", 10, 10)]


# -- generate_cfg -----------------------------------------------------------------------------------------------------


def test_temperature_nought_takes_the_likeliest_token() -> None:
    assert sampling({"temperature": 0, "top_p": 0.9, "top_k": 5}).arguments == {"do_sample": False}


def test_a_temperature_draws_and_nothing_said_leaves_it_to_the_makers() -> None:
    assert sampling({"temperature": 0.5}).arguments == {"temperature": 0.5, "do_sample": True}
    assert sampling({"top_p": 0.5}).arguments == {"top_p": 0.5, "do_sample": True}
    assert sampling({}) == Sampling()


def test_words_of_the_services_become_those_of_transformers() -> None:
    drawn = sampling(
        {"max_tokens": 9, "max_completion_tokens": 5, "seed": 3, "stop": "END", "repeat_penalty": 1.1, "stream": True}
    )
    assert drawn == Sampling({"repetition_penalty": 1.1}, ("END",), 5, 3)


def test_keys_of_our_own_stay_here_and_unknown_ones_go_on() -> None:
    drawn = sampling({"max_input_tokens": 5, "lang": "zh", "no_repeat_ngram_size": 3, "extra_body": {"typical_p": 0.9}})
    assert drawn.arguments == {"no_repeat_ngram_size": 3, "typical_p": 0.9}


def test_thinking_is_a_matter_of_the_chat_template() -> None:
    drawn = sampling({"enable_thinking": False, "chat_template_kwargs": {"a": 1}})
    assert drawn.template == {"enable_thinking": False, "a": 1}


@pytest.mark.parametrize("key", ["max_tokens", "temperature", "top_p", "seed", "stop", "extra_body"])
@pytest.mark.parametrize("value", [-1, "many", [1]])
def test_a_value_of_the_wrong_kind_is_named(key: str, value: Any) -> None:
    if (key, value) == ("stop", "many"):
        assert sampling({key: value}).stop == ("many",)
        return
    with pytest.raises(SettingsError, match=key):
        sampling({key: value})


def test_what_a_local_model_cannot_do_is_refused_and_what_changes_nothing_is_not() -> None:
    assert sampling({"presence_penalty": 0, "n": 1, "response_format": {"type": "text"}}) == Sampling()
    for asked in ({"presence_penalty": 1.0}, {"n": 2}, {"response_format": {"type": "json_object"}}):
        with pytest.raises(ModelRefusedError, match=next(iter(asked))):
            sampling(asked)


@pytest.mark.usefixtures("installed")
async def test_calling_of_its_own_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    model = opened(model=str(a_folder(tmp_path / "mine")))
    with pytest.raises(ModelRefusedError, match="no tool calling of its own") as caught:
        await model.achat([{"role": "user", "content": "hi"}], [{"name": "a"}], {"use_raw_api": True})
    assert "use_raw_api" in caught.value.hint
    assert not model.is_ready


# -- pictures ---------------------------------------------------------------------------------------------------------


def turn(address: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image", "image": address}]}


async def test_pictures_are_opened_in_order(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("L", (3, 2)).save(tmp_path / "a.png")
    pixel = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    found = await opened_pictures([{"role": "user", "content": "hi"}, turn(str(tmp_path / "a.png")), turn(pixel)])
    assert [(picture.size, picture.mode) for picture in found] == [((3, 2), "RGB"), ((1, 1), "RGB")]


@pytest.mark.parametrize("address", ["data:image/png;base64,AAAA", "data:image/png;base64,A", "/no/such.png"])
async def test_a_picture_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        await opened_pictures([turn(address)])
    assert caught.value.words_key == "picture_unreadable"


_PIXEL = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


async def _site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    if path == "/pixel.gif":
        head = f"HTTP/1.1 200 OK\r\ncontent-type: image/gif\r\ncontent-length: {len(_PIXEL)}\r\n\r\n"
        writer.write(head.encode() + _PIXEL)
    else:
        target = {"/moved": "/pixel.gif", "/inside": "http://inside.example/"}[path]
        writer.write(f"HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n".encode())
    await writer.drain()
    writer.close()


async def test_a_picture_on_a_server_is_fetched_and_each_redirect_checked_like_the_first_address() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["10.0.0.1"] if host == "inside.example" else ["127.0.0.1"]

    async with await asyncio.start_server(_site, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reach = Reach(lambda address, _: address == "127.0.0.1", resolve)
        at = f"http://pictures.example:{port}"
        for path in ("/pixel.gif", "/moved"):
            (picture,) = await opened_pictures([turn(at + path)], reach=reach)
            assert picture.size == (1, 1)
        with pytest.raises(ModelRefusedError, match=r"inside\.example is not a public address") as caught:
            await opened_pictures([turn(f"{at}/inside")], reach=reach)
        assert caught.value.words_key == "picture_unreadable"


async def test_a_picture_on_this_machine_or_its_network_is_not_fetched(free_port: int) -> None:
    for address in (f"http://127.0.0.1:{free_port}/a.png", "http://169.254.169.254/latest/", "http://localhost/a.png"):
        with pytest.raises(ModelRefusedError, match=r"could not be fetched.*not a public address"):
            await opened_pictures([turn(address)])
