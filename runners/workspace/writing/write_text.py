"""Write a text file of a workspace: atomically, with a preview, a snapshot and an idempotency key.

    hunks = preview_text(workspace, "game/scene/start.txt", text)
    result = write_text(workspace, "game/scene/start.txt", text, require_preview=True)

These functions block on disk and on other writers: call them on a thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from stat import S_ISDIR

from runners.workspace.call_context import require_confirmed
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
from runners.workspace.workspace import ProjectWorkspace
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

LOCK_WAIT_S = 10.0  # how long to wait for another writer of the same file


@dataclass(frozen=True, slots=True)
class Preview:
    """What a write would change.

    Attributes:
        hunks: the line diff.
    """

    hunks: list[Hunk]
    _workspace: ProjectWorkspace
    _write: WriteRequest
    _old: bytes | None

    def record(self) -> None:
        """Record that the caller gets this preview, which allows the write for 15 minutes.

        Raises:
            DiskFailed: It cannot be recorded.
        """
        with _convert_os_errors(self._write.path):
            previews.record_preview(self._workspace.state, self._write, self._old)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write, or of an earlier one with the same idempotency key."""

    snapshot_id: str
    bytes_written: int


def preview_text(workspace: ProjectWorkspace, path: str, content: str) -> list[Hunk]:
    """Return what an overwrite would change, and record the preview.

    Raises:
        WorkspaceFailed: As `write_text`, except for conflicts.
    """
    preview = compute_preview(workspace, path, content)
    preview.record()
    return preview.hunks


def compute_preview(
    workspace: ProjectWorkspace, path: str, content: str, *, mode: str = "overwrite"
) -> Preview:
    """Return what a write would change; it is allowed only after the caller calls `Preview.record`.

    Raises:
        WorkspaceFailed: As `write_text`, except for conflicts.
    """
    data = _encode(content, path)
    with _open_sandbox(workspace, path) as sandbox:
        name = _require_writable(sandbox, path)
        old = _read_or_none(sandbox, name, workspace.policy.max_read_bytes)
    new = _next_content(workspace, path, mode, old, data)
    hunks = diff_lines(decode_text(old or b"", path), new.decode())
    return Preview(hunks, workspace, WriteRequest(workspace.principal_id, name, mode, data), old)


def write_text(
    workspace: ProjectWorkspace,
    path: str,
    content: str,
    *,
    mode: str = "overwrite",
    require_preview: bool = False,
    idempotency_key: str | None = None,
    wait_s: float = LOCK_WAIT_S,
    expected: str | None = None,
) -> WriteResult:
    """Write a file and store its previous content as a snapshot; durable on return.

    A repeated call with the same idempotency key and principal returns the first result.

    Args:
        expected: digest of the content that a person's confirmation is for, if the call has one.

    Raises:
        PathDenied, BadArguments: The path cannot be written.
        NotText: The new or the existing content is not text.
        TooLarge: The file would exceed the workspace's size limit.
        PolicyViolation: `require_preview` is set, and the caller did not preview this write in the
            last 15 minutes.
        WriteConflict: The file has changed since the preview or during the call, another call was
            writing it for all of `wait_s`, or the key was used for different content.
        DiskFailed: The disk is full or failed; the file is unchanged.
    """
    state, data = workspace.state, _encode(content, path)
    with _open_sandbox(workspace, path) as sandbox:
        name = _require_writable(sandbox, path)
        write = WriteRequest(workspace.principal_id, name, mode, data)
        keyed = None if idempotency_key is None else KeyedWrite(state, write, idempotency_key)
        with _convert_os_errors(path), _locked(workspace, name, wait_s) as lock:
            if keyed is not None and (before := keyed.find_done()) is not None:
                return WriteResult(before, len(data))
            old = _read_or_none(sandbox, name, workspace.policy.max_read_bytes)
            require_confirmed(expected, content_digest(old), path)
            new = _next_content(workspace, path, mode, old, data)
            if require_preview:
                previews.require_preview(state, write, old)
            change = _Change(workspace, sandbox, lock, name, old, new)
            return WriteResult(change.apply(keyed), len(data))


