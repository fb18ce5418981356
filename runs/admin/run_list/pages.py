"""The pages beside the list of runs: failures by cause, the export, and saving a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from decisions.admin.read_only import ReadOnlyAdmin
from runs.admin.run_list.export import export_runs
from runs.admin.run_list.failures import failures_context
from runs.admin.run_list.saved_views import delete_view, save_view
from runs.models import Run


class ListPages(ReadOnlyAdmin):
    """The views of these pages; a base of `RunAdmin`."""

    def list_urls(self, wrap: Callable[[Any], Any]) -> list[URLPattern]:
        """Return the URLs of these pages."""
        return [
            path("failures/", wrap(self.failures_view), name="runs_run_failures"),
            path("export/", wrap(self.export_view), name="runs_run_export"),
            path("views/", wrap(require_POST(self.save_list_view)), name="runs_run_save_view"),
            path(
                "views/<int:view_id>/delete/",
                wrap(require_POST(self.delete_list_view)),
                name="runs_run_delete_view",
            ),
        ]

    def failures_view(self, request: HttpRequest) -> HttpResponse:
        """Show the failed runs by cause."""
        self._check_may_view(request)
        context = failures_context(request, Run.objects.all())
        return self.show(
            request, "admin/runs/run_list/failures.html", _("Failures by cause"), context
        )

    def export_view(self, request: HttpRequest) -> StreamingHttpResponse:
        """Return the runs of the filtered list as a CSV file."""
        self._check_may_view(request)
        change_list = self.get_changelist_instance(request)
        return export_runs(change_list.queryset)

    def save_list_view(self, request: HttpRequest) -> HttpResponse:
        """Save the view that the form names."""
        self._check_may_view(request)
        return save_view(request)

    def delete_list_view(self, request: HttpRequest, view_id: int) -> HttpResponse:
        """Delete one of the operator's views."""
        self._check_may_view(request)
        return delete_view(request, view_id)

    def _check_may_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied
