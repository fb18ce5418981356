"""The ground's own addresses: the Continuity API, the audit log, and the one-time way into the
admin site.
"""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from decisions import confirm_views, outcome_views, user_views
from decisions.audit_views import AuditView
from decisions.chat import views as chat_views
from decisions.confirm_page import confirm_page
from decisions.one_time_login import one_time_login

_USER = "api/v1/user/<id:user_id>"

urlpatterns: list[URLPattern] = [
    path("api/v1/chat", chat_views.ChatView.as_view()),
    path("api/v1/decision/<id:decision_id>/confirm", confirm_views.ConfirmView.as_view()),
    path("api/v1/decision/<id:decision_id>/outcome", outcome_views.OutcomeView.as_view()),
    path(f"{_USER}/state", user_views.StateView.as_view()),
    path(f"{_USER}/objects", user_views.ObjectsView.as_view()),
    path(f"{_USER}/objects/shell", user_views.ShellView.as_view()),
    path(f"{_USER}/objects/shell/latest", user_views.LatestShellView.as_view()),
    path(f"{_USER}/objects/success-path", user_views.SuccessPathView.as_view()),
    path("confirm/<str:confirmation_id>/<str:signature>", confirm_page, name="confirm_link"),
    path("api/v1/audit", AuditView.as_view()),
    path("admin", RedirectView.as_view(url="/admin/", query_string=True)),
    path("admin/once/<str:token>/", one_time_login, name="one_time_login"),
]
