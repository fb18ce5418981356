"""Routes of the Continuity API and the audit log, under /api/v1."""

from __future__ import annotations

from django.urls import path

from decisions.api import audit, chat, continuity

_USER = "user/<id:user_id>"

urlpatterns = [
    path("chat", chat.ChatView.as_view()),
    path("decision/<id:decision_id>/confirm", continuity.ConfirmView.as_view()),
    path("decision/<id:decision_id>/outcome", continuity.OutcomeView.as_view()),
    path(f"{_USER}/state", continuity.StateView.as_view()),
    path(f"{_USER}/objects", continuity.ObjectsView.as_view()),
    path(f"{_USER}/objects/shell", continuity.ShellView.as_view()),
    path(f"{_USER}/objects/shell/latest", continuity.LatestShellView.as_view()),
    path(f"{_USER}/objects/success-path", continuity.SuccessPathView.as_view()),
    path("audit", audit.AuditView.as_view()),
]
