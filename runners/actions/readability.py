"""How much of a page's text is handed out, and how (S1 §4.2 B); sizes in bytes of UTF-8."""

from __future__ import annotations

from runners.actions.errors import ReadabilityTooLarge

INLINE_BELOW = 262_144
AT_MOST = 2_097_152


def goes_inline(size_bytes: int) -> bool:
    """Tell whether a text of this size is part of the result; else it is an artifact alone.

    Raises:
        ReadabilityTooLarge: It is more than anybody is given.
    """
    if size_bytes > AT_MOST:
        raise ReadabilityTooLarge(
            f"The page's text has more than {AT_MOST} bytes.", details={"limitBytes": AT_MOST}
        )
    return size_bytes < INLINE_BELOW
