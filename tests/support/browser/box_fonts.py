"""Create fonts that draw a box for each character: the fallback font and fonts for tests.

`python -m tests.support.browser.box_fonts` writes the fallback font of the product.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from runners.browser.pool.fallback_font import FAMILY, FOLDER

EM = 1000
SPACE, NARROW, WIDE = 1, 2, 3  # glyph 0, for characters not in the font, is a narrow box
# First character, last character, glyph. The ranges leave out other spaces, which browsers derive
# from U+0020, and combining marks that are used with letters of any script: one box would replace
# letter and mark together.
EVERY_CHARACTER = (
    (0x0020, 0x0020, SPACE),
    (0x0021, 0x009F, NARROW),
    (0x00A1, 0x02FF, NARROW),
    (0x0370, 0x10FF, NARROW),
    (0x1100, 0x167F, WIDE),
    (0x1681, 0x1AAF, NARROW),
    (0x1B00, 0x1DBF, NARROW),
    (0x1E00, 0x1FFF, NARROW),
    (0x200B, 0x202E, NARROW),
    (0x2030, 0x205E, NARROW),
    (0x2060, 0x20CF, NARROW),
    (0x2100, 0x2FFF, WIDE),
    (0x3001, 0xFE1F, WIDE),
    (0xFE30, 0x3FFFF, WIDE),
    (0xE0000, 0xE0FFF, NARROW),
)


def box_font(
    family: str,
    characters: Sequence[tuple[int, int, int]],
    *,
    style: str = "Regular",
    narrow: int = 600,
) -> bytes:
    """Return a TrueType font with a box for each character.

    `narrow` is the width of a narrow box in thousandths of an em.
    """
    widths = [narrow, 300, narrow, EM]
    outlines = [_box(narrow), b"", _box(narrow), _box(EM)]
    offsets = [sum(map(len, outlines[:n])) // 2 for n in range(len(outlines) + 1)]
    tables = {
        b"cmap": _cmap(characters),
        b"glyf": b"".join(outlines),
        b"head": struct.pack(
            ">4I2H2Q4h2H3h",
            *(0x10000, 0x10000, 0, 0x5F0F3CF5, 3, EM, 0, 0, 0, -120, EM, 780, 0, 8, 2, 0, 0),
        ),
        b"hhea": struct.pack(
            ">I3hH11hH", 0x10000, 800, -200, 0, EM, 60, 60, 940, 1, *[0] * 7, len(widths)
        ),
        b"hmtx": b"".join(struct.pack(">Hh", width, 60) for width in widths),
        b"loca": struct.pack(f">{len(offsets)}H", *offsets),
        b"maxp": struct.pack(">I14H", 0x10000, len(widths), 8, 2, 0, 0, 2, *[0] * 8),
        b"name": _name(family, style),
        b"post": struct.pack(">2I2h5I", 0x30000, 0, -100, 50, *[0] * 5),
    }
    directory, data = b"", b""
    data_offset = 12 + 16 * len(tables)
    for tag, table in tables.items():
        padded = table + bytes(-len(table) % 4)
        checksum = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        directory += tag + struct.pack(">3I", checksum, data_offset + len(data), len(table))
        data += padded
    search = struct.pack(">4H", len(tables), 128, 3, 16 * len(tables) - 128)
    return struct.pack(">I", 0x10000) + search + directory + data


def _box(width: int) -> bytes:
    """Return the outline of a frame: its outer edge, and its inner edge in opposite direction."""
    left, bottom, right, top, line = 60, -120, width - 60, 780, 40
    inner = (left + line, bottom + line, right - line, top - line)
    corners = [(left, bottom), (left, top), (right, top), (right, bottom)]
    corners += [(inner[0], inner[1]), (inner[2], inner[1]), (inner[2], inner[3])]
    corners += [(inner[0], inner[3])]
    outline = struct.pack(">5h3H", 2, left, bottom, right, top, 3, 7, 0) + bytes([1] * 8)
    for coordinates in zip(*corners, strict=True):
        steps = [
            position - previous
            for position, previous in zip(coordinates, (0, *coordinates), strict=False)
        ]
        outline += struct.pack(">8h", *steps)
    return outline + bytes(-len(outline) % 4)


def _cmap(characters: Sequence[tuple[int, int, int]]) -> bytes:
    """Return the `cmap` table in format 13, which maps a range of characters to one glyph."""
    ranges = b"".join(struct.pack(">3I", *entry) for entry in characters)
    table = struct.pack(">2H3I", 13, 0, 16 + len(ranges), 0, len(characters)) + ranges
    return struct.pack(">4HI", 0, 1, 3, 10, 12) + table


def _name(family: str, style: str) -> bytes:
    texts = {1: family, 2: style, 4: family, 6: family.replace(" ", "")}
    records, strings = b"", b""
    for number, text in texts.items():
        encoded = text.encode("utf-16-be")
        records += struct.pack(">6H", 3, 1, 0x409, number, len(encoded), len(strings))
        strings += encoded
    return struct.pack(">3H", 0, len(texts), 6 + len(records)) + records + strings


if __name__ == "__main__":
    (FOLDER / "fallback.ttf").write_bytes(box_font(FAMILY, EVERY_CHARACTER))
