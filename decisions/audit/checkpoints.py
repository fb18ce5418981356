"""Checkpoints of the audit chain's head outside the database, in CONTINUITY_HOME/audit.

    head.json           the newest head, replaced with each sealed batch
    checkpoints.jsonl   past heads, one per line, append-only: one every ten minutes while rows are
                        sealed, and any newest head that the chain no longer has

They reveal a chain that was truncated in the database. Copy the files to another machine to detect
it even if this machine is compromised.
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
def _locked() -> Iterator[Path]:
    """Hold the lock on the checkpoint files; yields their folder."""
    folder = _folder()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def save_head(head: ChainHead) -> None:
    """Save the chain's head; does nothing if a newer head is saved already.

    Raises:
        OSError: CONTINUITY_HOME cannot be written.
    """
    with _locked() as folder:
        saved = _newest(folder)
        if saved is not None and not is_in_chain(saved):
            log.error(
                "the newest checkpoint is not in the audit chain any more; run `manage.py"
                " verify_audit`",
                extra={"position": saved.position},
            )
            _append(folder, saved)
        elif saved is not None and saved.position >= head.position:
            return
        _replace(folder / "head.json", head)
        past = folder / "checkpoints.jsonl"
        if not past.exists() or time.time() - past.stat().st_mtime >= CHECKPOINT_EVERY_S:
            _append(folder, head)


def is_in_chain(head: ChainHead) -> bool:
    """Tell whether the chain in the database has exactly this link."""
    if head == GENESIS:
        return True
    return AuditSeal.objects.filter(position=head.position, hash=head.hash).exists()


def list_heads() -> list[ChainHead]:
    """Return every saved head once, by position.

    Raises:
        ValueError: A line is malformed.
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
        log.error("the newest audit checkpoint cannot be read; run `manage.py verify_audit`")
        return None


def _head(line: str) -> ChainHead:
    try:
        fields = json.loads(line)
        return ChainHead(int(fields["position"]), str(fields["hash"]))
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
