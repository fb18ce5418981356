"""Admin pages of targets: the list, one target, its forms, its probe and its snapshots."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from decisions.admin.filters import ChoiceFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.foundation.presentation.html import code, link_to, moment, pill
from runners.admin.snapshot_pages import SnapshotPages
from runners.admin.target_pages import TargetPages, offer_rows, target_versions
from runners.models import ExecutionTarget, TargetKind
from runners.targets.targets import endpoint_of


class TargetKindFilter(ChoiceFilter):
    """Filter by the kind of target."""

    title = parameter_name = field = "kind"
    options = TargetKind.choices


@admin.register(ExecutionTarget)
class ExecutionTargetAdmin(ReadOnlyAdmin):
    """Targets, newest first."""

    list_display = (
        "name",
        "display_state",
        "display_kind",
        "display_location",
        "display_last_seen",
        "display_id",
        "display_workspace",
        "display_default",
        "display_created_at",
    )
    list_title = _("Targets")
    list_empty = _("A target is a folder or a runner in which tools are executed. Add one here.")
    list_filter = (TargetKindFilter, WorkspaceFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("id", "name")
    search_help_text = _("A name or an id")
    change_list_template = "admin/runners/executiontarget/list.html"
    change_form_template = "admin/runners/executiontarget/page.html"
    fields = (
        "name",
        "display_state",
        "display_kind",
        "display_location",
        "display_last_seen",
        "display_id",
        "display_workspace",
        "display_default",
        "version",
        "display_created_at",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExecutionTarget]:
        """Return targets without their encrypted tokens."""
        rows: QuerySet[ExecutionTarget] = super().get_queryset(request)
        return rows.defer("sealed_auth_token")

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those of the forms, the probe and the snapshots."""
        snapshots, targets = SnapshotPages(self), TargetPages(self)
        one = "<str:target_id>/snapshots/<str:snapshot_id>/"
        views = (
            ("new/", targets.create_workspace_view, "new"),
            ("new-runner/", targets.create_runner_view, "new_runner"),
            ("<str:target_id>/edit/", targets.edit_view, "edit"),
            ("<str:target_id>/probe/", targets.probe_view, "probe"),
            ("<str:target_id>/snapshots/", snapshots.list_view, "snapshots"),
            (one, snapshots.snapshot_view, "snapshot"),
            (f"{one}preview/", snapshots.preview_view, "snapshot_preview"),
            (f"{one}restore/", snapshots.restore_view, "snapshot_restore"),
        )
        return [
            *(
                path(
                    route, self.admin_site.admin_view(view), name=f"runners_executiontarget_{name}"
                )
                for route, view, name in views
            ),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with links to the forms for users who may create targets."""
        context = {"may_create": request.user.has_perm("runners.add_executiontarget")}
        return super().changelist_view(request, context | (extra_context or {}))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a target: a project workspace with its snapshots, a runner with its tools."""
        target = ExecutionTarget.objects.filter(id=plain_id(object_id)).first()
        may_edit = request.user.has_perm("runners.change_executiontarget")
        kind = target.kind if target is not None else ""
        context = {
            "is_workspace": kind == TargetKind.WORKSPACE,
            "is_runner": kind == TargetKind.DOCKER_RUNNER,
            "target": target,
            "offers": offer_rows(target) if target and kind == TargetKind.DOCKER_RUNNER else [],
            "may_create_rule": request.user.has_perm("decisions.add_policyrule"),
            "versions": target_versions(plain_id(object_id)),
            "may_probe": may_edit,
            "may_edit": may_edit and target is not None and not target.is_local,
        }
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    @admin.display(description=_("State"))
    def display_state(self, target: ExecutionTarget) -> SafeString:
        """Return whether the target is enabled."""
        return pill("enabled", "succeeded") if target.enabled else pill("disabled", "canceled")

    @admin.display(description=_("Kind"))
    def display_kind(self, target: ExecutionTarget) -> str:
        """Return the kind of target."""
        return target.get_kind_display()

    @admin.display(description=_("Location"))
    def display_location(self, target: ExecutionTarget) -> SafeString:
        """Return the folder or the runner's endpoint."""
        return code(str(target.config.get("root") or endpoint_of(target) or "–"))

    @admin.display(description=_("Last seen"))
    def display_last_seen(self, target: ExecutionTarget) -> SafeString | str:
        """Return when the runner last answered, and whether the last probe failed."""
        if target.kind != TargetKind.DOCKER_RUNNER:
            return "–"
        if target.probe_error is None:
            return moment(target.last_seen_at)
        return format_html("{} · {}", moment(target.last_seen_at), pill("no answer", "failed"))

    @admin.display(description=_("Id"))
    def display_id(self, target: ExecutionTarget) -> SafeString:
        """Return the id, which calls name as their target."""
        return code(target.id)

    @admin.display(description=_("Workspace"))
    def display_workspace(self, target: ExecutionTarget) -> SafeString | str:
        """Return the workspace that may use the target."""
        if target.workspace_id is None:
            return "all of its tenant"
        return link_to("workspace", target.workspace_id)

    @admin.display(description=_("Default"))
    def display_default(self, target: ExecutionTarget) -> str:
        """Return whether calls without a target use this one."""
        if target.is_local:
            return "this installation"
        return "yes" if target.is_default else "no"

    @admin.display(description=_("Created"))
    def display_created_at(self, target: ExecutionTarget) -> SafeString:
        """Return when the target was created."""
        return moment(target.created_at)
