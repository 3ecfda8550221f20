"""What Gradio's import is spared."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import gc, sys
from webui.gradio_environment import lean_import
before = list(sys.meta_path)
with lean_import():
    import gradio
from gradio import component_meta
print(component_meta.create_or_modify_pyi.__module__, sys.meta_path == before, gc.isenabled(), gradio.Textbox.submit)
"""


def test_gradio_is_imported_without_writing_stubs_and_nothing_else_is_changed() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("webui.gradio_environment True True <function")
