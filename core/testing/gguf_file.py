"""The smallest GGUF file: a head of the right form and next to no weights, for tests of what reads such files."""

from __future__ import annotations

import struct


def gguf_file(*, context: int = 4096, architecture: str = "llama", tensors: int = 1) -> bytes:
    """Two facts and one weight of 64 bytes.

    Args:
        context: How many tokens it says it reads at once.
        architecture: What it says it is.
        tensors: How many weights it says it lists; more than one is a lie.
    """
    facts = _text("general.architecture") + struct.pack("<I", 8) + _text(architecture)
    facts += _text(f"{architecture}.context_length") + struct.pack("<II", 4, context)
    weight = _text("output.weight") + struct.pack("<IQIQ", 1, 16, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, tensors, 2) + facts + weight
    return head + b"\0" * (-len(head) % 32) + b"\0" * 64


def _text(words: str) -> bytes:
    return struct.pack("<Q", len(words)) + words.encode()
