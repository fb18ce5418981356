"""Size limits of a page's text: inline or artifact (S1 §4.2 B); sizes in bytes of UTF-8."""

from __future__ import annotations

from runners.actions.errors import ReadabilityTooLarge

INLINE_LIMIT_BYTES = 262_144
TEXT_LIMIT_BYTES = 2_097_152


def is_inline(size_bytes: int) -> bool:
    """Return whether a text of this size is included in the result; else it is only an artifact.

    Raises:
        ReadabilityTooLarge: The size exceeds TEXT_LIMIT_BYTES.
    """
    if size_bytes > TEXT_LIMIT_BYTES:
        raise ReadabilityTooLarge(
            f"The page's text has more than {TEXT_LIMIT_BYTES} bytes.",
            details={"limitBytes": TEXT_LIMIT_BYTES},
        )
    return size_bytes < INLINE_LIMIT_BYTES
