"""Probe the model for `manage.py doctor`."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import replace

from runners.llm.base import Delta, Done, LlmSettings, Message
from runners.llm.gateway import Gateway

PROBE_MS = 30_000
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