def change_text(
    workspace: ProjectWorkspace,
    path: str,
    change: Callable[[str], str | None],
    *,
    wait_s: float,
    missing: str | None = None,
    expected: str | None = None,
) -> WriteResult | None:
    """Apply a function to a file's text, holding the file's lock, and write the result.

    Args:
        change: returns the new text, or None to write nothing; then None is returned.
        missing: the text to write if the file does not exist.
        expected: as `write_text`.

    Raises:
        PathNotFound: The file does not exist, and `missing` is None.
        WorkspaceFailed: As `write_text`, and what `change` raises.
    """
    limit = workspace.policy.max_read_bytes
    with _open_sandbox(workspace, path) as sandbox:
        name = _require_writable(sandbox, path)
        with _convert_os_errors(path), _locked(workspace, name, wait_s) as lock:
            try:
                old = sandbox.read(name, limit=limit)
                require_confirmed(expected, content_digest(old), path)
                text = change(decode_text(old, path))
            except PathNotFound:
                if missing is None:
                    raise
                old, text = None, missing
            if text is None:
                return None
            new = _encode(text, path)
            _require_size(path, len(new), limit)
            done = _Change(workspace, sandbox, lock, name, old, new).apply(None)
    return WriteResult(done, len(new))


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a file's content, while its lock is held."""

    workspace: ProjectWorkspace
    sandbox: Sandbox
    lock: FileLock
    name: str
    old: bytes | None
    new: bytes

    def apply(self, keyed: KeyedWrite | None) -> str:
        """Write the file and return the snapshot's id; on failure, undo everything."""
        state, policy = self.workspace.state, self.workspace.policy
        snapshot = snapshots.draft_snapshot(
            state, path=self.name, content=self.old, idempotency_key=keyed.key if keyed else None
        )
        pending = PendingWrite(
            root=str(self.workspace.root),
            path=self.name,
            was=content_digest(self.old),
            becomes=content_digest(self.new),
            size_limit=policy.max_read_bytes,
            snapshot_id=snapshot.id,
            key_file=keyed.file.name if keyed else "",
            beside=new_temporary_name(),
        )
        try:
            self.lock.write_record(pending.as_record())
            # Snapshot and key are on disk before the file changes; the rename commits the write.
            snapshots.store_snapshot(state, snapshot, self.old or b"")
            if keyed is not None:
                keyed.record(snapshot.id)
            self.sandbox.replace(
                self.name, self.new, expect=self.old, temporary_name=pending.beside
            )
        except BaseException:
            finish_or_undo(state, pending, is_own_write=True)
            raise
        finally:
            self.lock.clear_record()
        record_root(state, self.workspace.root)
        # The newest is kept in any case, because the response contains its id.
        snapshots.prune_snapshots(state, self.name, keep=max(1, policy.snapshot_retention))
        return snapshot.id


@contextlib.contextmanager
def _open_sandbox(workspace: ProjectWorkspace, path: str) -> Iterator[Sandbox]:
    with _convert_os_errors(path):
        sweep_state(workspace.state)
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        yield sandbox


@contextlib.contextmanager
def _locked(workspace: ProjectWorkspace, name: str, wait_s: float) -> Iterator[FileLock]:
    with hold_lock(workspace.state, name, wait_s=wait_s) as lock:
        recover_pending(workspace.state, lock)
        yield lock


@contextlib.contextmanager
def _convert_os_errors(path: str) -> Iterator[None]:
    """Convert an OSError about the state folder to DiskFailed, without the folder's path."""
    try:
        yield
    except OSError as exc:
        raise DiskFailed(
            f"{display_path(path)} was not written: {exc.strerror or 'disk error'}.",
            details={"path": display_path(path)},
        ) from None


def _require_writable(sandbox: Sandbox, path: str) -> str:
    """Return the normalized path if it may be written.

    Raises:
        BadArguments: It is a folder, or below a file.
        PathDenied: It is forbidden, the policy file, or a file with several hard links.
    """
    name, details = sandbox.normalize_path(path), {"path": display_path(path)}
    if name == "." or path.endswith(("/", "/.")):
        raise BadArguments(f"{display_path(path)} names a folder, not a file.", details=details)
    if is_policy_file(tuple(name.split("/"))):
        raise PathDenied(f"Tools cannot write {name}.", details=details)
    ancestor = name
    while ancestor:
        try:
            info = sandbox.stat(ancestor)
        except PathNotFound:
            ancestor = ancestor.rpartition("/")[0]
            continue
        if S_ISDIR(info.st_mode) == (ancestor == name):
            kind = "folder, not a file" if ancestor == name else "file, not a folder"
            raise BadArguments(f"{display_path(ancestor)} is a {kind}.", details=details)
        if ancestor == name and info.st_nlink > 1:
            raise PathDenied(
                f"{display_path(path)} has a second name (a hard link).", details=details
            )
        break
    return name


def _read_or_none(sandbox: Sandbox, name: str, limit: int) -> bytes | None:
    try:
        return sandbox.read(name, limit=limit)
    except PathNotFound:
        return None


def _next_content(
    workspace: ProjectWorkspace, path: str, mode: str, old: bytes | None, data: bytes
) -> bytes:
    decode_text(old or b"", path)
    new = (old or b"") + data if mode == "append" else data
    _require_size(path, len(new), workspace.policy.max_read_bytes)
    return new


def _require_size(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(
            f"{display_path(path)} would have more than {limit} bytes, the limit.",
            details={"path": display_path(path), "bytes": size, "limit": limit},
        )


def _encode(content: str, path: str) -> bytes:
    details = {"path": display_path(path)}
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise NotText(
            "The content is not valid Unicode (half a surrogate pair).", details=details
        ) from None
    if b"\0" in data:
        raise NotText("The content contains NUL bytes.", details=details)
    return data
