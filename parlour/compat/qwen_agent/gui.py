"""The page under the name that it has in Qwen-Agent."""

from __future__ import annotations

from webui import WebUI

__path__: list[str] = []  # `gui.web_ui` is this module

__all__ = ["WebUI"]
