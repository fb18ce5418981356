"""What agents ask, in the admin site: on a run's page and in the inbox, with a place to answer."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from decisions.admin.decisions import inbox_parts
from decisions.errors import InvalidInput, Refused
from decisions.identity.principals import Principal
from decisions.presentation.formatting import until
from runs.admin.runs.columns import is_waiting, waiting
from runs.models import Run
from runs.submission.answer import ANSWER_MAX, answer_run

SHOWN = 50  # questions in the inbox


def question_of(run: Run) -> dict[str, Any] | None:
    """Return what a run asks and may be answered; None where it asks nothing."""
    asked = run.waiting_for or {}
    if not is_waiting(run) or asked.get("type") != "answer":
        return None
    expires = asked.get("expiresAt")
    return {
        "run": run,
        "text": asked.get("question", ""),
        "suggestions": asked.get("suggestions", []),
        "asked_until": "" if expires is None else expires,
        "expires": "" if expires is None else until(expires),
        "answer_max": ANSWER_MAX,
    }


def answer(request: HttpRequest, operator: Principal, run: Run) -> tuple[int, str]:
    """Give a run the answer that was chosen or written; return how that went, in words."""
    try:
        answer_run(
            principal=operator,
            run_id=run.id,
            answer=said_in(request),
            question_expires_at=asked_until_in(request),
        )
    except Refused as refusal:
        return messages.WARNING, f"Not answered: {refusal.message}"
    return messages.SUCCESS, f"{run.id} is answered and goes on."


def said_in(request: HttpRequest) -> str:
    """Return the answer of a posted form: the suggestion that was chosen, or what was written.

    Raises:
        InvalidInput: There is none, or it is too long.
    """
    chosen = request.POST.get("suggestion") or request.POST.get("content", "")
    told = chosen.replace("\r\n", "\n").strip()
    if not told or len(told) > ANSWER_MAX or "\0" in told:
        raise InvalidInput(f"An answer is 1 to {ANSWER_MAX} characters.")
    return told


def asked_until_in(request: HttpRequest) -> int | None:
    """Return which question a posted form answers: `waitingFor.expiresAt` of it."""
    told = request.POST.get("asked", "")
    return int(told) if told.isascii() and told.isdigit() and len(told) < 19 else None


def _inbox(request: HttpRequest) -> SafeString:
    """Return the questions that wait for an answer, those that expire first first."""
    if not request.user.has_perm("runs.view_run"):
        return SafeString("")
    rows = waiting(Run.objects.filter(waiting_for__type="answer"))
    asked = [question_of(run) for run in rows.order_by("waiting_for__expiresAt", "id")[:SHOWN]]
    context = {
        "questions": asked,
        "may_operate": request.user.has_perm("runs.change_run"),
        "back": "inbox",
    }
    return render_to_string("admin/runs/run/inbox.html", context, request)


inbox_parts.append(_inbox)
