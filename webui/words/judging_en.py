"""English for suites of tasks and what `parlour eval` says; part of `en.py`."""

from __future__ import annotations

from core.judging.problems import SENTENCES

JUDGING: dict[str, str] = {
    **{f"error.{key}": said for key, said in SENTENCES.items()},
    "eval.progress": "{done} of {total} tasks, {failed} failed",
    "eval.over": "{passed} of {of} passed ({share}): {file}",
    "eval.there": "{there} of them were done before.",
    "eval.left": "Still to do: {left}; start it again to go on.",
    "eval.change": "{name}: {ids}",
    "eval.no_change": "Nothing changed since the last run.",
    "eval.below": "That is less than {least}.",
    "eval.no_write": "The folder {folder} cannot be written: {why}.",
    "eval.no_suite": "There is no file {file}, and no suite of that name comes with Parlour; there is {known}.",
}
