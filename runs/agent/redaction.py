"""Keep the provider's API key from being split across deltas of the model's output.

A server may output the key. Each delta is masked on its own, which finds the key only if one delta
has all of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.conf import settings

from runners.llm.base import Delta, Part, Restarted


async def keep_key_whole(stream: AsyncGenerator[Part, None]) -> AsyncGenerator[Part, None]:
    """Yield the parts of a turn, deltas regrouped so that none ends within the API key.

    Text that may be the start of the key is held back until the next part shows whether it is.
    """
    key, held_back = str(settings.LLM.api_key or ""), ""
    async with aclosing(stream) as parts:
        async for part in parts:
            if isinstance(part, Delta):
                text = held_back + part.content
                held_back = _key_prefix_at_end(text, key)
                if len(text) > len(held_back):
                    yield Delta(text[: len(text) - len(held_back)])
                continue
            if held_back and not isinstance(part, Restarted):
                yield Delta(held_back)
            held_back = ""
            yield part


def _key_prefix_at_end(text: str, key: str) -> str:
    """Return the longest end of the text that is a proper prefix of the key."""
    if key and key in text:  # only what follows the whole key counts
        text = text.rpartition(key)[2]
    sizes = range(min(len(text), len(key) - 1), 0, -1)
    return next((text[-size:] for size in sizes if key.startswith(text[-size:])), "")
