"""The peer `qwen-agent`, in a Python of its own: it asks for other versions of the packages that Parlour uses.

Name that Python in `BENCH_PEER_PYTHON` (a virtual environment with `qwen-agent` and `python-dateutil` in it); without
it the bench measures against the bare client alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

_PROGRAM = """
import json, sys, threading, time
from qwen_agent.agents import Assistant
from qwen_agent.llm import get_chat_model

case, base_url, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
cfg = {"model": "scripted", "model_type": "oai", "model_server": base_url, "api_key": "any"}
QUESTION = [{"role": "user", "content": "Say much."}]
WEATHER = {"name": "weather", "description": "The weather of a day.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": []}}

def streaming():
    tools = []
    if options.get("tools"):
        from qwen_agent.tools.base import BaseTool, register_tool

        @register_tool("sums", allow_overwrite=True)  # each round brings it anew
        class Calculator(BaseTool):
            description = "Evaluates an arithmetic expression."
            parameters = WEATHER["parameters"]

            def call(self, params, **kwargs):
                return "1"

        tools = ["sums"]
    agent = Assistant(llm=cfg, function_list=tools)
    for _ in agent.run(QUESTION):
        pass

def calls():
    for _ in get_chat_model(cfg).chat(QUESTION, functions=[WEATHER], stream=True):
        pass

def agents():
    for _ in agent.run(messages):
        pass

if case == "agents":  # its model is in the process, as ours is
    from qwen_agent.llm.base import register_llm
    from qwen_agent.llm.function_calling import BaseFnCallModel
    from qwen_agent.llm.schema import Message

    @register_llm("said")
    class Said(BaseFnCallModel):
        def _chat_no_stream(self, messages, generate_cfg):
            return [Message("assistant", "Something.")]

        def _chat_stream(self, messages, delta_stream, generate_cfg):
            yield [Message("assistant", "Something.")]

    messages = json.load(open(options["messages"]))
    agent = Assistant(llm={"model": "said", "model_type": "said"})
    agents()

times = []
for _ in range(options.get("rounds", 3)):
    began = time.process_time()
    {"streaming": streaming, "calls": calls, "agents": agents}[case]()
    times.append(time.process_time() - began)
print("SECONDS", sorted(times)[len(times) // 2])
"""


def peer_seconds(case: str, base_url: str, **options: Any) -> float | None:
    """Median CPU seconds of the peer for one case; `None` where it is not there, or fails."""
    python = os.environ.get("BENCH_PEER_PYTHON")
    if not python:
        return None
    done = subprocess.run(
        [python, "-c", _PROGRAM, case, base_url, json.dumps(options)], capture_output=True, text=True, check=False
    )
    said = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("SECONDS")]
    if not said:
        sys.stderr.write(f"The peer failed: {done.stderr[-500:]}\n")
        return None
    return float(said[-1])
