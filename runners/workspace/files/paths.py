"""What a path that a caller names may be: relative, below the root, and over no forbidden name.

Only the words are judged here; what lies behind them is judged while it is opened (`opening.py`).
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
# Names that Windows gives to devices, whatever ending follows (also "CON .txt").
_DEVICES = r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])"
_IGNORABLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810)}
_IGNORABLE |= {*range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}


class ForbiddenNames:
    """The names that no component of a path may have, in every way that a file system reads them.

    Case, compatibility forms, characters that some file systems ignore, trailing dots and blanks, a
    stream behind a colon and the short names of FAT and NTFS (`GIT~1`) make no difference.
    `.env` forbids `.env.*` as well. Device names of Windows and our own temporary files are always
    forbidden.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._folded = folded = sorted({_fold(name).rstrip(". ") for name in names} - {""})
        plain = [re.escape(name) for name in folded]
        plain += [rf"{re.escape(name)}\..*" for name in folded if name == ".env"]
        short = sorted({re.escape(_short_name(name)) for name in folded} - {""})
        kinds = [rf"(?:{'|'.join(plain)})[. ]*(?::.*)?"] if plain else []
        kinds += [rf"(?:{'|'.join(short)})~[0-9]+(?:\..*)?[. ]*(?::.*)?"] if short else []
        kinds += [rf"{_DEVICES} *(?:[.:].*)?", TEMPORARY.pattern]
        self._found = re.compile("|".join(kinds), re.IGNORECASE | re.ASCII | re.DOTALL).fullmatch
        # Most names of a big tree need no closer look: many are tried at once.
        begins = [*map(re.escape, folded), r"\.continuity-", rf"{_DEVICES} *(?:[.:/]|\Z)"]
        letters = {*"".join(name[0] for name in folded), *".cpanl"}
        first = re.escape("".join({*letters, *map(str.upper, letters)}))
        self._suspected = re.compile(
            f"/(?=[{first}])(?:{'|'.join(begins)})", re.IGNORECASE | re.ASCII
        ).search

    def has(self, name: str) -> bool:
        """Tell whether a component of this name is forbidden."""
        return self._found(name if name.isascii() else _fold(name)) is not None

    def without(self, names: list[str]) -> list[str]:
        """Return the names of a folder's entries that are not forbidden, and are Unicode."""
        all_of_them = f"/{'/'.join(names)}"
        if all_of_them.isascii() and "~" not in all_of_them and not self._suspected(all_of_them):
            return names
        return [name for name in names if is_unicode(name) and not self.has(name)]

    def glob(self) -> str:
        """Return a glob that matches most forbidden names and no other: for who walks by globs.

        It is ripgrep's, which is to mind no case; one is quicker to try than many.
        """
        names = [name for name in self._folded if is_unicode(name) and not {"/", "\0"} & {*name}]
        return f"{{{','.join([*(one for name in names for one in _globs_of(name)), _OUR_GLOB])}}}"


@lru_cache(maxsize=64)
def forbidden_names(names: frozenset[str]) -> ForbiddenNames:
    """Return the names made ready; the same ones are made ready once."""
    return ForbiddenNames(names)


def split_path(path: str, forbidden: ForbiddenNames) -> tuple[str, ...]:
    """Return the components of a path below the root, none for the root itself.

    `.` and doubled slashes are left out.

    Raises:
        BadArguments: It is empty, too long, or holds what no name can hold.
        PathDenied: It is absolute, climbs, is written as on Windows, or names what is forbidden.
    """
    _check_words(path)
    if path.startswith("/"):
        raise PathDenied("The path is absolute; name it relative to the root.", details=_told(path))
    if "\\" in path or re.match(r"[A-Za-z]:", path):
        raise PathDenied("The path is written as on Windows; use slashes.", details=_told(path))
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    for part in parts:
        if not part.strip(". "):
            raise PathDenied("The path leads up; name it from the root.", details=_told(path))
        if forbidden.has(part):
            raise PathDenied(f"{display_path(part)} is forbidden in paths.", details=_told(path))
    return parts


def is_policy_file(parts: tuple[str, ...]) -> bool:
    """Tell whether this is a file that narrows what may be done in its folder: in the root, or in
    one below, which may be another target's root.
    """
    return bool(parts) and _fold(parts[-1]).rstrip(". ").split(":")[0] == POLICY_FILE


def _globs_of(name: str) -> list[str]:
    """Return globs for a folded name, see `Forbidden.glob`."""
    plain = "".join(f"\\{sign}" if sign in "*?[]{}!,\\" else sign for sign in name)
    globs = [f"{plain}{end}" for end in ("", "[. ]", "[. ][. ]", ":*", "[. ]:*")]
    if name == ".env":
        globs.append(f"{plain}.*")
    if short := _short_name(name):
        globs += [f"{short}~[0-9]", f"{short}~[0-9].*", f"{short}~[0-9][0-9]"]
    return globs


def is_unicode(name: str) -> bool:
    """Tell whether a name can be told to a caller; a disk may hold any bytes as a name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def display_path(path: str) -> str:
    """Return a path as messages show it: short, and without what would break a line."""
    short = path if len(path) <= 200 else f"{path[:199]}…"
    return "".join(c if c.isprintable() else "�" for c in short)


def _short_name(folded: str) -> str:
    """Return how the short name that FAT and NTFS give begins, "" for none."""
    return re.sub(r"[^a-z0-9_-]", "", folded)[:6]


def _check_words(path: str) -> None:
    if not path:
        raise BadArguments("The path is empty; the root is `.`.")
    if "\0" in path:
        raise BadArguments("The path holds a NUL byte.", details=_told(path))
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        raise BadArguments("The path is no Unicode text.", details=_told(path)) from None
    if len(encoded) >= PATH_BYTES:
        raise BadArguments(f"The path is longer than {PATH_BYTES - 1} bytes.", details=_told(path))
    if max(map(len, encoded.split(b"/"))) > NAME_BYTES:
        raise BadArguments(
            f"A name in the path is longer than {NAME_BYTES} bytes.", details=_told(path)
        )


def _told(path: str) -> dict[str, str]:
    return {"path": display_path(path)}


def _fold(name: str) -> str:
    """Return a name without what some file system does not tell apart."""
    kept = (c for c in name if ord(c) not in _IGNORABLE and unicodedata.category(c) != "Cf")
    folded = unicodedata.normalize("NFKC", "".join(kept)).casefold()
    return unicodedata.normalize("NFKC", folded)
