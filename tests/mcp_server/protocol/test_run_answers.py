"""Runs as MCP answers them: what a model reads once, and nothing that says nothing."""

from __future__ import annotations

from typing import Any

from mcp_server.protocol.run_answers import brief_run, concise_run

URL = "https://example.com/"
CONTENT = {"sections": [{"heading": "A", "level": 1, "text": "See [B](b.html)."}]}


def link(label: str, href: str) -> dict[str, Any]:
    return {"id": "e1", "type": "link", "label": label, "bounds": {}, "state": {"href": href}}


def item(**fields: Any) -> dict[str, Any]:
    return {"url": URL, "title": "t", "success": True} | fields


def run_of(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    result = {"summary": {"total": len(items)}, "items": list(items)}
    return {
        "runId": "run_a",
        "templateId": "batch_extract_pages",
        "status": "succeeded",
        "result": result,
        "error": None,
        "templateVersion": "1.0.0",
        "attempt": 1,
    } | fields


def concise_item(**fields: Any) -> dict[str, Any]:
    (shown,) = concise_run(run_of(item(**fields)))["result"]["items"]
    return dict(shown)


def test_fields_without_a_value_that_the_template_does_not_require_are_left_out() -> None:
    empty = dict.fromkeys(("content", "pageInfo", "httpStatus", "error"))
    assert concise_item(**empty) == item()
    assert concise_item(httpStatus=200) == item()
    assert concise_item(httpStatus=204)["httpStatus"] == 204


def test_the_fields_of_the_run_object_stay_also_without_a_value() -> None:
    run = run_of(result=None)
    assert concise_run(run) == {
        name: run[name] for name in ("runId", "templateId", "status", "result", "error")
    }
    assert concise_run(run_of(attempt=2))["attempt"] == 2


def test_a_summary_that_repeats_the_error_is_left_out() -> None:
    error = {"errorCode": "NAVIGATION_TIMEOUT", "message": "It is late."}
    failed = run_of(result=None, error=error, resultSummary="'open' failed: It is late.")
    other = failed | {"resultSummary": "0 of 5 pages read"}
    assert "resultSummary" not in concise_run(failed)
    assert brief_run(failed, ["runId"]) == {"runId": "run_a", "error": error}
    assert concise_run(other)["resultSummary"] == brief_run(other, [])["resultSummary"]


def test_links_that_the_text_shows_are_not_listed_again() -> None:
    button = {"id": "e2", "type": "button", "label": "B", "bounds": {}, "state": {}}
    elements = [link("B", "b.html"), link("C", "b.html"), link("B", "c.html"), button]
    info = {"elements": elements, "totalElements": 4}
    shown = concise_item(content=CONTENT, pageInfo=info)["pageInfo"]
    assert shown == {"elements": elements[1:], "totalElements": 4, "linksInContent": 1}
    assert concise_item(content=None, pageInfo=info)["pageInfo"] == info


def test_text_that_is_whole_is_not_marked() -> None:
    assert concise_item(content={**CONTENT, "truncated": False})["content"] == CONTENT
    cut = {**CONTENT, "truncated": True}
    assert concise_item(content=cut)["content"] == cut


def test_the_error_of_an_item_does_not_repeat_its_address() -> None:
    failed = item(success=False, error={"errorCode": "X", "details": {"url": URL, "a": 1}})
    expected = {"errorCode": "X", "details": {"a": 1}}
    assert concise_item(**failed)["error"] == expected
    run = run_of(result=None, error={"message": "m", "details": {"items": [failed]}})
    for answer in (concise_run(run), brief_run(run, [])):
        assert answer["error"]["details"]["items"][0]["error"] == expected
    moved = item(success=False, error={"details": {"url": f"{URL}other"}})
    assert concise_item(**moved) == moved


def test_results_that_are_no_pages_stay_as_they_are() -> None:
    output = {"a": None, "content": CONTENT, "pageInfo": {"elements": [link("B", "b.html")]}}
    called = {"results": [{"name": "read_page", "ok": True, "output": output}]}
    for template, result in (("call_tools", called), ("gone", output)):
        shown = concise_run(run_of(templateId=template, result=result))["result"]
        assert {name: shown[name] for name in result} == result


def test_a_brief_answer_names_the_items_that_failed() -> None:
    error = {"errorCode": "NAVIGATION_TIMEOUT", "message": "late", "details": {"a": 1}}
    run = run_of(item(), item(success=False, error=error), status="partial_success")
    assert brief_run(run, ["runId", "status"]) == {
        "runId": "run_a",
        "status": "partial_success",
        "failedItems": [
            {"item": 1, "url": URL, "errorCode": "NAVIGATION_TIMEOUT", "message": "late"}
        ],
    }


def test_a_brief_answer_names_only_the_first_failed_items() -> None:
    failed = [item(success=False, error={"errorCode": "X", "message": "m"}) for _ in range(50)]
    assert len(brief_run(run_of(*failed), ["runId"])["failedItems"]) == 10
