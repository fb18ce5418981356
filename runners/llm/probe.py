"""Probe the model for `manage.py doctor`: whether it answers, and whether it sees pictures."""

from __future__ import annotations

import struct
import time
import zlib
from contextlib import aclosing
from dataclasses import replace

from runners.llm.base import Delta, Done, Image, LlmSettings, Message
from runners.llm.gateway import Gateway

PROBE_MS = 30_000
VISION_MAX_TOKENS = 256
PICTURE_EDGE = 64  # pixels
MAX_TOKENS = 16  # some models reason before the first word, and some reject a limit of 1


async def probe_model(settings: LlmSettings) -> str:
    """Request one word from the model, stop at the first part, and return how long that took.

    Raises:
        ToolFailed: The model does not answer; the message names the cause.
    """
    gateway = Gateway(replace(settings, max_output_tokens=MAX_TOKENS))
    started = time.monotonic()
    chat = gateway.stream_chat(messages=[Message("user", "Say ok.")], tools=(), timeout_ms=PROBE_MS)
    try:
        async with aclosing(chat):
            async for part in chat:
                if isinstance(part, Delta | Done):
                    break
    finally:
        await gateway.close()
    took = time.monotonic() - started
    return f"{settings.label} answers after {took:.1f} s"


async def probe_vision(settings: LlmSettings) -> str:
    """Show the model a red picture, and return what colour it says it sees.

    Raises:
        ToolFailed: The model does not answer, or its server refuses the picture.
    """
    question = "Which colour does this picture have? Answer with one word."
    messages = [Message("user", question, images=[Image(_red_picture(), "image/png")])]
    gateway = Gateway(replace(settings, max_output_tokens=VISION_MAX_TOKENS))
    try:
        chat = gateway.stream_chat(messages=messages, tools=(), timeout_ms=PROBE_MS)
        async with aclosing(chat):
            contents = [part.content async for part in chat if isinstance(part, Done)]
    finally:
        await gateway.close()
    return " ".join(contents[-1].split())[:80]


def _red_picture() -> bytes:
    row = b"\0" + b"\xff\0\0" * PICTURE_EDGE  # no filter, then RGB
    header = struct.pack(">IIBBBBB", PICTURE_EDGE, PICTURE_EDGE, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(row * PICTURE_EDGE)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
