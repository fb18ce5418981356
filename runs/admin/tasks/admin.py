"""Tasks in the admin site: the list, and a page each on which to talk with the agent; every deed
goes through the services as at every door.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from decisions.admin.filters import TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.errors import InvalidInput, Refused
from decisions.identity.principals import Principal, admin_principal, ensure_workspace
from decisions.presentation.formatting import short_id
from decisions.presentation.html import link_to, moment
from runs.admin.runs.questions import asked_until_in, said_in
from runs.admin.tasks import detail
from runs.conversations import services
from runs.conversations.contract import CONTENT_MAX
from runs.conversations.tickets import create_ticket
from runs.models import Run, Task, TaskStatus
from runs.streaming.sse import last_event_id, stream_events
from runs.submission.answer import answer_run
from runs.websockets.log_pages import read_task_page

FROM_PAGE = "fetch"  # X-Requested-With of the page's own script


class TaskStatusFilter(SimpleListFilter):
    """By where a task is."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return S1's status words."""
        return [(status, status.capitalize()) for status in TaskStatus.values]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> QuerySet[Task]:
        """Keep one status."""
        return queryset.filter(status=self.value()) if self.value() else queryset


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    """Newest first; on a task's page its operator talks with the agent."""

    list_display = ("state", "shown_title", "said", "by", "begun", "moved")
    list_display_links = None
    list_filter = (TaskStatusFilter, WorkspaceFilter, TimeFilter)
    list_before_template = "admin/runs/task/new.html"
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = "task_… id"

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may talk with the agent."""
        return request.user.has_perm("runs.change_task")

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and a task's stream and deeds before them."""
        wrap = self.admin_site.admin_view
        deeds = [
            path(f"<str:task_id>/{name}/", wrap(self._deed_view(deed)), name=f"runs_task_{name}")
            for name, deed in _DEEDS.items()
        ]
        return [
            path("new/", wrap(self.new_view), name="runs_task_new"),
            path("<str:task_id>/events/", wrap(self.events_view), name="runs_task_events"),
            path("<str:task_id>/ticket/", wrap(self.ticket_view), name="runs_task_ticket"),
            *deeds,
            *super().get_urls(),
        ]

    # --- reading --------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with the place to begin a task above it."""
        may = {
            "may_operate": self.has_operate_permission(request),
            "content_max": CONTENT_MAX,
            "has_model": bool(settings.LLM.model),
        }
        answer: HttpResponse = super().changelist_view(request, {**may, **(extra_context or {})})
        return answer

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a task's page."""
        if request.method != "GET":
            raise PermissionDenied
        task = self._task(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "title": task.title,
            "may_operate": self.has_operate_permission(request),
            "content_max": CONTENT_MAX,
            "has_model": bool(settings.LLM.model),
            "me": _operator(request, task).id,
            **detail.tell(task),
        }
        return TemplateResponse(request, "admin/runs/task/page.html", context)

    def events_view(self, request: HttpRequest, task_id: str) -> HttpResponseBase:
        """Send the task's log as it is written, for the page to put in."""
        task = self._task(request, task_id)
        try:
            after = last_event_id(request.GET.get("after", ""), 0)
            after = last_event_id(request.headers.get("Last-Event-ID", ""), after)
        except InvalidInput as refusal:
            raise Http404(refusal.message) from None
        first = {"events": [], "lastSeq": after, "terminal": False}
        operator = _operator(request, task)
        return stream_events(principal=operator, run_id=task.id, first=first, read=read_task_page)

    def ticket_view(self, request: HttpRequest, task_id: str) -> HttpResponse:
        """Give the page a ticket for the live page: to act on it too, for who may operate."""
        if request.method != "POST":
            raise PermissionDenied
        task = self._task(request, task_id)
        operator = _operator(request, task)
        if not self.has_operate_permission(request):
            operator = replace(operator, scopes=frozenset({"tasks:read"}))
        return JsonResponse(create_ticket(principal=operator, task_id=task.id))

    def _task(self, request: HttpRequest, task_id: str) -> Task:
        if not self.has_view_permission(request):
            raise PermissionDenied
        task = Task.objects.filter(id=plain_id(task_id)).first()
        if task is None:
            raise Http404("There is no such task.")
        return task

    # --- deeds ----------------------------------------------------------------------------------

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Begin a task in the local workspace with its first message, and go to its page."""
        self._check_may_operate(request)
        place = ensure_workspace()
        operator = admin_principal(
            request.user.get_username(), tenant_id=place.tenant_id, workspace_id=place.id
        )
        try:
            message = _content(request)
            task, _ = services.create_task(principal=operator, message=message)
        except Refused as refusal:
            self.message_user(request, f"Not begun: {refusal.message}", messages.ERROR)
            return redirect(reverse("admin:runs_task_changelist"))
        return redirect(task_page(task["taskId"]))

    def _deed_view(self, deed: Callable[[Principal, Task, HttpRequest], None]) -> Any:
        def view(request: HttpRequest, task_id: str) -> HttpResponse:
            self._check_may_operate(request)
            task = self._task(request, task_id)
            from_page = request.headers.get("X-Requested-With") == FROM_PAGE
            try:
                deed(_operator(request, task), task, request)
            except Refused as refusal:
                if from_page:
                    return JsonResponse(refusal.as_dict(), status=refusal.http_status)
                self.message_user(request, refusal.message, messages.ERROR)
            return JsonResponse({"ok": True}) if from_page else redirect(task_page(task.id))

        return view

    def _check_may_operate(self, request: HttpRequest) -> None:
        if request.method != "POST" or not self.has_operate_permission(request):
            raise PermissionDenied

    # --- columns --------------------------------------------------------------------------------

    @admin.display(description="Status")
    def state(self, task: Task) -> SafeString:
        """Return where it is."""
        return detail.task_pill(task.status)

    @admin.display(description="Task")
    def shown_title(self, task: Task) -> SafeString:
        """Return its title, leading to its page."""
        return format_html(
            '<a class="cty-link" href="{}">{}</a> <span class="cty-mono cty-dim">{}</span>',
            task_page(task.id),
            task.title,
            short_id(task.id),
        )

    @admin.display(description="Messages")
    def said(self, task: Task) -> int:
        """Return how much was said."""
        return task.messages_count

    @admin.display(description="By")
    def by(self, task: Task) -> SafeString | str:
        """Return who began it."""
        kind, _, name = task.principal_id.partition(":")
        return link_to("token", name) if kind == "token" else task.principal_id

    @admin.display(description="Begun")
    def begun(self, task: Task) -> SafeString:
        """Return when."""
        return moment(task.created_at)

    @admin.display(description="Last event")
    def moved(self, task: Task) -> SafeString:
        """Return when something happened in it last."""
        return moment(task.updated_at)


def task_page(task_id: str) -> str:
    """Return the address of a task's page."""
    return reverse("admin:runs_task_change", args=[task_id])


