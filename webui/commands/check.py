"""`parlour check agent.yaml`: whether an agent can be made of a file, without making it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from core.agents.config import AgentConfig
from core.agents.config_build import problems_in
from core.agents.config_problems import ConfigError, problem
from webui.commands.parser import Parser, add_language, add_variables, variables_of
from webui.commands.saying import sentence, words_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.errors import ParlourError


def main(arguments: Sequence[str]) -> int:
    """Say what is wrong with each file: a line for each problem.

    Returns:
        The exit code: 0 where nothing is wrong, else 1.
    """
    parser = Parser(prog="parlour check", description="Check the files of agents.", allow_abbrev=False)
    parser.add_argument("file", nargs="+", help="YAML, TOML or JSON")
    add_variables(parser)
    add_language(parser)
    given = parser.parse_args(arguments)
    words = words_for(given.lang)
    names: dict[str, str] = {}
    wrong = False
    for file in given.file:
        found = _problems(file, variables_of(given.var), names)
        wrong = wrong or bool(found)
        for error in found:
            sys.stderr.write(f"{file}: {sentence(error, words)}\n")
        if not found:
            sys.stdout.write(words("check.fine", file=file) + "\n")
    return int(wrong)


def _problems(file: str, variables: Mapping[str, str], names: dict[str, str]) -> Sequence[ParlourError]:
    """What is wrong with a file; `names` are those of the agents before it."""
    try:
        config = AgentConfig.of(file)
    except ConfigError as error:
        return error.problems
    found = problems_in(config, variables)
    if config.name and names.setdefault(config.name, file) != file:
        found.append(problem("config_same_name", name=config.name, file=names[config.name], other=file))
    return found
