"""What Gradio makes of the values of a frame, and what it keeps of them for a tab."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import gradio as gr
import pytest

from webui.gradio_patches import keep_no_settings, send_objects_whole, skip_cheaply

pytestmark = pytest.mark.anyio
UNTOUCHED = {"__type__": "update"}


class Counted(gr.Textbox):
    """A text field that counts how often one was made."""

    made = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        type(self).made += 1
        super().__init__(*args, **kwargs)


@pytest.fixture
def page() -> Any:
    """A page with two fields that a listener writes to, and a third that another writes to."""
    skip_cheaply()
    with gr.Blocks() as blocks:
        first, second, third = Counted(), Counted(), Counted()
        blocks.load(lambda: ("", ""), None, [first, second])
        blocks.load(lambda: "", None, third)
    keep_no_settings(blocks)
    Counted.made = 0
    return blocks


def _session(page: Any) -> Any:
    blocks: Any = import_module("gradio.blocks")
    return blocks.SessionState(page)


async def test_a_component_that_is_left_as_it_is_is_not_made_anew(page: Any) -> None:
    values = await page.postprocess_data(page.fns[0], [cast("Any", gr).skip(), "new"], _session(page))
    assert values == [UNTOUCHED, "new"]
    assert await page.postprocess_data(page.fns[0], ("a", cast("Any", gr).skip()), None) == ["a", UNTOUCHED]
    assert await page.postprocess_data(page.fns[0], cast("Any", gr).skip(), None) == [UNTOUCHED, UNTOUCHED]
    assert Counted.made <= 2, "one answer for all goes Gradio's own way"


async def test_a_component_that_is_changed_is_made_anew_as_ever(page: Any) -> None:
    session = _session(page)
    values = await page.postprocess_data(page.fns[0], [cast("Any", gr).update(label="L"), "new"], session)
    assert values == [{"label": "L", **UNTOUCHED}, "new"]
    assert Counted.made == 1
    assert await page.postprocess_data(page.fns[1], "alone", session) == ["alone"]


async def test_too_few_values_are_refused_as_ever(page: Any) -> None:
    with pytest.raises(ValueError, match="enough output values"):
        await page.postprocess_data(page.fns[0], ["one"], _session(page))


async def test_too_many_values_are_no_error_of_ours(page: Any) -> None:
    with pytest.warns(UserWarning, match="too many output values"):
        values = await page.postprocess_data(page.fns[0], [cast("Any", gr).skip(), "b", "c"], _session(page))
    assert values == [UNTOUCHED, "b"]


async def test_the_settings_of_another_page_in_the_process_are_kept_as_ever(page: Any) -> None:
    with gr.Blocks() as other:
        other.load(lambda: ("", ""), None, [gr.Textbox(), gr.Textbox()])
    session = _session(other)
    await cast("Any", other).postprocess_data(other.fns[0], [gr.Textbox(label="L", value="v"), "b"], session)
    kept = session.config_values[cast("Any", other).fns[0].outputs[0]._id]["props"]
    assert (kept["label"], kept["value"]) == ("L", "v")


async def test_no_settings_of_the_page_are_kept_for_a_tab(page: Any) -> None:
    session = _session(page)
    await page.postprocess_data(page.fns[0], ["a" * 1000, "b"], session)
    assert session.config_values == {}
    assert session[page.fns[0].outputs[0]._id] is page.fns[0].outputs[0]


def test_an_answer_that_leaves_the_composer_alone_changes_nothing_of_the_one_that_emptied_it() -> None:
    send_objects_whole()
    send_objects_whole()
    differing = import_module("gradio.utils").diff
    empty: dict[str, Any] = {"text": "", "files": []}
    assert differing(empty, UNTOUCHED) == [["replace", [], UNTOUCHED]], "nothing within the former is changed"
    assert differing(UNTOUCHED, UNTOUCHED) == []
    assert differing("a", "ab") == [["append", [], "b"]]
    assert differing({"text": ""}, {"text": "b"}) == [["append", ["text"], "b"]]
