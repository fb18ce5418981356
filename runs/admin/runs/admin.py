"""The model admin of runs: its pages and the actions cancel, retry and answer.

The actions call the same services as the REST API.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import PAGE_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from decisions.audit.bundle import file_headers, in_batches
from decisions.identity.principals import Principal
from runs.admin.new_run.views import NewRunViews
from runs.admin.run_list.bulk import (
    BULK_MAX,
    BulkActions,
    RunResult,
    cancel_one,
    operator_on,
    retry_one,
)
from runs.admin.run_list.change_list import RunChangeList
from runs.admin.run_list.filters import FILTERS
from runs.admin.run_list.pages import ListPages
from runs.admin.run_list.saved_views import views_of
from runs.admin.runs import compare, detail, questions, step_detail
from runs.admin.runs.columns import run_page, template_name
from runs.models import Run
from runs.queries.evidence import EVIDENCE_NAME, export_evidence
from runs.queries.run_search import find_runs


@admin.register(Run)
class RunAdmin(NewRunViews, ListPages, BulkActions):
    """Runs, newest first, with the form of a new run and the actions cancel, retry and answer."""

    list_title = _("Runs")
    list_empty = _("Runs that agents and programs submit appear here.")
    list_display = ("id",)  # the cells are in admin/runs/run/change_list_results.html
    list_display_links = None
    list_filter = FILTERS
    list_fullwidth = True
    list_before_template = "admin/runs/run_list/head.html"
    search_fields = ("id",)
    search_help_text = _("Subject, label, template, error code, end of an id")
    actions = ("cancel_selected", "retry_selected", "label_selected", "export_selected")

    # --- reading --------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Return runs without their long columns."""
        runs: QuerySet[Run] = super().get_queryset(request)
        return runs.defer("inputs", "options", "result", "error", "warnings", "next_actions")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        """Find runs by words, or by the id of a run, a session, an artifact or a worker."""
        term = search_term.strip()
        return (find_runs(queryset, term) if term else queryset), False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[RunChangeList]:
        """Return the change list with the rows of runs."""
        return RunChangeList

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the list shows beside its rows, and the operator's views."""
        query = request.GET.copy()
        query.pop(PAGE_VAR, None)
        return super().list_context(request) | {
            "may_operate": self.has_operate_permission(request),
            "bulk_max": BULK_MAX,
            "views": views_of(request, query.urlencode()),
            "query": query.urlencode(),
        }

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those of a run's live parts and actions."""
        wrap = self.admin_site.admin_view
        actions = {
            "answer": self.answer_view,
            "cancel": self.cancel_view,
            "evidence": self.evidence_view,
            "retry": self.retry_view,
        }
        return [
            *self.new_run_urls(wrap),
            *self.list_urls(wrap),
            path("compare/", wrap(self.compare_view), name="runs_run_compare"),
            path("<str:run_id>/live/", wrap(never_cache(self.live_view)), name="runs_run_live"),
            path("<str:run_id>/steps/<int:index>/", wrap(self.step_view), name="runs_run_step"),
            *(
                path(f"<str:run_id>/{name}/", wrap(require_POST(view)), name=f"runs_run_{name}")
                for name, view in actions.items()
            ),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a run with its steps, result, artifacts and events."""
        if request.method != "GET":
            raise PermissionDenied
        run = self._run(request, object_id)
        title, context = template_name(run.template_id), self._detail(request, run)
        return self.show(request, "admin/runs/run/page.html", title, context)

    def live_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Return the parts of a run's page that change; the page's script updates them."""
        context = self._detail(request, self._run(request, run_id))
        return TemplateResponse(request, "admin/runs/run/parts.html", context)

    def step_view(self, request: HttpRequest, run_id: str, index: int) -> HttpResponse:
        """Return the details of a step; the page loads them when the user opens the step."""
        run = self._run(request, run_id)
        step = run.steps.filter(index=index).first()
        if step is None:
            raise Http404(f"Run {run.id} has no step {index}.")
        context = step_detail.step_context(request, run, step)
        return TemplateResponse(request, "admin/runs/run/step.html", context)

    def compare_view(self, request: HttpRequest) -> HttpResponse:
        """Show the runs `a` and `b` side by side; without `b`, `a` and its nearest relative."""
        if request.method != "GET":
            raise PermissionDenied
        first = self._run(request, request.GET.get("a", "")[:64])
        others = compare.other_runs(first)
        chosen = request.GET.get("b", "")[:64].strip()
        second = self._run(request, chosen) if chosen else next(iter(others), None)
        if second is not None and second.id not in {one.id for one in others}:
            others = [second, *others]
        context = {
            "first": first,
            "second": second,
            "others": others,
            **(compare.comparison(first, second) if second else {}),
        }
        return self.show(request, "admin/runs/run/compare.html", _("Compare runs"), context)

    def _run(self, request: HttpRequest, run_id: str) -> Run:
        return self.row_or_404(request, Run.objects.all(), run_id)

    def _detail(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        may_operate = self.has_operate_permission(request)
        return detail.run_context(request, run) | {
            "may_operate": may_operate,
            "may_export_evidence": _may_export_evidence(request),
        }

    def evidence_view(self, request: HttpRequest, run_id: str) -> HttpResponseBase:
        """Return a run's evidence bundle, with the bytes of its artifacts, as a download."""
        if not _may_export_evidence(request):
            raise PermissionDenied
        run = self._run(request, run_id)
        lines = export_evidence(principal=operator_on(request, run), run_id=run.id, contents=True)
        headers = file_headers(EVIDENCE_NAME.format(run.id))
        return StreamingHttpResponse(in_batches(lines), headers=headers)

    # --- actions --------------------------------------------------------------------------------

    def answer_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Answer the question of a run and redirect to the page or inbox that posted it."""
        response = self._perform(request, run_id, partial(_answer, request))
        if request.POST.get("back") == "inbox" and response.status_code == HTTPStatus.FOUND:
            return redirect(f"{reverse('admin:decisions_decision_changelist')}?status=waiting")
        return response

    def cancel_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Cancel a run and redirect to its page."""
        return self._perform(request, run_id, cancel_one)

    def retry_view(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """Retry a run and redirect to the new run."""
        return self._perform(request, run_id, retry_one)

    def _perform(
        self, request: HttpRequest, run_id: str, action: Callable[[Principal, Run], RunResult]
    ) -> HttpResponse:
        self.require_operate_permission(request)
        run = self._run(request, run_id)
        result = action(operator_on(request, run), run)
        self.message_user(request, result.text, result.level)
        return redirect(run_page(result.shown_id))


def _may_export_evidence(request: HttpRequest) -> bool:
    return request.user.has_perms(["decisions.view_auditentry", "artifacts.view_artifact"])


def _answer(request: HttpRequest, operator: Principal, run: Run) -> RunResult:
    level, text = questions.submit_answer(request, operator, run)
    return RunResult(run, level, text, run.id)
