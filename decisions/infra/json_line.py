"""JSON that every reader takes for one line."""

from __future__ import annotations

# NEL and the two Unicode separators: readers that split a stream "into lines" often end one there,
# and then wait for ever for the rest. In JSON they stand in texts alone, where they can be escaped.
_ENDS = {
    "\u0085".encode(): b"\\u0085",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def escape_line_separators(text: bytes) -> bytes:
    """Return JSON in UTF-8 with these characters escaped; it means the same."""
    for end, escaped in _ENDS.items():
        if end in text:
            text = text.replace(end, escaped)
    return text
