"""moto's S3 as a server, `python -m tests.s3_server PORT`: of several that want a new key one gets it.

moto looks whether a key is there, and stores it then, in a thread for each request: so puts come one after another.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

_PUTS = threading.Lock()
_MOTO: Any = DomainDispatcherApplication(create_backend_app)


def served(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer one request; what a put brings is read before its turn, so that a slow one holds up nobody."""
    if environ["REQUEST_METHOD"] != "PUT":
        return list(_MOTO(environ, start_response))
    given, length = environ["wsgi.input"], environ.get("CONTENT_LENGTH")
    data = given.read(int(length)) if length else given.read() if environ.get("wsgi.input_terminated") else b""
    with _PUTS:
        return list(_MOTO({**environ, "wsgi.input": io.BytesIO(data)}, start_response))


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), served, threaded=True)
