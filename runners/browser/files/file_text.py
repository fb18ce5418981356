"""The media type and the text of a file."""

from __future__ import annotations

import codecs
import mimetypes
import subprocess
import sys
from pathlib import Path

from runners.child_environment import child_environment

PDF, PLAIN, BYTES = "application/pdf", "text/plain", "application/octet-stream"
TEXTS = frozenset({"application/json", "application/xml", "application/javascript"})
_PDF_TO_TEXT = Path(__file__).parent / "pdf_to_text.py"


def media_type_of(file_name: str, data: bytes) -> str:
    """Return the media type of a file, by its name if that has a known ending."""
    if data.startswith(b"%PDF-"):
        return PDF
    guessed = mimetypes.guess_type(file_name, strict=False)[0]
    return guessed or (PLAIN if _as_unicode(data) is not None else BYTES)


def has_text(media_type: str) -> bool:
    """Return whether files of this type have a text."""
    return media_type.startswith("text/") or media_type in TEXTS or media_type == PDF


def text_of(data: bytes, media_type: str, *, seconds: float) -> str | None:
    """Return the text of a text file or a PDF; None if there is none, or not in time. Blocks."""
    if media_type == PDF:
        return _text_of_pdf(data, seconds)
    text = _as_unicode(data)
    if text is None and b"\0" not in data:
        text = data.decode("cp1252", "replace")  # what browsers take a text without a charset for
    return text


def _as_unicode(data: bytes) -> str | None:
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _text_of_pdf(data: bytes, seconds: float) -> str | None:
    command = [sys.executable, str(_PDF_TO_TEXT)]
    try:
        done = subprocess.run(
            command,
            input=data,
            capture_output=True,
            timeout=seconds,
            env=child_environment(),
            check=True,
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return done.stdout.decode().strip() or None
