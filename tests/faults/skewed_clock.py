"""A template module that shifts the wall clock of its process by CONTINUITY_HOME/clock seconds.

The monotonic clock does not change, as when an operator sets the system clock.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from django.conf import settings

_PACKAGES = ("runs.", "artifacts.", "decisions.")


class SkewedDatetime(datetime):
    """A datetime class whose now() is shifted."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """Return the shifted time."""
        shift = Path(settings.CONTINUITY_HOME) / f"clock-{'-'.join(sys.argv[1:2])}"
        try:
            seconds = float(shift.read_text() or 0)  # empty while it is written
        except FileNotFoundError:
            seconds = 0.0
        return datetime.now(tz) + timedelta(seconds=seconds)


for _name, _module in list(sys.modules.items()):
    if _name.startswith(_PACKAGES) and getattr(_module, "datetime", None) is datetime:
        _module.datetime = SkewedDatetime  # type: ignore[attr-defined]
