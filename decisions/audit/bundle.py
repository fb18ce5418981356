"""Bundles: JSON Lines files that can be verified offline with this installation's keys.

    {"type": "head", "bundle": "audit" | "run", "version": 1, …, "proof": "…"}
    {"type": "audit" | "event" | …, …, "proof": "…"}
    {"type": "end", "lines": 42, "proof": "…"}

Each line's proof is a MAC over the proof before it and the line itself, which locates a line that
was changed, inserted, removed or moved. The last line shows that the file is not truncated.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from decisions.foundation.infra.threads import in_thread
from decisions.foundation.security.keys import mac, mac_matches

Record = dict[str, Any]
LINE_MAX = 16 * 1024 * 1024  # bytes; we write no longer lines
BATCH_LINES = 500  # lines per chunk of a streamed response,
BATCH_BYTES = 1024 * 1024  # or fewer, once they have this many bytes
JSON_LINES = "application/x-ndjson"
_PURPOSE = "bundle"
_PROVED = re.compile(rb'(\{.+),"proof":"([0-9a-f]{64})"\}\n', re.DOTALL)


class BundleLine(NamedTuple):
    """A line that was read: its record, and what is wrong with it."""

    number: int
    record: Record
    fault: str | None


def bundle_lines(head: Record, records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the lines of a bundle, the head first."""
    proof = ""
    for number, record in enumerate(_framed(head, records), start=1):
        fields = {**record, "lines": number} if record["type"] == "end" else record
        body = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        raw = body.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its escape
        proof = mac(_PURPOSE, proof.encode() + raw)
        yield b'%s,"proof":"%s"}\n' % (raw[:-1], proof.encode())


def _framed(head: Record, records: Iterable[Record]) -> Iterator[Record]:
    yield {"type": "head", "version": 1, **head}
    yield from records
    yield {"type": "end"}


def read_lines(lines: Iterator[bytes]) -> Iterator[BundleLine]:
    """Yield the records of a bundle line by line, each with the fault found in it."""
    proof, ended, number = b"", False, 0
    for number, raw in enumerate(lines, start=1):
        found = _PROVED.fullmatch(raw) if len(raw) <= LINE_MAX else None
        if found is None:
            yield BundleLine(number, {}, "it is not a line of a bundle")
            continue
        body = found[1] + b"}"
        is_intact = mac_matches(_PURPOSE, proof + body, found[2].decode())
        proof = found[2]
        record, fault = _record(body)
        if not is_intact:
            fault = "it was changed, inserted or moved, or the line before it was removed"
        ended = record.get("type") == "end"
        if ended and record.get("lines") != number:
            fault = fault or f"it states {record.get('lines')} lines"
        yield BundleLine(number, record, fault)
    if not ended:
        yield BundleLine(number + 1, {}, "the end is missing: the file is truncated")


def _record(body: bytes) -> tuple[Record, str | None]:
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return {}, "it is not JSON"
    return (record, None) if isinstance(record, dict) else ({}, "it is not a JSON object")


async def in_batches(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines in batches for a streamed response, produced on the database threads.

    The iterator may run on a different thread for each batch, so it must not keep a cursor open.
    """
    while batch := await in_thread(_batch, lines):
        yield batch


def _batch(lines: Iterator[bytes]) -> bytes:
    batch = bytearray()
    for line in islice(lines, BATCH_LINES):
        batch += line
        if len(batch) >= BATCH_BYTES:
            break
    return bytes(batch)


def file_headers(name: str) -> dict[str, str]:
    """Return the headers of a bundle as a download; `name` must be a safe file name."""
    return {
        "Content-Type": JSON_LINES,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
