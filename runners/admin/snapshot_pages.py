"""Admin pages of a project workspace's snapshots: list, comparison with the file, and restore.

Restoring takes two steps: a preview of the change, and the write, which is refused if the file
changed after the preview (S4 §2.5).
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from decisions.admin.acting import operator_of
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.refusals import refusal_text
from decisions.identity.principals import Principal
from runners.admin.side_by_side import rows_of
from runners.models import ExecutionTarget, TargetKind
from runners.targets.snapshots import SnapshotComparison, compare_with_now, preview_restore, restore
from runners.targets.targets import Caller
from runners.targets.workspaces import open_workspace
from runners.workspace.errors import PathDenied, PathNotFound, WorkspaceFailed
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.snapshots import MAX_LIMIT, list_snapshots

PAGE_ROWS = 200  # snapshots on a page
DIFF_ROWS = 3000
_TEMPLATES = "admin/runners/executiontarget"


def may_restore(request: HttpRequest) -> bool:
    """Return whether the user may restore files."""
    return request.user.has_perm("runners.change_executiontarget")


class SnapshotPages:
    """The views; reading needs the target's view permission, restoring its change permission."""

    def __init__(self, model_admin: ReadOnlyAdmin) -> None:
        self._admin = model_admin

    def list_view(self, request: HttpRequest, target_id: str) -> HttpResponse:
        """Show the snapshots of the workspace, newest first."""
        target = self._target(request, target_id)
        prefix = request.GET.get("path", "")[:4096]
        context: dict[str, Any] = {"prefix": prefix, "rows": []}
        try:
            _caller, workspace = self._open(request, target)
            found = list_snapshots(
                workspace.state,
                limit=MAX_LIMIT,
                path=prefix or None,
                forbidden=workspace.policy.forbidden,
            )
        except WorkspaceFailed as failed:
            context["problem"] = refusal_text(failed.message)
        else:
            context |= {
                "rows": [{"snapshot": one, "at": _at(one.timestamp)} for one in found[:PAGE_ROWS]],
                "has_more": len(found) > PAGE_ROWS,
                "keep": workspace.policy.snapshot_retention,
            }
        return self._page(
            request,
            target,
            "snapshots.html",
            _("Snapshots of %(name)s") % {"name": target.name},
            context,
        )

    def snapshot_view(self, request: HttpRequest, target_id: str, snapshot_id: str) -> HttpResponse:
        """Show a snapshot side by side with the current file."""
        target = self._target(request, target_id)
        comparison = self._compare(request, target, snapshot_id)
        context = _diff_context(comparison, comparison.then, comparison.now or "")
        context |= {"heads": (_("Snapshot"), _("Now"))}
        return self._page(request, target, "snapshot.html", comparison.snapshot.path, context)

    def preview_view(self, request: HttpRequest, target_id: str, snapshot_id: str) -> HttpResponse:
        """Show what a restore would change, with the button that writes the file."""
        target = self._target(request, target_id)
        if (refusal := self._refusal(request)) is not None:
            return refusal
        try:
            _caller, workspace = self._open(request, target)
            comparison = preview_restore(workspace, snapshot_id)
        except WorkspaceFailed as failed:
            return self._redirect_failed(request, target, snapshot_id, failed)
        context = _diff_context(comparison, comparison.now or "", comparison.then)
        context |= {"heads": (_("Now"), _("After the restore")), "is_preview": True}
        return self._page(request, target, "snapshot.html", comparison.snapshot.path, context)

    def restore_view(self, request: HttpRequest, target_id: str, snapshot_id: str) -> HttpResponse:
        """Restore the file as previewed."""
        target = self._target(request, target_id)
        if (refusal := self._refusal(request)) is not None:
            return refusal
        try:
            operator, workspace = self._open(request, target)
            done = restore(principal=operator, workspace=workspace, snapshot_id=snapshot_id)
        except (WorkspaceFailed, Refused) as failed:
            return self._redirect_failed(request, target, snapshot_id, failed)
        message = _("Restored. The previous content is stored as snapshot %(id)s.") % {
            "id": done.snapshot_id
        }
        self._admin.message_user(request, message, messages.SUCCESS)
        return redirect(_url("snapshot", target, snapshot_id))

    def _target(self, request: HttpRequest, target_id: str) -> ExecutionTarget:
        workspaces = ExecutionTarget.objects.filter(kind=TargetKind.WORKSPACE)
        return self._admin.row_or_404(request, workspaces, target_id)

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may_restore(request):
            raise PermissionDenied
        return None

    def _open(
        self, request: HttpRequest, target: ExecutionTarget
    ) -> tuple[Principal, ProjectWorkspace]:
        operator = operator_of(request, target)
        return operator, open_workspace(Caller.of(operator), target.id)

    def _compare(
        self, request: HttpRequest, target: ExecutionTarget, snapshot_id: str
    ) -> SnapshotComparison:
        try:
            _caller, workspace = self._open(request, target)
            return compare_with_now(workspace, snapshot_id)
        except WorkspaceFailed as failed:
            raise Http404(failed.message) from None

    def _redirect_failed(
        self,
        request: HttpRequest,
        target: ExecutionTarget,
        snapshot_id: str,
        failed: WorkspaceFailed | Refused,
    ) -> HttpResponse:
        self._admin.message_user(
            request,
            _("Not restored: %(why)s") % {"why": refusal_text(failed.message)},
            messages.ERROR,
        )
        if isinstance(failed, PathNotFound | PathDenied):
            return redirect(_url("snapshots", target))
        return redirect(_url("snapshot", target, snapshot_id))

    def _page(
        self,
        request: HttpRequest,
        target: ExecutionTarget,
        template: str,
        title: str,
        context: dict[str, Any],
    ) -> HttpResponse:
        page_context = {
            **self._admin.admin_site.each_context(request),
            "model_admin": self._admin,
            "opts": self._admin.opts,
            "target": target,
            "title": title,
            "may_restore": may_restore(request),
            **context,
        }
        return TemplateResponse(request, f"{_TEMPLATES}/{template}", page_context)


def _diff_context(comparison: SnapshotComparison, left: str, right: str) -> dict[str, Any]:
    # Without the current file's text, every line of the snapshot would look removed.
    rows = [] if comparison.error else list(islice(rows_of(left, right), DIFF_ROWS + 1))
    return {
        "comparison": comparison,
        "snapshot": comparison.snapshot,
        "rows": rows[:DIFF_ROWS],
        "at": _at(comparison.snapshot.timestamp),
        "is_cut": len(rows) > DIFF_ROWS,
        "counts": Counter(row.kind for row in rows[:DIFF_ROWS]),
    }


def _at(timestamp: int) -> datetime:
    return datetime.fromtimestamp(timestamp / 1000, UTC)


def _url(name: str, *args: ExecutionTarget | str) -> str:
    ids = [arg if isinstance(arg, str) else arg.id for arg in args]
    return reverse(f"admin:runners_executiontarget_{name}", args=ids)
