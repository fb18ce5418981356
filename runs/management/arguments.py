"""Types of arguments that several commands take."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime


def iso_time(text: str) -> datetime:
    """Parse an ISO 8601 date or time; without a time zone it is in UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not an ISO 8601 time") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
