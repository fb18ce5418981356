"""The ground's own addresses: the audit log, and the one-time way into the admin site."""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from decisions.audit_views import AuditView
from decisions.one_time_login import one_time_login

urlpatterns: list[URLPattern] = [
    path("api/v1/audit", AuditView.as_view()),
    path("admin", RedirectView.as_view(url="/admin/", query_string=True)),
    path("admin/once/<str:token>/", one_time_login, name="one_time_login"),
]
