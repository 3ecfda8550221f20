"""Qwen-Agent's logger; `QWEN_AGENT_DEBUG=1` makes it and Parlour's own say everything."""

from __future__ import annotations

import logging
import os

import core as library

logger = logging.getLogger("qwen_agent_logger")

if os.environ.get("QWEN_AGENT_DEBUG", "").strip().lower() in {"1", "true"}:
    logging.basicConfig()
    for _one in (logger, logging.getLogger(library.__name__)):
        _one.setLevel(logging.DEBUG)
