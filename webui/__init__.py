"""The page: Gradio in FastAPI, over `core`. `from webui import WebUI` serves a program's own agents in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webui.web_ui import WebUI as WebUI

__all__ = ["WebUI"]


def __getattr__(name: str) -> Any:
    if name == "WebUI":
        from core.errors import need_packages
        from core.extras import PACKAGES

        need_packages("The page", PACKAGES["page"])
        from core.plain_parameters import says_which_parameter
        from webui.web_ui import WebUI

        says_which_parameter(WebUI)
        return WebUI
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
