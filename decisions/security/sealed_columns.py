"""Encrypted columns: a value is bound to its table, column and row, so that it cannot be read from
another row or column into which it was copied.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from decisions.security.keys import is_current, is_unbound, seal, unseal, unseal_unbound


def seal_column(row: Model, column: str, plain: bytes) -> bytes:
    """Return a value encrypted for this column of this row.

    The row is known by its primary key, or where the database assigns that, by the model's
    `sealed_identity`.
    """
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
    """Encrypt a column of a row anew if it is of an older version or key, unless it changes
    meanwhile; return whether it was written.

    Raises:
        ValueError: As `unseal_column`.
    """
    sealed = bytes(getattr(row, column))
    if is_current(sealed, purpose=_purpose(row, column), bound_to=_identity(row)):
        return False
    new = seal_column(row, column, unseal_column(row, column))
    same = type(row)._default_manager.filter(pk=row.pk, **{column: sealed})
    return bool(same.update(**{column: new}))


def _purpose(row: Model, column: str) -> str:
    return f"{row._meta.db_table}.{column}"


def _identity(row: Any) -> str:
    return str(getattr(row, "sealed_identity", None) or row.pk)
