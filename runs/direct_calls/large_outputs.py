"""Outputs of runners that are too large for an answer: as in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from runners.tools.base import SaveArtifact
from runs.task_templates.large_outputs import fit_output


@dataclass(frozen=True, slots=True)
class _Keeper:
    save: SaveArtifact

    async def keep_output(self, output: Any) -> str:
        """Keep an output, whole; return its artifactId."""
        return await self.save(
            orjson.dumps(output), name="output.json", mime_type="application/json"
        )


async def fitted(name: str, output: Any, save: SaveArtifact) -> tuple[Any, Mapping[str, Any]]:
    """Return what a tool answered as an answer has it, and its marks, as `fit_output` does."""
    return await fit_output(name, output, _Keeper(save))
