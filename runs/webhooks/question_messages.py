"""Webhook messages about questions of runs that wait for an answer."""

from __future__ import annotations

from django.conf import settings

from runs.models import Run, RunEvent
from runs.webhooks.confirmation_messages import message


def question_message(event: str, run: Run, seq: int) -> bytes:
    """Return the message, made of the event in which the run asked: it is the same at every
    attempt. The link leads to the run's page in the admin, where a person signs in and answers.

    Raises:
        ObjectDoesNotExist: The run's event was deleted.
    """
    asked = RunEvent.objects.get(run_id=run.id, seq=seq)
    data = {
        "runId": run.id,
        "templateId": run.template_id,
        "taskId": run.task_id,
        "subject": run.subject,
        "question": asked.data.get("question", ""),
        "suggestions": asked.data.get("suggestions", []),
        "expiresAt": asked.data.get("expiresAt"),
        "link": f"{settings.PUBLIC_URL}/admin/runs/run/{run.id}/change/",
    }
    return message(event, asked.at, data)
