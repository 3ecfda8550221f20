"""What Gradio can only be told through the environment, set before it is imported."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager, nullcontext
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType


def prepare(uploads: Path) -> None:
    """Set Gradio's variables for this process.

    Gradio has no arguments for these. `GRADIO_TEMP_DIR` is where it accepts uploaded files from: inside the data
    folder, never a shared one. The statistics it keeps of each event are recomputed rarely instead of always.
    Nothing is reported to anybody, no Node server is started, no run is recorded, no call is served to programs.

    Args:
        uploads: The folder of uploads.
    """
    os.environ.update(  # noqa: TID251 - Gradio's settings are written here, Parlour's are never read
        GRADIO_TEMP_DIR=str(uploads),
        GRADIO_ANALYTICS_ENABLED="False",
        GRADIO_ANALYTICS_CACHE_FREQUENCY="1000000",
        GRADIO_SSR_MODE="False",
        GRADIO_MCP_SERVER="False",
        GRADIO_RUN_HISTORY="False",
        HF_HUB_DISABLE_TELEMETRY="1",
    )


@contextmanager
def lean_import() -> Generator[None, None, None]:
    """Inside, Gradio's import takes half the time, and writes nothing; afterwards its calls bring nothing along.

    For each component it parses its own source, and writes a stub for editors beside it, into the installed package;
    that is a third of the work. Another sixth is the collector, which looks in vain for rubbish among fresh modules.

    In every call it imports matplotlib and turns its drawing into files, twice: the first call would hold up everybody
    for a second. No handler of the page draws.
    """
    finder = _WithoutStubs()
    sys.meta_path.insert(0, finder)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.meta_path.remove(finder)
    utils: Any = sys.modules["gradio.utils"]
    utils.MatplotlibBackendMananger = nullcontext


class _WithoutStubs(MetaPathFinder):
    """Finds the module that writes the stubs, and takes the writing out of it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module as it is found anyway, with a loader that changes it."""
        del target
        if fullname != "gradio.component_meta":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def run_and_change(module: Any) -> None:
                run(module)
                module.create_or_modify_pyi = _nothing

            loader.exec_module = run_and_change
        return spec


def _nothing(*_: object) -> None:
    return None
