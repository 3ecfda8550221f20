"""Files on their way in: named harmlessly, never too large, never somebody else's."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NoSpaceError, NotFoundError, UnsupportedFormatError
from core.storage.files import brief_name, harmless_name
from webui import uploads as multipart
from webui.uploads import KEPT_SECONDS, BadUploadError, TooLargeError, Uploads

pytestmark = pytest.mark.anyio
KIND = 'multipart/form-data; boundary="edge"'


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "tmp", 1000)


def form(*files: tuple[str, bytes]) -> bytes:
    parts = (
        f'--edge\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n"
        for name, data in files
    )
    return b"".join(parts) + b"--edge--\r\n"


async def pieces(body: bytes, size: int = 7) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.mark.parametrize("size", [1, 3, 64, 10_000])
async def test_files_arrive_whole_and_in_order_however_they_are_cut(uploads: Uploads, size: int) -> None:
    body = form(("a.txt", b"first\r\n--edg"), ("b.txt", b""), ("文件 😀.pdf", b"%PDF"))
    taken = await uploads.receive("alice", KIND, pieces(body, size))
    assert [(upload.name, upload.path.read_bytes()) for upload in taken] == [
        ("a.txt", b"first\r\n--edg"),
        ("b.txt", b""),
        ("文件 😀.pdf", b"%PDF"),
    ]
    assert len({upload.path.parent for upload in taken}) == 3


PROGRAM = b"MZ\x90\x00" + b"\0" * 99


async def test_what_nobody_reads_is_refused_by_its_name(uploads: Uploads) -> None:
    with pytest.raises(UnsupportedFormatError) as refused:
        await uploads.receive("alice", KIND, pieces(form(("prog.exe", PROGRAM), ("tool.exe", PROGRAM))))
    assert refused.value.details["name"] == "prog.exe"
    assert list(uploads.folder.iterdir()) == []


async def test_what_nobody_reads_does_not_keep_out_what_comes_with_it(uploads: Uploads) -> None:
    taken = await uploads.receive("alice", KIND, pieces(form(("prog.exe", PROGRAM), ("a.txt", b"A lamp."))))
    assert [upload.name for upload in taken] == ["prog.exe", "a.txt"]


async def test_an_upload_belongs_to_who_sent_it(uploads: Uploads) -> None:
    (upload,) = await uploads.receive("alice", KIND, pieces(form(("a.txt", b"secret"))))
    assert uploads.owns("alice", str(upload.path))
    assert not uploads.owns("bob", str(upload.path))
    assert not uploads.owns("alice", str(upload.path) + "/../a.txt")
    with pytest.raises(NotFoundError):
        uploads.of("bob", str(upload.path))
    uploads.forget(uploads.of("alice", str(upload.path)))
    assert not upload.path.parent.exists()
    assert not uploads.owns("alice", str(upload.path))


async def test_a_file_over_the_limit_is_refused_and_nothing_stays(uploads: Uploads) -> None:
    body = form(("small.txt", b"ok"), ("large.txt", b"x" * 1001))
    with pytest.raises(TooLargeError) as refused:
        await uploads.receive("alice", KIND, pieces(body, 100))
    assert refused.value.details["name"] == "large.txt"
    assert not [path for path in uploads.folder.rglob("*") if path.is_file()]


async def test_a_file_of_exactly_the_limit_is_taken(uploads: Uploads) -> None:
    (upload,) = await uploads.receive("alice", KIND, pieces(form(("a.bin", b"x" * 1000)), 100))
    assert upload.size == 1000


@pytest.mark.parametrize(
    "body",
    [b"", b"garbage", b"--edge--\r\n", form(("a.txt", b"cut off"))[:-30], form(*[("a", b"")] * 51)],
    ids=["empty", "garbage", "no file", "cut off", "too many"],
)
async def test_a_broken_request_is_refused_and_nothing_stays(uploads: Uploads, body: bytes) -> None:
    with pytest.raises(BadUploadError):
        await uploads.receive("alice", KIND, pieces(body))
    assert not [path for path in uploads.folder.rglob("*") if path.is_file()]


async def test_a_hundred_thousand_headers_are_refused_at_once(uploads: Uploads) -> None:
    body = b"--edge\r\n" + b"x: y\r\n" * 100_000
    with pytest.raises(BadUploadError):
        await uploads.receive("alice", KIND, pieces(body, 65536))


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data", "multipart/mixed; boundary=edge"])
async def test_only_forms_are_uploads(uploads: Uploads, kind: str) -> None:
    with pytest.raises(BadUploadError):
        await uploads.receive("alice", kind, pieces(form(("a.txt", b"x"))))


async def test_a_full_disk_is_told_and_nothing_stays(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(queue: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(multipart, "_append", full)
    with pytest.raises(NoSpaceError):
        await uploads.receive("alice", KIND, pieces(form(("a.txt", b"x"))))
    assert not [path for path in uploads.folder.rglob("*") if path.is_file()]


async def test_a_page_that_is_closed_in_the_middle_leaves_nothing(uploads: Uploads) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield form(("a.txt", b"x" * 900))[:-100]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await uploads.receive("alice", KIND, broken())
    assert not [path for path in uploads.folder.rglob("*") if path.is_file()]


async def test_a_second_start_leaves_the_uploads_of_the_first_alone(tmp_path: Path, uploads: Uploads) -> None:
    (upload,) = await uploads.receive("alice", KIND, pieces(form(("a.txt", b"x"))))
    second = Uploads(tmp_path / "tmp", 1000)
    assert upload.path.exists()
    assert uploads.of("alice", str(upload.path)) == upload
    assert second.folder != uploads.folder


async def test_what_another_living_process_holds_stays_and_goes_after_its_death(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from webui.uploads import Uploads\n"
        "uploads = Uploads(Path(sys.argv[1]), 1000); print(uploads.folder, flush=True); input()"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "tmp")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        (theirs / "abc").mkdir()
        (theirs / "abc" / "draft.txt").touch()
        assert Uploads(tmp_path / "tmp", 1000).folder != theirs
        assert (theirs / "abc" / "draft.txt").exists()
        other.kill()
        other.communicate()
    Uploads(tmp_path / "tmp", 1000)
    assert not theirs.exists()
    assert not theirs.with_name(theirs.name + ".process").exists()


@pytest.mark.parametrize("note", ["another-container/1@100", "nonsense", None])
async def test_of_a_process_that_cannot_be_seen_only_what_is_too_old_to_be_used_is_deleted(
    tmp_path: Path, note: str | None
) -> None:
    theirs = tmp_path / "tmp" / "uploads" / "abc"
    file = theirs / "def" / "draft.txt"
    file.parent.mkdir(parents=True)
    file.touch()
    if note is not None:
        theirs.with_name("abc.process").write_text(note)
    Uploads(tmp_path / "tmp", 1000)
    assert file.exists()
    long_ago = time.time() - KEPT_SECONDS - 60
    for path in (file, file.parent, theirs):
        os.utime(path, (long_ago, long_ago))
    Uploads(tmp_path / "tmp", 1000)
    assert not theirs.exists()


async def test_a_start_deletes_nothing_that_is_not_an_upload(tmp_path: Path) -> None:
    beside, outside = tmp_path / "tmp" / "letter.txt", tmp_path / "elsewhere"
    outside.mkdir()
    (tmp_path / "tmp" / "uploads").mkdir(parents=True)
    (tmp_path / "tmp" / "uploads" / "link").symlink_to(outside)
    beside.touch()
    (outside / "kept.txt").touch()
    long_ago = time.time() - KEPT_SECONDS - 60
    os.utime(outside, (long_ago, long_ago))
    uploads = Uploads(tmp_path / "tmp", 1000)
    assert beside.exists(), "what is not ours is left alone"
    assert (outside / "kept.txt").exists()
    assert uploads.folder.stat().st_mode & 0o777 == 0o700


async def test_at_the_end_nothing_is_left(tmp_path: Path, uploads: Uploads) -> None:
    await uploads.receive("alice", KIND, pieces(form(("a.txt", b"x"))))
    uploads.close()
    assert not list((tmp_path / "tmp" / "uploads").iterdir())


async def test_progress_adds_up_and_ends(uploads: Uploads) -> None:
    body = form(("a.txt", b"x" * 500))
    await uploads.receive("alice", KIND, pieces(body, 100), "id-1")
    steps = [step async for step in uploads.progress("alice", "id-1")]
    assert steps[-1] == {"msg": "done"}


async def test_progress_is_shown_to_nobody_else(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webui.uploads._PATIENCE", 0.1)
    await uploads.receive("alice", KIND, pieces(form(("a.txt", b"x"))), "id-1")
    for owner, upload_id in (("bob", "id-1"), ("alice", "id-2")):
        with pytest.raises(NotFoundError):
            await anext(uploads.progress(owner, upload_id))


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/abs/olute.txt", "olute.txt"),
        ("a\x00b.txt", "ab.txt"),
        ("line\nbreak.txt", "linebreak.txt"),
        ("CON.txt", "_CON.txt"),
        ("  .hidden. ", "hidden"),
        ("..", "file"),
        ("", "file"),
        ("gnp.\u202efdp", "gnp.fdp"),
        ("保险单.pdf", "保险单.pdf"),
        ("😀.md", "😀.md"),
        ('<img src=x onerror="x">.png', "_img src=x onerror=_x__.png"),
    ],
)
def test_a_name_becomes_harmless_and_stays_readable(given_name: str, kept: str) -> None:
    assert harmless_name(given_name) == kept
    assert brief_name(given_name).count("<") == given_name.count("<")


@pytest.mark.parametrize(
    ("sent", "called"),
    [
        ("<b>a & b</b>.txt", "b>.txt"),  # as of a path
        ("a < b > c & d | e: f?*.txt", "a < b > c & d | e: f?*.txt"),
        ("who said %22yes%22.txt", 'who said "yes".txt'),  # as browsers write quotes in forms
        ('who said \\"yes\\".txt', 'who said "yes".txt'),  # as other programs do
        ("100%.txt", "100%.txt"),
        ("CON.txt", "CON.txt"),
        (".env.txt", ".env.txt"),
        (".gitignore", ".gitignore"),
        ("..secret.txt", ".secret.txt"),
        ("عقد.txt", "عقد.txt"),
        (f"{'x' * 250}.txt", f"{'x' * 144}….txt"),
        (f"{'险' * 80}.md", f"{'险' * 48}….md"),
    ],
)
async def test_a_file_is_called_as_its_owner_calls_it(uploads: Uploads, sent: str, called: str) -> None:
    (upload,) = await uploads.receive("alice", KIND, pieces(form((sent, b"A lamp."))))
    assert upload.name == called
    assert not set(upload.path.name) & set('<>:"|?*')
    assert not upload.path.name.startswith(".")  # on a disk it is hidden from nobody
    assert upload.path.read_bytes() == b"A lamp."


async def test_the_page_says_exactly_what_a_file_is_called(uploads: Uploads) -> None:
    (upload,) = await uploads.receive("alice", KIND, pieces(form(("a%22b.txt", b"A lamp."))))
    path = str(upload.path)

    def message(name: object) -> dict[str, object]:
        return {"files": [{"path": path, "orig_name": name, "meta": {"_type": "gradio.FileData"}}]}

    assert not await uploads.bring("bob", message("stolen.txt"))
    for nothing in (None, 7, ""):
        assert not await uploads.bring("alice", message(nothing))
    assert uploads.of("alice", path).name == 'a"b.txt'
    assert not await uploads.bring("alice", message("../a%22b.txt"))
    assert uploads.of("alice", path).name == "a%22b.txt"


@given(st.text(max_size=400))
def test_any_name_can_be_a_file_in_any_folder(name: str) -> None:
    kept = harmless_name(name)
    assert kept
    assert len(kept.encode()) <= 180
    assert kept not in {".", ".."}
    assert not set(kept) & set('/\\<>:"|?*\x00')
    assert kept.isprintable()
