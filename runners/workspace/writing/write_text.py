"""Write a text file of a workspace: previewed, snapshotted, whole or not at all, once a key.

    hunks = preview_text(workspace, "game/scene/start.txt", text)
    done = write_text(workspace, "game/scene/start.txt", text, need_preview=True)

These block (disk, the wait for another writer): call them on a thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from stat import S_ISDIR

from runners.workspace.errors import (
    BadArguments,
    DiskFailed,
    NotText,
    PathDenied,
    PathNotFound,
    TooLarge,
)
from runners.workspace.files.atomic_replace import new_temporary_name
from runners.workspace.files.paths import display_path, is_policy_file
from runners.workspace.files.sandbox import Sandbox, decode_text
from runners.workspace.workspace import Workspace
from runners.workspace.writing import previews, snapshots
from runners.workspace.writing.crash_recovery import (
    PendingWrite,
    content_digest,
    finish_or_undo,
    recover_pending,
    sweep_state,
)
from runners.workspace.writing.deleted_files import record_root
from runners.workspace.writing.file_lock import FileLock, hold_lock
from runners.workspace.writing.idempotency_keys import KeyedWrite
from runners.workspace.writing.line_diff import Hunk, diff_lines
from runners.workspace.writing.previews import WriteRequest

LOCK_WAIT_S = 10.0  # for another writer of the same file


@dataclass(frozen=True, slots=True)
class Preview:
    """What a write would change.

    Attributes:
        hunks: the diff, in lines.
    """

    hunks: list[Hunk]
    _workspace: Workspace
    _write: WriteRequest
    _was: bytes | None

    def record(self) -> None:
        """Let this write be made in the next 15 minutes: it was shown, or is about to be.

        Raises:
            DiskFailed: It cannot be remembered.
        """
        with _telling(self._write.path):
            previews.record_preview(self._workspace.state, self._write, self._was)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A write that was done, now or before under the same key."""

    snapshot_id: str
    bytes_written: int


def preview_text(
    workspace: Workspace, path: str, content: str, *, mode: str = "overwrite"
) -> list[Hunk]:
    """Return what a write would change, and remember that it was shown.

    Raises:
        WorkspaceFailed: As `write_text`, but for the conflicts.
    """
    preview = compute_preview(workspace, path, content, mode=mode)
    preview.record()
    return preview.hunks


def compute_preview(
    workspace: Workspace, path: str, content: str, *, mode: str = "overwrite"
) -> Preview:
    """Return what a write would change; whoever shows it then says so (`Preview.remember`).

    Raises:
        WorkspaceFailed: As `write_text`, but for the conflicts.
    """
    data = _encoded(content, path)
    with _opened(workspace, path) as sandbox:
        name = _judged(sandbox, path)
        was = _content_of(sandbox, name, workspace.policy.max_read_bytes)
    becomes = _becoming(workspace, path, mode, was, data)
    hunks = diff_lines(decode_text(was or b"", path), becomes.decode())
    return Preview(hunks, workspace, WriteRequest(workspace.principal_id, name, mode, data), was)


def write_text(
    workspace: Workspace,
    path: str,
    content: str,
    *,
    mode: str = "overwrite",
    require_preview: bool = False,
    idempotency_key: str | None = None,
    wait_s: float = LOCK_WAIT_S,
) -> WriteResult:
    """Write a file; what it was is kept as a snapshot. Durable when it returns.

    Twice under one idempotency key, by one principal, is once.

    Raises:
        PathDenied, BadArguments: The path cannot be written.
        NotText: The content, or the file as it is, is no text.
        TooLarge: The file would have more bytes than the workspace's limit.
        PolicyViolation: `need_preview`, and nobody previewed this very write in the last 15 min.
        WriteConflict: The file has changed since the preview or meanwhile, another call was writing
            it for all of `wait_s`, or the key was used for another content.
        DiskFailed: The disk is full or refuses; the file is what it was.
    """
    state, data = workspace.state, _encoded(content, path)
    with _opened(workspace, path) as sandbox:
        name = _judged(sandbox, path)
        write = WriteRequest(workspace.principal_id, name, mode, data)
        keyed = None if idempotency_key is None else KeyedWrite(state, write, idempotency_key)
        with _telling(path), _alone(workspace, name, wait_s) as lock:
            if keyed is not None and (before := keyed.find_done()) is not None:
                return WriteResult(before, len(data))
            was = _content_of(sandbox, name, workspace.policy.max_read_bytes)
            becomes = _becoming(workspace, path, mode, was, data)
            if require_preview:
                previews.require_preview(state, write, was)
            change = _Change(workspace, sandbox, lock, name, was, becomes)
            return WriteResult(change.carry_out(keyed), len(data))


