"""What a model says, in pieces of which none ends within the key to its server: a server may say
it, and what is told is masked a piece at a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.conf import settings

from runners.llm.base import Delta, Part, Restarted


async def keep_key_whole(chat: AsyncGenerator[Part, None]) -> AsyncGenerator[Part, None]:
    """Pass a turn on, where the words could be the beginning of the key once it is known."""
    key, held = str(settings.LLM.api_key or ""), ""
    async with aclosing(chat) as parts:
        async for part in parts:
            if isinstance(part, Delta):
                said = held + part.content
                held = _beginning(said, key)
                if len(said) > len(held):
                    yield Delta(said[: len(said) - len(held)])
                continue
            if held and not isinstance(part, Restarted):
                yield Delta(held)
            held = ""
            yield part


def _beginning(text: str, key: str) -> str:
    """Return the end of a text that the key may begin with; not the whole of it."""
    if key and key in text:  # behind it another may begin
        text = text.rpartition(key)[2]
    sizes = range(min(len(text), len(key) - 1), 0, -1)
    return next((text[-size:] for size in sizes if key.startswith(text[-size:])), "")
