"""Read and change files below a root, and nowhere else.

    with Sandbox(root, {".git", ".env"}) as sandbox:
        text = text_of(sandbox.read("game/scene/start.txt", limit=5_000_000), "game/…")

Paths are relative to the root, with slashes. Links are never followed, only regular files are read
or written, and what is swapped while a call runs gains nothing: everything is opened from the
root's own descriptor (`opening.py`).
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
from runners.workspace.files.os_errors import (
    path_details,
    require_regular_file,
    workspace_error_from,
)
from runners.workspace.files.paths import display_path, forbidden_names, is_policy_file, split_path
from runners.workspace.files.read_whole import READ_FLAGS, read_descriptor, read_files_in_folder
from runners.workspace.files.safe_open import STAT_FLAGS, open_below

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class Sandbox:
    """A root that is held open; a context manager.

    Raises:
        PathNotFound: There is no such folder any more.
        DiskFailed: It cannot be opened.
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
        """Return a path in the one form that this file's name is kept under (`.` is the root).

        Raises:
            BadArguments, PathDenied: As `split_path` says.
        """
        return "/".join(split_path(path, self._forbidden)) or "."

    def read(self, path: str, *, limit: int) -> bytes:
        """Return the content of a regular file.

        Raises:
            TooLarge: It has more than `limit` bytes.
            BadArguments: A folder, or a path that cannot be.
            PathNotFound, PathDenied, DiskFailed: As their names say.
        """
        parts = self._file_parts(path)
        # Looked at before it is opened: to open a pipe or a device can do something to it.
        require_regular_file(self._look(parts, path), path)
        found = self._open(parts, READ_FLAGS, path)
        try:
            told = os.fstat(found)
            require_regular_file(told, path)
            data = read_descriptor(found, told.st_size, limit) if told.st_size <= limit else None
        except OSError as exc:
            raise workspace_error_from(exc, path) from None
        finally:
            os.close(found)
        if data is None:
            raise too_large(path, limit)
        return data

    def read_many(self, paths: Iterable[str], *, limit: int) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of many files; faster than `read` where they lie side by side.

        What cannot be read, is no regular file or has more than `limit` bytes is left out.

        Args:
            paths: as `find` gave them, put in the root's terms; they are not judged again.
        """
        for above, some in itertools.groupby(paths, lambda path: path.rpartition("/")[0]):
            try:
                folder = open_below(self._root, above.split("/") if above else (), _FOLDER)
            except OSError:
                continue
            try:
                yield from read_files_in_folder(folder, some, limit)
            finally:
                os.close(folder)

    def exists(self, path: str) -> bool:
        """Tell whether a file or a folder is there; a link or a device is denied."""
        try:
            self.stat(path)
        except PathNotFound:
            return False
        return True

    def stat(self, path: str) -> os.stat_result:
        """Return what is known about a regular file or a folder."""
        told = self._look(split_path(path, self._forbidden), path)
        if not (stat.S_ISREG(told.st_mode) or stat.S_ISDIR(told.st_mode)):
            raise PathDenied(
                f"{display_path(path)} is no regular file.", details=path_details(path)
            )
        return told

    def list_dir(self, path: str) -> list[Entry]:
        """Return the files and folders of one folder by name, without what is forbidden."""
        found = self.open_dir(path)
        try:
            return sorted(list_entries(found, self._forbidden))
        except OSError as exc:
            raise workspace_error_from(exc, path) from None
        finally:
            os.close(found)

    def walk(self, path: str, *, globs: Sequence[str] = ()) -> Iterator[tuple[str, bool]]:
        """Yield what is below a folder as (path relative to it, whether a folder), sorted by path.

        With globs, only what one of them matches.
        """
        found = self.find(path, globs=globs)
        folders = set(found.folders)
        yield from ((one, one in folders) for one in sorted(found.files + found.folders))

    def find(self, path: str, *, globs: Sequence[str] = (), deadline: float | None = None) -> Found:
        """Return the files and folders below a folder, relative to it, in no order.

        Forbidden names, links and whatever is neither file nor folder are not entered or returned.

        Args:
            globs: only what one of them matches.
            until: `time.monotonic()` value after which it gives up.

        Raises:
            WorkspaceTimeout: It gave up.
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
        """Yield the files that `find` returns, sorted; look no further than they are asked for.

        Raises:
            WorkspaceTimeout: It gave up.
        """
        found = self.open_dir(path)
        try:
            yield from iter_files_sorted(found, path_filter, deadline)
        finally:
            os.close(found)

    def path_filter(self, globs: Sequence[str] = ()) -> PathFilter:
        """Return what `find` keeps of the paths below a folder.

        Raises:
            PathDenied, BadArguments: A glob cannot be.
        """
        return PathFilter(self._forbidden, globs)

    def open_dir(self, path: str) -> int:
        """Open a folder; the caller closes the descriptor.

        Raises:
            BadArguments: It is a file.
        """
        parts = split_path(path, self._forbidden)
        told = self._look(parts, path)
        if stat.S_ISREG(told.st_mode):
            raise BadArguments(
                f"{display_path(path)} is a file, not a folder.", details=path_details(path)
            )
        if not stat.S_ISDIR(told.st_mode):
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
        """Put new content in a file's place, whole or not at all; make it and its folders.

        It keeps its mode (a new one gets `mode`). With `expect`, only when the content is that now
        (None: when there is no such file). `beside` names the temporary file (`temporary_name`), so
        that who noted it can take it away should this process die.

        Raises:
            WriteConflict: The content is not `expect`.
            PathDenied: Also for a file with a second name (a hard link) and the policy file.
            BadArguments, DiskFailed: As their names say.
        """
        parts = self._file_parts(path)
        if is_policy_file(parts):
            raise PathDenied(f"No tool writes {parts[0]}.", details=path_details(path))
        try:
            with open_parent(self._root, parts[:-1], make=expect in {None, ...}) as folder:
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

    def _look(self, parts: Sequence[str], path: str) -> os.stat_result:
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
    """Return a file's text; its BOM and every `\\r` stay in it.

    Raises:
        NotText: It is no UTF-8, or holds NUL bytes.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise NotText(
            f"{display_path(path)} is no UTF-8 text.",
            details=path_details(path) | {"byte": exc.start},
        ) from None
    if "\0" in text:
        raise NotText(f"{display_path(path)} is binary.", details=path_details(path))
    return text


def too_large(path: str, limit: int) -> TooLarge:
    """Return the failure of a file with more bytes than may be read or written."""
    return TooLarge(
        f"{display_path(path)} has more than {limit} bytes.",
        details=path_details(path) | {"limit": limit},
    )
