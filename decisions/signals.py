"""What the ground tells whoever listens above it, inside the transaction in which it happened."""

from __future__ import annotations

from django.dispatch import Signal

# A decision waits for a person from now on: `confirmation` (with its decision).
confirmation_opened = Signal()
# It was confirmed or refused, or its time is over: `confirmation` (with its decision).
decision_resolved = Signal()
