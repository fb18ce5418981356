"""Preparing a page for a model: loaded, then a picture and the text of it (S1 §3.2, §4.5)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import READABILITY, SCREENSHOT, WAIT_FOR_LOADED
from runners.actions.errors import InvalidTaskTab, OwnPage, PagePrepFailed, TaskTabClosed
from runners.actions.retries import Act, Pause
from runners.tools.base import ToolResult

TRIES = 2
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 1.5  # seconds between the two tries
PARTS = {"screenshot": SCREENSHOT.name, "readability": READABILITY.name}
_NO_PAGE = frozenset({InvalidTaskTab.code, TaskTabClosed.code, OwnPage.code})


async def prepare_page(act: Act, tab_id: int, *, pause: Pause = asyncio.sleep) -> ToolResult:
    """Wait until the page has loaded, then have a picture and the text of it, each tried twice.

    The output has `screenshot` and `readability` as their actions answered, `missing` (the one that
    could not be had) and `warnings`. A page that does not finish loading is taken as it is. The
    error is PAGE_PREP_FAILED where both are missing, or what says that there is no page to prepare.
    """
    where = {"tabId": tab_id}
    loaded = await act(WAIT_FOR_LOADED.name, where)
    if _is_final(loaded):
        return loaded
    warnings = list((loaded.output or {}).get("warnings", ()))
    if not loaded.ok:
        warnings.append(f"The page is taken as it is: {_words(loaded)}")
    results: dict[str, ToolResult] = {}
    for attempt in range(TRIES):
        if attempt:
            await pause(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))  # noqa: S311
        for part in [one for one in PARTS if _is_worth_a_try(results.get(one))]:
            results[part] = await act(PARTS[part], where)
            if _is_final(results[part]):
                return results[part]
        if not any(_is_worth_a_try(result) for result in results.values()):
            break
    return _together(results, warnings)


def _together(results: Mapping[str, ToolResult], warnings: list[str]) -> ToolResult:
    failed = {part: result for part, result in results.items() if not result.ok}
    if len(failed) == len(PARTS):
        causes = {part: (result.error or {}).get("errorCode") for part, result in failed.items()}
        both = PagePrepFailed(
            "Neither a picture nor the text of the page could be had.", details={"causes": causes}
        )
        return ToolResult(ok=False, error=both.as_dict())
    output: dict[str, Any] = {}
    for part, result in results.items():
        told = dict(result.output or {})
        warnings += told.pop("warnings", [])
        if result.ok:
            output[part] = told
        else:
            warnings.append(f"No {part} of the page: {_words(result)}")
    return ToolResult(ok=True, output={**output, "missing": list(failed), "warnings": warnings})


def _is_worth_a_try(result: ToolResult | None) -> bool:
    """Tell whether a part was not tried yet, or may come out otherwise the next time."""
    if result is None:
        return True
    return not result.ok and bool((result.error or {}).get("retryable"))


def _is_final(result: ToolResult) -> bool:
    return not result.ok and (result.error or {}).get("errorCode") in _NO_PAGE


def _words(result: ToolResult) -> str:
    return str((result.error or {}).get("message", ""))
