"""What can be wrong with a suite of tasks, in English here and in the page's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.agents.config.problems import ConfigError, one_line
from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.errors import ParlourError

SENTENCES: Final[Mapping[str, str]] = {
    "suite_one_check": "The field {field} must be one check, one of {known}.",
    "suite_same_id": "Two tasks have the id {id}.",
    "suite_no_agent": "The task {id} is for the agent {agent}, which is not among the suite's agents.",
    "suite_no_agent_near": "The task {id} is for the agent {agent}, which is none of the suite's; did you mean {near}?",
    "suite_regex": "The field {field} is no regular expression: {why}.",
    "suite_no_file": "The task {id} needs the file {file}, which is not there.",
    "suite_no_library": "The task {id} needs the library {library}, which is not there.",
    "suite_only_assistant": "The task {id} has a library, which only an agent of the strategy function_call can ask.",
    "suite_no_tool": "The task {id} expects the tool {tool}, which its agent does not have.",
    "suite_no_tool_near": "The task {id} expects the tool {tool}, which its agent does not have; did you mean {near}?",
    "suite_none_left": "No task has the tag {tag}.",
    "suite_judge": "The judge failed: {why}",
    "suite_evaluator": "The evaluator {name} failed: {why}.",
    "suite_no_evaluator": "There is no evaluator {name}, such as checks:is_polite: {why}.",
    "suite_no_answers": "No case can be made of {file}: {why}.",
    "suite_json": "Cases are put into a suite whose file ends in .json, not into {file}.",
}
"""Keys to English; the other languages are in `webui/words`."""


def suite_problem(key: str, **details: Any) -> SettingsError:
    """One thing that is wrong with a suite."""
    told = {name: one_line(value) if isinstance(value, str) else value for name, value in details.items()}
    return SettingsError(SENTENCES[key].format_map(told), key=key, **told)


def within(place: str, error: ConfigError) -> list[ParlourError]:
    """What is wrong with a section of a suite, its fields called by their way from the suite."""
    found: list[ParlourError] = []
    for one in error.problems:
        field = one.details.get("field")
        if not isinstance(field, str):
            found.append(one)
            continue
        said = f"{place}.{field}" if field != "config" else place
        sentence = str(one.args[0]).replace(field, said, 1) if one.args else ""
        found.append(SettingsError(sentence, key=one.words_key, **{**one.details, "field": said}))
    return found
