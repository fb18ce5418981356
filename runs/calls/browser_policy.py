"""Calls in a paired browser: the browser as their target, and when policy asks by default.

Unless a rule says otherwise, a person confirms the first change that a task makes on each origin,
and each submit, upload and acceptance of a dialog. What an element is, and which page it is on, the
browser says just before (`runs.calls.page`). A drag presses and releases the mouse as
a click does, and a short one is a click: it is judged like one.

The element and the origin that were judged go with the action: the browser gives input to no other
element, and to no page of another origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from decisions.authorization.authorize import ToolCallRequest
from decisions.authorization.policy import PAGE_CHANGES, Verdict
from decisions.models import Confirmation
from runners.actions.catalogue import PRESS_KEY, TYPE, UPLOAD
from runners.actions.judged import JudgedElement, may_submit
from runs.models import Run, TaskOrigin

ORIGIN_CHARS = 300
_DEFAULT = "default: paired browser"


def with_browser_policy(
    run: Run, request: ToolCallRequest, judged: JudgedElement | None
) -> ToolCallRequest:
    """Return the request of a call in a paired browser with what policy decides by: the
    origin of the page, and the decision if no rule matches. A call that a lost worker made needs
    none: it is not made again. On the run's database thread.
    """
    if request.tool not in PAGE_CHANGES or request.is_lost:
        return replace(request, default=Verdict("allow", _DEFAULT))
    origin = origin_of(judged.facts.page) if judged else ""
    return replace(request, origin=origin, default=_default(run, request, judged, origin))


def _default(
    run: Run, request: ToolCallRequest, judged: JudgedElement | None, origin: str
) -> Verdict:
    reason = _each_time(request.tool, request.args, judged)
    if reason:
        return Verdict(
            "confirm", _DEFAULT, f"{reason} In your paired browser this is always asked."
        )
    if not origin:
        return Verdict("confirm", _DEFAULT, "It changes a page in your paired browser.")
    if TaskOrigin.objects.filter(task_id=run.task_id, origin=origin).exists():
        return Verdict("allow", _DEFAULT)
    return Verdict(
        "confirm",
        _DEFAULT,
        f"It is the first change of this task on {origin}, in your paired browser. Further changes"
        " there are not asked, but for submits, uploads and accepted dialogs.",
    )


def _each_time(tool: str, args: Mapping[str, Any], judged: JudgedElement | None) -> str:
    """Return why a call is asked each time; empty if it is not."""
    dialog = args.get("dialog")
    cases = {
        "It accepts a question of the page.": isinstance(dialog, Mapping)
        and bool(dialog.get("accept")),
        "It gives files to the page.": tool == UPLOAD.name,
        "It submits what it types.": tool == TYPE.name and bool(args.get("submit")),
        "The key may submit a form.": tool == PRESS_KEY.name and may_submit(tool, args, None),
        "It clicks a point of a picture.": args.get("x") is not None,
        "It submits a form.": may_submit(tool, args, judged),
    }
    return next((reason for reason, holds in cases.items() if holds), "")


def origin_of(url: str) -> str:
    """Return the origin of a page; empty for one that has none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:ORIGIN_CHARS]


def allow_origin(run: Run, request: ToolCallRequest, confirmation: Confirmation) -> None:
    """Record that a person confirmed a change on a page's origin: the task's further ones there are
    not asked.
    """
    if run.task_id is None or not request.origin:
        return
    TaskOrigin.objects.bulk_create(
        [
            TaskOrigin(
                task_id=run.task_id,
                origin=request.origin,
                decision_id=confirmation.decision_id,
                at=datetime.now(UTC),
            )
        ],
        ignore_conflicts=True,
    )
