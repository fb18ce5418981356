"""Routes of the Continuity API, the audit log, confirmation links and one-time logins."""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from decisions.admin.sign_in import sign_in
from decisions.identity.one_time_login import one_time_login
from decisions.views import chat as chat_views
from decisions.views import continuity
from decisions.views.audit import AuditView
from decisions.views.confirmation_page import confirm_page
from decisions.views.languages import ScriptTexts, choose_language

_USER = "api/v1/user/<id:user_id>"

urlpatterns: list[URLPattern] = [
    path("api/v1/chat", chat_views.ChatView.as_view()),
    path("api/v1/decision/<id:decision_id>/confirm", continuity.ConfirmView.as_view()),
    path("api/v1/decision/<id:decision_id>/outcome", continuity.OutcomeView.as_view()),
    path(f"{_USER}/state", continuity.StateView.as_view()),
    path(f"{_USER}/objects", continuity.ObjectsView.as_view()),
    path(f"{_USER}/objects/shell", continuity.ShellView.as_view()),
    path(f"{_USER}/objects/shell/latest", continuity.LatestShellView.as_view()),
    path(f"{_USER}/objects/success-path", continuity.SuccessPathView.as_view()),
    path("confirm/<str:confirmation_id>/<str:signature>", confirm_page, name="confirm_link"),
    path("api/v1/audit", AuditView.as_view()),
    path("admin", RedirectView.as_view(url="/admin/", query_string=True)),
    path("admin/login/", sign_in),
    path("admin/language/", choose_language, name="set_language"),
    path("admin/texts/<str:language>.js", ScriptTexts.as_view(), name="script_texts"),
    path("admin/once/<str:token>/", one_time_login, name="one_time_login"),
]
