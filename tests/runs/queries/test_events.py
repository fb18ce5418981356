"""A page of a run's events is read as of one moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decisions.identity.principals import Principal
from runs.models import Run
from runs.queries import runs
from runs.queries.visibility import visible_run
from runs.submission.cancel import cancel_run


def test_a_page_has_no_event_that_is_newer_than_its_status(
    principal: Principal, submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends after its row was read and before its events are read."""
    run_id, read = submit("ok"), visible_run

    def read_then_end(*args: object) -> Run:
        run = read(*args)  # type: ignore[arg-type]
        cancel_run(principal=principal, run_id=run_id)
        return run

    with monkeypatch.context() as patch:
        patch.setattr(runs, "visible_run", read_then_end)
        page, seq = runs.list_events_and_seq(principal=principal, run_id=run_id, after=1)
    assert (page, seq) == ({"events": [], "lastSeq": 1, "terminal": False}, 1)
    page, seq = runs.list_events_and_seq(principal=principal, run_id=run_id, after=1)
    assert ([event["type"] for event in page["events"]], page["terminal"]) == (
        ["run.canceled"],
        True,
    )
