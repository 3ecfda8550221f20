"""What a repository on Hugging Face records of a file of weights: its name, size, SHA-256 and commit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

if TYPE_CHECKING:
    import httpx

    from core.llm.weights_catalog import Weights

_SHA256: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.+-]{0,200}\.gguf", re.ASCII)
_PARTS: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf\Z")
_NOT_ALONE: Final = ("mmproj", "imatrix", "mtp-", "draft")  # what belongs to a model, and is none
_LARGEST: Final = 1 << 40


class NoRecordError(Exception):
    """The repository does not exist, or its record does not say what a file must be checked against."""


def sha256_in(etag: str | None) -> str:
    """The SHA-256 in a header such as `X-Linked-Etag`; empty if it holds none."""
    found = _SHA256.fullmatch((etag or "").strip().removeprefix("W/").strip('"').lower())
    return found[1] if found else ""


def recorded(client: httpx.Client, endpoint: str, weights: Weights) -> Weights:
    """The weights with name, size, SHA-256 and commit as the repository records them; nothing is downloaded.

    Args:
        endpoint: The hub's address.

    Raises:
        NoRecordError: It has no such file, or no size or hash of it, or tells two hashes.
        httpx.HTTPError: It cannot be reached.
    """
    listed = _listed(client, f"{endpoint}/api/models/{quote(weights.repository)}/tree/main")
    entry = _chosen(listed, weights)
    name = str(entry["path"])
    told = client.head(f"{endpoint}/{quote(weights.repository)}/resolve/main/{quote(name)}", follow_redirects=False)
    if told.status_code >= 400:
        raise NoRecordError(f"The repository {weights.repository} does not give {name}.")
    lfs: Any = entry.get("lfs")
    pointer = cast("dict[str, Any]", lfs) if isinstance(lfs, dict) else {}
    hashes = {sha256_in(str(pointer.get("oid") or "")), sha256_in(told.headers.get("x-linked-etag"))} - {""}
    size = _size(told.headers.get("x-linked-size")) or _size(pointer.get("size")) or _size(entry.get("size"))
    if len(hashes) != 1 or not size:
        raise NoRecordError(f"The repository {weights.repository} has no SHA-256 of {name} that can be relied on.")
    commit = str(told.headers.get("x-repo-commit") or "")
    revision = commit if _COMMIT.fullmatch(commit) else ""
    return replace(weights, remote_file=name, size=size, sha256=hashes.pop(), revision=revision)


def _listed(client: httpx.Client, url: str) -> list[dict[str, Any]]:
    answer = client.get(url, follow_redirects=True)
    if answer.status_code >= 400:
        raise NoRecordError("The repository cannot be read.")
    try:
        listed: Any = answer.json()
    except ValueError:  # the log-in page of a strange network
        raise NoRecordError("The repository cannot be read.") from None
    entries = cast("list[Any]", listed) if isinstance(listed, list) else []
    return [cast("dict[str, Any]", entry) for entry in entries if isinstance(entry, dict)]


def _chosen(listed: list[dict[str, Any]], weights: Weights) -> dict[str, Any]:
    """The file of the right name, or of the right quantisation: the one with the shortest name."""
    files = [entry for entry in listed if _NAME.fullmatch(str(entry.get("path") or ""))]
    if weights.remote_file:
        found = [entry for entry in files if entry["path"] == weights.remote_file]
    else:
        wanted = weights.quantisation.lower()
        found = [entry for entry in files if wanted in str(entry["path"]).lower() and _is_alone(str(entry["path"]))]
    if not found:
        what = weights.remote_file or f"{weights.quantisation} file"
        raise NoRecordError(f"The repository {weights.repository} has no {what}.")
    return min(found, key=lambda entry: (len(str(entry["path"])), str(entry["path"])))


def _is_alone(name: str) -> bool:
    return not _PARTS.search(name) and not any(mark in name.lower() for mark in _NOT_ALONE)


def _size(given: object) -> int:
    try:
        size = int(str(given))
    except ValueError:
        return 0
    return size if 0 < size < _LARGEST else 0
