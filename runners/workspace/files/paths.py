"""What a path that a caller names may be: relative, below the root, and over no forbidden name.

Only the words are judged here; what lies behind them is judged while it is opened (`opening.py`).
"""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache

from runners.workspace.errors import BadArguments, PathDenied

POLICY_FILE = "continuity.workspace.json"
TEMPORARY = re.compile(r"\.continuity-[0-9a-f]{16}\.tmp", re.IGNORECASE)
NAME_BYTES, PATH_BYTES = 255, 4096
# Names that Windows gives to devices, whatever ending follows (also "CON .txt").
_DEVICES = r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])"
_DEVICE_HEADS = {"con", "prn", "aux", "nul", "com", "lpt", ".co"}
_IGNORABLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810)}
_IGNORABLE |= {*range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}


class Forbidden:
    """The names that no component of a path may have, in every way that a file system reads them.

    Case, compatibility forms, characters that some file systems ignore, trailing dots and blanks, a
    stream behind a colon and the short names of FAT and NTFS (`GIT~1`) make no difference.
    `.env` forbids `.env.*` as well. Device names of Windows and our own temporary files are always
    forbidden.
    """

    def __init__(self, names: Collection[str]) -> None:
        folded = sorted({_fold(name).rstrip(". ") for name in names} - {""})
        plain = [re.escape(name) for name in folded]
        plain += [rf"{re.escape(name)}\..*" for name in folded if name == ".env"]
        short = sorted({re.escape(re.sub(r"[^a-z0-9_-]", "", name)[:6]) for name in folded} - {""})
        kinds = [rf"(?:{'|'.join(plain)})[. ]*(?::.*)?"] if plain else []
        kinds += [rf"(?:{'|'.join(short)})~[0-9]+(?:\..*)?[. ]*(?::.*)?"] if short else []
        kinds += [rf"{_DEVICES} *(?:[.:].*)?", TEMPORARY.pattern]
        self._found = re.compile("|".join(kinds), re.IGNORECASE | re.ASCII | re.DOTALL).fullmatch
        # How the names that are forbidden begin: most names of a big tree need no closer look.
        heads = {name[:3] for name in folded} | _DEVICE_HEADS
        self._heads = {"".join(each) for head in heads for each in _cases(head)}
        self._every = any(len(name) < 3 for name in folded)

    def has(self, name: str) -> bool:
        """Tell whether a component of this name is forbidden."""
        return self._found(name if name.isascii() else _fold(name)) is not None

    def without(self, entries: Iterable[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
        """Return the entries of a folder whose names are not forbidden, and are Unicode."""
        heads, kept = self._heads, []
        for one in entries:
            name = one.name
            clear = name[:3] not in heads and "~" not in name and name.isascii()
            if (clear and not self._every) or (is_unicode(name) and not self.has(name)):
                kept.append(one)
        return kept


@lru_cache(maxsize=64)
def forbidden_of(names: frozenset[str]) -> Forbidden:
    """Return the names made ready; the same ones are made ready once."""
    return Forbidden(names)


def split_path(path: str, forbidden: Forbidden) -> tuple[str, ...]:
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
            raise PathDenied(f"{shown(part)} is forbidden in paths.", details=_told(path))
    return parts


def is_policy_file(parts: tuple[str, ...]) -> bool:
    """Tell whether this is a file that narrows what may be done in its folder: in the root, or in
    one below, which may be another target's root.
    """
    return bool(parts) and _fold(parts[-1]).rstrip(". ").split(":")[0] == POLICY_FILE


def is_unicode(name: str) -> bool:
    """Tell whether a name can be told to a caller; a disk may hold any bytes as a name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(path: str) -> str:
    """Return a path as messages show it: short, and without what would break a line."""
    short = path if len(path) <= 200 else f"{path[:199]}…"
    return "".join(c if c.isprintable() else "�" for c in short)


def _cases(head: str) -> Iterable[tuple[str, ...]]:
    """Return a few letters in all their ways of being large and small."""
    return itertools.product(*({letter.lower(), letter.upper()} for letter in head))


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
    return {"path": shown(path)}


def _fold(name: str) -> str:
    """Return a name without what some file system does not tell apart."""
    kept = (c for c in name if ord(c) not in _IGNORABLE and unicodedata.category(c) != "Cf")
    folded = unicodedata.normalize("NFKC", "".join(kept)).casefold()
    return unicodedata.normalize("NFKC", folded)
