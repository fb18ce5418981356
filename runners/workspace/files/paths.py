"""Validate a path from a caller: relative, below the root, without forbidden names.

Only the text of the path is checked here; links and file types are checked when it is opened
(`safe_open.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from runners.workspace.errors import BadArguments, PathDenied

POLICY_FILE = "continuity.workspace.json"
TEMPORARY = re.compile(r"\.continuity-[0-9a-f]{16}\.tmp", re.IGNORECASE)
_OUR_GLOB = f".continuity-{'[0-9a-f]' * 16}.tmp"
NAME_BYTES, PATH_BYTES = 255, 4096
# Device names of Windows, which are reserved with any extension (also "CON .txt").
_DEVICES = r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])"
_IGNORABLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810)}
_IGNORABLE |= {*range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}


class ForbiddenNames:
    """The names that no path component may have, in every spelling that a file system accepts.

    Matching ignores case, compatibility forms, characters that some file systems ignore, trailing
    dots and blanks and an NTFS stream after a colon; it also covers the short names of FAT and NTFS
    (`GIT~1`). `.env` also forbids `.env.*`. Device names of Windows and this service's temporary
    files are always forbidden.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._folded = folded = sorted({_fold(name).rstrip(". ") for name in names} - {""})
        escaped = [re.escape(name) for name in folded]
        escaped += [rf"{re.escape(name)}\..*" for name in folded if name == ".env"]
        short = sorted({re.escape(_short_name(name)) for name in folded} - {""})
        kinds = [rf"(?:{'|'.join(escaped)})[. ]*(?::.*)?"] if escaped else []
        kinds += [rf"(?:{'|'.join(short)})~[0-9]+(?:\..*)?[. ]*(?::.*)?"] if short else []
        kinds += [rf"{_DEVICES} *(?:[.:].*)?", TEMPORARY.pattern]
        self._is_forbidden = re.compile(
            "|".join(kinds), re.IGNORECASE | re.ASCII | re.DOTALL
        ).fullmatch
        # A quick test of many names at once; in a large tree it clears nearly all of them.
        starts = [*map(re.escape, folded), r"\.continuity-", rf"{_DEVICES} *(?:[.:/]|\Z)"]
        letters = {*"".join(name[0] for name in folded), *".cpanl"}
        first = re.escape("".join({*letters, *map(str.upper, letters)}))
        self._may_contain = re.compile(
            f"/(?=[{first}])(?:{'|'.join(starts)})", re.IGNORECASE | re.ASCII
        ).search

    def matches(self, name: str) -> bool:
        """Return whether a path component of this name is forbidden."""
        return self._is_forbidden(name if name.isascii() else _fold(name)) is not None

    def allowed(self, names: list[str]) -> list[str]:
        """Return the names that are not forbidden and are valid Unicode."""
        joined = f"/{'/'.join(names)}"
        if joined.isascii() and "~" not in joined and not self._may_contain(joined):
            return names
        return [name for name in names if is_unicode(name) and not self.matches(name)]

    def as_ripgrep_glob(self) -> str:
        """Return one glob for ripgrep that matches most forbidden names and no other name.

        ripgrep must match it without case (`--iglob`). One glob is faster than many.
        """
        names = [name for name in self._folded if is_unicode(name) and not {"/", "\0"} & {*name}]
        return f"{{{','.join([*(one for name in names for one in _globs_of(name)), _OUR_GLOB])}}}"


@lru_cache(maxsize=64)
def forbidden_names(names: frozenset[str]) -> ForbiddenNames:
    """Return the compiled names; a repeated call returns the same object."""
    return ForbiddenNames(names)


def split_path(path: str, forbidden: ForbiddenNames) -> tuple[str, ...]:
    """Return the components of a path relative to the root; none for the root itself.

    `.` and doubled slashes are dropped.

    Raises:
        BadArguments: The path is empty, too long, or has characters that no name can have.
        PathDenied: The path is absolute, has `..`, is a Windows path, or has a forbidden name.
    """
    _check_text(path)
    if path.startswith("/"):
        raise PathDenied(
            "The path is absolute; name it relative to the root.", details=path_details(path)
        )
    if "\\" in path or re.match(r"[A-Za-z]:", path):
        raise PathDenied("This is a Windows path; use forward slashes.", details=path_details(path))
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    for part in parts:
        if not part.strip(". "):
            raise PathDenied(
                "The path leads out of a folder; name it from the root without `..`.",
                details=path_details(path),
            )
        if forbidden.matches(part):
            raise PathDenied(
                f"{display_path(part)} is forbidden in paths.", details=path_details(path)
            )
    return parts


def is_policy_file(parts: tuple[str, ...]) -> bool:
    """Return whether this is a policy file: in the root, or in a folder below, which may itself be
    the root of another target.
    """
    return bool(parts) and _fold(parts[-1]).rstrip(". ").split(":")[0] == POLICY_FILE


def _globs_of(name: str) -> list[str]:
    """Return globs for a folded name; see `ForbiddenNames.as_ripgrep_glob`."""
    escaped = "".join(f"\\{sign}" if sign in "*?[]{}!,\\" else sign for sign in name)
    globs = [f"{escaped}{end}" for end in ("", "[. ]", "[. ][. ]", ":*", "[. ]:*")]
    if name == ".env":
        globs.append(f"{escaped}.*")
    if short := _short_name(name):
        globs += [f"{short}~[0-9]", f"{short}~[0-9].*", f"{short}~[0-9][0-9]"]
    return globs


def is_unicode(name: str) -> bool:
    """Return whether a name is valid Unicode and can be sent; names on disk may be any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def display_path(path: str) -> str:
    """Return a path for messages: at most 200 characters, unprintable ones replaced."""
    short = path if len(path) <= 200 else f"{path[:199]}…"
    return "".join(c if c.isprintable() else "�" for c in short)


def path_details(path: str) -> dict[str, str]:
    """Return the `details` of an error about a path."""
    return {"path": display_path(path)}


def _short_name(folded: str) -> str:
    """Return the prefix of the short name (8.3) that FAT and NTFS create, "" if there is none."""
    return re.sub(r"[^a-z0-9_-]", "", folded)[:6]


def _check_text(path: str) -> None:
    if not path:
        raise BadArguments("The path is empty; use `.` for the root.")
    if "\0" in path:
        raise BadArguments("The path contains a NUL byte.", details=path_details(path))
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        raise BadArguments("The path is not valid Unicode.", details=path_details(path)) from None
    if len(encoded) >= PATH_BYTES:
        raise BadArguments(
            f"The path is longer than {PATH_BYTES - 1} bytes.", details=path_details(path)
        )
    if max(map(len, encoded.split(b"/"))) > NAME_BYTES:
        raise BadArguments(
            f"A name in the path is longer than {NAME_BYTES} bytes.", details=path_details(path)
        )


def _fold(name: str) -> str:
    """Return a name without the differences that some file system ignores."""
    visible = (c for c in name if ord(c) not in _IGNORABLE and unicodedata.category(c) != "Cf")
    folded = unicodedata.normalize("NFKC", "".join(visible)).casefold()
    return unicodedata.normalize("NFKC", folded)
