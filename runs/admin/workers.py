"""Workers, slots and doorbells in the admin site: to read."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from decisions.admin.read_only import ReadOnlyAdmin
from decisions.presentation.html import code, link_to, moment, pill
from runs.models import OutboxEntry, Slot, Worker


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Worker processes, those that live and those that were lost."""

    list_display = ("shown_id", "state", "host", "beat", "started", "lost")
    ordering = ("-started_at", "-id")
    search_fields = ("id",)
    fields = ("shown_id", "state", "host", "process", "beat", "started", "lost")
    readonly_fields = fields

    @admin.display(description="Worker")
    def shown_id(self, worker: Worker) -> SafeString:
        """Return the id."""
        return code(worker.id)

    @admin.display(description="State")
    def state(self, worker: Worker) -> SafeString:
        """Return whether its lease stands."""
        return pill("lost", "canceled") if worker.lost_at else pill("alive", "succeeded")

    @admin.display(description="Started")
    def started(self, worker: Worker) -> SafeString:
        """Return when it came."""
        return moment(worker.started_at)

    @admin.display(description="Lost")
    def lost(self, worker: Worker) -> SafeString | str:
        """Return when it went, or was given up."""
        return moment(worker.lost_at) if worker.lost_at else "–"


@admin.register(Slot)
class SlotAdmin(ReadOnlyAdmin):
    """The rights to run, and who has them."""

    list_display = ("number", "state", "by_run", "at")
    ordering = ("number",)
    fields = ("number", "state", "by_run", "at", "epoch")
    readonly_fields = fields

    @admin.display(description="State")
    def state(self, slot: Slot) -> SafeString:
        """Return whether it is free."""
        return pill("taken", "running") if slot.run_id else pill("free", "neutral")

    @admin.display(description="Run")
    def by_run(self, slot: Slot) -> SafeString | str:
        """Return the run that has it."""
        return link_to("run", slot.run_id) if slot.run_id else "–"

    @admin.display(description="Worker")
    def at(self, slot: Slot) -> SafeString | str:
        """Return where that run is worked on."""
        return link_to("worker", slot.worker_id) if slot.worker_id else "–"


@admin.register(OutboxEntry)
class OutboxEntryAdmin(ReadOnlyAdmin):
    """Runs that nobody has claimed yet, and when a bell last rang for them."""

    list_display = ("by_run", "queue", "rung")
    ordering = ("-rung_at", "run_id")
    fields = ("by_run", "queue", "rung")
    readonly_fields = fields

    @admin.display(description="Run")
    def by_run(self, entry: OutboxEntry) -> SafeString:
        """Return the run it rings for."""
        return link_to("run", entry.run_id)

    @admin.display(description="Last rung")
    def rung(self, entry: OutboxEntry) -> SafeString:
        """Return when it last rang."""
        return moment(entry.rung_at)
