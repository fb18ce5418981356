"""What parts above connect to when Django starts: the signals of confirmations and tokens, sent
inside the transaction of the change, and the provider of `CallInformation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from django.dispatch import Signal

if TYPE_CHECKING:
    from decisions.authorization.call_information import CallInformation

# A decision now waits for a person; argument: `confirmation` (with its decision).
confirmation_opened = Signal()
# A decision was confirmed or refused, has expired, or is requested anew; argument: `confirmation`
# (with its decision).
decision_resolved = Signal()
# A token may act for other users than before; argument: `token`.
token_users_changed = Signal()

_providers: list[Callable[[], CallInformation]] = []


def provide_call_information(provider: Callable[[], CallInformation]) -> None:
    """Set the function that returns what authorization reads of runs and targets.

    The provider imports it only when it is called, so that starting stays fast.
    """
    _providers[:] = [provider]


def call_information() -> CallInformation:
    """Return the functions that the part above provides.

    Raises:
        ImproperlyConfigured: No part provides them.
    """
    if not _providers:
        raise ImproperlyConfigured(
            "No installed app provides call information. Add `runs` to INSTALLED_APPS, or call"
            " provide_call_information in the ready method of your own app."
        )
    return _providers[0]()
