"""SeaweedFS, which looks at each signature, keeps what the gate tries with a store that looks at none."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from secrets import token_hex

import boto3
import httpx
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from core.errors import StorageError
from core.storage.object_blobs import Bucket, ObjectBlobs
from tests.contract import test_blobs
from tests.grown_servers import OF_PYPI, S3Server, Served, promises_of
from tests.ports import free_port
from tests.webui.server import test_files_in_s3

globals().update(promises_of(test_blobs, test_files_in_s3))
del globals()["test_what_is_wrong_with_the_store_is_one_sentence_without_secrets"]  # by keys that are wrong here
database, faulty = test_blobs.database, test_blobs.faulty

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
_WEED = OF_PYPI / ("Scripts/weed.exe" if sys.platform == "win32" else "bin/weed")
_KEYS = {"accessKey": "AKIDTEST", "secretKey": "a secret of the store"}
_PARTS = ("master", "volume", "filer")


class SeaweedFS(S3Server):
    """One that lets in whoever signs with the keys of these tests."""

    def make_bucket(self) -> str:
        """A new bucket that is empty; returns its name."""
        name = f"parlour-{token_hex(6)}"
        keys = {"aws_access_key_id": _KEYS["accessKey"], "aws_secret_access_key": _KEYS["secretKey"]}
        with closing(boto3.client("s3", "us-east-1", endpoint_url=self.address, **keys)) as asked:
            asked.create_bucket(Bucket=name)
        return name


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A SeaweedFS of one process."""
    folder, port = tmp_path_factory.mktemp("seaweedfs"), free_port()
    who = {"name": "parlour", "credentials": [_KEYS], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    (folder / "keys.json").write_text(json.dumps({"identities": [who]}), "utf-8")
    ports = {f"{part}.port{kind}": free_port() for part in (*_PARTS, "s3") for kind in ("", ".grpc")}
    options = {**ports, "s3.port": port, "s3.port.iceberg": 0, "s3.port.lance": 0, "s3.config": folder / "keys.json"}
    options |= {"dir": folder, "ip": "127.0.0.1", "ip.bind": "127.0.0.1", "master.telemetry": "false"}
    options |= {
        "s3.autoCreateBucket": "false",
        "volume.max": 10_000,
        "master.volumeSizeLimitMB": 64,
        "master.volumePreallocate": "false",
    }
    given = [f"-{name}={value}" for name, value in options.items()]
    server = Served(str(_WEED), ["server", "-filer", "-s3", *given], port, folder).start()
    assert server.process is not None
    made = SeaweedFS(port, server.process)
    _wait_for(made)
    yield made
    server.kill()  # it waits for its own clients otherwise


def _wait_for(store: SeaweedFS) -> None:
    """Wait until a bucket can be made, which is some seconds after it listens."""
    end = time.monotonic() + 60
    while True:
        try:
            store.make_bucket()
        except (ClientError, BotoCoreError):
            assert time.monotonic() < end
        else:
            return


@pytest.fixture
def blobs(s3: S3Server, tmp_path: Path) -> Iterator[ObjectBlobs]:
    made = test_blobs.s3_blobs(s3.make_bucket(), s3.address, tmp_path / "copies")
    yield made
    made.close()


async def test_a_store_that_looks_at_signatures_refuses_other_keys_and_a_link_that_was_changed(
    s3: S3Server, tmp_path: Path
) -> None:
    blobs = test_blobs.s3_blobs(s3.make_bucket(), s3.address, tmp_path)
    await blobs.put(test_blobs.KEY, b"text")
    signed = await blobs.sign(test_blobs.KEY, "a.txt")
    async with httpx.AsyncClient() as browser:
        assert (await browser.get(signed)).content == b"text"
        for changed in (signed.replace("a1.txt", "a2.txt"), signed.replace("Expires=60", "Expires=6000")):
            assert (await browser.get(changed)).status_code == 403
        assert (await browser.get(signed.partition("?")[0])).status_code == 403
    wrong = Bucket(s3.make_bucket(), "x", s3.address, access_key=_KEYS["accessKey"], secret_key="another")
    nowhere = Bucket("no-such-bucket", "x", s3.address, access_key=_KEYS["accessKey"], secret_key=_KEYS["secretKey"])
    for bucket, key in ((wrong, "files_keys"), (nowhere, "files_bucket")):
        with pytest.raises(StorageError) as told:
            await ObjectBlobs(bucket, tmp_path / key, 1024, timeout=5.0).check("mine")
        assert told.value.words_key == key
