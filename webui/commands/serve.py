"""`parlour serve agent.yaml`: the page with the agents of files in it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from core.agents.base import Agent
from core.errors import ParlourError
from webui.commands.parser import Parser, add_language, add_variables, variables_of
from webui.commands.saying import sentence, words_for
from webui.web_ui import WebUI

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Serve until it is told to stop.

    Returns:
        The exit code: 0 after a stop that was asked for, 1 where an agent cannot be made or nothing can be served.
    """
    parser = Parser(prog="parlour serve", description="Open the page with agents of your own.", allow_abbrev=False)
    parser.add_argument("file", nargs="+", help="YAML, TOML or JSON; with several, the page has a chooser and @mention")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (7860, or the next free one)")
    add_variables(parser)
    add_language(parser)
    given = parser.parse_args(arguments)
    words = words_for(given.lang)
    try:
        agents = [Agent.from_config(file, variables=variables_of(given.var)) for file in given.file]
        WebUI(agents).run(server_name=given.host, server_port=given.port, enable_mention=len(agents) > 1)
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
        return 1
    except KeyboardInterrupt:
        return 0
    return 0
