"""The model admin of tasks: the list, and one task with its conversation and live page.

The actions call the same services as the REST API.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from decisions.admin.acting import operator_of
from decisions.admin.columns import column
from decisions.admin.filters import ChoiceFilter, TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.errors import InvalidInput, Refused
from decisions.foundation.presentation.formatting import short_id
from decisions.foundation.presentation.html import link_to, moment
from decisions.foundation.presentation.refusals import refusal_text
from decisions.identity.principals import Principal, admin_principal, ensure_workspace
from runners.paired_browser.choice import paired_browsers
from runners.paired_browser.pairing.selectors import is_connected
from runners.targets.targets import Caller
from runs.admin.runs.questions import posted_answer, posted_expiry
from runs.admin.tasks import detail
from runs.admin.tasks.turn import turn_of, turn_pill, with_turns
from runs.conversations import services
from runs.conversations.selectors import list_task_events
from runs.conversations.tickets import create_ticket
from runs.models import Run, Task, TaskStatus
from runs.streaming.sse import last_event_id, stream_events
from runs.submission.answer import MESSAGE_MAX, answer_run

_VIEW, _OPERATE = "runs.view_task", "runs.change_task"
SCRIPT_REQUEST = "fetch"  # the header X-Requested-With of the page's script


class TaskStatusFilter(ChoiceFilter):
    """Filter by the status of the task."""

    title = parameter_name = field = "status"
    options = (
        (TaskStatus.CREATED, _("No message yet")),
        (TaskStatus.RUNNING, _("Agent works")),
        (TaskStatus.TAKEOVER, _("A person has the page")),
        (TaskStatus.ONGOING, _("Waits for a person, or answered with its browser open")),
        (TaskStatus.COMPLETED, _("Answered")),
        (TaskStatus.ERROR, _("Failed")),
    )


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    """Tasks, newest first. On a task's page the operator sends messages to the agent."""

    list_title = _("Tasks")
    list_empty = _("A task is a conversation with an agent. Give one a goal above.")
    list_display = (
        "display_status",
        "display_title",
        "display_messages",
        "display_creator",
        "display_created_at",
        "display_updated_at",
    )
    list_display_links = None
    list_filter = (TaskStatusFilter, WorkspaceFilter, TimeFilter)
    list_before_template = "admin/runs/task/new.html"
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = _("task_… id")

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those of a task's events and actions."""
        wrap = self.admin_site.admin_view
        actions = [
            path(
                f"<str:task_id>/{name}/",
                wrap(require_POST(partial(self._act, action))),
                name=f"runs_task_{name}",
            )
            for name, action in _ACTIONS.items()
        ]
        return [
            path("new/", wrap(require_POST(self.new_view)), name="runs_task_new"),
            path("<str:task_id>/events/", wrap(self.events_view), name="runs_task_events"),
            path(
                "<str:task_id>/ticket/",
                wrap(require_POST(self.ticket_view)),
                name="runs_task_ticket",
            ),
            *actions,
            *super().get_urls(),
        ]

    # --- reading --------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """Return tasks with what their status is made of."""
        return with_turns(super().get_queryset(request))

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the form of a new task, above the list, needs."""
        browsers = {"paired_browsers": _paired_browsers(request)}
        return super().list_context(request) | self._form_context(request) | browsers

    def _form_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "may_operate": self.has_operate_permission(request),
            "content_max": MESSAGE_MAX,
            "has_model": bool(settings.LLM.model),
        }

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a task with its conversation, tools and live page."""
        if request.method != "GET":
            raise PermissionDenied
        task = self._task(request, object_id)
        context = {
            **self._form_context(request),
            "operator_id": operator_of(request, task).id,
            **detail.task_context(task),
        }
        return self.show(request, "admin/runs/task/page.html", task.title, context)

    def events_view(self, request: HttpRequest, task_id: str) -> HttpResponseBase:
        """Stream the task's events (SSE); the page's script shows them."""
        task = self._task(request, task_id)
        try:
            after = last_event_id(request.GET.get("after", ""), 0)
            after = last_event_id(request.headers.get("Last-Event-ID", ""), after)
        except InvalidInput as refusal:
            raise Http404(refusal.message) from None
        first = {"events": [], "lastSeq": after, "terminal": False}
        operator = self._connecting(request, task)
        return stream_events(principal=operator, run_id=task.id, first=first, read=list_task_events)

    def ticket_view(self, request: HttpRequest, task_id: str) -> HttpResponse:
        """Return a ticket for the live page's WebSocket; without the permission it is read-only."""
        task = self._task(request, task_id)
        operator = self._connecting(request, task)
        if not self.has_operate_permission(request):
            operator = replace(operator, scopes=frozenset({"tasks:read"}))
        return JsonResponse(create_ticket(principal=operator, task_id=task.id))

    def _connecting(self, request: HttpRequest, task: Task) -> Principal:
        """Return the user as the principal of a connection, which ends with their permission."""
        permission = _OPERATE if self.has_operate_permission(request) else _VIEW
        return replace(operator_of(request, task), permission=permission)

    def _task(self, request: HttpRequest, task_id: str) -> Task:
        return self.row_or_404(request, with_turns(Task.objects.all()), task_id)

    # --- actions --------------------------------------------------------------------------------

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Create a task in the local workspace and redirect to its page."""
        self.require_operate_permission(request)
        try:
            message, browser = _content(request), request.POST.get("browser") or None
            task, _is_new = services.create_task(
                principal=_creator(request), message=message, selected_client_id=browser
            )
        except Refused as refusal:
            self.message_user(
                request,
                _("Not created: %(why)s") % {"why": refusal_text(refusal.message)},
                messages.ERROR,
            )
            return redirect(reverse("admin:runs_task_changelist"))
        return redirect(task_page(task["taskId"]))

    def _act(
        self,
        action: Callable[[Principal, Task, HttpRequest], object],
        request: HttpRequest,
        task_id: str,
    ) -> HttpResponse:
        """Perform an action on a task; answer its page's script with JSON, others with the page."""
        self.require_operate_permission(request)
        task = self._task(request, task_id)
        is_script = request.headers.get("X-Requested-With") == SCRIPT_REQUEST
        try:
            action(operator_of(request, task), task, request)
        except Refused as refusal:
            if is_script:
                return JsonResponse(refusal.as_dict(), status=refusal.http_status)
            self.message_user(request, refusal_text(refusal.message), messages.ERROR)
        return JsonResponse({"ok": True}) if is_script else redirect(task_page(task.id))

    # --- columns --------------------------------------------------------------------------------

    display_status = column(_("Status"), lambda task: turn_pill(turn_of(task)))
    display_title = column(
        _("Task"),
        lambda task: format_html(
            '<a class="cty-link" href="{}">{}</a> <span class="cty-mono cty-dim">{}</span>',
            task_page(task.id),
            task.title,
            short_id(task.id),
        ),
    )

    display_messages = column(_("Messages"), lambda task: task.messages_count)

    @admin.display(description=_("Created by"))
    def display_creator(self, task: Task) -> SafeString | str:
        """Return the principal that created the task."""
        kind, _, name = task.principal_id.partition(":")
        return link_to("token", name) if kind == "token" else task.principal_id

    display_created_at = column(_("Created"), lambda task: moment(task.created_at))
    display_updated_at = column(_("Last event"), lambda task: moment(task.updated_at))


