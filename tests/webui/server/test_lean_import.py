"""What Gradio's import is spared, and what commands do not wait for."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import psutil

from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage

_PROGRAM = """
import gc, sys
from webui.gradio_patches import LeanFinder, lean_import
before = list(sys.meta_path)
with lean_import():
    import gradio
from gradio import component_meta
finders = sys.meta_path[: len(before)] == before and LeanFinder not in map(type, sys.meta_path)  # `six` adds its own
print(component_meta.create_or_modify_pyi.__module__, finders, gc.isenabled(), gradio.Textbox.submit)
"""


def test_gradio_is_imported_without_writing_stubs_and_nothing_else_is_changed() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("webui.gradio_patches True True <function")


def test_the_page_is_built_without_the_mcp_package_and_whoever_wants_it_gets_it() -> None:
    program = """
import sys
from webui.gradio_patches import lean_import
import core.engine, webui.app
with lean_import():
    import gradio
import webui.layout, webui.handlers.wiring, webui.routes
print("mcp" in sys.modules, "mcp_types" in sys.modules, gradio.mcp.GradioMCPServer.__name__)
import core.mcp.session
print(core.mcp.session.Client.__module__.partition(".")[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "GradioMCPServer", "mcp"]


def test_a_command_imports_no_server_no_page_and_no_client_of_services() -> None:
    program = "import sys, webui.__main__, webui.commands.agent_files; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"core.agents.base", "uvicorn", "gradio", "httpx"} & set(done.stdout.split()) == {"core.agents.base"}


def test_no_call_of_the_page_brings_along_what_draws(shared: AppProcess) -> None:
    page = RawPage(shared.address).open()
    with closing(page):
        page.painted()
    assert shared.process is not None
    used = {one.path for one in psutil.Process(shared.process.pid).memory_maps()}
    assert any("pydantic_core" in path for path in used)  # libraries that were loaded are seen
    assert not [path for path in used if "matplotlib" in path]


def test_the_start_of_the_program_waits_for_nothing_that_only_the_page_needs() -> None:
    program = "import sys, webui.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    assert packages.isdisjoint({"gradio", "numpy", "openai", "pymupdf"})
