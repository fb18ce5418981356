"""The context of a step's details, which the run's page loads when the user opens the step."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from artifacts.admin.responses import is_image
from artifacts.models import Artifact
from decisions.foundation.presentation.formatting import pretty_json
from runners.actions.typed_text import hide_typed_text
from runs.agent.journal_view import CALL
from runs.models import Run, RunStep

ARTIFACTS_SHOWN = 20


def step_context(request: HttpRequest, run: Run, step: RunStep) -> dict[str, Any]:
    """Return the template context of a step's details."""
    artifacts: list[Artifact] = []
    if request.user.has_perm("artifacts.view_artifact"):
        artifacts = list(
            Artifact.objects.filter(run_id=run.id, step_index=step.index).order_by("id")[
                :ARTIFACTS_SHOWN
            ]
        )
    return {
        "step": step,
        "input": pretty_json(hide_typed_text(step.input), limit=4000),
        "output": "" if step.output is None else _output(step),
        "error": pretty_json(step.error, limit=4000) if step.error is not None else "",
        "pictures": [row for row in artifacts if is_image(row)],
        "files": [row for row in artifacts if not is_image(row)],
        **(_around(request, run, step) if step.input.get("kind") == CALL else {}),
    }


def _output(step: RunStep) -> str:
    return pretty_json(hide_typed_text(step.output), limit=8000, items=20)


def _around(request: HttpRequest, run: Run, step: RunStep) -> dict[str, Any]:
    """Return the pictures of the page before and after a call of an agent."""
    if not request.user.has_perm("artifacts.view_artifact"):
        return {}
    pictures = Artifact.objects.filter(
        run_id=run.id, mime_type__startswith="image/", expired_at=None
    ).order_by("step_index", "id")
    return {
        "before": pictures.filter(step_index__lt=step.index).last(),
        "after": pictures.filter(step_index__gt=step.index).first(),
    }
