"""Fit a tool's output into a step or an answer; a large one is stored whole as an artifact."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from decisions.foundation.validation.storable import storable
from runners.tools.base import SaveArtifact
from runners.tools.registry import get_tool
from runs.task_templates.truncation import RESULT_BYTES, shorten


class OutputStore(Protocol):
    """Stores an output that is too large to be kept inline."""

    def store_output(self, output: Any) -> Awaitable[str]:
        """Store an output whole as an artifact; return its artifactId."""


@dataclass(frozen=True, slots=True)
class _ArtifactOutputStore:
    save: SaveArtifact

    async def store_output(self, output: Any) -> str:
        return await self.save(
            orjson.dumps(output), name="output.json", mime_type="application/json"
        )


async def fit_output(name: str, output: Any, store: OutputStore) -> tuple[Any, Mapping[str, Any]]:
    """Return the output of the tool `name` in at most RESULT_BYTES, and its marks.

    A small output is returned whole, without marks. A large one is shortened so that it stays valid
    against the tool's schema, and marked `truncated` with the `artifactId` of the whole.
    """
    whole = storable(output)
    if len(orjson.dumps(whole)) <= RESULT_BYTES:
        return whole, {}
    artifact_id, tool = await store.store_output(whole), get_tool(name)
    if isinstance(whole, dict):
        short: Any = shorten(whole, RESULT_BYTES, tool.response if tool is not None else None)
    else:
        short = shorten({"output": whole}, RESULT_BYTES).get("output")
    return short, {"truncated": True, "artifactId": artifact_id}


async def fit_call_output(
    name: str, output: Any, save: SaveArtifact
) -> tuple[Any, Mapping[str, Any]]:
    """Return a direct call's output and its marks as `fit_output` does; `save` stores the whole."""
    return await fit_output(name, output, _ArtifactOutputStore(save))
