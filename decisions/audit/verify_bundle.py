"""Offline verification of a bundle, with this installation's keys and without its database."""

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
from decisions.foundation.presentation.visible_text import visible

MAX_MESSAGES = 20  # faults that are described; all are counted
MESSAGE_LENGTH = 500  # characters: a description has texts that may be forged


@dataclass
class Faults:
    """The faults that a verification found: their number, and the descriptions of the first."""

    faults: int = 0
    messages: list[str] = field(default_factory=list)

    def add(self, fault: str) -> None:
        """Add a fault."""
        self.faults += 1
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(visible(fault, MESSAGE_LENGTH))


@dataclass
class BundleReport(Faults):
    """The result of a verification: the number of lines by type, and the faults by line."""

    head: Record = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)
    unsealed: int = 0


@dataclass
class _Content:
    """An artifact whose content lines are being read."""

    number: int
    artifact: Record
    digest: Any = field(default_factory=hashlib.sha256)
    size: int = 0

    def fault(self) -> str | None:
        is_complete = self.size == self.artifact.get("sizeBytes")
        if is_complete and self.digest.hexdigest() == self.artifact.get("sha256"):
            return None
        return "the artifact's bytes do not match its sha256"


class _Verification:
    """The state from one line to the next; its size does not depend on the file's."""

    def __init__(self) -> None:
        self.report = BundleReport()
        self._last: ChainHead | None = None
        self._content: _Content | None = None
        self._seq = 0

    def line(self, number: int, record: Record) -> Iterator[str]:
        """Yield the faults in the content of a line whose proof is valid."""
        kind = str(record.get("type"))
        self.report.lines[kind] += 1
        if (number == 1) != (kind == "head"):
            yield "a bundle has exactly one head, as its first line"
        if kind == "head":
            self.report.head = record
        elif kind == "content":
            self._add_bytes(record)
            return
        yield from self.finish_content()
        if kind == "audit":
            yield from self._entry(record)
        elif kind == "event":
            yield from self._event(record)
        elif kind == "end" and self._is_archive:
            yield from self._archive_end()
        elif kind == "artifact" and record.get("contentFollows"):
            self._content = _Content(number, record)

    @property
    def _is_archive(self) -> bool:
        return self.report.head.get("bundle") == "archive"

    def _archive_end(self) -> Iterator[str]:
        stated = ChainHead(self.report.head["last"], self.report.head["hash"])
        if self._last != stated:
            yield f"the archive states that it ends at seal {stated.position}, but it does not"

    def finish_content(self) -> Iterator[str]:
        """Yield the fault of the artifact whose content lines just ended."""
        done, self._content = self._content, None
        if done is not None and (fault := done.fault()):
            yield f"{fault} (the artifact of line {done.number})"

    def _add_bytes(self, record: Record) -> None:
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
            yield f"row {record['id']} was not written by Continuity, or was changed"
        if (seal := record["seal"]) is None:
            self.report.unsealed += 1
            if self._is_archive:
                yield f"row {record['id']} has no seal"
            return
        link = ChainHead(seal["position"], seal["hash"])
        if not is_our_link(link.position, record["id"], record["mac"], seal["prev"], link.hash):
            yield f"the seal of row {record['id']} is not what the sealer wrote"
        yield from self._link(record["id"], link, seal["prev"])

    def _link(self, row_id: Any, link: ChainHead, prev: Any) -> Iterator[str]:
        last, self._last = self._last, link
        if last is None and self._is_archive:
            last = ChainHead(self.report.head["first"] - 1, self.report.head["prev"])
        if last is None or prev == last.hash:  # then no seal between the two was removed
            return
        if link.position == last.position + 1:
            yield f"the seal of row {row_id} does not follow the one before"
        elif self._is_archive:
            yield f"seals {last.position + 1} to {link.position - 1} are missing"

    def _event(self, record: Record) -> Iterator[str]:
        self._seq += 1
        if record["seq"] != self._seq:
            yield f"an event is missing: expected seq {self._seq}, found {record['seq']}"


def check_bundle(path: Path) -> BundleReport:
    """Verify a bundle, reading it line by line.

    Raises:
        OSError: The file cannot be read.
    """
    verification = _Verification()
    report = verification.report
    with path.open("rb") as file:
        for number, record, fault in read_lines(iter(lambda: file.readline(LINE_MAX + 1), b"")):
            if fault is not None:
                report.add(f"line {number}: {fault}")
            if not record:
                continue
            try:
                for problem in verification.line(number, record):
                    report.add(f"line {number}: {problem}")
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                kind = type(error).__name__
                report.add(f"line {number}: it lacks the fields of its type ({kind})")
    return report


def describe_head(head: Record) -> str:
    """Describe a bundle by its head: kind, subject, time and author; in visible characters."""
    about = head.get("runId") or json.dumps(head.get("filters", {}), ensure_ascii=False)
    return visible(
        f"{head.get('bundle')} {about}, made {head.get('madeAt')} by {head.get('madeBy')}"
    )
