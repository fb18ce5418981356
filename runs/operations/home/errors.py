"""Errors that keep the stack from starting; each message names the cause and what to do.

StackError
├── HomeUnusable        CONTINUITY_HOME cannot be created or written
├── DatabaseDamaged     the database cannot be read any more
├── MigrationsMissing   the database of DATABASE_URL needs `manage.py migrate`
├── PoolingNotSet       the database's pooler needs CONTINUITY_TRANSACTION_POOLING
├── UnsafeStart         the settings would expose the installation
├── PortTaken           the requested port cannot be listened on
├── StoppedMeanwhile    `manage.py down` ended the start
├── ServiceFailed       redis, web, worker or scheduler did not start
└── BackupError         a backup cannot be created or restored
"""

from __future__ import annotations


class StackError(Exception):
    """The stack cannot be started, joined or stopped."""


class HomeUnusable(StackError):
    """CONTINUITY_HOME cannot be created, entered or written."""


class DatabaseDamaged(StackError):
    """The database cannot be read any more; a backup has to be restored."""


class MigrationsMissing(StackError):
    """The database's schema is older than the code."""


class PoolingNotSet(StackError):
    """The database is behind a pooler in transaction mode, which the settings do not say."""


class UnsafeStart(StackError):
    """The settings would expose the installation; nothing was started."""


class PortTaken(StackError):
    """The requested address is in use or not allowed."""


class StoppedMeanwhile(StackError):
    """`manage.py down` ended the start; nothing is left running."""

    def __init__(self) -> None:
        super().__init__("The stack was stopped with `manage.py down` while it started.")


class ServiceFailed(StackError):
    """A service ended, or did not respond, before it was ready."""


class BackupError(StackError):
    """A backup cannot be created or restored; nothing was left half done."""
