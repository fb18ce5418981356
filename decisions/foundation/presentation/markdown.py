"""The text of Markdown that a model wrote, for places that show plain text."""

from __future__ import annotations

import re

LONGEST = 20_000  # characters; the rest of a longer text is left out
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_DELIMITER = re.compile(
    r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$"
)  # under a table's head
_RULE = re.compile(r"^\s*(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$")
_START = re.compile(r"^\s*(?:>\s?)*(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|\|\s*)?")
_CELLS = re.compile(r"\s*(?<!\\)\|\s*")
# An end may be missing: summaries are cut at a number of characters.
_LINK = re.compile(
    r"!?\[([^\[\]\n]*)\]\(\s*<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)[^()\n]*(?:\)|$)"
)
_ADDRESS = re.compile(r"<(https?://[^\s<>]+)>")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)([^\n]+?)(?<!`)\1(?!`)")
_EMPHASIS = (
    re.compile(r"(?<!\\)\*\*(?=\S)([^*\n]*[^\s\\])\*\*"),
    re.compile(r"(?<!\w)__(?=\S)([^_\n]*\S)__(?!\w)"),
    re.compile(r"~~(?=\S)([^~\n]*\S)~~"),
    re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]*[^\s*\\])\*(?![\w*])"),
    re.compile(r"(?<![\w\\])_(?=[^\s_])([^_\n]*[^\s_\\])_(?!\w)"),
)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~>])")


def plain_text(markdown: str) -> str:
    """Return a text without the marks of Markdown, on one line; of a link the text alone."""
    lines = (_plain_line(line) for line in markdown[:LONGEST].splitlines())
    return " ".join(line for line in lines if line)


def plain_lines(markdown: str) -> str:
    """Return a text without the marks of Markdown, its lines kept; a link has its address in
    brackets, for a person who answers a question about it.
    """
    lines = markdown[:LONGEST].splitlines()
    return "\n".join(_plain_line(line, has_addresses=True) for line in lines)


def _plain_line(line: str, *, has_addresses: bool = False) -> str:
    if _FENCE.match(line) or _DELIMITER.match(line) or _RULE.match(line):
        return ""
    is_row = line.lstrip().startswith("|")
    text = _START.sub("", line, count=1)
    if is_row:
        text = " · ".join(cell for cell in _CELLS.split(text) if cell.strip())
    text = _LINK.sub(lambda link: _link(link, has_addresses), text)
    text = _CODE.sub(r"\2", _ADDRESS.sub(r"\1", text))
    for emphasis in _EMPHASIS:
        text = emphasis.sub(r"\1", text)
    return " ".join(_ESCAPED.sub(r"\1", text).split())


def _link(link: re.Match[str], has_addresses: bool) -> str:
    text, address = link[1], link[2]
    if not text or text == address:
        return address
    return f"{text} ({address})" if has_addresses and address else text
