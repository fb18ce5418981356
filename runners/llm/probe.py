"""Does the model answer? Asked by `manage.py doctor`."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import replace

from runners.llm.base import Delta, Done, LlmSettings, Message
from runners.llm.gateway import Gateway

PROBE_MS = 30_000
ENOUGH_TOKENS = 16  # some models think before the first word, and some refuse a limit of 1


async def probe_model(settings: LlmSettings) -> str:
    """Ask the model for a word, leave with the first, and say how that went.

    Raises:
        ToolFailed: It does not answer; the message says what is wrong.
    """
    gateway = Gateway(replace(settings, max_output_tokens=ENOUGH_TOKENS))
    began = time.monotonic()
    chat = gateway.stream_chat(messages=[Message("user", "Say ok.")], tools=(), timeout_ms=PROBE_MS)
    try:
        async with aclosing(chat):
            async for part in chat:
                if isinstance(part, Delta | Done):
                    break
    finally:
        await gateway.close()
    took = time.monotonic() - began
    return f"{settings.label} answers after {took:.1f} s"
