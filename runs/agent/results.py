"""What a call answered, as the model sees it at once, and how it reads on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from runs.agent.journal_view import AgentContext
from runs.agent.prompt import error_for_model, result_bytes
from runs.agent.tools import READ_RESULT

PREVIEW_CHARACTERS = 4000  # characters


async def fit_result(
    output: Any, ctx: AgentContext, *, keeps: Sequence[str] = ("digest", "screenshot")
) -> dict[str, Any]:
    """Return {result} as the model sees it at once; a long one is kept as an artifact, and shown by
    its beginning and the short fields that it `keeps`.
    """
    text = orjson.dumps(output)
    if len(text) <= result_bytes():
        return {"result": output}
    kept = {"artifactId": await ctx.store_output(output), "sizeBytes": len(text)}
    told = f"Too long to show: this is its beginning; {READ_RESULT} reads on."
    preview = text.decode()[: min(PREVIEW_CHARACTERS, result_bytes() // 2)]
    fields = output if isinstance(output, dict) else {}
    known = {name: fields[name] for name in keeps if name in fields}
    return {"result": {**known, "preview": preview}, **kept, "truncated": True, "note": told}


async def read_more(args: Mapping[str, Any], ctx: AgentContext) -> dict[str, Any]:
    """Return what a call of `read_result` answers."""
    artifact_id, offset = args["artifactId"], args.get("offset", 0)
    chunk = await ctx.read_stored_chunk(artifact_id, offset=offset, limit=result_bytes())
    if "error" in chunk:
        return {"ok": False, "error": error_for_model(chunk["error"])}
    return {"ok": True, "result": chunk}
