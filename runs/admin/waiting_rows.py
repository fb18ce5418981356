"""What waits for a person, as the dashboard lists it: what each run is about, and what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from decisions.admin.decisions import message_of, time_left, title_of
from decisions.authorization.request_lines import request_lines
from decisions.foundation.presentation.formatting import until
from decisions.foundation.presentation.markdown import plain_text
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.presentation.visible_text import revealed, visible
from decisions.models import ConfirmationStatus, Decision
from runs.admin.decision_story import target_name
from runs.admin.runs.columns import run_page, template_name, waiting_runs
from runs.models import Run
from runs.submission.resume import TAKEOVER

ROWS = 10
_SHORT = 80  # characters of a chat message
_RUN_COLUMNS = ("id", "subject", "template_id", "waiting_for", "updated_at", "status", "ready")


def waiting_decisions(request: HttpRequest) -> list[dict[str, Any]]:
    """Return a row for each decision that waits for a person; the next to expire comes first."""
    if not request.user.has_perm("decisions.view_decision"):
        return []
    pending = Decision.objects.select_related("confirmation").filter(
        confirmation__status=ConfirmationStatus.WAITING,
        confirmation__expires_at__gt=datetime.now(UTC),
    )
    pending = pending.annotate(**target_name(request)).order_by("confirmation__expires_at")
    decisions = list(pending[:ROWS])
    ids = [one.run_id for one in decisions if one.run_id]
    runs = Run.objects.only("id", "subject", "template_id").in_bulk(ids)
    lines = request_lines(decisions)
    return [_decision_row(one, runs.get(one.run_id or ""), lines[one.pk]) for one in decisions]


def waiting_run_rows(
    running: QuerySet[Run], decisions: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each suspended run, without those that wait for one of these decisions."""
    shown = [row["run_id"] for row in decisions if row["run_id"]]
    runs = waiting_runs(running).exclude(id__in=shown).only(*_RUN_COLUMNS)
    return [_run_row(run) for run in runs[:ROWS]]


def _decision_row(decision: Decision, run: Run | None, line: str) -> dict[str, Any]:
    if decision.tool:
        needs = _("Confirm the call of %(call)s") % {"call": title_of(decision)}
    else:
        message = visible(message_of(decision, _SHORT))
        needs = _("Confirm the message “%(message)s”") % {"message": message}
    return {
        "run_id": decision.run_id,
        "url": reverse("admin:decisions_decision_change", args=[decision.pk]),
        "subject": visible(_subject_of(run)) if run else _("A direct call"),
        "about": template_name(run.template_id) if run else "",
        "needs": needs,
        "line": line,
        "why": visible(refusal_text(decision.reason or "")),
        "when": _("expires %(expires)s") % {"expires": time_left(decision.confirmation)},
    }


def _run_row(run: Run) -> dict[str, Any]:
    waiting_for = run.waiting_for or {}
    expires = waiting_for.get("expiresAt")
    kind = waiting_for.get("type")
    question = "" if kind == TAKEOVER else str(waiting_for.get("question") or "")
    return {
        "run": run,
        "is_question": kind == "answer",
        "url": run_page(run.id),
        "subject": visible(_subject_of(run)),
        "about": template_name(run.template_id),
        "needs": _needs(str(kind)),
        "why": revealed(plain_text(question)),
        "when": _("expires %(expires)s") % {"expires": until(expires)} if expires else "",
    }


def _needs(kind: str) -> str:
    if kind == "answer":
        return _("Answer the agent's question")
    if kind == TAKEOVER:
        return _("Give the page back to the agent")
    return _("Confirm a call")


def _subject_of(run: Run) -> str:
    return run.subject or template_name(run.template_id)
