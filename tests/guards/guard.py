"""A protection of the product, its removal, and the test that fails without it."""

from __future__ import annotations

import py_compile
from dataclasses import KW_ONLY, dataclass
from pathlib import Path


class StalePatch(Exception):
    """A patch does not fit the file: its old text does not occur exactly once."""


@dataclass(frozen=True)
class Patch:
    """Replace a text that occurs exactly once in a file (path from the repository's root)."""

    file: str
    old: str
    new: str

    def patched(self, root: Path) -> str:
        """Return the file's text with the replacement.

        Raises:
            StalePatch: The old text does not occur exactly once.
        """
        text = (root / self.file).read_text()
        found = text.count(self.old)
        if found != 1:
            raise StalePatch(f"{self.file}: the text to replace occurs {found} times: {self.old!r}")
        return text.replace(self.old, self.new)

    def apply(self, root: Path) -> None:
        """Write the patched file below `root`; it must still compile."""
        path = root / self.file
        path.write_text(self.patched(root))
        if path.suffix == ".py":
            py_compile.compile(str(path), doraise=True)


@dataclass(frozen=True)
class Sql:
    """SQL statements, run in the migrated test database; one text for each database it protects."""

    postgresql: str = ""
    sqlite: str = ""


@dataclass(frozen=True)
class Guard:
    """A protection and the test that notices its removal.

    `promise` says what holds while the protection is there; `failing_test` is the id of the test that must
    fail without it; `database` is where a guard with patches runs.
    """

    name: str
    promise: str
    removal: Patch | tuple[Patch, ...] | Sql
    _: KW_ONLY
    failing_test: str
    database: str = "postgresql"

    @property
    def patches(self) -> tuple[Patch, ...]:
        """The changes of code; none for a removal in SQL."""
        if isinstance(self.removal, Sql):
            return ()
        return self.removal if isinstance(self.removal, tuple) else (self.removal,)

    @property
    def databases(self) -> tuple[str, ...]:
        """The databases on which the guard runs."""
        if not isinstance(self.removal, Sql):
            return (self.database,)
        both = ("postgresql", self.removal.postgresql), ("sqlite", self.removal.sqlite)
        return tuple(name for name, statement in both if statement)

    def statement(self, database: str) -> str:
        """Return the SQL that removes the protection on a database; empty for patches."""
        return getattr(self.removal, database) if isinstance(self.removal, Sql) else ""
