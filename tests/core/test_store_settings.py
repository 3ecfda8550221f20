"""What settings say of an S3 store: the usual variables, wrong values in a sentence, and no key in sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import SettingsError
from core.settings import Settings
from core.storage.blobs import FolderBlobs
from core.storage.opening import bucket_of, opened_blobs
from webui.serving import secret_advice

SECRET = "wJalrXUtnFEMI"


def test_a_store_and_its_keys_come_from_the_usual_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PARLOUR_FILES": "s3://my-bucket/team/parlour/",
        "AWS_ACCESS_KEY_ID": "AKIDTEST",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000/",
        "PARLOUR_FILES_ADDRESS": "https://files.example.com",
    }.items():
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    bucket = bucket_of(settings)
    assert bucket is not None
    assert (bucket.name, bucket.prefix, bucket.region) == ("my-bucket", "team/parlour", "eu-central-1")
    assert (bucket.endpoint, bucket.public) == ("http://127.0.0.1:9000", "https://files.example.com")
    assert bucket.secret_key == SECRET
    for shown in (repr(settings), repr(bucket), str(settings)):
        assert SECRET not in shown


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("files", "/mnt/files", "s3://bucket/parlour"),
        ("files", "s3://", "s3://bucket/parlour"),
        ("files", "s3://Bucket Name/x", "s3://bucket/parlour"),
        ("files", "s3://bucket/../x", "s3://bucket/parlour"),
        ("files", "s3://bucket/x?y", "s3://bucket/parlour"),
        ("files_address", "files.example.com", "https://storage.example.com"),
        ("aws_endpoint_url", "ftp://files", "https://storage.example.com"),
        ("aws_endpoint_url", "off", "https://storage.example.com"),
        ("files_cache_mb", "0", "1"),
    ],
)
def test_what_is_no_store_is_told_in_a_sentence_that_says_what_to_write(name: str, given: str, said: str) -> None:
    with pytest.raises(SettingsError) as told:
        Settings.load(**{name: given})
    assert said in str(told.value)
    assert name in str(told.value).lower()


@pytest.mark.anyio
async def test_left_out_files_are_in_the_data_folder_and_keys_of_others_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    settings = Settings.load(home=tmp_path)
    assert bucket_of(settings) is None
    async with opened_blobs(settings) as blobs:
        assert isinstance(blobs, FolderBlobs)
        assert blobs.path("o/local/f/a.txt") == tmp_path / "files" / "local" / "a.txt"


def test_who_starts_with_a_database_and_a_secret_of_the_folder_is_told_what_others_will_need(tmp_path: Path) -> None:
    database = "postgresql://somebody@127.0.0.1:1/parlour"
    assert "set PARLOUR_SECRET for all of them" in secret_advice(Settings.load(home=tmp_path, database=database))
    assert secret_advice(Settings.load(home=tmp_path, database=database, secret="the same for all")) == ""
    assert secret_advice(Settings.load(home=tmp_path)) == ""
