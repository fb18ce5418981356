"""The ground's own addresses: the one-time way into the admin site."""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from decisions.one_time_login import one_time_login

urlpatterns: list[URLPattern] = [
    path("admin", RedirectView.as_view(url="/admin/", query_string=True)),
    path("admin/once/<str:token>/", one_time_login, name="one_time_login"),
]
