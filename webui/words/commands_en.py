"""English for the commands of the terminal and for files of agents and questions; part of `en.py`."""

from __future__ import annotations

from core.agents.config_problems import SENTENCES as CONFIG
from core.batch.problems import SENTENCES as BATCH
from webui.words.judging_en import JUDGING
from webui.words.keeping_en import KEEPING

COMMANDS: dict[str, str] = {
    **JUDGING,
    **KEEPING,
    **{f"error.{key}": said for key, said in {**CONFIG, **BATCH}.items()},
    "check.fine": "{file}: nothing is wrong.",
    "check.other": "{what}",
    "check.unknown_name": "There is no {kind} named {name}.",
    "check.service": "{what} ({said}).",
    "check.meant": " Did you mean {near}?",
    "check.kind.command": "command",
    "check.kind.tool": "tool",
    "check.kind.provider": "provider",
    "check.kind.model_type": "model type",
    "check.kind.built-in_model": "built-in model",
    "check.kind.agent": "agent",
    "check.kind.parser": "parser",
    "check.kind.sandbox": "sandbox",
    "check.kind.search_service": "search service",
    "check.kind.way_of_searching": "way of searching",
    "check.kind.calling_template": "calling template",
    "batch.progress": "{done} of {total} questions, {failed} failed",
    "batch.over": "{answered} answered, {failed} failed, {there} were there before: {file}",
    "batch.left": "{left} are left; start it again to go on.",
    "batch.first_error": "The first failure: {what}",
    "batch.about": "About ",
    "batch.tokens": "{asked} tokens asked and {said} answered",
    "batch.cost": ", US$ {cost}.",
    "batch.no_cost": "; what they cost is not known.",
    "batch.no_write": "The file {file} cannot be written: {why}.",
}
