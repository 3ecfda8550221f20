"""Where everything on the page stands. Components are placed here and nowhere else; handlers are wired by the caller.

#side            #talk                      #evidence
#house, #history #top   (title, readiness)  #page  (the page a claim came from)
                 #status (hidden state)
                 #chat
                 #ask    (a tool that waits to be allowed)
                 #queue  (messages that wait for the end of the reply)
                 #composer
                 #line   (over the composer's second line: #toolbar)
                 #bus, #bus-go (hidden: what the page's own script asks for)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import gradio as gr

from webui.panels.catalog import PANELS
from webui.panels.welcome import fixed
from webui.render.markup import LATEX_DELIMITERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradio.i18n import I18nData

    from webui.context import WebContext

COMPOSER_LINES = 8
# Longer pasted text becomes a file of its own: a question stays readable. `assets/js/pasting.js` has the same limit.
PASTE_LIMIT = 3_000


@dataclass(frozen=True, slots=True)
class Handles:
    """What handlers read and write. `chat` and the panels take plain values, in every frame.

    Args:
        blocks: The page itself, for `load`.
        chat: The conversation, from `render.conversation`.
        panels: Those of `panels.catalog` by name, in its order.
        composer: The question; submit sends it, stop stops the run.
        bus: A JSON message of the page's own script; `go` says that one is there.
        evidence: The page a claim came from, from `panels.evidence`.
    """

    blocks: gr.Blocks
    chat: gr.Chatbot
    panels: dict[str, gr.Markdown]
    composer: gr.MultimodalTextbox
    bus: gr.Textbox
    go: gr.Button
    evidence: gr.Markdown


def build(context: WebContext, wire: Callable[[Handles], None]) -> gr.Blocks:
    """The page; `wire` is called inside it, where listeners may be added."""
    del context  # nothing on the page depends on who looks: what does comes in the first frame
    with gr.Blocks(title="Parlour", fill_height=True, fill_width=True, analytics_enabled=False) as blocks:
        with gr.Row(elem_id="room"):
            with gr.Column(elem_id="side", scale=0):
                _panel("house", fixed("house"))
                panels = _painted("side")
            with gr.Column(elem_id="talk", scale=1):
                panels |= _painted("above")
                _panel("hello", fixed("hello"))
                chat = _chat()
                panels |= _painted("below")
                composer = _composer()
                with gr.Row(elem_id="line"):
                    panels |= _painted("line")
                _panel("foot", fixed("foot.truth"))
                bus = gr.Textbox(elem_id="bus", visible="hidden", show_label=False, container=False)
                go = gr.Button("", elem_id="bus-go", visible="hidden")
            with gr.Column(elem_id="evidence", scale=0):
                evidence = _panel("page")
        ordered = {panel.name: panels[panel.name] for panel in PANELS}
        wire(Handles(blocks, chat, ordered, composer, bus, go, evidence))
    return blocks


def _painted(place: str) -> dict[str, gr.Markdown]:
    """The panels of a place that frames paint."""
    return {panel.name: _panel(panel.name, panel.first) for panel in PANELS if panel.place == place}


def _panel(name: str, value: str | I18nData = "") -> gr.Markdown:
    """A place for our own markup: what comes into it was escaped by the renderer that made it."""
    return gr.Markdown(value, elem_id=name, sanitize_html=False, latex_delimiters=[], show_label=False)


def _chat() -> gr.Chatbot:
    return gr.Chatbot(
        elem_id="chat",
        label=fixed("chat.label"),
        layout="panel",
        height=200,  # grows from here; without a height the page grows instead
        scale=1,
        container=False,
        show_label=False,
        autoscroll=False,  # our own scrolling: Gradio's pulls a reader back to the end
        buttons=[],
        feedback_options=[],
        latex_delimiters=[*LATEX_DELIMITERS],
        placeholder="",
    )


def _composer() -> gr.MultimodalTextbox:
    return gr.MultimodalTextbox(
        elem_id="composer",
        label=fixed("composer.label"),
        sources=["upload", "microphone"],
        file_count="multiple",
        lines=1,
        max_lines=COMPOSER_LINES,
        max_plain_text_length=PASTE_LIMIT,
        placeholder=str(fixed("composer.placeholder")),
        show_label=False,
        container=False,
        submit_btn=True,
        stop_btn=True,  # one of the two is hidden by the style, from the state in #status
        interactive=True,
        html_attributes=gr.InputHTMLAttributes(enterkeyhint="send", autocomplete="off"),
    )
