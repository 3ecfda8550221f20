"""Images built from the Dockerfile by Buildah, and run by runc with no rights, on a root that cannot be written.

No registry of images is asked: the base is Debian with its own Python, made from Debian's packages.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.app_process import ROOT
from tests.ports import free_port

TOOLS = ("buildah", "mmdebstrap", "runc")
BASE = "localhost/parlour-base"
MEMORY = 1 << 30
_NOT_IN_AN_IMAGE = ("doc", "info", "locale", "man")


def image_module() -> Any:
    """`.ci/image.py`, which is no package."""
    spec = spec_from_file_location("parlour_image", ROOT / ".ci" / "image.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Images:
    """A store of images in a folder of its own.

    Args:
        folder: Nothing else uses it.
    """

    folder: Path
    _options: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        places = (f"--root={self.folder / 'store'}", f"--runroot={self.folder / 'run'}")
        self._options = (*places, "--storage-driver=vfs")

    def buildah(self, *words: str) -> str:
        """What Buildah prints."""
        done = subprocess.run(["buildah", *self._options, *words], check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()

    def make_base(self) -> None:
        """Debian with Python, without what images of it leave out as well."""
        archive = self.folder / "base.tar"
        merged = "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"
        without = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _NOT_IN_AN_IMAGE]
        named = "--include=usr-is-merged,python3,python3-venv,ca-certificates"
        sources = [path.read_text() for path in sorted(Path("/etc/apt/sources.list.d").glob("debian*.sources"))]
        given = ["-"] if sources else []
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", merged, *without, named, "bookworm", str(archive), *given],
            check=True,
            input="\n".join(sources),
            text=True,
        )
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, str(archive), "/")
        self.buildah("commit", "--quiet", "--rm", container, BASE)
        archive.unlink()

    def build(self, kind: str) -> str:
        """The name of the image of that kind, whose packages are those that this machine's pip finds."""
        image, module = f"localhost/parlour:{kind}", image_module()
        wheels, settings = self.folder / "wheels", self.folder / "pip.conf"
        lock = ROOT / module.PACKAGES[kind]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels)]
        subprocess.run([*pip, "--requirement", str(lock), "pip>=25.3"], check=True)
        settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
        command: list[str] = module.command("buildah", kind, image, BASE, self._options)
        mounted = [f"--volume={wheels}:/wheels:ro", f"--volume={settings}:/etc/pip.conf:ro", "--isolation=chroot"]
        at = command.index("build") + 1
        with (self.folder / f"{kind}.log").open("w") as log:
            subprocess.run([*command[:at], *mounted, *command[at:]], check=True, stdout=log, stderr=log)
        return image

    def inspected(self, image: str) -> dict[str, Any]:
        """What its configuration says."""
        return json.loads(self.buildah("inspect", "--type=image", image))

    def size(self, image: str) -> int:
        """Bytes of all that is in it."""
        (told,) = json.loads(self.buildah("images", "--json", image))
        return int(told["size"]) if str(told["size"]).isdigit() else _bytes(str(told["size"]))

    @contextmanager
    def unpacked(self, image: str) -> Iterator[Path]:
        """The folder of its files."""
        container = self.buildah("from", "--pull-never", image)
        try:
            yield Path(self.buildah("mount", container))
        finally:
            self.buildah("rm", container)

    @contextmanager
    def running(self, image: str, home: Path, **settings: str) -> Iterator[Running]:
        """The image, run as its user without rights, with one gigabyte of memory.

        Args:
            image: Its name.
            home: What is mounted at `/data`.
            settings: Further `PARLOUR_*` variables, by their names without the prefix.
        """
        home.mkdir(parents=True, exist_ok=True)
        for path in (home, *home.rglob("*")):
            os.chown(path, 1000, 1000)
        with self.unpacked(image) as root:
            told = self.inspected(image)["OCIv1"]["config"]
            one = Running(home, free_port(), self.folder / "running")
            one.start(root, told, settings)
            try:
                yield one
            finally:
                one.stop()


def _bytes(told: str) -> int:
    number, unit = told.split()
    return round(float(number) * {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}[unit])


@dataclass
class Running:
    """A container that runs.

    Args:
        home: The folder at `/data`.
        port: Where it listens on 127.0.0.1.
        bundle: Where its description lies.
    """

    home: Path
    port: int
    bundle: Path
    _process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """What runc knows it by."""
        return f"parlour-{self.port}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.bundle / f"{self.name}.log"

    def start(self, root: Path, told: dict[str, Any], settings: dict[str, str]) -> None:
        """Run what the image says, and wait until its own health check and `/readyz` hold."""
        self.bundle.mkdir(exist_ok=True)
        # On the machine's own network it is its owner's, whose keys count; by itself the image lets guests in.
        named = {"PORT": str(self.port), "HOST": "127.0.0.1", "ACCOUNTS": "auto", **settings}
        variables = dict(one.split("=", 1) for one in told["Env"])
        variables.update({f"PARLOUR_{key}": value for key, value in named.items()})
        environment = [f"{key}={value}" for key, value in variables.items()]
        description = _description(root, self.home, told["Cmd"], environment, told["WorkingDir"])
        (self.bundle / "config.json").write_text(json.dumps(description))
        command = ["runc", "run", f"--bundle={self.bundle}", self.name]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 300
        while time.monotonic() < end and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=10).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.2)  # between two questions, not for luck
        self.stop()
        raise RuntimeError(f"Parlour was not ready: {self.log.read_text('utf-8')[-4000:]}")

    def call(self, *words: str) -> str:
        """What a command prints that runs inside."""
        command = ["runc", "exec", self.name, *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def stop(self) -> int:
        """End it as `docker stop` does; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        subprocess.run(["runc", "kill", self.name, "TERM"], check=False)
        try:
            code = process.wait(30)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait()
        return code

    def most_memory(self) -> int:
        """Bytes it had at most, with the pages of files that are read."""
        told = json.loads(
            subprocess.run(["runc", "events", "--stats", self.name], check=True, capture_output=True).stdout
        )
        return int(told["data"]["memory"]["usage"]["max"])


def _description(root: Path, home: Path, words: list[str], environment: list[str], folder: str) -> dict[str, Any]:
    """What the runtime is told: no rights, a root that cannot be written, and the machine's own network."""
    kept = ["nosuid", "noexec", "nodev"]
    none: list[str] = []
    kinds = ("bounding", "effective", "inheritable", "permitted", "ambient")
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 1000, "gid": 1000},
            "args": words,
            "env": environment,
            "cwd": folder,
            "noNewPrivileges": True,
            "capabilities": dict.fromkeys(kinds, none),
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": kept},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": [*kept, "mode=1777"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
            {"destination": "/data", "type": "bind", "source": str(home), "options": ["rbind", "rw"]},
        ],
        "linux": {
            "namespaces": [{"type": one} for one in ("pid", "ipc", "uts", "mount")],
            "resources": {"memory": {"limit": MEMORY}, "pids": {"limit": 512}},
        },
    }