def _operator(request: HttpRequest, task: Task) -> Principal:
    return admin_principal(
        request.user.get_username(), tenant_id=task.tenant_id, workspace_id=task.workspace_id
    )


def _content(request: HttpRequest) -> str:
    content = request.POST.get("content", "").replace("\r\n", "\n").strip()
    if not content or len(content) > CONTENT_MAX or "\0" in content:
        raise InvalidInput(f"A message is 1 to {CONTENT_MAX} characters.")
    return content


def _say(operator: Principal, task: Task, request: HttpRequest) -> None:
    key = request.POST.get("key", "")[:255] or None
    services.add_message(
        principal=operator,
        task_id=task.id,
        content=_content(request),
        key=key,
        on_busy="interrupt" if request.POST.get("onBusy") == "interrupt" else "queue",
    )


def _answer(operator: Principal, task: Task, request: HttpRequest) -> None:
    """Answer the question that was chosen on the page, and no other."""
    run = Run.objects.filter(task_id=task.id, id=request.POST.get("runId", "")[:64]).first()
    if run is None:
        raise InvalidInput("There is no such question in this task.")
    operator = operator.with_trust("remote") if task.trust == "remote" else operator
    answer_run(
        principal=operator,
        run_id=run.id,
        answer=said_in(request),
        question_expires_at=asked_until_in(request),
    )


def _take_over(operator: Principal, task: Task, request: HttpRequest) -> None:
    services.take_over_task(principal=operator, task_id=task.id)


def _resume(operator: Principal, task: Task, request: HttpRequest) -> None:
    services.resume_task(principal=operator, task_id=task.id)


def _stop(operator: Principal, task: Task, request: HttpRequest) -> None:
    services.stop_task(principal=operator, task_id=task.id)


_DEEDS = {"say": _say, "answer": _answer, "takeover": _take_over, "resume": _resume, "stop": _stop}
