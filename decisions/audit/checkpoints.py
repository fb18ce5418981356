"""Checkpoints of the audit chain's head outside the database, in CONTINUITY_HOME/audit.

    head.json           the newest head, replaced with each sealed batch; written first when the
                        chain is still empty, so a chain without it has lost it
    checkpoints.jsonl   past heads, one per line, append-only: one every ten minutes while rows are
                        sealed, and any newest head that the chain no longer has

They reveal a chain that was truncated in the database. Copy the files to another machine to detect
it even if this machine is compromised. Each checkpoint is signed with a key of the installation.
The past ones are numbered and head.json has their count, so a deleted one is missed. Those of the
previous version, which are not signed, count during a rolling upgrade only.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from decisions.audit.chain import GENESIS, ChainHead, Cut, head_of_chain, newest_cut
from decisions.foundation.security.keys import mac, mac_matches

CHECKPOINT_EVERY_S = 600.0
CLOCKS_DIFFER_S = 60.0  # at most, those of the machines
HEAD, PAST = "head.json", "checkpoints.jsonl"
_PURPOSE = "audit-checkpoint"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A saved head of the chain.

    Attributes:
        at: Unix seconds of the sealer's clock.
        next_id: where the sealer continues: it has seen every row with a lower id; None if unknown.
        number: of a past checkpoint, 1, 2, 3, …; of the newest one, the last of these numbers; 0 of
            one that the previous version saved, which neither numbers nor signs them.
    """

    head: ChainHead
    at: int
    next_id: int | None
    number: int


@dataclass(frozen=True, slots=True)
class SavedCheckpoints:
    """All checkpoints of this home, and what is missing among them."""

    checkpoints: list[Checkpoint]
    faults: list[str]

    @property
    def heads(self) -> list[ChainHead]:
        """Return every saved head once, by position."""
        heads = {checkpoint.head for checkpoint in self.checkpoints}
        return sorted(heads, key=lambda head: head.position)


def checkpoint_folder() -> Path:
    """Return the folder of the checkpoints, which may not exist yet."""
    return Path(settings.CONTINUITY_HOME) / "audit"


@contextmanager
def _locked() -> Iterator[Path]:
    """Hold the lock on the checkpoint files; yields their folder, created if needed."""
    folder = checkpoint_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def has_newest_checkpoint() -> bool:
    """Return whether there is a newest checkpoint that is signed; waits for who replaces it.

    Raises:
        OSError: CONTINUITY_HOME cannot be written.
    """
    with _locked() as folder:
        return _newest(folder) is not None


def save_head(head: ChainHead, *, next_id: int | None) -> None:
    """Save the chain's head; does nothing if a newer head is saved already.

    Raises:
        OSError: CONTINUITY_HOME cannot be written.
    """
    with _locked() as folder:
        _save_head(folder, head, next_id=next_id)


def _save_head(folder: Path, head: ChainHead, *, next_id: int | None) -> None:
    saved = _newest(folder)
    number = (saved.number if saved else 0) or _last_number(folder / PAST)
    if saved is not None and not is_in_chain(saved, newest_cut()):
        log.error(
            "the newest checkpoint is not in the audit chain any more; run `manage.py"
            " verify_audit`",
            extra={"position": saved.head.position},
        )
        number += 1
        _append(folder, saved.head, number)
    elif saved is not None and saved.head.position >= head.position:
        return
    if head != GENESIS and _is_due(folder / PAST):
        number += 1
        _append(folder, head, number)
    newest = Checkpoint(head, int(time.time()), next_id, number)
    _replace(folder / HEAD, _line(newest))


def _is_due(past: Path) -> bool:
    """Return whether a past checkpoint has to be added; the clock may have been set back."""
    return not past.exists() or not 0 <= time.time() - past.stat().st_mtime < CHECKPOINT_EVERY_S


def is_in_chain(checkpoint: Checkpoint, cut: Cut | None) -> bool:
    """Return whether the chain has exactly the checkpoint's link, or had a link at its position
    that is archived: of the archived part, only the last link is known.

    A checkpoint of the archived part that was saved after the archive was made is of another chain:
    one that a restore has shortened, so that its rows were replaced.

    Args:
        cut: the newest one.
    """
    head = checkpoint.head
    if head == GENESIS or (cut is not None and head == cut.head):
        return True
    if cut is None or head.position > cut.head.position:
        return head_of_chain(upto=head.position) == head
    is_before = head.position < cut.head.position
    return is_before and checkpoint.at <= cut.made_at.timestamp() + CLOCKS_DIFFER_S


