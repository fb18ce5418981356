"""The demo: submit a run that reads the handbook, show its progress, and report the result."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.db import Error, connection
from rich.console import Console
from rich.text import Text

from artifacts.selectors import open_content
from decisions.foundation.errors import Refused
from decisions.identity.one_time_login import create_login_path, one_time_login_allowed
from decisions.identity.principals import Principal, local_principal
from runs.operations.demo.follow import DemoTimeout, ReadingProgress, display_on, events_of
from runs.operations.demo.report import (
    MANAGE,
    show_addresses,
    show_failure,
    show_notes,
    show_pages,
)
from runs.operations.demo.site import DemoSite
from runs.queries.runs import get_run
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run

SEE_DOCTOR = f"run `{MANAGE} doctor`; it checks the installation and says what to do."


def run_demo(*, base_url: str | None, console: Console, timeout_s: float = 180.0) -> bool:
    """Read the shipped site in one run, print the result, and return whether the run succeeded.

    One page does not exist; it is kept, with a warning. A run that exceeds the timeout, or is
    interrupted with Ctrl-C, is canceled, because the site ends with the demo. Errors are printed
    with what to do; only KeyboardInterrupt is raised. `base_url` is the stack's address, None if
    the stack stops after the demo: then no addresses are printed, which would not work.
    """
    try:
        with DemoSite() as site:
            return _read(site, base_url=base_url, console=console, timeout_s=timeout_s)
    except Refused as refusal:
        show_failure(console, refusal.message, refusal.recovery)
    except (Error, OSError) as error:
        show_failure(
            console, f"the database or a file failed ({type(error).__name__}).", SEE_DOCTOR
        )
    return False


def _read(site: DemoSite, *, base_url: str | None, console: Console, timeout_s: float) -> bool:
    principal = local_principal()
    started = time.monotonic()
    run_id = _submit(principal, site, timeout_s)
    accepted = f"  {run_id} is accepted: {len(site.urls)} pages of {site.address}/"
    console.print(accepted, soft_wrap=True, highlight=False)
    reading = ReadingProgress(site.urls)
    try:
        with display_on(console, len(site.urls)) as display:
            for event in events_of(principal, run_id, timeout_s=timeout_s):
                reading.handle(event, display)
    except KeyboardInterrupt:
        connection.close()  # the signal may have come during a query
        _cancel(principal, run_id, "Interrupted during the demo.")
        raise
    except DemoTimeout:
        return _give_up(principal, run_id, console, timeout_s)
    took_s = time.monotonic() - started
    run = get_run(principal=principal, run_id=run_id)
    if items := _items(principal, run):
        console.print(Text(f"  {run['resultSummary']}, in {took_s:.1f} s\n"))
        show_pages(console, items, reading.milliseconds)
        notes = [note.removeprefix(site.address) for note in run.get("warnings", [])]
        show_notes(console, items, notes)
    if run["result"] is not None:
        has_link = base_url is not None and one_time_login_allowed()
        login_path = create_login_path() if has_link else None
        show_addresses(console, run, base_url=base_url, login_path=login_path)
    return _show_outcome(run, console)


def _submit(principal: Principal, site: DemoSite, timeout_s: float) -> str:
    submitted = submit_run(
        principal=principal,
        template_id="batch_extract_pages",
        inputs={"urls": site.urls, "onHttpError": "keep"},
        options={"mode": "async", "timeoutMs": round(timeout_s * 1000)},
    )
    return submitted.run_id


def _cancel(principal: Principal, run_id: str, reason: str) -> None:
    """Cancel a run whose site is about to close; ignore errors."""
    with suppress(Refused, Error):
        cancel_run(principal=principal, run_id=run_id, reason=reason)


def _give_up(principal: Principal, run_id: str, console: Console, timeout_s: float) -> bool:
    run = get_run(principal=principal, run_id=run_id)
    _cancel(principal, run_id, "The demo timed out.")
    progress = run["progress"]
    show_failure(
        console,
        f"{run_id} was still {run['status']} after {timeout_s:.0f} s, with "
        f"{progress['doneSteps']} of {progress['totalSteps']} pages read; it is canceled now.",
        SEE_DOCTOR,
    )
    return False


def _items(principal: Principal, run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the pages in the result, or in the error of a run that read none.

    A large result is truncated in the run's row; then it is read from the artifact.
    """
    found = run["result"] or run["error"].get("details") or {}
    if found.get("truncated"):
        _, file = open_content(principal=principal, artifact_id=found["artifactId"])
        with file:
            found = json.loads(file.read())
    items: list[dict[str, Any]] = found.get("items", [])
    return items


def _show_outcome(run: Mapping[str, Any], console: Console) -> bool:
    """Return whether the run succeeded; if not, print why."""
    if run["status"] == "succeeded":
        return True
    if error := run["error"]:
        show_failure(
            console, f"{run['runId']} {run['status']}: {error['message']}", error["recovery"]
        )
    else:
        failed = run["result"]["summary"]["failed"]
        show_failure(console, f"{failed} pages could not be read; the table says why.", SEE_DOCTOR)
    return False
