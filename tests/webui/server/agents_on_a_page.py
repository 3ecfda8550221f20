"""A program of two agents, as a user would write one; a test starts it with the address of its model and a port."""

from __future__ import annotations

import sys
from typing import Any

from core import Assistant, BaseTool
from webui import WebUI


class Keep(BaseTool):
    """A tool that changes something."""

    name = "keep"
    description = "Keeps a note."
    parameters = {"type": "object", "properties": {}}
    writes = True

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return "kept"


if __name__ == "__main__":
    llm = {"model": "scripted", "base_url": sys.argv[1], "api_key": "any"}
    agents = [Assistant([Keep()], llm, name="Ann"), Assistant(llm=llm, system_message="You are Bob.", name="Bob")]
    look = {"user.name": "Kim", "input.placeholder": "Ask Ann", "prompt.suggestions": ["What can you do?"]}
    WebUI(agents, look).run(server_port=int(sys.argv[2]), enable_mention=True)
