"""Browser sessions in the admin site: whose they are, how long they are logged in, and their end.
Never their state.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from decisions.admin.filters import WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.errors import Refused
from decisions.identity.principals import admin_principal
from decisions.presentation.html import code, link_to, moment, pill
from runners.models import BrowserSession
from runs.models import Run, RunStatus, Worker
from runs.sessions.services import close_session


class OpenFilter(admin.SimpleListFilter):
    """Sessions that can be used, or those that were closed."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return both."""
        return [("open", "Open"), ("closed", "Closed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        if self.value() is None:
            return queryset
        return queryset.filter(closed_at__isnull=self.value() == "open")


@admin.register(BrowserSession)
class BrowserSessionAdmin(ReadOnlyAdmin):
    """Named sessions that outlive a run, and where they live."""

    list_display = ("name", "shown_id", "state", "owner", "user", "at", "until", "used")
    list_filter = (OpenFilter, WorkspaceFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = "sess_… id"
    change_form_template = "admin/runs/session/page.html"
    fields = (
        "name",
        "shown_id",
        "state",
        "owner",
        "workspace_id",
        "trust",
        "user",
        "at",
        "cookies",
        "until",
        "used",
        "saved",
        "expires",
        "made",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[BrowserSession]:
        """Return sessions without their state, each with the run that uses it."""
        sessions: QuerySet[BrowserSession] = super().get_queryset(request)
        using = Run.objects.filter(
            session_id=OuterRef("id"), owns_session=False, status=RunStatus.RUNNING
        )
        living = Worker.objects.filter(id=OuterRef("worker_id"), lost_at__isnull=True)
        return sessions.defer("sealed_state").annotate(
            run_id=Subquery(using.values("id")[:1]), is_live=Exists(living)
        )

    def has_close_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may close sessions."""
        return request.user.has_perm("runners.change_browsersession")

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and the one deed before them."""
        close = self.admin_site.admin_view(self.close_view)
        name = "runners_browsersession_close"
        return [path("<str:session_id>/close/", close, name=name), *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a session's page, with the button that closes it for whoever may."""
        told = {"may_close": self.has_close_permission(request), **(extra_context or {})}
        return super().change_view(request, object_id, form_url, told)

    def close_view(self, request: HttpRequest, session_id: str) -> HttpResponse:
        """Close a session through the service and go back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_close_permission(request):
            raise PermissionDenied
        row = BrowserSession.objects.filter(id=plain_id(session_id)).first()
        if row is None:
            raise Http404("There is no such session.")
        operator = admin_principal(
            request.user.get_username(), tenant_id=row.tenant_id, workspace_id=row.workspace_id
        )
        try:
            close_session(principal=operator, session_id=row.id)
            self.message_user(request, f"{row.id} is closed; its state is deleted.")
        except Refused as refusal:
            self.message_user(request, f"Not closed: {refusal.message}", messages.ERROR)
        return redirect(reverse("admin:runners_browsersession_change", args=[row.id]))

    @admin.display(description="Id")
    def shown_id(self, session: BrowserSession) -> SafeString:
        """Return the id that runs name."""
        return code(session.id)

    @admin.display(description="State")
    def state(self, session: Any) -> SafeString:
        """Return whether it can be used, and how."""
        if session.closed_at:
            return pill("closed", "canceled")
        if session.run_id:
            return pill("in use", "running")
        return pill("live", "succeeded") if session.is_live else pill("saved", "neutral")

    @admin.display(description="Owner")
    def owner(self, session: BrowserSession) -> SafeString | str:
        """Return the only caller that may use it."""
        kind, _, name = session.principal_id.partition(":")
        return link_to("token", name) if kind == "token" else session.principal_id or "nobody"

    @admin.display(description="Used by")
    def user(self, session: Any) -> SafeString | str:
        """Return the run that uses it now."""
        return link_to("run", session.run_id) if session.run_id else "no run"

    @admin.display(description="Lives in")
    def at(self, session: BrowserSession) -> SafeString | str:
        """Return the worker that holds it."""
        return link_to("worker", session.worker_id) if session.worker_id else "no worker"

    @admin.display(description="Logged in until")
    def until(self, session: BrowserSession) -> SafeString | str:
        """Return when the first of its login cookies ends."""
        return moment(session.logged_in_until) if session.logged_in_until else "not said"

    @admin.display(description="Used")
    def used(self, session: BrowserSession) -> SafeString:
        """Return when a run took it or gave it back last."""
        return moment(session.used_at)

    @admin.display(description="Saved")
    def saved(self, session: BrowserSession) -> SafeString:
        """Return when its state was saved last."""
        return moment(session.saved_at)

    @admin.display(description="Expires")
    def expires(self, session: BrowserSession) -> SafeString | str:
        """Return when it is closed if nobody uses it before."""
        if session.closed_at:
            return "closed"
        return moment(session.used_at + timedelta(milliseconds=settings.SESSION_IDLE_TTL_MS))

    @admin.display(description="Made")
    def made(self, session: BrowserSession) -> SafeString:
        """Return when it was made."""
        return moment(session.created_at)
