"""The context of a run's result: pages of a batch as table rows, other results as short JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.foundation.presentation.formatting import pretty_json, shorten

ROWS = 50  # items that the page shows; the artifact has all of them


def result_context(
    run_result: Mapping[str, Any] | None, run_error: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the template context of a result, or of the items in an error's details; else {}."""
    details = (run_error or {}).get("details")
    result = run_result or (details if isinstance(details, Mapping) else None) or {}
    items = result.get("items")
    if isinstance(items, list) and items and all(_is_page(item) for item in items[:ROWS]):
        return {
            "pages": [_page(item) for item in items[:ROWS]],
            "more": max(0, len(items) - ROWS),
            "truncated": bool(result.get("truncated")),
        }
    if not run_result:
        return {}
    if isinstance(run_result.get("answer"), str) and "usage" in run_result:
        return _answer(run_result)
    return {"text": pretty_json(run_result), "truncated": bool(run_result.get("truncated"))}


def _answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's answer, its output, and how the output fits its schema."""
    verification = result.get("verification") or {}
    output = result.get("output")
    return {
        "answer": result["answer"],
        "output": "" if output is None else pretty_json(output),
        "fits": verification.get("pass"),
        "reason": verification.get("reason", ""),
        "truncated": bool(result.get("truncated")),
    }


def _is_page(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("url"), str) and "success" in item


def _page(item: Mapping[str, Any]) -> dict[str, Any]:
    error = item.get("error") if isinstance(item.get("error"), Mapping) else None
    return {
        "url": item["url"],
        "path": shorten(item["url"].partition("://")[2] or item["url"], 70),
        "title": shorten(str(item.get("title") or ""), 80),
        "type": item.get("pageType") or "",
        "elements": item.get("elementCount", 0),
        "sections": item.get("contentSections", 0),
        "success": bool(item["success"]),
        "error": error,
    }
