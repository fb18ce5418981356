"""What can keep the stack from starting; each message tells a person why, and the way out.

StackError
├── HomeUnusable        CONTINUITY_HOME cannot hold our files
├── MigrationsMissing   the database named by DATABASE_URL is not ours to migrate unasked
├── UnsafeStart         settings that would expose the installation
├── PortTaken           somebody else listens on the port that was asked for
├── ServiceFailed          redis, web, worker or scheduler did not come up
└── BackupError       a backup cannot be made, or is not restored
"""

from __future__ import annotations


class StackError(Exception):
    """The stack cannot be started, joined or stopped, and why."""


class HomeUnusable(StackError):
    """CONTINUITY_HOME cannot be made, entered or written."""


class MigrationsMissing(StackError):
    """The database is reachable, but its schema is older than the code."""


class UnsafeStart(StackError):
    """The settings would expose the installation; nothing was started."""


class PortTaken(StackError):
    """The address asked for is in use."""


class ServiceFailed(StackError):
    """A part ended, or did not answer, before it was ready."""


class BackupError(StackError):
    """A backup cannot be made or restored, and why; nothing was left half done."""
