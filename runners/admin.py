"""Browser sessions in the admin site: to read."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from decisions.admin.filters import WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.labels import code, link_to, moment, pill
from runners.models import BrowserSession


@admin.register(BrowserSession)
class BrowserSessionAdmin(ReadOnlyAdmin):
    """Named sessions that outlive a run, and where they live."""

    list_display = ("name", "shown_id", "state", "at", "made")
    list_filter = (WorkspaceFilter,)
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    fields = ("name", "shown_id", "state", "at", "workspace_id", "made")
    readonly_fields = fields

    @admin.display(description="Id")
    def shown_id(self, session: BrowserSession) -> SafeString:
        """Return the id that runs name."""
        return code(session.id)

    @admin.display(description="State")
    def state(self, session: BrowserSession) -> SafeString:
        """Return whether it can be used."""
        return pill("closed", "canceled") if session.closed_at else pill("open", "succeeded")

    @admin.display(description="Lives in")
    def at(self, session: BrowserSession) -> SafeString | str:
        """Return the worker that holds it."""
        return link_to("worker", session.worker_id) if session.worker_id else "no worker"

    @admin.display(description="Made")
    def made(self, session: BrowserSession) -> SafeString:
        """Return when it was made."""
        return moment(session.created_at)
