"""Bundles: files of JSON lines that prove themselves offline, under this installation's keys.

    {"type": "head", "bundle": "audit" | "run", "version": 1, …, "proof": "…"}
    {"type": "audit" | "event" | …, …, "proof": "…"}
    {"type": "end", "lines": 42, "proof": "…"}

Each line's proof is a MAC over the proof before it and the line itself: a line that was changed,
put in, taken out or moved is found, and which one it is; the last line tells that nothing was cut
off.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from decisions.infra.threads import in_thread
from decisions.security.keys import mac, mac_matches

Record = dict[str, Any]
LINE_MAX = 16 * 1024 * 1024  # bytes; longer ones are none of ours
AT_ONCE = 500  # lines that a stream hands over together,
AT_ONCE_BYTES = 1024 * 1024  # or fewer, once they are so long
JSON_LINES = "application/x-ndjson"
_PURPOSE = "bundle"
_PROVED = re.compile(rb'(\{.+),"proof":"([0-9a-f]{64})"\}\n', re.DOTALL)


class BundleLine(NamedTuple):
    """A line that was read: its record, or what is wrong with it."""

    number: int
    record: Record
    fault: str | None


def bundle_lines(head: Record, records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the lines of a bundle, the head's first."""
    proof = ""
    for number, record in enumerate(_framed(head, records), start=1):
        told = {**record, "lines": number} if record["type"] == "end" else record
        body = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        raw = body.encode("utf-8", "backslashreplace")  # half a surrogate pair becomes its escape
        proof = mac(_PURPOSE, proof.encode() + raw)
        yield b'%s,"proof":"%s"}\n' % (raw[:-1], proof.encode())


def _framed(head: Record, records: Iterable[Record]) -> Iterator[Record]:
    yield {"type": "head", "version": 1, **head}
    yield from records
    yield {"type": "end"}


def read_lines(lines: Iterator[bytes]) -> Iterator[BundleLine]:
    """Yield what a bundle tells, line by line, with what is wrong about each."""
    proof, ended, number = b"", False, 0
    for number, raw in enumerate(lines, start=1):
        found = _PROVED.fullmatch(raw) if len(raw) <= LINE_MAX else None
        if found is None:
            yield BundleLine(number, {}, "it is no line of a bundle")
            continue
        body = found[1] + b"}"
        whole = mac_matches(_PURPOSE, proof + body, found[2].decode())
        proof = found[2]
        record, fault = _record(body)
        if not whole:
            fault = "it was changed, put in or moved, or the line before it was taken out"
        ended = record.get("type") == "end"
        if ended and record.get("lines") != number:
            fault = fault or f"it says that there are {record.get('lines')} lines"
        yield BundleLine(number, record, fault)
    if not ended:
        yield BundleLine(number + 1, {}, "the end is missing: lines were cut off")


def _record(body: bytes) -> tuple[Record, str | None]:
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return {}, "it is no JSON"
    return (record, None) if isinstance(record, dict) else ({}, "it is no JSON object")


async def in_batches(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines some at a time, made on the pool of database threads; for an answer that is
    streamed. What makes them may not keep a cursor open from one line to the next.
    """
    while portion := await in_thread(_portion, lines):
        yield portion


def _portion(lines: Iterator[bytes]) -> bytes:
    portion = bytearray()
    for line in islice(lines, AT_ONCE):
        portion += line
        if len(portion) >= AT_ONCE_BYTES:
            break
    return bytes(portion)


def file_headers(name: str) -> dict[str, str]:
    """Return the headers of a bundle that is saved as a file; `name` is of our own making."""
    return {
        "Content-Type": JSON_LINES,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
