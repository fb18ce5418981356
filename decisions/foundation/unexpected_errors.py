"""The refusal of a call that raised an unexpected exception; every transport answers with it."""

from __future__ import annotations

import logging

from decisions.foundation.database.faults import Fault, fault_of
from decisions.foundation.errors import NotReady, Refused
from decisions.foundation.infra.ids import new_id

log = logging.getLogger(__name__)


class InternalError(Refused):
    """A defect; the log has its traceback under the error id."""

    http_status = 500
    recovery = "Give the operator the error id, under which the server's log has the cause."


class StorageUnavailable(NotReady):
    """The database or the artifact storage is unavailable, or takes no writes."""

    recovery = "Try again in a few seconds; /readyz shows which part is unavailable."


class StorageBusy(StorageUnavailable):
    """Another transaction held a lock of the database for too long, or made this one roll back."""

    recovery = "Try again in a few seconds. If it fails again, give the operator the error id."


def log_unexpected(error: BaseException | None, *, call: str = "The call") -> Refused:
    """Log an exception under a new error id and return the refusal, which tells only that id.

    Args:
        call: what failed, as its log line and message begin.
    """
    error_id = new_id("err_")
    log.error("%s failed unexpectedly", call, exc_info=error, extra={"errorId": error_id})
    details = {"errorId": error_id}
    if isinstance(error, OSError):
        details["causeCode"] = "STORAGE"
        return StorageUnavailable("The artifact storage is unavailable.", details=details)
    unavailable = details | {"causeCode": "STORAGE_UNAVAILABLE"}
    match fault_of(error):
        case Fault.UNAVAILABLE:
            return StorageUnavailable("The database is unavailable.", details=unavailable)
        case Fault.READ_ONLY:
            message = "The database takes no writes now."
            return StorageUnavailable(message, details=unavailable)
        case Fault.LOCKED:
            message = "A lock in the database was not released in time."
            return StorageBusy(message, details=unavailable)
        case Fault.CONFLICT:
            message = "The database rolled the call back because of a concurrent one."
            return StorageBusy(message, details=unavailable)
    message = f"{call} failed: internal error. The server's log has it under {error_id}."
    return InternalError(message, details=details)
