"""Admin pages of workers, slots and the outbox of wake-ups. Read-only."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from decisions.admin.read_only import ReadOnlyAdmin
from decisions.presentation.html import code, link_to, moment, pill
from runs.models import OutboxEntry, Slot, Worker


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Worker processes, alive and lost, newest first."""

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

    @admin.display(description="Worker")
    def display_id(self, worker: Worker) -> SafeString:
        """Return the id."""
        return code(worker.id)

    @admin.display(description="State")
    def display_state(self, worker: Worker) -> SafeString:
        """Return whether the worker is alive or lost."""
        return pill("lost", "canceled") if worker.lost_at else pill("alive", "succeeded")

    @admin.display(description="Heartbeat")
    def display_heartbeat(self, worker: Worker) -> int:
        """Return the heartbeat counter."""
        return worker.beat

    @admin.display(description="Started")
    def display_started_at(self, worker: Worker) -> SafeString:
        """Return when the worker started."""
        return moment(worker.started_at)

    @admin.display(description="Lost")
    def display_lost_at(self, worker: Worker) -> SafeString | str:
        """Return when the worker was marked as lost."""
        return moment(worker.lost_at) if worker.lost_at else "–"


@admin.register(Slot)
class SlotAdmin(ReadOnlyAdmin):
    """Slots and the runs that have them."""

    list_display = ("number", "display_state", "display_run", "display_worker")
    ordering = ("number",)
    fields = ("number", "display_state", "display_run", "display_worker", "epoch")
    readonly_fields = fields

    @admin.display(description="State")
    def display_state(self, slot: Slot) -> SafeString:
        """Return whether the slot is free or taken."""
        return pill("taken", "running") if slot.run_id else pill("free", "neutral")

    @admin.display(description="Run")
    def display_run(self, slot: Slot) -> SafeString | str:
        """Return the run that has the slot, as a link."""
        return link_to("run", slot.run_id) if slot.run_id else "–"

    @admin.display(description="Worker")
    def display_worker(self, slot: Slot) -> SafeString | str:
        """Return the worker that executes the run, as a link."""
        return link_to("worker", slot.worker_id) if slot.worker_id else "–"


@admin.register(OutboxEntry)
class OutboxEntryAdmin(ReadOnlyAdmin):
    """The outbox: runs that no worker has claimed yet, and their last wake-ups."""

    list_title = "Outbox"
    list_display = ("display_run", "queue", "display_sent_at")
    ordering = ("-rung_at", "run_id")
    fields = ("display_run", "queue", "display_sent_at")
    readonly_fields = fields

    @admin.display(description="Run")
    def display_run(self, entry: OutboxEntry) -> SafeString:
        """Return the run to claim, as a link."""
        return link_to("run", entry.run_id)

    @admin.display(description="Last wake-up")
    def display_sent_at(self, entry: OutboxEntry) -> SafeString:
        """Return when the last wake-up was sent."""
        return moment(entry.rung_at)
