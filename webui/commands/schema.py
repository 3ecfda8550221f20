"""`parlour schema`: the JSON Schema of an agent's file, or a suite's, for editors."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from core.agents.config import AgentConfig
from core.judging.suite import Suite
from webui.commands.parser import Parser

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Print the schema."""
    parser = Parser(prog="parlour schema", description="Print the JSON Schema of an agent's file, or of a suite's.")
    parser.add_argument("what", nargs="?", choices=("agent", "suite"), default="agent", help="of which file (agent)")
    given = parser.parse_args(arguments)
    sys.stdout.write(text(Suite if given.what == "suite" else AgentConfig))
    return 0


def text(of: type[AgentConfig | Suite] = AgentConfig) -> str:
    """The schema as it is published."""
    return json.dumps(of.json_schema(), ensure_ascii=False, indent=2) + "\n"
