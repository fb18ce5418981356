"""Checking a bundle offline: with this installation's keys, without its database."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decisions.audit.bundle import LINE_MAX, Record, read_lines
from decisions.audit.chain import ChainHead, is_our_link
from decisions.audit.record import canonical, is_mac_of

MAX_MESSAGES = 20


@dataclass
class BundleReport:
    """What a check found: how many lines of each type, and what is wrong with which."""

    head: Record = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)
    unsealed: int = 0
    faults: int = 0
    messages: list[str] = field(default_factory=list)

    def add(self, number: int, fault: str) -> None:
        """Note a fault."""
        self.faults += 1
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(f"line {number}: {fault}")


@dataclass
class _Content:
    """An artifact whose bytes are being read."""

    number: int
    told: Record
    digest: Any = field(default_factory=hashlib.sha256)
    size: int = 0

    def fault(self) -> str | None:
        whole = self.size == self.told.get("sizeBytes")
        if whole and self.digest.hexdigest() == self.told.get("sha256"):
            return None
        return "the artifact's bytes are not those of its sha256"


class _Check:
    """What has to be remembered from one line to the next; little, whatever the file's size."""

    def __init__(self) -> None:
        self.report = BundleReport()
        self._last: ChainHead | None = None
        self._content: _Content | None = None
        self._seq = 0

    def line(self, number: int, record: Record) -> Iterator[str]:
        """Yield what is wrong with a line that is as it was written."""
        kind = str(record.get("type"))
        self.report.lines[kind] += 1
        if (number == 1) != (kind == "head"):
            yield "a bundle begins with its head, and has one"
        if kind == "head":
            self.report.head = record
        elif kind == "content":
            self._bytes(record)
            return
        yield from self.content_over()
        if kind == "audit":
            yield from self._entry(record)
        elif kind == "event":
            yield from self._event(record)
        elif kind == "artifact" and record.get("contentFollows"):
            self._content = _Content(number, record)

    def content_over(self) -> Iterator[str]:
        """Yield what is wrong with the artifact whose bytes came last."""
        done, self._content = self._content, None
        if done is not None and (fault := done.fault()):
            yield f"{fault} (the artifact of line {done.number})"

    def _bytes(self, record: Record) -> None:
        if self._content is not None:
            data = base64.b64decode(record["data"])
            self._content.digest.update(data)
            self._content.size += len(data)

    def _entry(self, record: Record) -> Iterator[str]:
        names = ("tenantId", "workspaceId", "action", "actor", "resourceType", "resourceId")
        columns = [record[name] for name in names]
        written = canonical(
            *columns, metadata=record["metadata"], created_at=str(record["createdAt"])
        )
        if not is_mac_of(written, str(record["mac"])):
            yield f"row {record['id']} is not what our writer wrote"
        if (seal := record["seal"]) is None:
            self.report.unsealed += 1
            return
        place = ChainHead(seal["position"], seal["hash"])
        if not is_our_link(place.position, record["id"], record["mac"], seal["prev"], place.hash):
            yield f"the seal of row {record['id']} is not what our sealer wrote"
        last, self._last = self._last, place
        if last and place.position == last.position + 1 and seal["prev"] != last.hash:
            yield f"the seal of row {record['id']} does not follow the one before"

    def _event(self, record: Record) -> Iterator[str]:
        self._seq += 1
        if record["seq"] != self._seq:
            yield f"an event is missing: {self._seq} was to come, {record['seq']} is here"


def check_bundle(path: Path) -> BundleReport:
    """Return what is wrong with a bundle, read line by line.

    Raises:
        OSError: It cannot be read.
    """
    check = _Check()
    report = check.report
    with path.open("rb") as file:
        for number, record, fault in read_lines(iter(lambda: file.readline(LINE_MAX + 1), b"")):
            if fault is not None:
                report.add(number, fault)
            if not record:
                continue
            try:
                for wrong in check.line(number, record):
                    report.add(number, wrong)
            except (KeyError, TypeError, ValueError, AttributeError) as odd:
                report.add(number, f"it does not have the form of its type ({type(odd).__name__})")
    return report


def describe_head(head: Record) -> str:
    """Return what a bundle says that it is."""
    about = head.get("runId") or json.dumps(head.get("filters", {}), ensure_ascii=False)
    return f"{head.get('bundle')} {about}, made {head.get('madeAt')} by {head.get('madeBy')}"
