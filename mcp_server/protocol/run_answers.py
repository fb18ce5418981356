"""Runs as MCP answers them: the Run object of S0 in fewer bytes, since a model reads all of it.

REST returns runs, and the run's artifact stores its result, in full. What pages and files may have
written stands between marks (runners/untrusted_text.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runners.untrusted_text import (
    BEGIN,
    END,
    fence_error,
    fence_quotes,
    fence_value,
)
from runs.task_templates.page_texts import has_sections
from runs.task_templates.registry import get_template

FIRST_ATTEMPT = 1
HTTP_OK = {"httpStatus": 200}  # what a page that was read has
# The fields of a brief answer, beside the required ones, unless empty.
_BRIEF = ("progress", "resultSummary", "error", "warnings", "waitingFor")
_FAILED_MAX = 10  # failed items that a brief answer names
_ITEM_LISTS = ("items", "pages", "snapshots")  # of the results of the page templates


def concise_run(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Run object without its template's version, the number of its first attempt, a
    summary that repeats its error, and what its result repeats or has no value for.
    """
    shown = {name: value for name, value in run.items() if name != "templateVersion"}
    if shown.get("attempt") == FIRST_ATTEMPT:
        del shown["attempt"]
    if _repeats_error(run):
        del shown["resultSummary"]
    if run.get("error"):
        shown["error"] = _concise_error(run["error"])
    template = get_template(run.get("templateId", ""))
    if run.get("result") is not None and template is not None:
        shown["result"] = _concise(run["result"], template.result_schema)
    return _fenced(shown)


def fenced_events(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of a run's events with what their data has of pages between marks."""
    events = [{**event, "data": fence_value(event["data"])} for event in page["events"]]
    return {**page, "events": events}


def fenced_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that `fence_object` returns."""
    marks = {name: {"type": "string"} for name in (BEGIN, END)}
    return {**schema, "properties": {**schema["properties"], **marks}}


def _fenced(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run with what pages and files may have written of it between marks."""
    fenced = dict(run)
    if run.get("result"):
        fenced["result"] = fence_value(run["result"])
    if run.get("error"):
        fenced["error"] = fence_error(run["error"])
    if run.get("waitingFor"):
        fenced["waitingFor"] = {
            name: fence_quotes(value) if isinstance(value, str) else value
            for name, value in run["waitingFor"].items()
        }
    if run.get("warnings"):
        fenced["warnings"] = [fence_quotes(warning) for warning in run["warnings"]]
    if run.get("resultSummary"):
        fenced["resultSummary"] = fence_quotes(run["resultSummary"])
    return fenced


def _concise_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's error with its failed items, if it has any, without their address twice."""
    details = error.get("details") or {}
    if not isinstance(details.get("items"), list):
        return dict(error)
    items = [_without_address_in_error(item) for item in details["items"]]
    return {**error, "details": {**details, "items": items}}


def _repeats_error(run: Mapping[str, Any]) -> bool:
    """Return whether the summary of a failed run has nothing that its error does not say."""
    message = (run.get("error") or {}).get("message")
    return bool(message) and message in run.get("resultSummary", "")


def brief_run(run: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """Return the required fields of a Run object, and what a reader without the result needs: what
    became of the run, and which items failed.
    """
    brief = {name: run[name] for name in required}
    brief |= {name: run[name] for name in _BRIEF if run.get(name)}
    if run.get("error"):
        brief["error"] = _concise_error(run["error"])
    if _repeats_error(run):
        del brief["resultSummary"]
    failed = list(_failed_items(run.get("result") or {}))[:_FAILED_MAX]
    return _fenced(brief | {"failedItems": failed} if failed else brief)


def _failed_items(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lists = [result[name] for name in _ITEM_LISTS if isinstance(result.get(name), list)]
    for number, item in enumerate(lists[0] if lists else []):
        if isinstance(item, dict) and item.get("success") is False:
            error = item.get("error") or {}
            yield {
                "item": number,
                "url": item.get("url") or "",
                "errorCode": error.get("errorCode", ""),
                "message": fence_quotes(str(error.get("message", ""))),
            }


def _concise(value: Any, schema: Any) -> Any:
    """Return a value without the fields that its schema names as optional and that are null, or a
    status that all pages have, and each page without what it repeats.
    """
    node = schema if isinstance(schema, Mapping) else {}
    if isinstance(value, list):
        return [_concise(item, node.get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    named: Mapping[str, Any] = node.get("properties", {})
    optional = set(named) - set(node.get("required", ()))
    shown = {
        name: _concise(item, named.get(name))
        for name, item in value.items()
        if name not in optional or item not in (None, HTTP_OK.get(name))
    }
    return _concise_page(shown) if {"pageInfo", "content"} <= named.keys() else shown


def _concise_page(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page without what its error and its elements repeat: the page's address, and links
    that `content` shows as `[label](address)`, whose number is `linksInContent`.
    """
    shown = dict(_without_address_in_error(page))
    info, content = page.get("pageInfo"), page.get("content")
    if not isinstance(content, dict) or not has_sections(content):
        return shown
    if content.get("truncated") is False:
        shown["content"] = {name: value for name, value in content.items() if name != "truncated"}
    if not isinstance(info, dict):
        return shown
    text = "\n".join(section["text"] for section in content["sections"])
    elements = info.get("elements", [])
    others = [element for element in elements if not _is_link_in(text, element)]
    if len(others) < len(elements):
        number = len(elements) - len(others)
        shown["pageInfo"] = {**info, "elements": others, "linksInContent": number}
    return shown


def _without_address_in_error(item: Any) -> Any:
    if not isinstance(item, dict) or not isinstance(item.get("error"), dict):
        return item
    error = item["error"]
    details = error.get("details")
    if not isinstance(details, dict) or details.get("url") != item.get("url"):
        return item
    others = {name: value for name, value in details.items() if name != "url"}
    return {**item, "error": {**error, "details": others}}


def _is_link_in(text: str, element: Mapping[str, Any]) -> bool:
    href = (element.get("state") or {}).get("href")
    return element.get("type") == "link" and bool(href) and f"[{element['label']}]({href})" in text