def task_page(task_id: str) -> str:
    """Return the URL of a task's page."""
    return reverse("admin:runs_task_change", args=[task_id])


def _creator(request: HttpRequest) -> Principal:
    """Return the principal of a task that the operator creates, in the local workspace."""
    workspace = ensure_workspace()
    return admin_principal(
        request.user.get_username(), tenant_id=workspace.tenant_id, workspace_id=workspace.id
    )


def _paired_browsers(request: HttpRequest) -> list[dict[str, Any]]:
    """Return {id, name, is_connected} of the browsers that the operator paired."""
    clients = paired_browsers(Caller.of(_creator(request))).order_by("-last_seen_at")
    return [
        {"id": client.id, "name": client.name, "is_connected": is_connected(client)}
        for client in clients
    ]


def _content(request: HttpRequest) -> str:
    content = request.POST.get("content", "").replace("\r\n", "\n").strip()
    if not content or len(content) > MESSAGE_MAX or "\0" in content:
        raise InvalidInput(f"A message has 1 to {MESSAGE_MAX} characters.")
    return content


def _add_message(operator: Principal, task: Task, request: HttpRequest) -> None:
    key = request.POST.get("key", "")[:255] or None
    services.add_message(
        principal=operator,
        task_id=task.id,
        content=_content(request),
        key=key,
        on_busy="interrupt" if request.POST.get("onBusy") == "interrupt" else "queue",
    )


def _answer(operator: Principal, task: Task, request: HttpRequest) -> None:
    """Answer the question that the user chose on the page."""
    run = Run.objects.filter(task_id=task.id, id=request.POST.get("runId", "")[:64]).first()
    if run is None:
        raise InvalidInput("This task has no run with this question.")
    answer_run(
        principal=operator,
        run_id=run.id,
        answer=posted_answer(request),
        question_expires_at=posted_expiry(request),
    )


_ACTIONS: dict[str, Callable[[Principal, Task, HttpRequest], object]] = {
    "say": _add_message,
    "answer": _answer,
    "takeover": lambda operator, task, _: services.take_over_task(
        principal=operator, task_id=task.id
    ),
    "resume": lambda operator, task, _: services.resume_task(principal=operator, task_id=task.id),
    "stop": lambda operator, task, _: services.stop_task(principal=operator, task_id=task.id),
}
