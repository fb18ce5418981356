"""The language of the reply to a message."""

from __future__ import annotations

import re
from typing import Literal

SCAN_CHARS = 4000  # characters of a message that the pattern rules scan
Language = Literal["en", "zh"]
_HAN = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]{2,}")


def language_of(text: str) -> Language:
    """Return Chinese for a message with at least half as many Chinese characters as Latin words."""
    text = text[:SCAN_CHARS]
    han = len(_HAN.findall(text))
    return "zh" if han and 2 * han >= len(_WORD.findall(text)) else "en"
