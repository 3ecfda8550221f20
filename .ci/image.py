"""Builds the image of the Dockerfile with Docker, Podman or Buildah, whichever is there: `make image`.

`make image ARGS="--service"` builds the small one, for models of services. Its name is `parlour`, as in `compose.yaml`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("docker", "podman", "buildah")
PACKAGES = {"everything": "requirements.lock", "service": "requirements-service.lock"}


def command(engine: str, kind: str, tag: str, base: str = "", options: tuple[str, ...] = ()) -> list[str]:
    """What builds the image.

    Args:
        engine: One of `ENGINES`.
        kind: One of `PACKAGES`.
        tag: The image's name.
        base: The image that it is built on; "" for the one that the Dockerfile names.
        options: Further options of the engine, before those of the build.
    """
    given = ["--build-arg", f"PACKAGES={PACKAGES[kind]}", *(["--build-arg", f"BASE={base}"] if base else [])]
    return [engine, *options, "build", *given, "--tag", tag, str(_ROOT)]


def main(words: list[str]) -> int:
    """Build; the exit code of the engine, or 1 where there is none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("--service", action="store_true", help="without the built-in model, OCR and running of code")
    parser.add_argument("--tag", default="parlour", help="the image's name (parlour)")
    parser.add_argument("--base", default="", help="the image that it is built on (as the Dockerfile has it)")
    given = parser.parse_args(words)
    engine = next((one for one in ENGINES if shutil.which(one)), None)
    if engine is None:
        print("parlour: An image is built by Docker, Podman or Buildah: install one of them.", file=sys.stderr)
        return 1
    return subprocess.call(command(engine, "service" if given.service else "everything", given.tag, given.base))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
