"""Runs in the admin site: the list, a page each, and the three deeds, which go through the services
as every door does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache

from decisions.admin.file_responses import bundle_file
from decisions.admin.filters import TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.errors import Refused
from decisions.identity.principals import Principal, admin_principal
from runs.admin.runs import detail, questions, step_detail
from runs.admin.runs.columns import (
    RunColumns,
    StatusFilter,
    TemplateFilter,
    quick_filters,
    run_page,
    search,
)
from runs.models import Run
from runs.queries.evidence import EVIDENCE_NAME, export_evidence
from runs.submission.services import cancel_run, retry_run

AT_ONCE = 100  # runs that one list action takes
TOLD = 3  # of them, those that the message names


@admin.register(Run)
class RunAdmin(RunColumns, ReadOnlyAdmin):
    """Newest first; nothing but cancel, retry and answer is ever done here."""

    list_display = ("state", "run", "summary", "progress", "took", "accepted")
    list_display_links = None
    list_filter = (StatusFilter, TemplateFilter, WorkspaceFilter, TimeFilter)
    list_fullwidth = True
    list_before_template = "admin/runs/run/quick.html"
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = "run_…, sess_…, art_… or wrk_… id"
    actions = ("cancel_selected", "retry_selected")

    # --- reading --------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Return runs without the columns that may be long, the code of a failure beside them."""
        runs: QuerySet[Run] = super().get_queryset(request)
        return runs.defer(
            "inputs", "options", "result", "error", "warnings", "next_actions"
        ).annotate(error_code=KT("error__errorCode"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        """Find runs by an id."""
        term = search_term.strip()
        return (search(queryset, term) if term else queryset), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, the statuses as one click each above it."""
        shown = {"quick": quick_filters(request.GET.get("status")), **(extra_context or {})}
        answer: HttpResponse = super().changelist_view(request, shown)
        return answer

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may cancel, retry and answer."""
        return request.user.has_perm("runs.change_run")

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and those of one run's parts and deeds before them."""
        wrap = self.admin_site.admin_view
        return [
            path("<str:run_id>/live/", wrap(never_cache(self.live_view)), name="runs_run_live"),
            path("<str:run_id>/steps/<int:index>/", wrap(self.step_view), name="runs_run_step"),
            path("<str:run_id>/answer/", wrap(self.answer_view), name="runs_run_answer"),
            path("<str:run_id>/cancel/", wrap(self.cancel_view), name="runs_run_cancel"),
            path("<str:run_id>/evidence/", wrap(self.evidence_view), name="runs_run_evidence"),
            path("<str:run_id>/retry/", wrap(self.retry_view), name="runs_run_retry"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a run's story."""
        if request.method != "GET":
            raise PermissionDenied
        run = self._run(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "title": detail.template_name(run.template_id),
            **self._story(request, run),
        }
        return TemplateResponse(request, "admin/runs/run/page.html", context)

    def live_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Answer the parts of a run's page that change, for the page to put in."""
        context = self._story(request, self._run(request, run_id))
        return TemplateResponse(request, "admin/runs/run/parts.html", context)

    def step_view(self, request: HttpRequest, run_id: str, index: int) -> HttpResponse:
        """Answer what is known of one step, for the page to put in when it is opened."""
        run = self._run(request, run_id)
        step = run.steps.filter(index=index).first()
        if step is None:
            raise Http404("There is no such step.")
        context = step_detail.tell(request, run, step)
        return TemplateResponse(request, "admin/runs/run/step.html", context)

    def _run(self, request: HttpRequest, run_id: str) -> Run:
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = Run.objects.filter(id=plain_id(run_id)).first()
        if run is None:
            raise Http404("There is no such run.")
        return run

    def _story(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        may_operate = self.has_operate_permission(request)
        return detail.tell(request, run) | {
            "may_operate": may_operate,
            "may_take_evidence": _may_take_evidence(request),
        }

    def evidence_view(self, request: HttpRequest, run_id: str) -> HttpResponseBase:
        """Answer a run's evidence as a file, with the bytes of its artifacts."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not _may_take_evidence(request):
            raise PermissionDenied
        run = self._run(request, run_id)
        lines = export_evidence(principal=_operator(request, run), run_id=run.id, contents=True)
        return bundle_file(request, lines, EVIDENCE_NAME.format(run.id))

    # --- deeds ----------------------------------------------------------------------------------

    def answer_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Answer what a run asks, and go back to where it was answered."""
        answer = self._do(request, run_id, partial(_answer, request))
        is_inbox = request.POST.get("back") == "inbox"
        inbox = f"{reverse('admin:decisions_decision_changelist')}?status=waiting"
        return redirect(inbox) if is_inbox and answer.status_code == HTTPStatus.FOUND else answer

    def cancel_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Cancel one run and go back to its page."""
        return self._do(request, run_id, _cancel)

    def retry_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Retry one run and go to the new one."""
        return self._do(request, run_id, _retry)

    def _do(
        self,
        request: HttpRequest,
        run_id: str,
        deed: Callable[[Principal, Run], tuple[int, str, str]],
    ) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_operate_permission(request):
            raise PermissionDenied
        run = self._run(request, run_id)
        level, told, shown = deed(_operator(request, run), run)
        self.message_user(request, told, level)
        return redirect(run_page(shown))

    @admin.action(description="Cancel selected runs", permissions=["operate"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        """Cancel the ticked runs."""
        self._do_all(request, queryset, _cancel)

    @admin.action(description="Retry selected runs", permissions=["operate"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        """Retry the ticked runs."""
        self._do_all(request, queryset, _retry)

    def _do_all(
        self,
        request: HttpRequest,
        queryset: QuerySet[Run],
        deed: Callable[[Principal, Run], tuple[int, str, str]],
    ) -> None:
        runs = list(queryset[: AT_ONCE + 1])
        if len(runs) > AT_ONCE:
            self.message_user(
                request, f"At most {AT_ONCE} runs at once; nothing was done.", messages.ERROR
            )
            return
        told_by_level: dict[int, list[str]] = {}
        for run in runs:
            level, told, _ = deed(_operator(request, run), run)
            told_by_level.setdefault(level, []).append(told)
        for level, told_all in told_by_level.items():
            rest = len(told_all) - TOLD
            more = f" … and {rest} more alike." if rest > 0 else ""
            self.message_user(request, " ".join(told_all[:TOLD]) + more, level)


def _may_take_evidence(request: HttpRequest) -> bool:
    return request.user.has_perms(["decisions.view_auditentry", "artifacts.view_artifact"])


def _operator(request: HttpRequest, run: Run) -> Principal:
    """Return who acts; a remote caller's run stays one, whoever retries it."""
    operator = admin_principal(
        request.user.get_username(), tenant_id=run.tenant_id, workspace_id=run.workspace_id
    )
    return operator.with_trust("local" if run.trust == "local" else "remote")


def _answer(request: HttpRequest, operator: Principal, run: Run) -> tuple[int, str, str]:
    return *questions.answer(request, operator, run), run.id


def _cancel(operator: Principal, run: Run) -> tuple[int, str, str]:
    try:
        answer = cancel_run(principal=operator, run_id=run.id, reason="Canceled in the admin site.")
    except Refused:  # past its time to live: it has ended long ago
        return messages.WARNING, f"{run.id} had already ended: {run.status}.", run.id
    if answer["success"]:
        return messages.SUCCESS, f"{run.id} is canceled.", run.id
    return messages.WARNING, f"{run.id}: {answer['reason']}", run.id


def _retry(operator: Principal, run: Run) -> tuple[int, str, str]:
    try:
        made = retry_run(principal=operator, run_id=run.id, include_past_ttl=True)
    except Refused as refusal:
        return messages.ERROR, f"{run.id} cannot be retried: {refusal.message}", run.id
    if made.deduplicated:
        return messages.INFO, f"{run.id} had been retried before, as {made.run_id}.", made.run_id
    told = f"{run.id} is retried as {made.run_id}; steps that had succeeded are taken over."
    return messages.SUCCESS, told, made.run_id
