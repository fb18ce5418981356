"""Routes of the REST API of runs, under /api/v1."""

from __future__ import annotations

from django.urls import path

from runs.api import evidence, runs, webhooks
from runs.api import page_content as page_views
from runs.api import sessions as session_views
from runs.api import tasks as task_views
from runs.api import tools as tool_views

urlpatterns = [
    path("templates", runs.TemplatesView.as_view()),
    path("runs", runs.RunsView.as_view()),
    path("runs/<id:runId>", runs.RunView.as_view()),
    path("runs/<id:runId>/cancel", runs.CancelView.as_view()),
    path("runs/<id:runId>/retry", runs.RetryView.as_view()),
    path("runs/<id:runId>/answer", runs.AnswerView.as_view()),
    path("runs/<id:runId>/events", runs.EventsView.as_view()),
    path("runs/<id:runId>/wait", runs.WaitView.as_view()),
    path("runs/<id:runId>/artifacts", runs.RunArtifactsView.as_view()),
    path("runs/<id:runId>/evidence", evidence.EvidenceView.as_view()),
    path("page-content", page_views.PageContentView.as_view()),
    path("sessions", session_views.SessionsView.as_view()),
    path("sessions/<id:sessionId>", session_views.SessionView.as_view()),
    path("sessions/<id:sessionId>/clone", session_views.CloneView.as_view()),
    path("tools", tool_views.ToolsView.as_view()),
    path("tools/<id:name>/call", tool_views.CallView.as_view(audits_refusals=False)),
    path("webhooks", webhooks.WebhooksView.as_view()),
    path("webhooks/<id:webhookId>", webhooks.WebhookView.as_view()),
    path("webhooks/<id:webhookId>/enable", webhooks.EnableView.as_view()),
    path("webhooks/<id:webhookId>/disable", webhooks.DisableView.as_view()),
    path("webhooks/<id:webhookId>/deliveries", webhooks.DeliveriesView.as_view()),
    path(
        "webhooks/<id:webhookId>/deliveries/<id:deliveryId>/replay",
        webhooks.ReplayView.as_view(),
    ),
    path("tasks", task_views.TasksView.as_view()),
    path("tasks/<id:taskId>", task_views.TaskView.as_view()),
    path("tasks/<id:taskId>/messages", task_views.MessagesView.as_view()),
    path("tasks/<id:taskId>/stop", task_views.StopView.as_view()),
    path("tasks/<id:taskId>/takeover", task_views.TakeoverView.as_view()),
    path("tasks/<id:taskId>/resume", task_views.ResumeView.as_view()),
    path("tasks/<id:taskId>/ticket", task_views.TicketView.as_view()),
    path("tasks/<id:taskId>/events", task_views.TaskEventsView.as_view()),
    path("runtime/profile", runs.ProfileView.as_view()),
]