def change_text(
    workspace: Workspace,
    path: str,
    change: Callable[[str], str | None],
    *,
    wait_s: float = LOCK_WAIT_S,
    missing: str | None = None,
) -> WriteResult | None:
    """Write what `change` makes of a file's text, while nobody else writes it; None: nothing.

    Args:
        missing: what a file that is not there becomes.

    Raises:
        PathNotFound: There is no such file, and no `missing`.
        WorkspaceFailed: What `change` raises, and as `write_text`.
    """
    limit = workspace.policy.max_read_bytes
    with _opened(workspace, path) as sandbox:
        name = _judged(sandbox, path)
        with _telling(path), _alone(workspace, name, wait_s) as lock:
            try:
                was = sandbox.read(name, limit=limit)
                made = change(decode_text(was, path))
            except PathNotFound:
                if missing is None:
                    raise
                was, made = None, missing
            if made is None:
                return None
            becomes = _encoded(made, path)
            _need_room(path, len(becomes), limit)
            done = _Change(workspace, sandbox, lock, name, was, becomes).carry_out(None)
    return WriteResult(done, len(becomes))


@dataclass(frozen=True, slots=True)
class _Change:
    """A file's next content, its lock held."""

    workspace: Workspace
    sandbox: Sandbox
    lock: FileLock
    name: str
    was: bytes | None
    becomes: bytes

    def carry_out(self, keyed: KeyedWrite | None) -> str:
        """Write it and return its snapshot's id; where that fails, nothing is left of it."""
        state, policy = self.workspace.state, self.workspace.policy
        snapshot = snapshots.draft_snapshot(
            state, path=self.name, content=self.was, idempotency_key=keyed.key if keyed else None
        )
        under_way = PendingWrite(
            root=str(self.workspace.root),
            path=self.name,
            was=content_digest(self.was),
            becomes=content_digest(self.becomes),
            size_limit=policy.max_read_bytes,
            snapshot_id=snapshot.id,
            key_file=keyed.file.name if keyed else "",
            beside=new_temporary_name(),
        )
        try:
            self.lock.write_note(under_way.as_note())
            # All of ours is on the disk before the file is touched: the rename is the one moment.
            snapshots.store_snapshot(state, snapshot, self.was or b"")
            if keyed is not None:
                keyed.record(snapshot.id)
            self.sandbox.replace(
                self.name, self.becomes, expect=self.was, temporary_name=under_way.beside
            )
        except BaseException:
            finish_or_undo(state, under_way, is_ours=True)
            raise
        finally:
            self.lock.clear_note()
        record_root(state, self.workspace.root)
        # The newest stays whatever is said: the answer's snapshotId is to name something.
        snapshots.prune_snapshots(state, self.name, keep=max(1, policy.snapshot_retention))
        return snapshot.id


@contextlib.contextmanager
def _opened(workspace: Workspace, path: str) -> Iterator[Sandbox]:
    with _telling(path):
        sweep_state(workspace.state)
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        yield sandbox


@contextlib.contextmanager
def _alone(workspace: Workspace, name: str, wait_s: float) -> Iterator[FileLock]:
    with hold_lock(workspace.state, name, wait_s=wait_s) as lock:
        recover_pending(workspace.state, lock)
        yield lock


@contextlib.contextmanager
def _telling(path: str) -> Iterator[None]:
    """Tell a trouble of our own files as one of the disk, without their places."""
    try:
        yield
    except OSError as exc:
        raise DiskFailed(
            f"{display_path(path)} is not written: {exc.strerror or 'the disk refuses'}.",
            details={"path": display_path(path)},
        ) from None


def _judged(sandbox: Sandbox, path: str) -> str:
    """Return the one form of a path that may be written, or say why it may not."""
    name, about = sandbox.normalize_path(path), {"path": display_path(path)}
    if name == "." or path.endswith(("/", "/.")):
        raise BadArguments(f"{display_path(path)} names a folder, not a file.", details=about)
    if is_policy_file(tuple(name.split("/"))):
        raise PathDenied(f"No tool writes {name}.", details=about)
    above = name
    while above:
        try:
            told = sandbox.stat(above)
        except PathNotFound:
            above = above.rpartition("/")[0]
            continue
        if S_ISDIR(told.st_mode) == (above == name):
            kind = "folder, not a file" if above == name else "file, not a folder"
            raise BadArguments(f"{display_path(above)} is a {kind}.", details=about)
        if above == name and told.st_nlink > 1:
            raise PathDenied(
                f"{display_path(path)} has a second name (a hard link).", details=about
            )
        break
    return name


def _content_of(sandbox: Sandbox, name: str, limit: int) -> bytes | None:
    try:
        return sandbox.read(name, limit=limit)
    except PathNotFound:
        return None


def _becoming(workspace: Workspace, path: str, mode: str, was: bytes | None, data: bytes) -> bytes:
    decode_text(was or b"", path)
    becomes = (was or b"") + data if mode == "append" else data
    _need_room(path, len(becomes), workspace.policy.max_read_bytes)
    return becomes


def _need_room(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(
            f"{display_path(path)} would have more than {limit} bytes.",
            details={"path": display_path(path), "bytes": size, "limit": limit},
        )


def _encoded(content: str, path: str) -> bytes:
    about = {"path": display_path(path)}
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise NotText(
            "The content is no Unicode text (half a surrogate pair).", details=about
        ) from None
    if b"\0" in data:
        raise NotText("The content holds NUL bytes.", details=about)
    return data
