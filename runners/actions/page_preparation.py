"""Prepare a page for a model: wait until it has loaded, then take a screenshot and its text.

(S1 §3.2, §4.5)
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import READABILITY, SCREENSHOT, WAIT_FOR_LOADED
from runners.actions.errors import InvalidTaskTab, OwnPage, PagePrepFailed, TaskTabClosed
from runners.actions.retries import PerformAction
from runners.tools.base import ToolResult

ATTEMPTS = 2
MIN_PAUSE, MAX_PAUSE = 0.5, 1.5  # seconds between the two attempts
PARTS = {"screenshot": SCREENSHOT.name, "readability": READABILITY.name}
_NO_PAGE = frozenset({InvalidTaskTab.code, TaskTabClosed.code, OwnPage.code})


async def prepare_page(perform: PerformAction, tab_id: int) -> ToolResult:
    """Wait until the page has loaded, then take a screenshot and its text, in up to two attempts.

    The output has `screenshot` and `readability` (the outputs of these actions), `missing` (the one
    that failed), `warnings`, and `downloads` that finished meanwhile, if any. A page that does not
    finish loading is used as it is. The error is PAGE_PREP_FAILED if both failed, or the error of
    an action that found no page to prepare.
    """
    args = {"tabId": tab_id}
    loaded = await perform(WAIT_FOR_LOADED.name, args)
    if _is_final(loaded):
        return loaded
    warnings = list((loaded.output or {}).get("warnings", ()))
    if not loaded.ok:
        warnings.append(f"The page is used as it is: {_message(loaded)}")
    results: dict[str, ToolResult] = {}
    for attempt in range(ATTEMPTS):
        if attempt:
            await asyncio.sleep(random.uniform(MIN_PAUSE, MAX_PAUSE))  # noqa: S311
        for part in [name for name in PARTS if _may_attempt(results.get(name))]:
            results[part] = await perform(PARTS[part], args)
            if _is_final(results[part]):
                return results[part]
        if not any(_may_attempt(result) for result in results.values()):
            break
    downloads = (loaded.output or {}).get("downloads")
    return _combine(results, warnings, {"downloads": downloads} if downloads else {})


def _combine(
    results: Mapping[str, ToolResult], warnings: list[str], more: Mapping[str, Any]
) -> ToolResult:
    failed = {part: result for part, result in results.items() if not result.ok}
    if len(failed) == len(PARTS):
        causes = {part: (result.error or {}).get("errorCode") for part, result in failed.items()}
        both = PagePrepFailed(
            "Neither a screenshot nor the text of the page could be read.",
            details={"causes": causes},
        )
        return ToolResult(ok=False, error=both.as_dict())
    output = dict(more)
    for part, result in results.items():
        data = dict(result.output or {})
        warnings += data.pop("warnings", [])
        if result.ok:
            output[part] = data
        else:
            warnings.append(f"No {part} of the page: {_message(result)}")
    return ToolResult(ok=True, output={**output, "missing": list(failed), "warnings": warnings})


def _may_attempt(result: ToolResult | None) -> bool:
    """Return whether a part was not attempted yet, or failed with a retryable error."""
    if result is None:
        return True
    return not result.ok and bool((result.error or {}).get("retryable"))


def _is_final(result: ToolResult) -> bool:
    return not result.ok and (result.error or {}).get("errorCode") in _NO_PAGE


def _message(result: ToolResult) -> str:
    return str((result.error or {}).get("message", ""))
