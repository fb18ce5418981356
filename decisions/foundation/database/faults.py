"""What an error of the database means, by its code: SQLSTATE on PostgreSQL, result codes on SQLite.

Its Python class does not say it: a server that refuses writes raises `InternalError`, and a lock
timeout is an `OperationalError`, as a lost connection is. So this is the one module that names
these classes; others catch `django.db.Error`, and ask `fault_of` where the meaning matters.
"""

from __future__ import annotations

from enum import Enum

from django.db import DataError, Error, IntegrityError, InterfaceError, OperationalError


class Fault(Enum):
    """What a database error means for the caller.

    Attributes:
        UNAVAILABLE: the server is gone, starts, shuts down or lacks space, or the session was
            ended. A new connection may do it, now or later. If the statement was a commit, its
            outcome is unknown.
        READ_ONLY: the server takes no writes: it is a standby, or they are switched off. A new
            connection may reach another server.
        LOCKED: another transaction held a lock for too long; nothing was written.
        CONFLICT: the server rolled the transaction back because of another one; repeat it whole.
        REFUSED: the data break a constraint or do not fit; the same data are refused again.
        DEFECT: a defect of the program, of the schema or of its permissions.
    """

    UNAVAILABLE = "unavailable"
    READ_ONLY = "read-only"
    LOCKED = "locked"
    CONFLICT = "conflict"
    REFUSED = "refused"
    DEFECT = "defect"


NEW_CONNECTION = frozenset({Fault.UNAVAILABLE, Fault.READ_ONLY})  # the present one is of no use
_TEMPORARY = NEW_CONNECTION | {Fault.LOCKED, Fault.CONFLICT}
# By SQLSTATE, or by its class, the first two characters (PostgreSQL's manual, appendix A).
_BY_SQLSTATE = {
    "08": Fault.UNAVAILABLE,  # connection exception
    "0A000": Fault.UNAVAILABLE,  # a prepared statement's plan is outdated since a migration
    "22": Fault.REFUSED,  # data exception
    "23": Fault.REFUSED,  # integrity constraint violation
    "25006": Fault.READ_ONLY,  # a write in a read-only transaction
    "25P03": Fault.UNAVAILABLE,  # session ended: idle in a transaction for too long
    "25P04": Fault.UNAVAILABLE,  # session ended: the transaction took too long
    "26000": Fault.UNAVAILABLE,  # the session lacks a prepared statement: a pooler exchanged it
    "28": Fault.UNAVAILABLE,  # authorization refused: credentials are being exchanged
    "3D000": Fault.UNAVAILABLE,  # the database does not exist (yet)
    "40": Fault.CONFLICT,  # serialization failure, deadlock
    "40003": Fault.UNAVAILABLE,  # statement completion unknown
    "53": Fault.UNAVAILABLE,  # insufficient resources: disk, memory, connections
    "54": Fault.REFUSED,  # program limit exceeded: a row or a statement is too large
    "55P03": Fault.LOCKED,  # lock not available
    "57": Fault.UNAVAILABLE,  # operator intervention: shutdown, start, crash of another session
    "57014": Fault.LOCKED,  # the statement took too long and was canceled
    "58": Fault.UNAVAILABLE,  # system error: I/O
    "P0001": Fault.REFUSED,  # a trigger refused the write
    "XX000": Fault.UNAVAILABLE,  # internal error of the server, or of a pooler
}
# By primary result code (sqlite.org/rescode.html).
_BY_SQLITE_CODE = {
    3: Fault.UNAVAILABLE,  # PERM
    5: Fault.LOCKED,  # BUSY
    6: Fault.LOCKED,  # LOCKED
    7: Fault.UNAVAILABLE,  # NOMEM
    8: Fault.READ_ONLY,  # READONLY
    9: Fault.LOCKED,  # INTERRUPT
    10: Fault.UNAVAILABLE,  # IOERR
    13: Fault.UNAVAILABLE,  # FULL
    14: Fault.UNAVAILABLE,  # CANTOPEN
    15: Fault.UNAVAILABLE,  # PROTOCOL: a lock of the write-ahead log
    17: Fault.CONFLICT,  # SCHEMA
    18: Fault.REFUSED,  # TOOBIG
    19: Fault.REFUSED,  # CONSTRAINT
    20: Fault.REFUSED,  # MISMATCH
}
_BUSY_SNAPSHOT = 5 | 2 << 8  # a read transaction that wants to write after another one wrote


def fault_of(error: BaseException | None) -> Fault | None:
    """Return what a database error means, be it Django's or the driver's; None for other errors."""
    cause = error.__cause__ if isinstance(error, Error) and error.__cause__ else error
    sqlstate = getattr(cause, "sqlstate", None)
    if sqlstate is not None:
        by_class = _BY_SQLSTATE.get(sqlstate[:2], Fault.DEFECT)
        return _BY_SQLSTATE.get(sqlstate, by_class)
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        is_stale = code == _BUSY_SNAPSHOT
        return Fault.CONFLICT if is_stale else _BY_SQLITE_CODE.get(code & 0xFF, Fault.DEFECT)
    return _fault_by_class(error)


def _fault_by_class(error: BaseException | None) -> Fault | None:
    """Return the fault of an error that the driver raised by itself, without the server."""
    names = {base.__name__ for base in type(error).__mro__}  # the driver's classes have these too
    if not isinstance(error, Error) and "psycopg" not in type(error).__module__:
        return None
    if names & {OperationalError.__name__, InterfaceError.__name__}:
        return Fault.UNAVAILABLE  # no connection, or it broke
    if names & {DataError.__name__, IntegrityError.__name__}:
        return Fault.REFUSED
    return Fault.DEFECT


def is_temporary(error: BaseException | None) -> bool:
    """Return whether what failed may succeed later; False for errors of other kinds."""
    return fault_of(error) in _TEMPORARY
