"""Print the text of the PDF on standard input; a program of its own, because a PDF can make its
reader loop or use up memory.
"""

from __future__ import annotations

import io
import resource
import sys

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
        text = page.extract_text()[:left]
        left -= len(text)
        sys.stdout.buffer.write(f"{text}\n\n".encode("utf-8", "replace"))
        if left <= 0:
            return


if __name__ == "__main__":
    main()
