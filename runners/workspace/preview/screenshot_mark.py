"""Mark the screenshots that tools write, so that a new one never replaces a project's own image."""

from __future__ import annotations

import struct
import zlib

_PNG_OFFSET, _JPEG_OFFSET = 33, 2  # behind the header chunk, behind the start of the image
_MARK = b"continuity screenshot"
_TEXT = b"tEXt" + b"Software\0" + _MARK
_PNG_MARK = struct.pack(">I", len(_TEXT) - 4) + _TEXT + struct.pack(">I", zlib.crc32(_TEXT))
_JPEG_MARK = b"\xff\xfe" + struct.pack(">H", len(_MARK) + 2) + _MARK


def add_mark(data: bytes) -> bytes:
    """Return a PNG or JPEG with the mark in its metadata; the image is unchanged."""
    offset, mark = _position(data)
    return data[:offset] + mark + data[offset:]


def has_mark(data: bytes) -> bool:
    """Return whether a file is a screenshot with the mark."""
    offset, mark = _position(data)
    return data[offset : offset + len(mark)] == mark


def _position(data: bytes) -> tuple[int, bytes]:
    is_png = data.startswith(b"\x89PNG\r\n\x1a\n")
    return (_PNG_OFFSET, _PNG_MARK) if is_png else (_JPEG_OFFSET, _JPEG_MARK)
