"""The first run: hand the handbook to the product, watch it being read, show what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.db import DatabaseError
from rich.console import Console
from rich.text import Text

from artifacts.selectors import open_content
from decisions.errors import Refused
from decisions.identity.one_time_login import create_login_path, one_time_login_allowed
from decisions.identity.principals import Principal, local_principal
from runs.installation.demo.follow import DemoTimeout, ReadingProgress, display_on, events_of
from runs.installation.demo.report import (
    MANAGE,
    show_addresses,
    show_failure,
    show_notes,
    show_pages,
)
from runs.installation.demo.site import DemoSite
from runs.queries.runs import get_run
from runs.submission.services import cancel_run, submit_run

SEE_DOCTOR = f"run `{MANAGE} doctor`; it checks every part and says what to do."


def run_demo(*, base_url: str, console: Console, timeout_s: float = 180.0) -> bool:
    """Read the shipped site in one run, show what came of it, and tell whether all went well.

    Well means that the run succeeded: the page that does not exist is read too, with a warning. A
    run that is out of time, or interrupted with Ctrl-C, is canceled: its pages go with the site.
    A failure is shown as one sentence and the way out; only KeyboardInterrupt is raised.
    """
    try:
        with DemoSite() as site:
            return _read(site, base_url=base_url, console=console, timeout_s=timeout_s)
    except Refused as refusal:
        show_failure(console, refusal.message, refusal.recovery)
    except (DatabaseError, OSError) as error:
        show_failure(console, f"something below gave way ({type(error).__name__}).", SEE_DOCTOR)
    return False


def _read(site: DemoSite, *, base_url: str, console: Console, timeout_s: float) -> bool:
    principal = local_principal()
    started = time.monotonic()
    run_id = _submit(principal, site, timeout_s)
    accepted = f"  {run_id} is accepted: {len(site.urls)} pages of {site.address}/"
    console.print(accepted, soft_wrap=True, highlight=False)
    reading = ReadingProgress(site.urls)
    try:
        with display_on(console, len(site.urls)) as display:
            for event in events_of(principal, run_id, timeout_s=timeout_s):
                reading.hear(event, display)
    except KeyboardInterrupt:
        _cancel(principal, run_id, "Interrupted while the first run was shown.")
        raise
    except DemoTimeout:
        return _give_up(principal, run_id, console, timeout_s)
    took_s = time.monotonic() - started
    run = get_run(principal=principal, run_id=run_id)
    if items := _items(principal, run):
        read = sum(bool(item["success"]) for item in items)
        console.print(Text(f"  {read} of {len(items)} pages read in {took_s:.1f} s\n"))
        show_pages(console, items, reading.milliseconds)
        notes = [note.removeprefix(site.address) for note in run.get("warnings", [])]
        show_notes(console, items, notes)
    if run["result"] is not None:
        login_path = create_login_path() if one_time_login_allowed() else None
        show_addresses(console, run, base_url=base_url, login_path=login_path)
    return _judge(run, console)


def _submit(principal: Principal, site: DemoSite, timeout_s: float) -> str:
    submitted = submit_run(
        principal=principal,
        template_id="batch_extract_pages",
        inputs={"urls": site.urls},
        options={"mode": "async", "timeoutMs": round(timeout_s * 1000)},
    )
    return submitted.run_id


def _cancel(principal: Principal, run_id: str, reason: str) -> None:
    """Cancel a run whose pages are about to vanish, as far as the database still allows."""
    with suppress(Refused, DatabaseError):
        cancel_run(principal=principal, run_id=run_id, reason=reason)


def _give_up(principal: Principal, run_id: str, console: Console, timeout_s: float) -> bool:
    run = get_run(principal=principal, run_id=run_id)
    _cancel(principal, run_id, "The first run was out of time.")
    progress = run["progress"]
    show_failure(
        console,
        f"{run_id} was still {run['status']} after {timeout_s:.0f} s, with "
        f"{progress['doneSteps']} of {progress['totalSteps']} pages read; it is canceled now.",
        SEE_DOCTOR,
    )
    return False


def _items(principal: Principal, run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the pages of the result, or of the error of a run that read none of them.

    A large result is shortened in the run's row; then the artifact has them all.
    """
    found = run["result"] or run["error"].get("details") or {}
    if found.get("truncated"):
        _, file = open_content(principal=principal, artifact_id=found["artifactId"])
        with file:
            found = json.loads(file.read())
    items: list[dict[str, Any]] = found.get("items", [])
    return items


def _judge(run: Mapping[str, Any], console: Console) -> bool:
    """Tell whether the run succeeded, and show why where it did not."""
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
