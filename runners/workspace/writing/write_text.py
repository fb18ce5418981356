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
    NotThere,
    PathDenied,
    TooLarge,
)
from runners.workspace.files.atomic_replace import temporary_name
from runners.workspace.files.paths import is_policy_file, shown
from runners.workspace.files.sandbox import Sandbox, text_of
from runners.workspace.workspace import Workspace
from runners.workspace.writing import previews, snapshots
from runners.workspace.writing.crash_recovery import (
    UnderWay,
    digest_of,
    finish,
    finish_noted,
    sweep,
)
from runners.workspace.writing.deleted_files import note_root
from runners.workspace.writing.file_lock import HeldLock, hold_lock
from runners.workspace.writing.line_diff import Hunk, diff_lines
from runners.workspace.writing.previews import Write
from runners.workspace.writing.write_keys import KeyedWrite

WAIT_S = 10.0  # for another writer of the same file


@dataclass(frozen=True, slots=True)
class Preview:
    """What a write would change.

    Attributes:
        hunks: the diff, in lines.
    """

    hunks: list[Hunk]
    _workspace: Workspace
    _write: Write
    _was: bytes | None

    def remember(self) -> None:
        """Let this write be made in the next 15 minutes: it was shown, or is about to be.

        Raises:
            DiskFailed: It cannot be remembered.
        """
        with _telling(self._write.path):
            previews.remember_preview(self._workspace.state, self._write, self._was)


@dataclass(frozen=True, slots=True)
class Written:
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
    preview = look_ahead(workspace, path, content, mode=mode)
    preview.remember()
    return preview.hunks


