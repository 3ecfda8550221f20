"""The commands on files of agents: `parlour check`, `schema` and `serve`."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.agents.config.all_problems import problems_of_file
from core.agents.config.problems import problem
from core.agents.config.schema import AgentConfig
from core.errors import ParlourError
from core.tools.approval import Policy
from webui.commands.command_line import Parser, add_allowed, add_language, add_variables, sentence, traced, words_for

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from core.judging.suite import Suite


def check(arguments: Sequence[str]) -> int:
    """`parlour check`: validate files without making their agents; a line for each problem.

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
        found = _problems(file, dict(given.var), names)
        wrong = wrong or bool(found)
        for error in found:
            said = sentence(error, words)
            sys.stderr.write(
                f"{said}\n" if error.words_key in {"config_no_file", "config_folder"} else f"{file}: {said}\n"
            )
        if not found:
            sys.stdout.write(words("check.fine", file=file) + "\n")
    return int(wrong)


def _problems(file: str, variables: Mapping[str, str], names: dict[str, str]) -> Sequence[ParlourError]:
    """What is wrong with a file; `names` maps the agents of earlier files to those files."""
    config, found = problems_of_file(file, variables)
    if config is not None and config.name and names.setdefault(config.name, file) != file:
        found.append(problem("config_same_name", name=config.name, file=names[config.name], other=file))
    return found


def schema(arguments: Sequence[str]) -> int:
    """`parlour schema`: print the JSON Schema of an agent's file, or a suite's, for editors."""
    parser = Parser(prog="parlour schema", description="Print the JSON Schema of an agent's file, or of a suite's.")
    parser.add_argument("what", nargs="?", choices=("agent", "suite"), default="agent", help="of which file (agent)")
    given = parser.parse_args(arguments)
    described: type[AgentConfig | Suite] = AgentConfig
    if given.what == "suite":
        from core.judging.suite import Suite

        described = Suite
    sys.stdout.write(json.dumps(described.json_schema(), ensure_ascii=False, indent=2) + "\n")
    return 0


def serve(arguments: Sequence[str]) -> int:
    """`parlour serve`: agents of files in the page, or one for other programs, until it is told to stop.

    Returns:
        The exit code: 0 after a stop that was asked for, 1 where an agent cannot be made or nothing can be served.
    """
    parser = Parser(
        prog="parlour serve",
        description="Open the page with agents of your own; with --openai, --mcp or --a2a, one agent for other "
        "programs, which send the token that is printed at the start (or PARLOUR_TOKEN).",
        allow_abbrev=False,
    )
    parser.add_argument("file", nargs="+", help="YAML, TOML or JSON; with several, the page has a chooser and @mention")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (7860, or the next free one)")
    parser.add_argument("--openai", action="store_true", help="one agent as a model of OpenAI's protocol, at /v1")
    parser.add_argument("--mcp", action="store_true", help="one agent as an MCP server, at /mcp")
    parser.add_argument("--a2a", action="store_true", help="one agent over A2A, at /a2a")
    parser.add_argument("--page", action="store_true", help="the page, too, beside these")
    add_allowed(parser)
    add_variables(parser)
    add_language(parser)
    given = parser.parse_args(arguments)
    words = words_for(given.lang)
    doors = {"openai": given.openai, "mcp": given.mcp, "a2a": given.a2a}
    if any(doors.values()) and len(given.file) > 1:
        parser.error("--openai, --mcp and --a2a serve one agent; name one file")
    try:
        with nullcontext() if given.page or not any(doors.values()) else traced():  # the page does it by itself
            return _served(given, doors)
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
        return 1
    except KeyboardInterrupt:
        return 0


def _served(given: Namespace, doors: Mapping[str, Any]) -> int:
    from webui.web_ui import WebUI

    agents = [Agent.from_config(file, variables=dict(given.var)) for file in given.file]
    if any(doors.values()):
        policy = Policy(allow=tuple(given.allow))
        where = {"host": given.host, "port": given.port}
        agents[0].serve(page=given.page, approval=policy, **where, **doors)
    else:
        WebUI(agents).run(server_name=given.host, server_port=given.port, enable_mention=len(agents) > 1)
    return 0
