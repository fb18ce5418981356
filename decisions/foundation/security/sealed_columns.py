"""Encrypted columns: a value is bound to its table, column and row, so that it cannot be read from
another row or column into which it was copied.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Model

from decisions.foundation.security.keys import (
    is_current,
    is_current_unbound,
    is_unbound,
    seal,
    seal_unbound,
    unseal,
    unseal_unbound,
)

# The columns that the previous version reads too. It does not know bound values.
_OF_PREVIOUS_VERSION = frozenset(
    {
        "runners_browsersession.sealed_state",
        "runners_executiontarget.sealed_auth_token",
        "runs_runsecret.sealed",
        "runs_webhook.secret",
    }
)


def seal_column(row: Model, column: str, plain: bytes) -> bytes:
    """Return a value encrypted for this column of this row.

    The row is known by its primary key, or where the database assigns that, by the model's
    `sealed_identity`. During a rolling upgrade, values that the previous version reads are bound to
    nothing.
    """
    if _is_for_previous_version(row, column):
        return seal_unbound(plain)
    return seal(plain, purpose=_purpose(row, column), bound_to=_identity(row))


def unseal_column(row: Model, column: str) -> bytes:
    """Decrypt an encrypted column of a row; also a value that an older version wrote, which is
    bound to nothing (`manage.py reencrypt` replaces it).

    Raises:
        ValueError: It is empty, was encrypted for another column or row or under a key that is not
            configured, or was modified since.
    """
    sealed = bytes(getattr(row, column) or b"")
    if is_unbound(sealed):
        return unseal_unbound(sealed)
    return unseal(sealed, purpose=_purpose(row, column), bound_to=_identity(row))


def reencrypt(row: Model, column: str) -> bool:
    """Encrypt a column of a row anew if it is not as `seal_column` writes it now, under the newest
    key, unless it changes meanwhile; return whether it was written.

    Raises:
        ValueError: As `unseal_column`.
    """
    sealed = bytes(getattr(row, column))
    if _is_as_written_now(row, column, sealed):
        return False
    new = seal_column(row, column, unseal_column(row, column))
    same = type(row)._default_manager.filter(pk=row.pk, **{column: sealed})
    return bool(same.update(**{column: new}))


def _is_as_written_now(row: Model, column: str, sealed: bytes) -> bool:
    if _is_for_previous_version(row, column):
        return is_current_unbound(sealed)
    return is_current(sealed, purpose=_purpose(row, column), bound_to=_identity(row))


def _is_for_previous_version(row: Model, column: str) -> bool:
    return settings.ROLLING_UPGRADE and _purpose(row, column) in _OF_PREVIOUS_VERSION


def _purpose(row: Model, column: str) -> str:
    return f"{row._meta.db_table}.{column}"


def _identity(row: Any) -> str:
    return str(getattr(row, "sealed_identity", None) or row.pk)
