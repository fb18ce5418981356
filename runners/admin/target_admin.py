"""Targets in the admin site: where tools run, whose they are, and the way to their snapshots."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from decisions.admin.filters import WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.presentation.html import code, link_to, moment, pill
from runners.admin.snapshot_pages import SnapshotPages
from runners.admin.target_pages import TargetPages, shown_offers, versions_of
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_endpoint import endpoint_of


class KindFilter(admin.SimpleListFilter):
    """By what they are."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the kinds."""
        return [(str(value), str(label)) for value, label in TargetKind.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(ExecutionTarget)
class ExecutionTargetAdmin(ReadOnlyAdmin):
    """Where tools run. A folder's page leads to what its files were."""

    list_display = (
        "name",
        "state",
        "shown_kind",
        "place",
        "seen",
        "shown_id",
        "whose",
        "default",
        "made",
    )
    list_title = "Targets"
    list_filter = (KindFilter, WorkspaceFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("id", "name")
    search_help_text = "A name or an id"
    change_list_template = "admin/runners/executiontarget/list.html"
    change_form_template = "admin/runners/executiontarget/page.html"
    fields = (
        "name",
        "state",
        "shown_kind",
        "place",
        "seen",
        "shown_id",
        "whose",
        "default",
        "version",
        "made",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExecutionTarget]:
        """Return targets without their tokens."""
        rows: QuerySet[ExecutionTarget] = super().get_queryset(request)
        return rows.defer("sealed_auth_token")

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and those of making, changing and snapshots before them."""
        pages, own, wrap = SnapshotPages(self), TargetPages(self), self.admin_site.admin_view
        one = "<str:target_id>/snapshots/<str:snapshot_id>/"
        named = (
            ("new/", own.make_view, "new"),
            ("new-runner/", own.make_runner_view, "new_runner"),
            ("<str:target_id>/edit/", own.edit_view, "edit"),
            ("<str:target_id>/probe/", own.probe_view, "probe"),
            ("<str:target_id>/snapshots/", pages.list_view, "snapshots"),
            (one, pages.one_view, "snapshot"),
            (f"{one}preview/", pages.preview_view, "snapshot_preview"),
            (f"{one}restore/", pages.restore_view, "snapshot_restore"),
        )
        return [
            *(
                path(at, wrap(view), name=f"runners_executiontarget_{name}")
                for at, view, name in named
            ),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with the ways to a new folder and a new runner for whoever may."""
        told = {"may_make": request.user.has_perm("runners.add_executiontarget")}
        answer: HttpResponse = super().changelist_view(request, told | (extra_context or {}))
        return answer

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a target's page; a folder's with the way to its snapshots, a runner's with the
        button that probes it.
        """
        found = ExecutionTarget.objects.filter(id=plain_id(object_id)).first()
        may_edit = request.user.has_perm("runners.change_executiontarget")
        kind = found.kind if found is not None else ""
        told = {
            "is_folder": kind == TargetKind.WORKSPACE,
            "is_runner": kind == TargetKind.DOCKER_RUNNER,
            "probed": found,
            "offers": shown_offers(found) if found and kind == TargetKind.DOCKER_RUNNER else [],
            "may_rule": request.user.has_perm("decisions.add_policyrule"),
            "versions": versions_of(plain_id(object_id)),
            "may_probe": may_edit,
            "may_edit": may_edit and found is not None and not found.is_local,
        }
        return super().change_view(request, object_id, form_url, told | (extra_context or {}))

    @admin.display(description="State")
    def state(self, target: ExecutionTarget) -> SafeString:
        """Return whether it may be used."""
        return pill("enabled", "succeeded") if target.enabled else pill("disabled", "canceled")

    @admin.display(description="Kind")
    def shown_kind(self, target: ExecutionTarget) -> str:
        """Return what it is."""
        return target.get_kind_display()

    @admin.display(description="Where")
    def place(self, target: ExecutionTarget) -> SafeString:
        """Return its folder, or where its runner listens."""
        return code(str(target.config.get("root") or endpoint_of(target) or "–"))

    @admin.display(description="Last seen")
    def seen(self, target: ExecutionTarget) -> SafeString | str:
        """Return when a runner answered a probe last, and what the last one found."""
        if target.kind != TargetKind.DOCKER_RUNNER:
            return "–"
        if target.probe_error is None:
            return moment(target.last_seen_at)
        return format_html("{} · {}", moment(target.last_seen_at), pill("no answer", "failed"))

    @admin.display(description="Id")
    def shown_id(self, target: ExecutionTarget) -> SafeString:
        """Return the id that calls name."""
        return code(target.id)

    @admin.display(description="Whose")
    def whose(self, target: ExecutionTarget) -> SafeString | str:
        """Return which workspace may name it."""
        if target.workspace_id is None:
            return "every workspace of its tenant"
        return link_to("workspace", target.workspace_id)

    @admin.display(description="Default")
    def default(self, target: ExecutionTarget) -> str:
        """Return whether calls that name no target take it."""
        if target.is_local:
            return "this machine's own"
        return "yes" if target.is_default else "no"

    @admin.display(description="Made")
    def made(self, target: ExecutionTarget) -> SafeString:
        """Return when it was made."""
        return moment(target.created_at)
