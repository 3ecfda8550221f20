"""Gradio's theme in our tokens, and what goes into the page's head.

Every colour and size of Gradio's becomes one of `assets/css/tokens.css`; the dark variants are deleted, so that
light and dark flip in that file alone.
"""

from __future__ import annotations

from typing import Any, cast

from gradio.themes import Base, Font

from webui.bundles import script, stylesheet

_PAPER = ("background_fill_primary", "background_fill_secondary", "body_background_fill", "panel_background_fill")
_VALUES: dict[str, str] = {
    **dict.fromkeys(_PAPER, "var(--p-paper)"),
    "body_text_color": "var(--p-ink)",
    "body_text_color_subdued": "var(--p-ink-2)",
    "body_text_size": "var(--p-t-ui)",
    "border_color_primary": "var(--p-rule)",
    "border_color_accent": "var(--p-accent)",
    "border_color_accent_subdued": "var(--p-rule)",
    "color_accent_soft": "transparent",
    "block_background_fill": "transparent",
    "block_border_width": "0px",
    "block_border_color": "transparent",
    "block_padding": "0px",
    "block_shadow": "none",
    "block_radius": "0px",
    "block_label_background_fill": "transparent",
    "block_label_text_color": "var(--p-ink-2)",
    "container_radius": "0px",
    "panel_border_width": "0px",
    "layout_gap": "0px",
    "form_gap_width": "0px",
    "input_background_fill": "transparent",
    "input_background_fill_focus": "transparent",
    "input_border_width": "0px",
    "input_border_color": "transparent",
    "input_border_color_focus": "transparent",
    "input_shadow": "none",
    "input_shadow_focus": "none",
    "input_placeholder_color": "var(--p-ink-3)",
    "input_text_size": "var(--p-t-read)",
    "button_primary_background_fill": "var(--p-accent)",
    "button_primary_background_fill_hover": "var(--p-accent-strong)",
    "button_primary_text_color": "var(--p-on-accent)",
    "button_secondary_background_fill": "transparent",
    "button_secondary_background_fill_hover": "var(--p-wash)",
    "button_secondary_text_color": "var(--p-ink)",
    "button_secondary_border_color": "var(--p-rule-strong)",
    "link_text_color": "var(--p-accent)",
    "link_text_color_active": "var(--p-accent)",
    "link_text_color_hover": "var(--p-accent-strong)",
    "link_text_color_visited": "var(--p-accent)",
    "code_background_fill": "var(--p-code)",
    "table_border_color": "var(--p-rule)",
    "table_even_background_fill": "transparent",
    "table_odd_background_fill": "transparent",
    "table_text_color": "var(--p-ink)",
    "error_background_fill": "var(--p-sheet)",
    "error_border_color": "var(--p-bad)",
    "error_text_color": "var(--p-bad)",
    "error_icon_color": "var(--p-bad)",
    "loader_color": "var(--p-accent)",
    "chatbot_text_size": "var(--p-t-read)",
    "shadow_drop": "none",
    "shadow_drop_lg": "none",
    "shadow_spread": "0px",
}


class Theme(Base):
    """Gradio in Parlour's clothes; no font is fetched from anywhere."""

    def __init__(self) -> None:
        stack = [Font("var(--p-font-sans)")]
        mono = [Font("var(--p-font-mono)")]
        super().__init__(font=stack, font_mono=mono)
        cast("Any", self).set(**_VALUES)
        for name in [name for name in vars(self) if name.endswith("_dark")]:
            delattr(self, name)


def head() -> str:
    """What Gradio's script puts into the head, after its own styles: ours, and the page's behaviour."""
    return (
        f'<link rel="stylesheet" href="./assets/{stylesheet().name}">'
        f'<script type="module" src="./assets/{script().name}"></script>'
    )
