"""What Gradio can only be told through the environment, set before it is imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
