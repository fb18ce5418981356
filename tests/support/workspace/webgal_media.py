"""Generate the pictures and sounds of the sample game in tests/data/webgal/game.

The files are tiny, and their bytes are the same each time.

    python -m tests.support.workspace.webgal_media     writes the files again
"""

from __future__ import annotations

import json
import math
import struct
import wave
import zlib
from io import BytesIO
from pathlib import Path

GAME = Path(__file__).parents[2] / "data" / "webgal" / "game"
Colour = tuple[int, int, int]
PICTURES: dict[str, tuple[int, int, Colour, Colour]] = {
    "background/beach.png": (16, 9, (120, 190, 255), (240, 220, 160)),
    "background/classroom.png": (16, 9, (250, 245, 230), (150, 110, 70)),
    "background/night/rooftop.png": (16, 9, (10, 15, 60), (60, 60, 80)),
    "figure/yukino.png": (4, 8, (40, 40, 60), (230, 230, 240)),
    "figure/yukino/smile.png": (4, 8, (40, 40, 60), (255, 210, 220)),
    "figure/shore.png": (4, 8, (90, 60, 40), (200, 230, 210)),
}
SOUNDS = {
    "bgm/waves.wav": 110,
    "bgm/title.wav": 220,
    "vocal/yukino/v1.wav": 440,
    "vocal/yukino/v2.wav": 494,
    "vocal/bell.wav": 880,
}
MODEL = {"Version": 3, "FileReferences": {"Moc": "shore.moc3", "Textures": []}}


def picture(width: int, height: int, above: Colour, below: Colour) -> bytes:
    """Return a PNG of two colours, one above the other."""
    half = height // 2
    rows = [bytes((0, *(above if row < half else below) * width)) for row in range(height)]
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows), 0)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def sound(hertz: int) -> bytes:
    """Return a WAV file with a tone of 50 ms."""
    buffer = BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(
            bytes(128 + round(40 * math.sin(2 * math.pi * hertz * n / 8000)) for n in range(400))
        )
    return buffer.getvalue()


def media() -> dict[str, bytes]:
    """Return every picture, sound and model of the game by its path below `game`."""
    files = {path: picture(*picture_args) for path, picture_args in PICTURES.items()}
    files |= {path: sound(hertz) for path, hertz in SOUNDS.items()}
    files["figure/live/shore.model3.json"] = json.dumps(MODEL).encode()
    return files


def main() -> None:
    """Write them into the sample game."""
    for path, data in media().items():
        target = GAME / "game" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


if __name__ == "__main__":
    main()
