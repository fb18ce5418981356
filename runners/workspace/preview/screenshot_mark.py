"""A mark in the pictures that we write, so that we replace our own alone and never an asset."""

from __future__ import annotations

import struct
import zlib

_PNG_AT, _JPEG_AT = 33, 2  # behind the header chunk, behind the start of the image
_WORDS = b"continuity screenshot"
_TEXT = b"tEXt" + b"Software\0" + _WORDS
_PNG_MARK = struct.pack(">I", len(_TEXT) - 4) + _TEXT + struct.pack(">I", zlib.crc32(_TEXT))
_JPEG_MARK = b"\xff\xfe" + struct.pack(">H", len(_WORDS) + 2) + _WORDS


def add_mark(data: bytes) -> bytes:
    """Return a PNG or JPEG with the mark in it; it shows the same."""
    at, mark = _place(data)
    return data[:at] + mark + data[at:]


def has_mark(data: bytes) -> bool:
    """Tell whether a file is a picture of ours."""
    at, mark = _place(data)
    return data[at : at + len(mark)] == mark


def _place(data: bytes) -> tuple[int, bytes]:
    is_png = data.startswith(b"\x89PNG\r\n\x1a\n")
    return (_PNG_AT, _PNG_MARK) if is_png else (_JPEG_AT, _JPEG_MARK)
