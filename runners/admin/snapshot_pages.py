"""The pages of a folder's snapshots: the list, one beside its file, and its way back.

A snapshot is put back in two steps: the preview, which shows what would change, and the write,
which is refused when the file has changed meanwhile (S4 §2.5).
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

from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.errors import Refused
from decisions.identity.principals import Principal, admin_principal
from runners.admin.side_by_side import rows_of
from runners.models import ExecutionTarget, TargetKind
from runners.targets.snapshots import SnapshotComparison, compare_with_now, preview_restore, restore
from runners.targets.targets import Caller
from runners.targets.workspaces import open_workspace
from runners.workspace.errors import PathDenied, PathNotFound, WorkspaceFailed
from runners.workspace.workspace import Workspace
from runners.workspace.writing.snapshots import MAX_LIMIT, list_snapshots

SHOWN = 200  # snapshots on a page
ROWS = 3000  # of the table that compares
_TEMPLATES = "admin/runners/executiontarget"


def may_restore(request: HttpRequest) -> bool:
    """Tell whether this operator may put files back."""
    return request.user.has_perm("runners.change_executiontarget")


class SnapshotPages:
    """The views, each for whoever may see the target; the deeds for whoever may change it."""

    def __init__(self, model_admin: ReadOnlyAdmin) -> None:
        self._admin = model_admin

    def list_view(self, request: HttpRequest, target_id: str) -> HttpResponse:
        """Show what files of the folder were, newest first."""
        target = self._target(request, target_id)
        prefix = request.GET.get("path", "")[:4096]
        told: dict[str, Any] = {"prefix": prefix, "rows": []}
        try:
            _, workspace = self._opened(request, target)
            found = list_snapshots(
                workspace.state,
                limit=MAX_LIMIT,
                path=prefix or None,
                forbidden=workspace.policy.forbidden,
            )
        except WorkspaceFailed as failed:
            told["trouble"] = failed.message
        else:
            told |= {
                "rows": [{"snapshot": one, "at": _at(one.timestamp)} for one in found[:SHOWN]],
                "has_more": len(found) > SHOWN,
                "keep": workspace.policy.snapshot_retention,
            }
        return self._page(request, target, "snapshots.html", f"Snapshots of {target.name}", told)

    def one_view(self, request: HttpRequest, target_id: str, snapshot_id: str) -> HttpResponse:
        """Show a snapshot beside its file as it is now."""
        target = self._target(request, target_id)
        compared = self._read(request, target, snapshot_id)
        told = _shown(compared, compared.then, compared.now or "") | {"heads": ("Then", "Now")}
        return self._page(request, target, "snapshot.html", compared.snapshot.path, told)

    def preview_view(self, request: HttpRequest, target_id: str, snapshot_id: str) -> HttpResponse:
        """Show what putting it back would change, with the button that does it."""
        target = self._target(request, target_id)
        if (refusal := self._refusal(request)) is not None:
            return refusal
        try:
            _, workspace = self._opened(request, target)
            compared = preview_restore(workspace, snapshot_id)
        except WorkspaceFailed as failed:
            return self._back(request, target, snapshot_id, failed)
        told = _shown(compared, compared.now or "", compared.then)
        told |= {"heads": ("Now", "After it is restored"), "is_preview": True}
        return self._page(request, target, "snapshot.html", compared.snapshot.path, told)

    def restore_view(self, request: HttpRequest, target_id: str, snapshot_id: str) -> HttpResponse:
        """Put it back, as it was previewed."""
        target = self._target(request, target_id)
        if (refusal := self._refusal(request)) is not None:
            return refusal
        try:
            operator, workspace = self._opened(request, target)
            done = restore(principal=operator, workspace=workspace, snapshot_id=snapshot_id)
        except (WorkspaceFailed, Refused) as failed:
            return self._back(request, target, snapshot_id, failed)
        told = f"Restored. What the file was until now is kept as {done.snapshot_id}."
        self._admin.message_user(request, told, messages.SUCCESS)
        return redirect(_address("snapshot", target, snapshot_id))

    def _target(self, request: HttpRequest, target_id: str) -> ExecutionTarget:
        if not self._admin.has_view_permission(request):
            raise PermissionDenied
        folders = ExecutionTarget.objects.filter(kind=TargetKind.WORKSPACE)
        found = folders.filter(id=plain_id(target_id)).first()
        if found is None:
            raise Http404("There is no such folder.")
        return found

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may_restore(request):
            raise PermissionDenied
        return None

    def _opened(self, request: HttpRequest, target: ExecutionTarget) -> tuple[Principal, Workspace]:
        operator = admin_principal(
            request.user.get_username(),
            tenant_id=target.tenant_id,
            workspace_id=target.workspace_id or "",
        )
        return operator, open_workspace(Caller.of(operator), target.id)

    def _read(self, request: HttpRequest, target: ExecutionTarget, snapshot_id: str) -> SnapshotComparison:
        try:
            _, workspace = self._opened(request, target)
            return compare_with_now(workspace, snapshot_id)
        except WorkspaceFailed as failed:
            raise Http404(failed.message) from None

    def _back(
        self,
        request: HttpRequest,
        target: ExecutionTarget,
        snapshot_id: str,
        failed: WorkspaceFailed | Refused,
    ) -> HttpResponse:
        self._admin.message_user(request, f"Not restored: {failed.message}", messages.ERROR)
        gone = isinstance(failed, PathNotFound | PathDenied)
        at = _address("snapshots", target) if gone else _address("snapshot", target, snapshot_id)
        return redirect(at)

    def _page(
        self,
        request: HttpRequest,
        target: ExecutionTarget,
        template: str,
        title: str,
        told: dict[str, Any],
    ) -> HttpResponse:
        context = {
            **self._admin.admin_site.each_context(request),
            "model_admin": self._admin,
            "opts": self._admin.opts,
            "target": target,
            "title": title,
            "may_restore": may_restore(request),
            **told,
        }
        return TemplateResponse(request, f"{_TEMPLATES}/{template}", context)


def _shown(compared: SnapshotComparison, left: str, right: str) -> dict[str, Any]:
    # Beside a file that cannot be shown, each line would read as one that is not there any more.
    rows = [] if compared.error else list(islice(rows_of(left, right), ROWS + 1))
    return {
        "compared": compared,
        "snapshot": compared.snapshot,
        "rows": rows[:ROWS],
        "at": _at(compared.snapshot.timestamp),
        "is_cut": len(rows) > ROWS,
        "counts": Counter(row.kind for row in rows[:ROWS]),
    }


def _at(timestamp: int) -> datetime:
    return datetime.fromtimestamp(timestamp / 1000, UTC)


def _address(name: str, *what: ExecutionTarget | str) -> str:
    ids = [one if isinstance(one, str) else one.id for one in what]
    return reverse(f"admin:runners_executiontarget_{name}", args=ids)
