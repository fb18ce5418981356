"""Admin page of workers. Read-only."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from decisions.admin.read_only import ReadOnlyAdmin
from decisions.presentation.html import code, moment, pill
from runs.models import Worker


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

    @admin.display(description=_("Worker"))
    def display_id(self, worker: Worker) -> SafeString:
        """Return the id."""
        return code(worker.id)

    @admin.display(description=_("State"))
    def display_state(self, worker: Worker) -> SafeString:
        """Return whether the worker is alive or lost."""
        return pill("lost", "canceled") if worker.lost_at else pill("alive", "succeeded")

    @admin.display(description=_("Heartbeat"))
    def display_heartbeat(self, worker: Worker) -> int:
        """Return the heartbeat counter."""
        return worker.beat

    @admin.display(description=_("Started"))
    def display_started_at(self, worker: Worker) -> SafeString:
        """Return when the worker started."""
        return moment(worker.started_at)

    @admin.display(description=_("Lost"))
    def display_lost_at(self, worker: Worker) -> SafeString | str:
        """Return when the worker was marked as lost."""
        return moment(worker.lost_at) if worker.lost_at else "–"
