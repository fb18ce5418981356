"""The result of a tool call as the model gets it; a long one is stored, and read in chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from runs.agent.prompt import error_for_model, result_bytes
from runs.agent.tools import READ_RESULT
from runs.steps import StepContext

PREVIEW_CHARACTERS = 4000


async def fit_result(
    output: Any,
    ctx: StepContext,
    *,
    keeps: Sequence[str] = ("screenshot", "tabId"),
    at_most: int | None = None,
) -> dict[str, Any]:
    """Return {result}; for an output over `at_most` bytes {result: {preview}, artifactId,
    sizeBytes, truncated, note}, and the whole is stored as an artifact.

    Args:
        keeps: short fields of the output to keep beside the preview.
        at_most: None means `result_bytes()`.
    """
    text, limit = orjson.dumps(output), result_bytes() if at_most is None else at_most
    if len(text) <= limit:
        return {"result": output}
    artifact = {"artifactId": await ctx.store_output(output), "sizeBytes": len(text)}
    note = f"Too long to show: this is its beginning; {READ_RESULT} reads on."
    preview = text.decode()[: min(PREVIEW_CHARACTERS, limit // 2)]
    fields = output if isinstance(output, dict) else {}
    kept = {name: fields[name] for name in keeps if name in fields}
    return {"result": {**kept, "preview": preview}, **artifact, "truncated": True, "note": note}


async def read_more(args: Mapping[str, Any], ctx: StepContext) -> dict[str, Any]:
    """Return the result of a `read_result` call: a chunk of a stored result."""
    artifact_id, offset = args["artifactId"], args.get("offset", 0)
    chunk = await ctx.read_stored_chunk(artifact_id, offset=offset, limit=result_bytes())
    if "error" in chunk:
        return {"ok": False, "error": error_for_model(chunk["error"])}
    return {"ok": True, "result": chunk}
