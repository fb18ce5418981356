"""What a waiting call works on: as it was when the call was requested, and as it is now."""

from __future__ import annotations

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from decisions.authorization.sealed_arguments import (
    CannotBeShown,
    has_same_target,
    open_basis,
    open_renewals,
)
from decisions.models import Decision

_TARGET = _("The target of this call has changed since the call was requested.")
_BASIS = _("What this call works on has changed since the call was requested.")


def change_since_request(decision: Decision, basis: str | None) -> str:
    """Return what has changed since the call was requested, in a sentence; empty: nothing.

    Args:
        basis: as `CallInformation.basis_of` returns it.

    Raises:
        CannotBeShown: As `sealed_arguments.open_arguments`.
    """
    if not has_same_target(decision):
        return gettext(_TARGET)
    return "" if basis == open_basis(decision) else gettext(_BASIS)


def stored_basis(decision: Decision) -> str | None:
    """Return the digest of what the call's preview was computed from when it was requested; None
    where there is none or it cannot be read.
    """
    try:
        return open_basis(decision)
    except CannotBeShown:
        return None


def stored_renewals(decision: Decision) -> int:
    """Return how often the confirmation of a call was requested anew before this decision."""
    try:
        return open_renewals(decision)
    except CannotBeShown:
        return 0
