"""The moments of a run, each with the page as it was then: the player steps through them, and the
film strip shows the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from artifacts.models import Artifact
from decisions.foundation.presentation.formatting import shorten
from runs.admin.runs.waterfall import Bar
from runs.models import Run

PICTURES = 300  # of a page of the timeline


def pictures_of(request: HttpRequest, run: Run, bars: Sequence[Bar]) -> list[Artifact]:
    """Return the stored pictures of the shown steps, and the last one before them, in order.

    Empty without the permission to view artifacts.
    """
    if not bars or not request.user.has_perm("artifacts.view_artifact"):
        return []
    rows = Artifact.objects.filter(
        run_id=run.id, mime_type__startswith="image/", expired_at=None, step_index__isnull=False
    ).order_by("step_index", "id")
    first, last = bars[0].index, bars[-1].index
    shown = list(rows.filter(step_index__gte=first, step_index__lte=last)[:PICTURES])
    before = rows.filter(step_index__lt=first).last() if first else None
    return [before, *shown] if before else shown


def moments(
    bars: Sequence[Bar], pictures: Sequence[Artifact], *, shares_page: bool
) -> list[dict[str, Any]]:
    """Return the moments of a run; empty if there is no picture at all.

    Args:
        shares_page: all steps work on one page: each step that has started is a moment, with the
            page as it was then. Else only a step with a picture of its own is one.
    """
    if not pictures:
        return []
    found, newest, left = [], "", list(pictures)
    for bar in bars:
        is_new = False
        while left and left[0].step_index is not None and left[0].step_index <= bar.index:
            is_new = left[0].step_index == bar.index
            newest = picture_url(left.pop(0))
        if bar.took and (is_new or shares_page):
            found.append(_moment(bar, newest))
    return found


def _moment(bar: Bar, picture: str) -> dict[str, Any]:
    label = f"{bar.label} · {bar.title}" if bar.title else bar.label
    return {
        "step": bar.index + 1,
        "label": shorten(label, 120),
        "tone": bar.tone,
        "took": bar.took,
        "picture": picture,
    }


def picture_url(picture: Artifact) -> str:
    """Return the URL of a picture's bytes."""
    return reverse("admin:artifacts_artifact_inline", args=[picture.id])
