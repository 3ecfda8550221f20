"""A wheel of this checkout in an environment of its own; what it needs is taken from the environment of the tests."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def built_wheel(folder: Path) -> Path:
    """The wheel, built into `folder`."""
    command = [sys.executable, "-P", "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment_with(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment with the wheel in it.

    A line of a path file shows it the packages of this environment, but not what their own path files show: the
    checkout, which is installed here as it stands, is not found there.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
