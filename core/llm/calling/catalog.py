"""The calling templates, by the names that `fncall_prompt_type` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from core.llm.calling.base import CallTemplate

TEMPLATES: Registry[type[CallTemplate]] = Registry(
    "calling template",
    {
        "nous": Entry("core.llm.calling.nous:NousTemplate"),
        "qwen": Entry("core.llm.calling.qwen:QwenTemplate"),
        "json_schema": Entry("core.llm.calling.json_schema:JsonSchemaTemplate"),
    },
)
