"""Admin page of workers. Read-only."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from decisions.admin.columns import column
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.presentation.html import code, moment, pill
from runs.models import Worker
from runs.operations.health.processes import SILENT, ProcessState, status_of

_TONES = {
    ProcessState.RUNNING: "succeeded",
    ProcessState.HUNG: "failed",
    ProcessState.LOST: "failed",
    ProcessState.STOPPED: "canceled",
}


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Worker processes, alive and lost, newest first."""

    list_title = _("Workers")
    list_empty = _(
        "Worker processes appear here when they start: manage.py up or manage.py worker."
    )
    list_display = (
        "display_id",
        "display_state",
        "host",
        "display_heartbeat",
        "display_started_at",
        "display_lost_at",
    )
    ordering = ("-started_at", "-id")
    search_fields = ("id",)
    fields = (
        "display_id",
        "display_state",
        "host",
        "process",
        "display_heartbeat",
        "display_started_at",
        "display_lost_at",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        """Return the workers with the ages of their heartbeats."""
        workers: QuerySet[Worker] = super().get_queryset(request).annotate(silent=SILENT)
        return workers

    display_id = column(_("Worker"), lambda worker: code(worker.id))

    @admin.display(description=_("State"))
    def display_state(self, worker: Worker) -> SafeString:
        """Return whether the worker runs, hangs, is lost or stopped."""
        state = status_of(worker).state
        return pill(state, _TONES[state])

    display_heartbeat = column(
        _("Heartbeat"), lambda worker: moment(worker.beat_at) if worker.beat_at else "–"
    )
    display_started_at = column(_("Started"), lambda worker: moment(worker.started_at))
    display_lost_at = column(
        _("Lost"), lambda worker: moment(worker.lost_at) if worker.lost_at else "–"
    )
