"""The certificates that the web trusts are read when a connection first needs them.

Each HTTP client reads them when it is made, which takes 25 ms; nearly all clients of the tests ask this machine,
without TLS.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import certifi

_USING = ("wrap_bio", "wrap_socket", "get_ca_certs", "cert_store_stats")  # what needs them
_lock = Lock()
_left: WeakKeyDictionary[ssl.SSLContext, list[tuple[Any, ...]]] = WeakKeyDictionary()


@cache
def read_when_needed() -> None:
    """From here on, in this process and in those that are forked from it."""
    kind: Any = ssl.SSLContext
    system = ssl.get_default_verify_paths()
    named = (os.environ.get(name) for name in (system.openssl_cafile_env, system.openssl_capath_env))
    known = {None, certifi.where(), system.openssl_cafile, system.openssl_capath, *named}
    load = kind.load_verify_locations

    def later(self: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        if cadata is None and cafile in known and capath in known:
            with _lock:
                _left.setdefault(self, []).append((cafile, capath))
        else:
            load(self, cafile, capath, cadata)  # what is wrong with others is said at once

    def now(use: Callable[..., Any]) -> Callable[..., Any]:
        def used(self: ssl.SSLContext, *given: Any, **named: Any) -> Any:
            with _lock:
                left = _left.pop(self, [])
            for places in left:
                load(self, *places)
            return use(self, *given, **named)

        return used

    kind.load_verify_locations = later
    for name in _USING:
        setattr(kind, name, now(getattr(kind, name)))
