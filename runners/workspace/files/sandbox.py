"""The sandbox: read, list and replace files below a root folder, and nowhere else.

    with Sandbox(root, {".git", ".env"}) as sandbox:
        data = sandbox.read("game/scene/start.txt", limit=5_000_000)

Paths are relative to the root, with slashes. Links are never followed, and only regular files are
read or written. Every path is opened relative to the root's descriptor (`safe_open.py`), so a
folder or file that is swapped during a call cannot lead outside of the root.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from runners.workspace.errors import BadArguments, NotText, PathDenied, PathNotFound, TooLarge
from runners.workspace.files.atomic_replace import Expected, open_parent, replace_file
from runners.workspace.files.listing import (
    Entry,
    Found,
    PathFilter,
    find_below,
    iter_files_sorted,
    list_entries,
)
from runners.workspace.files.os_errors import require_regular_file, workspace_error_from
from runners.workspace.files.paths import (
    display_path,
    forbidden_names,
    is_policy_file,
    path_details,
    split_path,
)
from runners.workspace.files.read_whole import READ_FLAGS, read_descriptor, read_files_in_folder
from runners.workspace.files.safe_open import STAT_FLAGS, open_below

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class Sandbox:
    """An open root folder; a context manager.

    Args:
        forbidden: names that no path component may have.

    Raises:
        PathNotFound: The root does not exist any more.
        DiskFailed: The root cannot be opened.
    """

    def __init__(self, root: Path, forbidden: Collection[str]) -> None:
        self._forbidden = forbidden_names(frozenset(forbidden))
        try:
            self._root = os.open(root, _FOLDER | os.O_CLOEXEC)
        except OSError as exc:
            raise workspace_error_from(exc, ".") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        os.close(self._root)

    def normalize_path(self, path: str) -> str:
        """Return the normalized form of a path (`.` is the root); it identifies the file.

        Raises:
            BadArguments, PathDenied: As `split_path`.
        """
        return "/".join(split_path(path, self._forbidden)) or "."

    def read(self, path: str, *, limit: int) -> bytes:
        """Return the content of a regular file.

        Raises:
            TooLarge: It has more than `limit` bytes.
            BadArguments: It is a folder, or the path is invalid.
            PathNotFound: It does not exist.
            PathDenied: The path is forbidden, or not a regular file.
            DiskFailed: The file system returned an error.
        """
        parts = self._file_parts(path)
        # Checked before it is opened, because opening a pipe or a device can have side effects.
        require_regular_file(self._stat(parts, path), path)
        found = self._open(parts, READ_FLAGS, path)
        try:
            info = os.fstat(found)
            require_regular_file(info, path)
            data = read_descriptor(found, info.st_size, limit) if info.st_size <= limit else None
        except OSError as exc:
            raise workspace_error_from(exc, path) from None
        finally:
            os.close(found)
        if data is None:
            raise too_large(path, limit)
        return data

    def read_many(self, paths: Iterable[str], *, limit: int) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of many files; faster than `read` for files of the same folder.

        Files that cannot be read, are not regular or have more than `limit` bytes are skipped.

        Args:
            paths: from `find`, made relative to the root; they are not validated again.
        """
        for parent, siblings in itertools.groupby(paths, lambda path: path.rpartition("/")[0]):
            try:
                folder = open_below(self._root, parent.split("/") if parent else (), _FOLDER)
            except OSError:
                continue
            try:
                yield from read_files_in_folder(folder, siblings, limit)
            finally:
                os.close(folder)

    def exists(self, path: str) -> bool:
        """Return whether a file or a folder exists.

        Raises:
            PathDenied: It is a link or a device.
        """
        try:
            self.stat(path)
        except PathNotFound:
            return False
        return True

    def stat(self, path: str) -> os.stat_result:
        """Return the stat of a regular file or a folder."""
        info = self._stat(split_path(path, self._forbidden), path)
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            raise PathDenied(
                f"{display_path(path)} is not a regular file.", details=path_details(path)
            )
        return info

    def list_dir(self, path: str) -> list[Entry]:
        """Return the files and folders in one folder, sorted by name, without forbidden names."""
        found = self.open_dir(path)
        try:
            return sorted(list_entries(found, self._forbidden))
        except OSError as exc:
            raise workspace_error_from(exc, path) from None
        finally:
            os.close(found)

    def find(self, path: str, *, globs: Sequence[str] = (), deadline: float | None = None) -> Found:
        """Return the files and folders below a folder, relative to it, unordered.

        Forbidden names, links and special files are neither entered nor returned.

        Args:
            globs: only paths that one of them matches.
            deadline: `time.monotonic()` value.

        Raises:
            WorkspaceTimeout: The deadline has passed.
        """
        wanted = self.path_filter(globs)
        found = self.open_dir(path)
        try:
            return find_below(found, wanted, deadline)
        finally:
            os.close(found)

    def iter_files_sorted(
        self, path: str, path_filter: PathFilter, *, deadline: float
    ) -> Generator[str]:
        """Yield the files that `find` returns, sorted by path; walk only as far as is consumed.

        Raises:
            WorkspaceTimeout: The deadline has passed.
        """
        found = self.open_dir(path)
        try:
            yield from iter_files_sorted(found, path_filter, deadline)
        finally:
            os.close(found)

    def path_filter(self, globs: Sequence[str] = ()) -> PathFilter:
        """Return the filter that `find` applies to the paths below a folder.

        Raises:
            PathDenied, BadArguments: A glob is invalid.
        """
        return PathFilter(self._forbidden, globs)

    def open_dir(self, path: str) -> int:
        """Open a folder and return its descriptor, which the caller closes.

        Raises:
            BadArguments: It is a file.
            PathDenied: It is neither file nor folder.
        """
        parts = split_path(path, self._forbidden)
        info = self._stat(parts, path)
        if stat.S_ISREG(info.st_mode):
            raise BadArguments(
                f"{display_path(path)} is a file, not a folder.", details=path_details(path)
            )
        if not stat.S_ISDIR(info.st_mode):
            raise PathDenied(
                f"{display_path(path)} is neither file nor folder.", details=path_details(path)
            )
        return self._open(parts, _FOLDER, path)

    def replace(
        self,
        path: str,
        data: bytes,
        *,
        expect: Expected = ...,
        mode: int | None = None,
        temporary_name: str | None = None,
    ) -> None:
        """Replace a file's content atomically; create the file and its folders if needed.

        Args:
            expect: the content that the file must have now, None if it must not exist.
            mode: of a new file; an existing file keeps its mode.
            temporary_name: of the temporary file (`new_temporary_name`), for a caller that records
                it in order to remove the file after a crash.

        Raises:
            WriteConflict: The content is not `expect`.
            PathDenied: The path is forbidden, the policy file, or a file with several hard links.
            BadArguments: The path is invalid or names a folder.
            DiskFailed: The file system returned an error.
        """
        parts = self._file_parts(path)
        if is_policy_file(parts):
            raise PathDenied(f"Tools cannot write {parts[-1]}.", details=path_details(path))
        try:
            with open_parent(self._root, parts[:-1], create=expect in {None, ...}) as folder:
                replace_file(
                    folder,
                    parts[-1],
                    data,
                    path=path,
                    expect=expect,
                    mode=mode,
                    temporary_name=temporary_name,
                )
        except OSError as exc:
            raise workspace_error_from(exc, path) from None

    def _file_parts(self, path: str) -> tuple[str, ...]:
        parts = split_path(path, self._forbidden)
        if not parts or path.endswith(("/", "/.")):
            raise BadArguments(
                f"{display_path(path)} names a folder, not a file.", details=path_details(path)
            )
        return parts

    def _stat(self, parts: Sequence[str], path: str) -> os.stat_result:
        found = self._open(parts, STAT_FLAGS, path)
        try:
            return os.fstat(found)
        finally:
            os.close(found)

    def _open(self, parts: Sequence[str], flags: int, path: str) -> int:
        try:
            return open_below(self._root, parts, flags)
        except OSError as exc:
            raise workspace_error_from(exc, path) from None


def decode_text(data: bytes, path: str) -> str:
    """Return a file's text; a BOM and every `\\r` are kept.

    Raises:
        NotText: It is not UTF-8, or contains NUL bytes.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise NotText(
            f"{display_path(path)} is not UTF-8 text.",
            details=path_details(path) | {"byte": exc.start},
        ) from None
    if "\0" in text:
        raise NotText(f"{display_path(path)} is binary.", details=path_details(path))
    return text


def too_large(path: str, limit: int) -> TooLarge:
    """Return the error for a file that has more bytes than the limit."""
    return TooLarge(
        f"{display_path(path)} has more than {limit} bytes, the limit.",
        details=path_details(path) | {"limit": limit},
    )
