"""Heads of the audit chain, kept outside the database: CONTINUITY_HOME/audit.

    head.json           the newest head, replaced with each portion that is sealed
    checkpoints.jsonl   heads of the past, one a line, only ever added to: one in ten minutes while
                        rows come in, and any newest head that the chain no longer holds

Whoever cuts the chain's end off in the database cannot cut it here. A copy of these files on
another machine serves the same end against whoever owns this one.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from decisions.audit.chain import GENESIS, ChainHead
from decisions.models import AuditSeal

CHECKPOINT_EVERY_S = 600.0
log = logging.getLogger(__name__)


def _folder() -> Path:
    folder = Path(settings.CONTINUITY_HOME) / "audit"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextmanager
def _alone() -> Iterator[Path]:
    """Let one process at a time change the files; yields their folder."""
    folder = _folder()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def save_head(head: ChainHead) -> None:
    """Keep the chain's head; an older one than is kept already changes nothing.

    Raises:
        OSError: The home cannot be written.
    """
    with _alone() as folder:
        kept = _newest(folder)
        if kept is not None and not is_in_chain(kept):
            log.error(
                "the audit chain no longer holds its newest checkpoint: see verify_audit",
                extra={"position": kept.position},
            )
            _append(folder, kept)
        elif kept is not None and kept.position >= head.position:
            return
        _replace(folder / "head.json", head)
        kept_past = folder / "checkpoints.jsonl"
        if not kept_past.exists() or time.time() - kept_past.stat().st_mtime >= CHECKPOINT_EVERY_S:
            _append(folder, head)


def is_in_chain(head: ChainHead) -> bool:
    """Tell whether the chain in the database has this very link."""
    if head == GENESIS:
        return True
    return AuditSeal.objects.filter(position=head.position, hash=head.hash).exists()


def list_heads() -> list[ChainHead]:
    """Return every head that was kept, each once, by position.

    Raises:
        ValueError: A line is none that we wrote.
    """
    folder = Path(settings.CONTINUITY_HOME) / "audit"
    lines = [
        line
        for name in ("checkpoints.jsonl", "head.json")
        if (folder / name).exists()
        for line in (folder / name).read_text().splitlines()
    ]
    return sorted({_head(line) for line in lines}, key=lambda head: head.position)


def _newest(folder: Path) -> ChainHead | None:
    try:
        return _head((folder / "head.json").read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        log.error("the newest audit checkpoint cannot be read: see verify_audit")
        return None


def _head(line: str) -> ChainHead:
    try:
        told = json.loads(line)
        return ChainHead(int(told["position"]), str(told["hash"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"a checkpoint cannot be read: {line[:80]!r}") from error


def _line(head: ChainHead) -> str:
    return json.dumps({"position": head.position, "hash": head.hash, "at": int(time.time())}) + "\n"


def _append(folder: Path, head: ChainHead) -> None:
    with (folder / "checkpoints.jsonl").open("a") as file:
        file.write(_line(head))
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, head: ChainHead) -> None:
    fd, draft = tempfile.mkstemp(dir=path.parent, prefix=".head-")
    with os.fdopen(fd, "w") as file:
        file.write(_line(head))
        file.flush()
        os.fsync(file.fileno())
    Path(draft).replace(path)
