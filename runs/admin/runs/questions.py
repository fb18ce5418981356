"""Questions of agents on a run's page and in the inbox, with the form to answer them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from decisions.admin.decisions import inbox_parts
from decisions.foundation.errors import InvalidInput, Refused
from decisions.foundation.presentation.formatting import until
from decisions.foundation.presentation.refusals import refusal_text
from decisions.identity.principals import Principal
from runs.admin.runs.columns import is_waiting, waiting_runs
from runs.models import Run
from runs.submission.answer import MESSAGE_MAX, answer_run

INBOX_QUESTIONS = 50


def question_of(run: Run) -> dict[str, Any] | None:
    """Return the question that a suspended run waits for; None if it waits for no answer."""
    waiting_for = run.waiting_for or {}
    if not is_waiting(run) or waiting_for.get("type") != "answer":
        return None
    expires = waiting_for.get("expiresAt")
    return {
        "run": run,
        "text": waiting_for.get("question", ""),
        "suggestions": waiting_for.get("suggestions", []),
        "question_expires_at": "" if expires is None else expires,
        "expires": "" if expires is None else until(expires),
        "answer_max": MESSAGE_MAX,
    }


def submit_answer(request: HttpRequest, operator: Principal, run: Run) -> tuple[int, str]:
    """Submit the posted answer to a run; return the level and the text of the message."""
    try:
        answer_run(
            principal=operator,
            run_id=run.id,
            answer=posted_answer(request),
            question_expires_at=posted_expiry(request),
        )
    except Refused as refusal:
        return messages.WARNING, _("Not answered: %(why)s") % {"why": refusal_text(refusal.message)}
    return messages.SUCCESS, _("%(id)s is answered and continues.") % {"id": run.id}


def posted_answer(request: HttpRequest) -> str:
    """Return the answer of a posted form: the chosen suggestion or the written text.

    Raises:
        InvalidInput: The answer is empty or too long.
    """
    chosen = request.POST.get("suggestion") or request.POST.get("content", "")
    answer = chosen.replace("\r\n", "\n").strip()
    if not answer or len(answer) > MESSAGE_MAX or "\0" in answer:
        raise InvalidInput(f"An answer has 1 to {MESSAGE_MAX} characters.")
    return answer


def posted_expiry(request: HttpRequest) -> int | None:
    """Return `waitingFor.expiresAt` of the question that a posted form answers; None without it."""
    value = request.POST.get("asked", "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def _inbox(request: HttpRequest) -> SafeString:
    """Return the HTML of the open questions; the next to expire comes first."""
    if not request.user.has_perm("runs.view_run"):
        return SafeString("")
    rows = waiting_runs(Run.objects.filter(waiting_for__type="answer"))
    rows = rows.order_by("waiting_for__expiresAt", "id")[:INBOX_QUESTIONS]
    questions = [question_of(run) for run in rows]
    context = {
        "questions": questions,
        "may_operate": request.user.has_perm("runs.change_run"),
        "back": "inbox",
    }
    return render_to_string("admin/runs/run/inbox.html", context, request)


inbox_parts.append(_inbox)
