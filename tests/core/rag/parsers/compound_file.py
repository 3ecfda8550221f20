"""Compound files, written as the format has it."""

from __future__ import annotations

import struct

SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
FREE = 0xFFFFFFFF
"""A sector that nobody uses."""
_END, _TABLE = 0xFFFFFFFE, 0xFFFFFFFD


def compound(streams: dict[str, bytes]) -> bytes:
    """A compound file; streams below 4,096 bytes go together, as the format has it."""
    small, small_next, starts = b"", list[int](), dict[str, int]()
    for name, data in streams.items():
        if len(data) < 4096:
            count = -(-len(data) // 64)
            starts[name] = len(small_next)
            small_next += [*range(len(small_next) + 1, len(small_next) + count), _END]
            small += data.ljust(count * 64, b"\0")
    sectors, follows = list[bytes](), list[int]()

    def put(data: bytes) -> int:
        first = len(sectors)
        sectors.extend(data[at : at + 512].ljust(512, b"\0") for at in range(0, len(data), 512))
        follows.extend([*range(first + 1, len(sectors)), _END])
        return first

    for name, data in streams.items():
        if len(data) >= 4096:
            starts[name] = put(data)
    small_at = put(small)
    small_table = put(struct.pack(f"<{len(small_next)}I", *small_next).ljust(512, b"\xff"))
    entries = b""
    for name, kind, start, size in [
        ("Root Entry", 5, small_at, len(small)),
        *((name, 2, starts[name], len(data)) for name, data in streams.items()),
    ]:
        title = name.encode("utf-16-le") + b"\0\0"
        number = len(entries) // 128
        following = number + 1 if 0 < number < len(streams) else FREE  # a tree with right branches alone
        links = struct.pack("<III", FREE, following, FREE if number else 1)
        entries += title.ljust(64, b"\0") + struct.pack("<HBB", len(title), kind, 1) + links + bytes(36)
        entries += struct.pack("<IQ", start, size)
    directory = put(entries)
    tables = -(-(len(sectors) + 8) // 128)
    first_table = len(sectors)
    follows += [_TABLE] * tables
    packed = struct.pack(f"<{len(follows)}I", *follows).ljust(tables * 512, b"\xff")
    header = SIGNATURE + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(10)
    header += struct.pack("<IIIIIIII", tables, directory, 0, 4096, small_table, 1, _END, 0)
    places = [*range(first_table, first_table + tables)]
    header += struct.pack("<109I", *places, *[FREE] * (109 - tables))
    return header + b"".join(sectors) + packed