def newest_checkpoint() -> Checkpoint | None:
    """Return the newest checkpoint; None if there is none that is signed."""
    return _newest(checkpoint_folder())


def read_checkpoints() -> SavedCheckpoints:
    """Return every checkpoint, and what is wrong with the files.

    May run while a sealer saves: the newest one is read first, so no past one is missed.
    """
    folder = checkpoint_folder()
    faults: list[str] = []
    newest, past = ([*_readable(folder / name, faults)] for name in (HEAD, PAST))
    last = 0
    for checkpoint in past:
        faults.extend(_missing(last + 1, checkpoint.number - 1))
        last = checkpoint.number or last
    for checkpoint in newest:
        faults.extend(_missing(last + 1, checkpoint.number))
    if past and not _lines(folder / HEAD):
        faults.append(f"{HEAD} is missing: the newest checkpoint was deleted")
    return SavedCheckpoints([*newest, *past], faults)


def _readable(path: Path, faults: list[str]) -> Iterator[Checkpoint]:
    """Yield the checkpoints of a file; add the lines that are none to the faults."""
    for line in _lines(path):
        try:
            yield _checkpoint(line)
        except ValueError as unreadable:
            faults.append(f"{path.name}: {unreadable}")


def _missing(first: int, last: int) -> list[str]:
    if last < first:
        return []
    if first == last:
        return [f"{PAST}: checkpoint {first} is missing"]
    return [f"{PAST}: checkpoints {first} to {last} are missing"]


def start_anew() -> Path | None:
    """Move the checkpoints aside and save the chain's head as the first of new ones.

    Returns:
        The folder of the previous checkpoints; None if there were none.

    Raises:
        OSError: CONTINUITY_HOME cannot be written.
    """
    moved_to = None
    with _locked() as folder:
        found = [folder / name for name in (HEAD, PAST) if (folder / name).exists()]
        if found:
            moved_to = folder / datetime.now(UTC).strftime("replaced-%Y%m%dT%H%M%S.%f")
            moved_to.mkdir(mode=0o700)
            for path in found:
                path.rename(moved_to / path.name)
        _save_head(folder, head_of_chain(), next_id=None)
    return moved_to


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []


def _newest(folder: Path) -> Checkpoint | None:
    lines = _lines(folder / HEAD)
    try:
        return _checkpoint(lines[0]) if lines else None
    except ValueError:
        log.error("the newest audit checkpoint cannot be read; run `manage.py verify_audit`")
        return None


def _checkpoint(line: str) -> Checkpoint:
    try:
        fields = json.loads(line)
        proof = fields.pop("proof", None)
        head = ChainHead(int(fields["position"]), str(fields["hash"]))
        if proof is None:
            checkpoint = Checkpoint(head, int(fields["at"]), None, 0)
        else:
            checkpoint = Checkpoint(head, fields["at"], fields["next_id"], int(fields["number"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"a checkpoint cannot be read: {line[:80]!r}") from error
    if proof is None and not settings.ROLLING_UPGRADE:
        raise ValueError(
            f"a checkpoint without signature, of an older version, or forged: {line[:80]!r}"
        )
    if proof is not None and not mac_matches(_PURPOSE, _body(checkpoint), str(proof)):
        raise ValueError(f"a checkpoint is not signed by Continuity: {line[:80]!r}")
    return checkpoint


def _body(checkpoint: Checkpoint) -> bytes:
    fields = {
        "position": checkpoint.head.position,
        "hash": checkpoint.head.hash,
        "at": checkpoint.at,
        "next_id": checkpoint.next_id,
        "number": checkpoint.number,
    }
    return json.dumps(fields).encode()


def _line(checkpoint: Checkpoint) -> str:
    body = _body(checkpoint)
    return f'{body.decode()[:-1]}, "proof": "{mac(_PURPOSE, body)}"}}\n'


def _last_number(past: Path) -> int:
    """Return the number of the last past checkpoint that is signed; 0 if there is none."""
    for line in reversed(_lines(past)):
        with suppress(ValueError):
            if number := _checkpoint(line).number:
                return number
    return 0


def _append(folder: Path, head: ChainHead, number: int) -> None:
    with (folder / PAST).open("a") as file:
        file.write(_line(Checkpoint(head, int(time.time()), None, number)))
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, line: str) -> None:
    fd, draft = tempfile.mkstemp(dir=path.parent, prefix=".head-")
    with os.fdopen(fd, "w") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    Path(draft).replace(path)
