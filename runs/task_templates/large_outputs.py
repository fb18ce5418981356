"""Outputs of tools that are too large for a step."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

import orjson

from decisions.validation.storable import storable
from runners.tools.registry import get_tool
from runs.task_templates.truncation import RESULT_BYTES, shorten


class Keeper(Protocol):
    """Who keeps an output that is too large."""

    def keep_output(self, output: Any) -> Awaitable[str]:
        """Keep an output, whole; return its artifactId."""


async def fit_output(name: str, output: Any, ctx: Keeper) -> tuple[Any, Mapping[str, Any]]:
    """Return what the tool `name` answered as a step keeps it, and how that is marked: whole and
    without a mark, or where it is large shortened within the tool's schema, marked `truncated` and
    with the `artifactId` of the whole.
    """
    whole = storable(output)
    if len(orjson.dumps(whole)) <= RESULT_BYTES:
        return whole, {}
    artifact_id, tool = await ctx.keep_output(whole), get_tool(name)
    if isinstance(whole, dict):
        short: Any = shorten(whole, RESULT_BYTES, tool.response if tool is not None else None)
    else:
        short = shorten({"output": whole}, RESULT_BYTES).get("output")
    return short, {"truncated": True, "artifactId": artifact_id}
