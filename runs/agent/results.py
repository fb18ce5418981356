"""What a call answered, as the model sees it at once, and how it reads on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from runs.agent.journal_view import Hands
from runs.agent.prompt import error_told, shown_bytes
from runs.agent.tools import READ_ON

PREVIEW = 4000  # characters


async def fitted(
    output: Any, hands: Hands, *, keeps: Sequence[str] = ("digest", "screenshot")
) -> dict[str, Any]:
    """Return {result} as the model sees it at once; a long one is kept as an artifact, and shown by
    its beginning and the short fields that it `keeps`.
    """
    text = orjson.dumps(output)
    if len(text) <= shown_bytes():
        return {"result": output}
    kept = {"artifactId": await hands.keep_output(output), "sizeBytes": len(text)}
    told = f"Too long to show: this is its beginning; {READ_ON} reads on."
    preview = text.decode()[: min(PREVIEW, shown_bytes() // 2)]
    fields = output if isinstance(output, dict) else {}
    known = {name: fields[name] for name in keeps if name in fields}
    return {"result": {**known, "preview": preview}, **kept, "truncated": True, "note": told}


async def read_on(args: Mapping[str, Any], hands: Hands) -> dict[str, Any]:
    """Return what a call of `read_result` answers."""
    artifact_id, offset = args["artifactId"], args.get("offset", 0)
    chunk = await hands.read_kept(artifact_id, offset=offset, limit=shown_bytes())
    if "error" in chunk:
        return {"ok": False, "error": error_told(chunk["error"])}
    return {"ok": True, "result": chunk}
