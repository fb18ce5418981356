"""Pictures of pages for a model that can see: screenshots with the numbers of the elements."""

from __future__ import annotations

import base64
from typing import Any

from django.conf import settings

from artifacts.chunks import CHUNK_MAX
from runners.actions.catalogue import SCREENSHOT
from runners.llm.base import Image
from runs.agent.journal_view import Journal
from runs.agent.pages.observations import newest_observations
from runs.steps import StepContext

MAX_BYTES = 4 * 1024 * 1024  # a larger picture is not sent; providers accept 5 MB


async def take_picture(tab_id: int, ctx: StepContext) -> dict[str, Any]:
    """Take a numbered screenshot for the next turn; return {picture}, its artifactId.

    Returns {} if the model gets no pictures, or none could be taken: the model then works with the
    text alone.
    """
    if not settings.LLM.can_see:
        return {}
    args = {"tabId": tab_id, "numbers": True, "longEdge": settings.LLM.image_long_edge}
    taken = await ctx.attempt(SCREENSHOT.name, args)
    if not taken.ok or taken.output is None:
        return {}
    return {"picture": taken.output["artifactId"]}


async def load_picture(journal: Journal, ctx: StepContext) -> Image | None:
    """Return the picture of the page that was observed last, or None."""
    newest = newest_observations(journal)[-1:]
    if not settings.LLM.can_see or not newest or not newest[0].picture:
        return None
    data, is_complete = b"", False
    while not is_complete and len(data) <= MAX_BYTES:
        chunk = await ctx.read_stored_chunk(newest[0].picture, offset=len(data), limit=CHUNK_MAX)
        if "error" in chunk:  # it expired
            return None
        data += base64.b64decode(chunk["data"])
        is_complete = chunk["complete"]
    return Image(data, chunk["mimeType"]) if is_complete else None
