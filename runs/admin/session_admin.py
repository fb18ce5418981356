"""Admin pages of browser sessions: owner, worker, login expiry, and closing.

Cookies and storage are never shown.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from decisions.admin.acting import operator_of
from decisions.admin.columns import column
from decisions.admin.filters import EndedFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.html import code, link_to, moment, pill
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.presentation.words import word
from runners.models import BrowserSession
from runs.models import Run, RunStatus, Worker
from runs.sessions.services import close_session


class SessionStateFilter(EndedFilter):
    """Filter for open or closed sessions."""

    field = "closed_at"
    options = (("open", "Open"), ("closed", "Closed"))


@admin.register(BrowserSession)
class BrowserSessionAdmin(ReadOnlyAdmin):
    """Named sessions, newest first."""

    list_title = _("Browser sessions")
    list_empty = _(
        "A session keeps cookies and pages between runs. Runs that name one, and "
        "agents with a browser, create it."
    )
    list_display = (
        "name",
        "display_id",
        "display_state",
        "display_owner",
        "display_run",
        "display_worker",
        "display_logged_in_until",
        "display_used_at",
    )
    list_filter = (SessionStateFilter, WorkspaceFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = _("sess_… id")
    change_form_template = "admin/runs/session/page.html"
    fields = (
        "name",
        "display_id",
        "display_state",
        "display_owner",
        "workspace_id",
        "trust",
        "display_run",
        "display_worker",
        "cookies",
        "display_logged_in_until",
        "display_used_at",
        "display_saved_at",
        "display_expires_at",
        "display_created_at",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[BrowserSession]:
        """Return sessions without cookies and storage, each with the run that uses it."""
        sessions: QuerySet[BrowserSession] = super().get_queryset(request)
        using = Run.objects.filter(
            session_id=OuterRef("id"), owns_session=False, status=RunStatus.RUNNING
        )
        living = Worker.objects.filter(id=OuterRef("worker_id"), lost_at__isnull=True)
        return sessions.defer("sealed_state").annotate(
            run_id=Subquery(using.values("id")[:1]), is_live=Exists(living)
        )

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with the one that closes a session."""
        close = self.admin_site.admin_view(require_POST(self.close_view))
        name = "runners_browsersession_close"
        return [path("<str:session_id>/close/", close, name=name), *super().get_urls()]

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return whether the user may close the session."""
        return {"may_close": self.has_operate_permission(request)}

    def close_view(self, request: HttpRequest, session_id: str) -> HttpResponse:
        """Close a session and redirect to its page."""
        self.require_operate_permission(request)
        row = self.row_or_404(request, BrowserSession.objects.all(), session_id)
        try:
            close_session(principal=operator_of(request, row), session_id=row.id)
            self.message_user(
                request,
                _("%(id)s is closed; its cookies and storage are deleted.") % {"id": row.id},
            )
        except Refused as refusal:
            self.message_user(
                request,
                _("Not closed: %(why)s") % {"why": refusal_text(refusal.message)},
                messages.ERROR,
            )
        return redirect(reverse("admin:runners_browsersession_change", args=[row.id]))

    display_id = column(_("Id"), lambda session: code(session.id))

    @admin.display(description=_("State"))
    def display_state(self, session: Any) -> SafeString:
        """Return closed, in use (by a run), live (in a worker) or saved."""
        if session.closed_at:
            return pill("closed", "canceled")
        if session.run_id:
            return pill("in use", "running")
        return pill("live", "succeeded") if session.is_live else pill("saved", "neutral")

    @admin.display(description=_("Owner"))
    def display_owner(self, session: BrowserSession) -> SafeString | str:
        """Return the principal that may use the session."""
        kind, _, name = session.principal_id.partition(":")
        return link_to("token", name) if kind == "token" else session.principal_id or "–"

    display_run = column(
        _("Used by"),
        lambda session: link_to("run", session.run_id) if session.run_id else word("no run"),
    )
    display_worker = column(
        _("Worker"),
        lambda session: (
            link_to("worker", session.worker_id) if session.worker_id else word("no worker")
        ),
    )
    display_logged_in_until = column(
        _("Logged in until"),
        lambda session: (
            moment(session.logged_in_until) if session.logged_in_until else word("unknown")
        ),
    )
    display_used_at = column(_("Last used"), lambda session: moment(session.used_at))
    display_saved_at = column(_("Last saved"), lambda session: moment(session.saved_at))

    @admin.display(description=_("Expires"))
    def display_expires_at(self, session: BrowserSession) -> SafeString | str:
        """Return when the session is closed if no run uses it."""
        if session.closed_at:
            return "closed"
        return moment(session.used_at + timedelta(milliseconds=settings.SESSION_IDLE_TTL_MS))

    display_created_at = column(_("Created"), lambda session: moment(session.created_at))