def look_ahead(
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
    hunks = diff_lines(text_of(was or b"", path), becomes.decode())
    return Preview(hunks, workspace, Write(workspace.principal_id, name, mode, data), was)


def write_text(
    workspace: Workspace,
    path: str,
    content: str,
    *,
    mode: str = "overwrite",
    need_preview: bool = False,
    idempotency_key: str | None = None,
    wait_s: float = WAIT_S,
) -> Written:
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
        write = Write(workspace.principal_id, name, mode, data)
        keyed = None if idempotency_key is None else KeyedWrite(state, write, idempotency_key)
        with _telling(path), _alone(workspace, name, wait_s) as lock:
            if keyed is not None and (before := keyed.done_before()) is not None:
                return Written(before, len(data))
            was = _content_of(sandbox, name, workspace.policy.max_read_bytes)
            becomes = _becoming(workspace, path, mode, was, data)
            if need_preview:
                previews.need_preview(state, write, was)
            change = _Change(workspace, sandbox, lock, name, was, becomes)
            return Written(change.carry_out(keyed), len(data))


def change_text(
    workspace: Workspace,
    path: str,
    change: Callable[[str], str | None],
    *,
    wait_s: float = WAIT_S,
    missing: str | None = None,
) -> Written | None:
    """Write what `change` makes of a file's text, while nobody else writes it; None: nothing.

    Args:
        missing: what a file that is not there becomes.

    Raises:
        NotThere: There is no such file, and no `missing`.
        WorkspaceFailed: What `change` raises, and as `write_text`.
    """
    limit = workspace.policy.max_read_bytes
    with _opened(workspace, path) as sandbox:
        name = _judged(sandbox, path)
        with _telling(path), _alone(workspace, name, wait_s) as lock:
            try:
                was = sandbox.read(name, limit=limit)
                made = change(text_of(was, path))
            except NotThere:
                if missing is None:
                    raise
                was, made = None, missing
            if made is None:
                return None
            becomes = _encoded(made, path)
            _need_room(path, len(becomes), limit)
            done = _Change(workspace, sandbox, lock, name, was, becomes).carry_out(None)
    return Written(done, len(becomes))


@dataclass(frozen=True, slots=True)
class _Change:
    """A file's next content, its lock held."""

    workspace: Workspace
    sandbox: Sandbox
    lock: HeldLock
    name: str
    was: bytes | None
    becomes: bytes

    def carry_out(self, keyed: KeyedWrite | None) -> str:
        """Write it and return its snapshot's id; where that fails, nothing is left of it."""
        state, policy = self.workspace.state, self.workspace.policy
        snapshot = snapshots.draft_snapshot(
            state, path=self.name, content=self.was, idempotency_key=keyed.key if keyed else None
        )
        under_way = UnderWay(
            root=str(self.workspace.root),
            path=self.name,
            was=digest_of(self.was),
            becomes=digest_of(self.becomes),
            size_limit=policy.max_read_bytes,
            snapshot_id=snapshot.id,
            key_file=keyed.file.name if keyed else "",
            beside=temporary_name(),
        )
        try:
            self.lock.tell(under_way.as_note())
            # All of ours is on the disk before the file is touched: the rename is the one moment.
            snapshots.keep_snapshot(state, snapshot, self.was or b"")
            if keyed is not None:
                keyed.remember(snapshot.id)
            self.sandbox.replace(self.name, self.becomes, expect=self.was, beside=under_way.beside)
        except BaseException:
            finish(state, under_way, is_ours=True)
            raise
        finally:
            self.lock.clear()
        note_root(state, self.workspace.root)
        # The newest stays whatever is said: the answer's snapshotId is to name something.
        snapshots.prune_snapshots(state, self.name, keep=max(1, policy.snapshot_retention))
        return snapshot.id


@contextlib.contextmanager
def _opened(workspace: Workspace, path: str) -> Iterator[Sandbox]:
    with _telling(path):
        sweep(workspace.state)
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        yield sandbox


@contextlib.contextmanager
def _alone(workspace: Workspace, name: str, wait_s: float) -> Iterator[HeldLock]:
    with hold_lock(workspace.state, name, wait_s=wait_s) as lock:
        finish_noted(workspace.state, lock)
        yield lock


@contextlib.contextmanager
def _telling(path: str) -> Iterator[None]:
    """Tell a trouble of our own files as one of the disk, without their places."""
    try:
        yield
    except OSError as exc:
        raise DiskFailed(
            f"{shown(path)} is not written: {exc.strerror or 'the disk refuses'}.",
            details={"path": shown(path)},
        ) from None


def _judged(sandbox: Sandbox, path: str) -> str:
    """Return the one form of a path that may be written, or say why it may not."""
    name, about = sandbox.name_of(path), {"path": shown(path)}
    if name == "." or path.endswith(("/", "/.")):
        raise BadArguments(f"{shown(path)} names a folder, not a file.", details=about)
    if is_policy_file(tuple(name.split("/"))):
        raise PathDenied(f"No tool writes {name}.", details=about)
    above = name
    while above:
        try:
            told = sandbox.stat(above)
        except NotThere:
            above = above.rpartition("/")[0]
            continue
        if S_ISDIR(told.st_mode) == (above == name):
            kind = "folder, not a file" if above == name else "file, not a folder"
            raise BadArguments(f"{shown(above)} is a {kind}.", details=about)
        if above == name and told.st_nlink > 1:
            raise PathDenied(f"{shown(path)} has a second name (a hard link).", details=about)
        break
    return name


def _content_of(sandbox: Sandbox, name: str, limit: int) -> bytes | None:
    try:
        return sandbox.read(name, limit=limit)
    except NotThere:
        return None


def _becoming(workspace: Workspace, path: str, mode: str, was: bytes | None, data: bytes) -> bytes:
    text_of(was or b"", path)
    becomes = (was or b"") + data if mode == "append" else data
    _need_room(path, len(becomes), workspace.policy.max_read_bytes)
    return becomes


def _need_room(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(
            f"{shown(path)} would have more than {limit} bytes.",
            details={"path": shown(path), "bytes": size, "limit": limit},
        )


def _encoded(content: str, path: str) -> bytes:
    about = {"path": shown(path)}
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise NotText(
            "The content is no Unicode text (half a surrogate pair).", details=about
        ) from None
    if b"\0" in data:
        raise NotText("The content holds NUL bytes.", details=about)
    return data
