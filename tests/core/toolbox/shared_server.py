"""An MCP server over standard input and output that remembers, tells its secrets, and can be waited for without end."""

import json
import os
import sys
from pathlib import Path

HERE = Path(sys.argv[1])
KEPT, ASKING = [], []


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(number, name, given):
    said = ""
    if name == "note":
        KEPT.append(given.get("text", ""))
        said = "kept"
    elif name == "recall":
        said = f"{os.getpid()}: {' '.join(KEPT)}"
    elif name == "tell":
        said = f"the key is {os.environ['API_KEY']}, given as {sys.argv[-1]}"
    elif name == "fail":
        say(id=number, error={"code": -32000 - 1, "message": f"refused for {os.environ['API_KEY']}"})
        return
    elif name == "ask":
        ASKING.append(number)
        field = {"type": "boolean", "title": f"Is it {os.environ['API_KEY']}?"}
        schema = {"type": "object", "properties": {"yes": field}}
        asked = {"message": f"The key is {os.environ['API_KEY']}", "requestedSchema": schema}
        say(id="asked", method="elicitation/create", params=asked)
        return
    elif name == "die":
        print("started with", os.environ["API_KEY"], file=sys.stderr, flush=True)
        os._exit(3)
    else:
        (HERE / "waits").write_text(str(os.getpid()))
        return
    say(id=number, result={"content": [{"type": "text", "text": said}]})


for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method == "initialize":
        info = {"name": "shared", "version": "1"}
        version = request["params"]["protocolVersion"]
        say(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        with (HERE / "starts").open("a") as starts:
            starts.write(f"{os.getpid()}\n")
        names = ("note", "recall", "tell", "fail", "die", "wait", "ask")
        reads = {"readOnlyHint": True}
        found = [
            {"name": n, "description": f"{n}.", "inputSchema": {"type": "object"}, "annotations": reads} for n in names
        ]
        say(id=number, result={"tools": found})
    elif method == "tools/call":
        call(number, request["params"]["name"], request["params"].get("arguments") or {})
    elif number == "asked":
        say(id=ASKING.pop(), result={"content": [{"type": "text", "text": json.dumps(request["result"])}]})
    elif number is not None:
        say(id=number, error={"code": -32601, "message": "no such method"})
