"""Print the text of the PDF on standard input; a program of its own, because a PDF can make its
reader loop or use up memory.
"""

from __future__ import annotations

import io
import resource
import sys
from typing import Any

MEMORY_BYTES = 1024 * 1024 * 1024
CPU_SECONDS = 20
MAX_CHARACTERS = 5_000_000


def main() -> None:
    """Read the PDF page by page, up to MAX_CHARACTERS."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    from pypdf import PdfReader  # after the limits; no other process imports it

    left = MAX_CHARACTERS
    for page in PdfReader(io.BytesIO(sys.stdin.buffer.read())).pages:
        text = _text_of(page)[:left]
        left -= len(text)
        sys.stdout.buffer.write(f"{text}\n\n".encode("utf-8", "replace"))
        if left <= 0:
            return


def _text_of(page: Any) -> str:
    """Return the text of one page; a page that cannot be read does not hide the others."""
    try:
        text: str = page.extract_text()
    except Exception as error:  # noqa: BLE001  (a damaged page raises many kinds)
        return f"[this page could not be read: {type(error).__name__}]"
    return text


if __name__ == "__main__":
    main()
