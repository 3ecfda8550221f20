"""Writes what an image holds as a CycloneDX list (SBOM): `python .ci/sbom.py LOCK [DPKG_STATUS] > sbom.cdx.json`.

Packages of Python are those of a lock file whose markers hold here, each with the licence that its metadata name where
it is installed; with Debian's own list (`/var/lib/dpkg/status`) the packages of the system stand there too. Nothing is
looked up, and the same lists give the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from urllib.parse import quote

from packaging.markers import Marker

Component = dict[str, object]
_SPACE_OF_NAMES = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # that of addresses, of RFC 9562


def of_lock(text: str) -> list[Component]:
    """The packages of a lock file that are installed on this Python and system."""
    found: list[Component] = []
    for line in text.splitlines():
        pin, _, marker = line.partition(";")
        name, _, version = pin.strip().partition("==")
        name = re.sub(r"[-_.]+", "-", name).lower()
        if not version or (marker and not Marker(marker.strip()).evaluate()):
            continue
        found.append(_component(name, version, f"pkg:pypi/{name}@{version}", _licence(name)))
    return found


def of_debian(text: str) -> list[Component]:
    """The packages that Debian's list says are installed."""
    found: list[Component] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        told = HeaderParser().parsestr(paragraph)
        if "ok installed" in told.get("Status", ""):
            name, version, machine = told["Package"], told["Version"], told["Architecture"]
            address = f"pkg:deb/debian/{quote(name, safe='')}@{quote(version, safe='')}?arch={machine}"
            found.append(_component(name, version, address, ""))
    return found


def _component(name: str, version: str, address: str, licence: str) -> Component:
    one: Component = {"type": "library", "bom-ref": address, "name": name, "version": version, "purl": address}
    return {**one, "licenses": [{"license": {"name": licence}}]} if licence else one


def _licence(package: str) -> str:
    """What an installed package says of its licence in one line; "" where it says nothing."""
    try:
        told = metadata(package)
    except PackageNotFoundError:
        return ""
    classes = [one.rpartition(" :: ")[2] for one in told.get_all("Classifier") or [] if one.startswith("License ::")]
    said = told.get("License-Expression") or " AND ".join(classes) or told.get("License") or ""
    return said.strip().splitlines()[0][:100] if said.strip() else ""


def bill(components: list[Component], version: str) -> dict[str, object]:
    """The whole list, with Parlour as what they are components of."""
    ordered = sorted(components, key=lambda one: str(one["purl"]))
    parlour = f"pkg:pypi/parlour@{version}"
    names = "\n".join(str(one["purl"]) for one in ordered)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE_OF_NAMES, names)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": parlour,
                "name": "parlour",
                "version": version,
                "purl": parlour,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": ordered,
        "dependencies": [{"ref": parlour, "dependsOn": [str(one["purl"]) for one in ordered]}],
    }


def main(lock: str, dpkg_status: str = "") -> None:
    """Print the list of what a lock file brings, and of Debian's packages where their list is named."""
    components = of_lock(Path(lock).read_text(encoding="utf-8"))
    if dpkg_status:
        components += of_debian(Path(dpkg_status).read_text(encoding="utf-8"))
    project = Path(__file__).resolve().parent.parent / "pyproject.toml"
    found = re.search(r'^version = "([^"]+)"', project.read_text(encoding="utf-8"), re.MULTILINE)
    print(json.dumps(bill(components, found[1] if found else "0"), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:3])
