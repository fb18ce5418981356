"""How a run ends: the full result as an artifact, a shortened one in the response, errors."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from artifacts.storage.blobs import open_blob
from decisions.foundation.next_actions import next_action
from runs.journal.outcome import ending_of, error_object, failed_ending, in_session_of
from runs.models import Run, RunStatus
from runs.task_templates.base import Conclusion
from runs.task_templates.truncation import RESULT_BYTES

LARGE: dict[str, Any] = {
    "many long texts": {"items": [{"url": f"u{n}", "text": "x" * 5000} for n in range(1000)]},
    "one long text": {"text": "漢" * 100_000},
    "many numbers": {"numbers": list(range(100_000))},
    "deep lists": {"a": [[["x" * 100] * 50] * 50] * 20},
    "many names": {f"name {n}": n for n in range(20_000)},
    "long names": {"n" * 1000 + str(n): n for n in range(500)},
}


def stored_result(ending: Any) -> Any:
    blob = ending.blobs[0]
    with open_blob(blob.sha256, size_bytes=blob.size_bytes) as file:  # type: ignore[union-attr]
        return orjson.loads(file.read())


def test_a_small_result_is_returned_in_full_and_stored() -> None:
    ending = ending_of(Conclusion(RunStatus.SUCCEEDED, result={"done": 1}, summary="1 done"))
    assert (ending.status, ending.result, ending.summary) == ("succeeded", {"done": 1}, "1 done")
    assert stored_result(ending) == {"done": 1}
    assert (ending.blobs[0].kind, ending.blobs[0].mime_type) == ("result", "application/json")


@pytest.mark.parametrize("what", LARGE)
def test_a_large_result_is_stored_in_full_and_shortened_in_the_response(what: str) -> None:
    ending = ending_of(Conclusion(RunStatus.SUCCEEDED, result=LARGE[what]))
    assert ending.result is not None
    assert len(orjson.dumps(ending.result)) <= RESULT_BYTES
    assert ending.result["truncated"] is True
    assert ending.result["artifactId"] == ending.blobs[0].artifact_id
    assert stored_result(ending) == LARGE[what]


def test_a_shortened_result_names_the_call_that_reads_the_rest() -> None:
    ending = ending_of(Conclusion(RunStatus.SUCCEEDED, result=LARGE["one long text"]))
    (action,) = ending.next_actions
    arguments = {"artifactId": ending.blobs[0].artifact_id, "outline": True}
    assert (action["tool"], action["args"]) == ("read_page_content", arguments)
    assert ending_of(Conclusion(RunStatus.SUCCEEDED, result={"a": 1})).next_actions == []


def test_an_error_with_items_that_cannot_be_shortened_fits_the_limit() -> None:
    items = [{"url": f"u{n}", "error": {str(n): {"n" * 900 + str(n): 1}}} for n in range(1000)]
    error = {"errorCode": "NAVIGATION_TIMEOUT", "message": "m", "details": {"items": items}}
    ending = ending_of(Conclusion(RunStatus.FAILED, error=error))
    assert len(orjson.dumps(ending.error)) <= RESULT_BYTES + 1000


def test_warnings_are_limited_in_number_and_length() -> None:
    many = ["w" * 9000] * 100
    ending = ending_of(Conclusion(RunStatus.SUCCEEDED, result={"a": 1}, warnings=many))
    assert (len(ending.warnings), max(map(len, ending.warnings))) == (50, 500)


def test_the_items_of_a_failure_are_stored_and_shortened() -> None:
    items = [{"url": f"u{n}", "error": {"message": "m" * 500}} for n in range(1000)]
    error = {"errorCode": "NAVIGATION_TIMEOUT", "message": "m", "details": {"items": items}}
    ending = ending_of(Conclusion(RunStatus.FAILED, error=error))
    assert ending.error is not None
    assert len(orjson.dumps(ending.error)) <= RESULT_BYTES + 1000
    assert stored_result(ending) == {"items": items}
    assert ending.error["details"]["artifactId"] == ending.blobs[0].artifact_id
    assert ending.error["at"] > 0


def test_every_error_has_a_recovery() -> None:
    for code in ("RUN_TIMEOUT", "RUN_CANCELED", "EXECUTION_ERROR", "STEP_EXECUTION_FAILED"):
        error = error_object(code, "why", details={"a": 1})
        assert error["recovery"]
        assert (error["errorCode"], error["message"], error["details"]) == (code, "why", {"a": 1})


def test_a_failed_run_stores_its_partial_result() -> None:
    ending = failed_ending(error_object("RUN_TIMEOUT", "why" * 400), partial={"done": 2})
    assert (ending.result, len(ending.summary)) == (None, 500)
    assert stored_result(ending) == {"done": 2}


@pytest.mark.parametrize("owns_session", [True, False])
def test_calls_suggested_after_a_run_in_a_session_are_for_that_session(owns_session: bool) -> None:
    run = Run(session_id="sess_1", owns_session=owns_session)
    submit = next_action("run_task_template", "Try again.", templateId="x")
    named = next_action("run_task_template", "Elsewhere.", sessionId="sess_2")
    read = next_action("get_artifact", "See.", artifactId="art_1")
    suggested = in_session_of(run, [submit, named, read])
    assert suggested[1:] == [named, read]
    assert suggested[0]["args"].get("sessionId") == (None if owns_session else "sess_1")
