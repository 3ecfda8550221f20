"""The list of what an image holds names each package once, with its version, and says nothing that is not so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATUS = """Package: libgomp1
Status: install ok installed
Architecture: amd64
Version: 12.2.0-14+deb12u1
Description: GCC OpenMP
 a second line

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""


def listed(folder: Path, lock: str) -> dict[str, Any]:
    (folder / "a.lock").write_text(lock)
    (folder / "status").write_text(STATUS)
    words = [sys.executable, str(ROOT / ".ci" / "sbom.py"), str(folder / "a.lock"), str(folder / "status")]
    return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)


def test_packages_that_are_installed_here_are_listed_with_their_licences(tmp_path: Path) -> None:
    lock = "httpx==0.28.1\nnever==1.0 ; sys_platform == 'another'\nanyio==4.16.0 ; python_full_version >= '3.11'\n"
    told = listed(tmp_path, lock)
    assert (told["bomFormat"], told["specVersion"], told["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "1.6",
        "parlour",
    )
    by_address = {one["purl"]: one for one in told["components"]}
    assert list(by_address) == [
        "pkg:deb/debian/libgomp1@12.2.0-14%2Bdeb12u1?arch=amd64",
        "pkg:pypi/anyio@4.16.0",
        "pkg:pypi/httpx@0.28.1",
    ]
    assert "BSD" in by_address["pkg:pypi/httpx@0.28.1"]["licenses"][0]["license"]["name"]
    assert told["dependencies"][0]["dependsOn"] == list(by_address)


def test_the_same_lists_give_the_same_bytes(tmp_path: Path) -> None:
    assert listed(tmp_path, "httpx==0.28.1\n") == listed(tmp_path, "httpx==0.28.1\n")
