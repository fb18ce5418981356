"""What stands below the call on a decision's page: the run's goal, the steps before the call, and
how the confirmed call ended.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import OuterRef, Subquery
from django.db.models.expressions import BaseExpression
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from decisions.admin.decisions import confirmation_of, decision_parts, row_values
from decisions.authorization.confirmations import MAY_DECIDE
from decisions.foundation.presentation.formatting import duration, pretty_json, shorten
from decisions.foundation.presentation.html import pill
from decisions.foundation.presentation.words import word
from decisions.foundation.security.logs import redact
from decisions.models import AuditEntry, Decision
from runners.actions.typed_text import hide_typed_text
from runners.models import ExecutionTarget
from runs.admin.runs.columns import state_pill, template_name
from runs.admin.runs.waterfall import status_word
from runs.models import UNFINISHED, Run, RunStep, StepStatus

BEFORE, AFTER = 8, 2  # steps of the run that are shown around the call
OUTPUT_MAX = 2000  # characters
_CALLS = 500  # audit rows of a tool that are searched for the end of a direct call


def _story(request: HttpRequest, decision: Decision) -> SafeString:
    """Return the HTML for users who may view runs; empty without anything to show."""
    if not request.user.has_perm("runs.view_run"):
        return SafeString("")
    run = Run.objects.filter(id=decision.run_id).first() if decision.run_id else None
    story = _of_run(decision, run) if run is not None else _of_direct_call(decision)
    if story is None:
        return SafeString("")
    # Who may decide reads goal and inputs beside the call, unmasked.
    story["shows_subject"] = not request.user.has_perm(MAY_DECIDE)
    return render_to_string("admin/runs/decision/story.html", {"story": story})


def _of_run(decision: Decision, run: Run) -> dict[str, Any]:
    at = decision.step_index or 0
    first = max(0, at - BEFORE)
    rows = RunStep.objects.filter(run_id=run.id, index__gte=first, index__lte=at + AFTER)
    steps = list(rows.order_by("index").defer("input", "paused"))
    call = next((step for step in steps if step.index == at), None)
    return {
        "run": run,
        "template": template_name(run.template_id),
        "state": state_pill(run),
        "task_id": run.task_id,
        **_subject(run),
        "steps": [_row(step, run, at) for step in steps],
        "left_out": first,
        "ended": _end_of_step(decision, call),
    }


def _subject(run: Run) -> dict[str, str]:
    goal = run.inputs.get("goal") if isinstance(run.inputs, dict) else None
    if isinstance(goal, str):
        return {"subject_name": _("Goal"), "subject": shorten(redact(goal), 600)}
    return {"subject_name": _("Subject"), "subject": str(getattr(run, "subject", ""))}


def _output(step: RunStep) -> str:
    return pretty_json(hide_typed_text(step.output), limit=OUTPUT_MAX)


def _row(step: RunStep, run: Run, at: int) -> dict[str, Any]:
    took = _took(step)
    return {
        "number": step.index + 1,
        "name": step.name,
        "is_call": step.index == at,
        "tone": step.status,
        "word": word(status_word(step.status, has_ended=run.ended_at is not None)),
        "took": took,
        "error": shorten(str((step.error or {}).get("message", "")), 200),
    }


def _took(step: RunStep) -> str:
    if step.started_at is None or step.ended_at is None:
        return ""
    return duration((step.ended_at - step.started_at) / timedelta(milliseconds=1))


def _end_of_step(decision: Decision, step: RunStep | None) -> dict[str, Any] | None:
    """Return how a confirmed call of a step ended; None before its end, and for other decisions."""
    confirmation = confirmation_of(decision)
    if step is None or confirmation is None or confirmation.used_at is None:
        return None
    if step.status in UNFINISHED:
        return None
    error = _error_of(step)
    is_good = step.status == StepStatus.SUCCEEDED and not error
    took = _took(step)
    return {
        **_label(is_good),
        "text": error or (_("It took %(time)s.") % {"time": took} if took else ""),
        "output": pretty_json(hide_typed_text(step.output), limit=OUTPUT_MAX)
        if step.output and is_good
        else "",
    }


def _label(is_good: bool) -> dict[str, Any]:
    tone = "succeeded" if is_good else "failed"
    return {"tone": tone, "pill": pill(tone, tone)}


def _error_of(step: RunStep) -> str:
    """Return the error of a step, or of the call in an agent's step, which itself succeeded."""
    error = step.error or ((step.output or {}).get("error") or {})
    if not isinstance(error, dict) or not error:
        return ""
    code = error.get("errorCode") or error.get("code") or ""
    return shorten(f"{code} {error.get('message', '')}".strip(), 600)


def _of_direct_call(decision: Decision) -> dict[str, Any] | None:
    """Return how a confirmed direct call ended, from the audit log; None before its end."""
    confirmation = confirmation_of(decision)
    if confirmation is None or confirmation.used_at is None:
        return None
    since = confirmation.used_at - timedelta(seconds=5)
    rows = AuditEntry.objects.filter(resource_id=decision.tool, created_at__gte=since)
    for entry in rows.order_by("id")[:_CALLS]:
        is_end = entry.action in ("tool.succeeded", "tool.failed")
        if is_end and entry.metadata.get("argsDigest") == decision.subject_digest:
            ended = _label(entry.action == "tool.succeeded")
            return {"ended": ended | {"text": str(entry.metadata.get("code", ""))}}
    return None


def _run_subject(request: HttpRequest) -> dict[str, BaseExpression]:
    """Return the subject of a decision's run, for users who may view runs."""
    if not request.user.has_perm("runs.view_run"):
        return {}
    subjects = Run.objects.filter(pk=OuterRef("run_id")).values("subject")
    return {"run_subject": Subquery(subjects[:1])}


def target_name(request: HttpRequest) -> dict[str, BaseExpression]:
    """Return the name of the target that a decision's call goes to."""
    names = ExecutionTarget.objects.filter(pk=OuterRef("target_id")).values("name")
    return {"target_name": Subquery(names[:1])}


decision_parts.append(_story)
row_values.extend([_run_subject, target_name])
