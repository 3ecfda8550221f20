"""A server that answers at once, or after the seconds that are asked for: what is measured is the client."""

import json
import sys
import threading
import time

_SAYING = threading.Lock()


def say(number: object, **answer: object) -> None:
    with _SAYING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, **answer}) + "\n")
        sys.stdout.flush()


def answered(number: object, seconds: float) -> None:
    time.sleep(seconds)
    say(number, result={"content": [{"type": "text", "text": "done"}]})


def main() -> None:
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
    wait = {"type": "object", "properties": {"seconds": {"type": "number"}}}
    tool = {"name": "wait", "description": "Waits.", "inputSchema": wait}
    for line in sys.stdin:
        request = json.loads(line)
        number, method = request.get("id"), request.get("method")
        if method == "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "waiting", "version": "1"}
            say(number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "ping":
            say(number, result={})
        elif method == "tools/list":
            say(number, result={"tools": [tool]})
        elif method == "tools/call":
            seconds = float(request["params"].get("arguments", {}).get("seconds", 0))
            if seconds:
                threading.Thread(target=answered, args=(number, seconds)).start()
            else:
                answered(number, 0)
        elif number is not None:
            say(number, error={"code": -32601, "message": "no such method"})


if __name__ == "__main__":
    main()
