"""Routes of the runs, under /api/v1."""

from __future__ import annotations

from django.urls import path

from runs import evidence_views, views, webhook_views
from runs.conversations import views as task_views
from runs.pages import views as page_views
from runs.sessions import views as session_views
from runs.tools import views as tool_views

urlpatterns = [
    path("templates", views.TemplatesView.as_view()),
    path("runs", views.RunsView.as_view()),
    path("runs/<id:runId>", views.RunView.as_view()),
    path("runs/<id:runId>/cancel", views.CancelView.as_view()),
    path("runs/<id:runId>/retry", views.RetryView.as_view()),
    path("runs/<id:runId>/answer", views.AnswerView.as_view()),
    path("runs/<id:runId>/events", views.EventsView.as_view()),
    path("runs/<id:runId>/wait", views.WaitView.as_view()),
    path("runs/<id:runId>/artifacts", views.RunArtifactsView.as_view()),
    path("runs/<id:runId>/evidence", evidence_views.EvidenceView.as_view()),
    path("page-content", page_views.PageContentView.as_view()),
    path("sessions", session_views.SessionsView.as_view()),
    path("sessions/<id:sessionId>", session_views.SessionView.as_view()),
    path("sessions/<id:sessionId>/clone", session_views.CloneView.as_view()),
    path("tools", tool_views.ToolsView.as_view()),
    path("tools/<id:name>/call", tool_views.CallView.as_view(audits_refusals=False)),
    path("webhooks", webhook_views.WebhooksView.as_view()),
    path("webhooks/<id:webhookId>", webhook_views.WebhookView.as_view()),
    path("webhooks/<id:webhookId>/enable", webhook_views.EnableView.as_view()),
    path("webhooks/<id:webhookId>/disable", webhook_views.DisableView.as_view()),
    path("webhooks/<id:webhookId>/deliveries", webhook_views.DeliveriesView.as_view()),
    path(
        "webhooks/<id:webhookId>/deliveries/<id:deliveryId>/replay",
        webhook_views.ReplayView.as_view(),
    ),
    path("tasks", task_views.TasksView.as_view()),
    path("tasks/<id:taskId>", task_views.TaskView.as_view()),
    path("tasks/<id:taskId>/messages", task_views.MessagesView.as_view()),
    path("tasks/<id:taskId>/stop", task_views.StopView.as_view()),
    path("tasks/<id:taskId>/takeover", task_views.TakeoverView.as_view()),
    path("tasks/<id:taskId>/resume", task_views.ResumeView.as_view()),
    path("tasks/<id:taskId>/ticket", task_views.TicketView.as_view()),
    path("tasks/<id:taskId>/events", task_views.TaskEventsView.as_view()),
    path("runtime/profile", views.ProfileView.as_view()),
]
