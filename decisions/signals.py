"""Django signals of confirmations and tokens, sent inside the transaction of the change."""

from __future__ import annotations

from django.dispatch import Signal

# A decision now waits for a person; argument: `confirmation` (with its decision).
confirmation_opened = Signal()
# A decision was confirmed or refused, has expired, or is requested anew; argument: `confirmation`
# (with its decision).
decision_resolved = Signal()
# A token may act for other users than before; argument: `token`.
token_users_changed = Signal()
